"""The workload `cart`: adds and reads, two rounds of final reads, and a checker that misses what was acknowledged."""

from __future__ import annotations

from faultline.harness.generator import planned_operations
from faultline.workloads.carts import Carts


def test_it_plans_adds_of_distinct_elements_and_reads() -> None:
    rows = planned_operations(Carts().generator(workers=5, operations=200, seed=1), workers=5, seed=1, latency_us=4_000)
    assert {row.f for row in rows} == {"add", "read"}
    added = [(row.key, row.value) for row in rows if row.f == "add"]
    assert len(added) == len(set(added)) > 50


def test_every_worker_reads_every_last_cart_twice_with_a_rest_between() -> None:
    rows = planned_operations(Carts().final_generator(workers=5, seed=3), workers=5, seed=3, latency_us=4_000)
    for worker in range(5):
        own = [row for row in rows if row.worker == worker]
        half = len(own) // 2
        assert own and [row.key for row in own[:half]] == [row.key for row in own[half:]]
        assert own[half].at_us - own[half - 1].at_us >= 300_000
