"""The workload `scans`: what it plans, without a cluster."""

from __future__ import annotations

from collections import Counter

from faultline.harness.generator import planned_operations
from faultline.harness.plan import PlannedOperation
from faultline.workloads.scans import Scans


def rows(seed: int, operations: int = 200) -> tuple[PlannedOperation, ...]:
    generator = Scans().generator(workers=5, operations=operations, seed=seed)
    return planned_operations(generator, workers=5, seed=seed, latency_us=4_000)


def test_keys_are_written_scanned_and_now_and_then_deleted() -> None:
    count = Counter(row.f for seed in range(10) for row in rows(seed))
    assert count.keys() == {"write", "delete", "scan"}
    assert count["write"] > count["scan"] > count["delete"] > 100


def test_no_value_is_written_twice() -> None:
    written = [row.value for row in rows(5) if row.f == "write"]
    assert len(written) == len(set(written))


def test_ranges_begin_below_their_end_and_some_have_none() -> None:
    scans = [row.value for seed in range(10) for row in rows(seed) if row.f == "scan"]
    assert all(end is None or start < end for start, end in scans)
    assert {end is None for _, end in scans} == {True, False}


def test_at_the_end_each_worker_scans_everything_and_both_halves() -> None:
    generator = Scans().final_generator(workers=3, seed=1)
    final = planned_operations(generator, workers=3, seed=1, latency_us=4_000)
    assert Counter(str(row.value) for row in final) == {"['', None]": 3, "['', 'k12']": 3, "['k12', None]": 3}
    nothing = Scans().final_generator(workers=3, seed=1, operations=0)
    assert planned_operations(nothing, workers=3, seed=1, latency_us=4_000) == ()
