"""The workload `siblings`: two rounds of final reads with a rest between, which convergence is judged by."""

from __future__ import annotations

from faultline.harness.generator import planned_operations
from faultline.workloads.siblings import SiblingWrites


def test_every_worker_reads_every_last_key_twice_with_a_rest_between() -> None:
    generator = SiblingWrites().final_generator(workers=5, seed=3)
    rows = planned_operations(generator, workers=5, seed=3, latency_us=4_000)
    assert {row.f for row in rows} == {"read"}
    for worker in range(5):
        own = [row for row in rows if row.worker == worker]
        half = len(own) // 2
        assert [row.key for row in own[:half]] == [row.key for row in own[half:]]
        assert own[half].at_us - own[half - 1].at_us >= 300_000


def test_it_plans_reads_and_writes_alone() -> None:
    generator = SiblingWrites().generator(workers=5, operations=200, seed=1)
    assert {row.f for row in planned_operations(generator, workers=5, seed=1, latency_us=4_000)} == {"read", "write"}
