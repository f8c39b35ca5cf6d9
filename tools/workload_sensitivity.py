"""Measure the sensitivity of passes of each workload, for docs/reference/generated/workloads.md.

    python tools/workload_sensitivity.py              every workload; writes docs/reference/workload-sensitivity.jsonl
    python tools/workload_sensitivity.py register set only these; the others' lines stay as they are

Each workload runs on a system that keeps its promise, in the simulated world, under the fault set and with the seeds
below; the passes are probed with INSERTIONS of each anomaly. `queue`, which only real stores serve, runs on a queue
in this module. All figures follow from the seeds, so that they are the same wherever they are measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from faultline.harness.generator import planned_operations
from faultline.harness.history import History
from faultline.harness.judge import judge
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok
from faultline.harness.plan import Plan, PlannedOperation
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Sensitivity, probe, summed
from faultline.harness.verdict import Verdict
from faultline.registry import anomalies_of, checkers_of, load_workload, resolve

__all__ = [
    "INSERTIONS",
    "LIMITS",
    "RECORDS",
    "SEEDS",
    "SYSTEMS",
    "WorkloadSensitivity",
    "main",
    "measured",
    "queue_run",
    "read_records",
    "rows",
]

RECORDS = Path(__file__).resolve().parents[1] / "docs" / "reference" / "workload-sensitivity.jsonl"
SEEDS = range(20)
INSERTIONS = 20
FAULTS = {"membership": "partition"}
"""The fault set of each workload; `durability` where none is named."""

LATENCY_US = 4_000
FAULT_EVERY_US = 700_000

_System = tuple[str, Mapping[str, str]]
_CORE: _System = ("consistent-core", {})
_COORDINATION: _System = ("coordination-service", {})
_TRANSACTIONAL: _System = ("transactional-kv", {})

SYSTEMS: Mapping[str, _System] = {
    **dict.fromkeys(("register", "read-write", "follower-reads", "read-your-writes", "bounded-staleness"), _CORE),
    **dict.fromkeys(("set", "sequential", "append", "log-order"), _CORE),
    **dict.fromkeys(("counter", "sessions", "unique-ids", "transfer"), _CORE),
    **dict.fromkeys(("causal-writes", "dependent-writes"), _CORE),
    "moved-sessions": ("follower-reads", {}),
    **dict.fromkeys(("watches", "key-watches", "locks"), _COORDINATION),
    **dict.fromkeys(
        ("bank", "booking", "txn-append", "txn-register", "lost-update", "write-skew", "long-fork", "predicates"),
        _TRANSACTIONAL,
    ),
    "cart": ("quorum-kv", {"conflicts": "union"}),
    "siblings": ("quorum-kv", {}),
    "metadata": ("gossip", {}),
    "membership": ("emergent-leader", {}),
    "scans": ("range-kv", {}),
    "causal-pairs": ("timestamped-kv", {}),
    "queue": ("", {}),
}
"""The system of each workload: a correct one and its options, '' for the queue of this module."""

LIMITS: Mapping[tuple[str, str], str] = {
    ("bank", "lost-write"): "The total stays when both halves of a transfer are lost; `transfer` sees each of them.",
    ("bank", "duplicate-write"): "The total stays when a transfer happens twice; `transfer` sees each of them.",
    ("causal-pairs", "lost-write"): "Cause and effect are lost together, and only their order is promised.",
    (
        "causal-writes",
        "lost-write",
    ): "Only a session that knows a write may ask for it; other clients' reads may be old.",
    (
        "moved-sessions",
        "lost-write",
    ): "Only a session that knows a write may ask for it; other clients' reads may be old.",
    ("counter", "duplicate-write"): (
        "Increments without an answer may count or not, and one that counts twice hides behind one that does not count."
    ),
    (
        "follower-reads",
        "lost-write",
    ): "Only the session that wrote or read a value may ask for it; other clients' reads may be old.",
    (
        "read-your-writes",
        "lost-write",
    ): "Only the session that wrote a value may ask for it; other clients' reads may be old.",
    (
        "key-watches",
        "lost-write",
    ): "A change that no watch covers, and that was replaced before the next list, is told to no client.",
    (
        "watches",
        "lost-write",
    ): "A change that no watch covers, and that was replaced before the next list, is told to no client.",
    (
        "locks",
        "double-grant",
    ): "A holder that does nothing afterwards does not show that it believed to hold the lease.",
    (
        "long-fork",
        "lost-write",
    ): "A read without a write is no fork: only the order in which two writes are seen is promised.",
    (
        "membership",
        "split-brain",
    ): "Two groups show only while clients of both are served, and of one before and after the other.",
    ("metadata", "stale-replica"): "Only what the same client read twice through a node after the heal is compared.",
    ("predicates", "write-skew"): (
        "Two transactions contradict each other only where each is known to have missed a write of the other: an "
        "answer may lack a row because of its value, and a row that was deleted at some time shows no order."
    ),
    ("sessions", "lost-write"): "Only the session that made a version may ask for it; other clients' reads may be old.",
    (
        "siblings",
        "lost-write",
    ): "A value that is missing may have been replaced by its client's next write, which is there.",
    (
        "siblings",
        "stale-read",
    ): "A value that is missing may have been replaced by its client's next write, which is there.",
}
"""The reasons why a workload shows less than 80 % of an anomaly, by workload and anomaly."""


class WorkloadSensitivity(msgspec.Struct, frozen=True, kw_only=True):
    """The sensitivity of the passes of `workload` on `system`; `passes` of the `seeds` passed and were probed."""

    workload: str
    system: str
    faults: str
    seeds: str
    passes: int
    figures: tuple[Sensitivity, ...]


def measured(workload: str, seeds: range = SEEDS) -> WorkloadSensitivity:
    """Return the figures of `workload` over `seeds`."""
    system, _ = SYSTEMS[workload]
    probed = [figures for seed in seeds for figures in _probed(workload, seed)]
    return WorkloadSensitivity(
        workload=workload,
        system=system or "a perfect queue",
        faults=_faults(workload) if system else "",
        seeds=f"{seeds.start}..{seeds.stop - 1}",
        passes=len(probed),
        figures=summed(probed),
    )


def read_records() -> dict[str, WorkloadSensitivity]:
    """Return the last measurements, by workload."""
    lines = RECORDS.read_bytes().splitlines() if RECORDS.exists() else []
    records = [msgspec.json.decode(line, type=WorkloadSensitivity) for line in lines]
    return {record.workload: record for record in records}


def _probed(workload: str, seed: int) -> Iterator[tuple[Sensitivity, ...]]:
    """Yield the figures of one run, if it passed."""
    system, options = SYSTEMS[workload]
    if not system:
        yield _of(queue_run(seed), workload)
        return
    request = RunRequest(
        system=system, workload=workload, faults=(_faults(workload),), seed=seed, options=dict(options)
    )
    parts = resolve(request)
    record = run_simulated(make_plan(request, parts), parts)
    # A vacuous run is no pass, but its sensitivity is a figure all the same.
    if judge(record, parts, run_id="").verdict in (Verdict.PASS, Verdict.VACUOUS):
        yield _of(record, workload)


def _faults(workload: str) -> str:
    return FAULTS.get(workload, "durability")


def _of(record: RunRecord, workload: str) -> tuple[Sensitivity, ...]:
    found = load_workload(workload)
    return probe(record, checkers_of(found), anomalies_of(found), insertions=INSERTIONS)


def queue_run(seed: int) -> RunRecord:
    """Return a run of the workload `queue` on correct queues, with faults that have no effect."""
    workload = load_workload("queue")
    before = planned_operations(
        workload.generator(workers=5, operations=200, seed=seed), workers=5, seed=seed, latency_us=LATENCY_US
    )
    after = planned_operations(
        workload.final_generator(workers=5, seed=seed), workers=5, seed=seed, latency_us=LATENCY_US
    )
    heal_us = before[-1].at_us + 2 * LATENCY_US
    history = History()
    _play(history, before, 0, FAULT_EVERY_US)
    _play(history, after, heal_us, 0, _held(history))
    plan = Plan(
        system="queue",
        workload="queue",
        seed=seed,
        nodes=("athens",),
        workers=5,
        operations=(),
        heal_us=heal_us,
        end_us=history.end_us(),
    )
    return RunRecord(plan=plan, world="simulated", history=history)


def _held(history: History) -> dict[str | None, list[int]]:
    """Return the remaining elements of each queue."""
    taken = {(key, result) for key, f, result in zip(history.key, history.f, history.result) if f == "dequeue"}
    held: dict[str | None, list[int]] = {}
    for key, f, value in zip(history.key, history.f, history.value, strict=True):
        if f == "enqueue" and (key, value) not in taken:
            held.setdefault(key, []).append(value)
    return held


def _play(
    history: History,
    planned: Sequence[PlannedOperation],
    since_us: int,
    fault_every_us: int,
    held: dict[str | None, list[int]] | None = None,
) -> None:
    """Play the operations: each takes LATENCY_US, and effect at its end."""
    queues = held or {}
    events = [(since_us + each.at_us, False, number) for number, each in enumerate(planned)]
    events += [(since_us + each.at_us + LATENCY_US, True, number) for number, each in enumerate(planned)]
    rows: dict[int, int] = {}
    fault_us = fault_every_us
    for time_us, is_end, number in sorted(events):
        if fault_every_us and time_us > fault_us:
            history.fault("start-kill", {"fault": fault_us // fault_every_us, "applied": None}, fault_us)
            fault_us += fault_every_us
        each = planned[number]
        if is_end:
            history.complete(rows[number], ok(_taken(queues, each)), time_us)
        else:
            operation = Operation(100 * each.worker + number, each.f, each.key, each.value)
            rows[number] = history.invoke(operation, time_us, each.worker, "athens")


def _taken(queues: dict[str | None, list[int]], operation: PlannedOperation) -> object:
    queue = queues.setdefault(operation.key, [])
    if operation.f == "enqueue":
        queue.append(operation.value)
        return None
    if operation.f == "dequeue":
        return queue.pop(0) if queue else None
    drained, queue[:] = list(queue), []
    return drained


def main(arguments: list[str] | None = None) -> int:
    """Measure the workloads that are named, all by default, and write their lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="*", choices=[*sorted(SYSTEMS), []], help="which; all by default")
    named = parser.parse_args(arguments).workloads or sorted(SYSTEMS)
    for name in named:
        record = measured(name)
        told = ", ".join(f"{each.anomaly} {each.shown}/{each.inserted}" for each in record.figures)
        print(f"{name}: {told}", flush=True)
        records = read_records() | {name: record}
        lines = [msgspec.json.encode(records[known]) + b"\n" for known in sorted(records) if known in SYSTEMS]
        RECORDS.write_bytes(b"".join(lines))
    return 0


def rows(workload: str) -> dict[str, dict[str, str]]:
    """Return the figures of `workload` for its page: for each anomaly how much was shown, and why it is not more."""
    return {
        each.anomaly: {
            "shown": f"{100 * each.shown // each.inserted} % ({each.shown} of {each.inserted})",
            "limit": LIMITS.get((workload, each.anomaly), "") or each.limit,
        }
        for each in read_records()[workload].figures
        if each.inserted
    }


if __name__ == "__main__":
    sys.exit(main())
