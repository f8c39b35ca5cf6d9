"""The workload on queues: elements go in once, come out by others, and every queue is drained at the end."""

from __future__ import annotations

from collections import Counter

from faultline.harness.generator import planned_operations
from faultline.harness.plan import PlannedOperation
from faultline.registry import load_system, load_workload

WORKLOAD = load_workload("queue")
SEEDS = range(8)


def rows(seed: int) -> tuple[PlannedOperation, ...]:
    generator = WORKLOAD.generator(workers=5, operations=200, seed=seed)
    return planned_operations(generator, workers=5, seed=seed, latency_us=4_000)


def final_rows(seed: int) -> tuple[PlannedOperation, ...]:
    generator = WORKLOAD.final_generator(workers=5, seed=seed)
    return planned_operations(generator, workers=5, seed=seed, latency_us=4_000)


def test_no_element_is_put_in_twice_and_most_can_be_taken_out() -> None:
    for seed in SEEDS:
        planned = rows(seed)
        elements = [row.value for row in planned if row.f == "enqueue"]
        assert len(planned) == 200 and len(set(elements)) == len(elements)
        assert 60 < sum(row.f == "dequeue" for row in planned) < len(elements)


def test_every_worker_drains_every_queue_twice() -> None:
    for seed in SEEDS:
        drains = Counter((row.worker, row.key) for row in final_rows(seed))
        assert {row.f for row in final_rows(seed)} == {"drain"}
        assert set(drains) == {(worker, row.key) for worker in range(5) for row in rows(seed)}
        assert set(drains.values()) == {2}


def test_seeds_differ_in_the_number_of_queues() -> None:
    assert {len({row.key for row in rows(seed)}) for seed in SEEDS} == {1, 2}


def test_lost_and_repeated_elements_are_what_is_judged_first_and_these_stores_serve_it() -> None:
    assert WORKLOAD.checkers()[0].name == "total-queue"
    for name in ("redis-sentinel", "redis-cluster", "rabbitmq"):
        assert set(WORKLOAD.functions) <= set(load_system(name).functions)
