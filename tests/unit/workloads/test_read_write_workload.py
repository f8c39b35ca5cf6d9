"""The workload `read-write`: `register` without compare-and-sets."""

from __future__ import annotations

from faultline.harness.generator import planned_operations
from faultline.harness.plan import PlannedOperation
from faultline.harness.workload import Workload
from faultline.workloads.read_write import ReadWrite
from faultline.workloads.register import Register


def rows(workload: Workload, seed: int) -> tuple[PlannedOperation, ...]:
    generator = workload.generator(workers=5, operations=200, seed=seed)
    return planned_operations(generator, workers=5, seed=seed, latency_us=4_000)


def test_only_reads_and_writes_are_planned() -> None:
    assert {row.f for seed in range(20) for row in rows(ReadWrite(), seed)} == {"read", "write"}


def test_it_differs_from_register_in_compare_and_sets_alone_which_become_writes() -> None:
    for ours, theirs in zip(rows(ReadWrite(), 3), rows(Register(), 3), strict=True):
        assert (ours.worker, ours.key, ours.at_us) == (theirs.worker, theirs.key, theirs.at_us)
        assert ours.value == (theirs.value[1] if theirs.f == "cas" else theirs.value)


def test_no_value_is_written_twice_to_a_key() -> None:
    written = [(row.key, row.value) for row in rows(ReadWrite(), 5) if row.f == "write"]
    assert len(written) == len(set(written))
