"""Runs and campaigns made by hand for the tests of the reports: small, complete, and always the same."""

from __future__ import annotations

from typing import Any

from faultline.harness.history import History
from faultline.harness.judgement import Judgement
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, fail, info, ok
from faultline.harness.plan import Plan
from faultline.harness.run_record import FaultInterval, MessageRecord, RunRecord
from faultline.harness.verdict import CheckResult, Finding, Verdict

QUANTILES = ("p50_us", "p95_us", "p99_us", "max_us")
NODES = ("athens", "byzantium", "cyrene")
REPLAY = (
    "faultline run --system consistent-core --planted-bug stale-read --workload register --faults partition --seed 17"
)
SENTENCE = (
    "Linearizability of k3 is violated: at 2.420 s client 4 read 7 although client 2's write of 9 "
    "had completed at 2.104 s; 4 of 208 operations show it."
)


def record_operation(
    history: History,
    process: int,
    f: str,
    value: Any,
    start_us: int,
    stop_us: int | None,
    outcome: Outcome,
    **where: Any,
) -> int:
    """One operation, completed unless `stop_us` is None; returns its row."""
    operation = Operation(process, f, where.get("key", "k3"), value)
    row = history.invoke(operation, start_us, where.get("worker", process % 5), where.get("node", NODES[process % 3]))
    if stop_us is not None:
        history.complete(row, outcome, stop_us)
    return row


def calm_operations(history: History, count: int, start_us: int, step_us: int) -> None:
    """`count` quick operations of five clients on other keys."""
    for number in range(count):
        process, at_us = number % 5, start_us + number * step_us
        latency_us = 900 + (number * 7_919) % 3_100
        f, value = ("read", None) if number % 3 else ("write", number)
        answer = ok(number) if f == "read" else ok()
        outcome = fail("not-leader") if number % 23 == 5 else answer
        record_operation(history, process, f, value, at_us, at_us + latency_us, outcome, key=f"k{number % 3}")


def stale_read_history() -> tuple[History, tuple[int, ...]]:
    """A deposed leader answers a read from its old state; returns the history and the rows that show it."""
    history = History()
    calm_operations(history, 100, 10_000, 20_000)
    shown = (
        record_operation(history, 0, "write", 7, 2_050_000, 2_053_000, ok()),
        record_operation(history, 7, "cas", [7, 8], 2_085_000, None, ok(), worker=2),
        record_operation(history, 2, "write", 9, 2_096_000, 2_104_000, ok(), node="byzantium"),
        record_operation(history, 4, "read", None, 2_417_000, 2_420_000, ok(7), node="athens"),
    )
    calm_operations(history, 100, 2_500_000, 20_000)
    record_operation(history, 1, "write", 1, 3_300_000, 3_500_000, info("timeout"), key="k1")
    return history, shown


def faults() -> list[FaultInterval]:
    """A partition, a pause and a kill around the stale read, and a clock step that did not take effect."""
    alone = tuple((a, b) for a in NODES for b in NODES if (a == "athens") != (b == "athens"))
    return [
        FaultInterval(
            kind="partition", target="leader", start_us=1_900_000, stop_us=2_480_000, links=alone, roles=("leader",),
            description="partition of athens | byzantium cyrene",
        ),
        FaultInterval(kind="pause", target="one", start_us=2_060_000, stop_us=2_092_000, nodes=("cyrene",)),
        FaultInterval(kind="kill", target="one", start_us=2_700_000, stop_us=3_100_000, nodes=("byzantium",)),
        FaultInterval(
            kind="clock-step", target="athens", start_us=3_600_000, stop_us=3_900_000, nodes=("athens",),
            applied="the offset was 0 µs after the step",
        ),
    ]  # fmt: skip


def messages() -> list[MessageRecord]:
    """The messages of a traced run around the stale read."""
    return [
        MessageRecord("client-2", "byzantium", "ClientRequest", 2_096_000, 2_097_500, "write k3 = 9"),
        MessageRecord("byzantium", "athens", "AppendEntries", 2_098_000, -1, "generation 5, entry 41"),
        MessageRecord("byzantium", "cyrene", "AppendEntries", 2_098_000, 2_099_800, "generation 5, entry 41"),
        MessageRecord("cyrene", "byzantium", "AppendReply", 2_100_500, 2_102_300, "match 41"),
        MessageRecord("byzantium", "client-2", "ClientReply", 2_102_700, 2_104_000, "ok"),
        MessageRecord("client-4", "athens", "ClientRequest", 2_417_000, 2_418_200, "read k3"),
        MessageRecord("athens", "client-4", "ClientReply", 2_418_400, 2_420_000, "7"),
    ]


def plan(**changes: Any) -> Plan:
    """The plan of the sample run."""
    values: dict[str, Any] = {
        "system": "consistent-core", "workload": "register", "seed": 17, "nodes": NODES, "workers": 5, "operations": (),
        "fault_set": ("partition", "pause"), "options": {"read-mode": "read-index"}, "planted_bugs": ("stale-read",),
        "heal_us": 3_200_000, "end_us": 5_000_000,
    }  # fmt: skip
    return Plan(**(values | changes))


def violating_run(traced: bool = False) -> tuple[RunRecord, Judgement]:
    """The stale read, as record and judgement."""
    history, shown = stale_read_history()
    record = RunRecord(
        plan=plan(), world="simulated", history=history, faults=faults(), messages=messages() if traced else [],
        marks={"leader-changed": 3, "entries-truncated": 1},
    )  # fmt: skip
    return record, judgement(findings_of(shown))


def findings_of(shown: tuple[int, ...]) -> list[Finding]:
    """The stale read and, behind it, a breach inside a node."""
    return [
        Finding(
            checker="linearizability", anomaly="stale-read", sentence=SENTENCE, key="k3", operations=shown,
            time_us=2_420_000, detail={"longest partial linearization": [101, 100, 102], "models violated": "register"},
        ),
        Finding(
            checker="invariants", anomaly="LDR-I2", node="athens", time_us=2_418_000,
            sentence="athens answered a read as leader of generation 4 after byzantium had begun generation 5.",
        ),
    ]  # fmt: skip


def judgement(findings: list[Finding], **changes: Any) -> Judgement:
    """A judgement with `findings`, a violation unless changed."""
    values: dict[str, Any] = {
        "run_id": "consistent-core-stale-read-17", "cell": "consistent-core+stale-read/register/partition+pause",
        "system": "consistent-core", "workload": "register", "fault_set": ("partition", "pause"),
        "planted_bugs": ("stale-read",), "options": {"read-mode": "read-index"}, "seed": 17, "world": "simulated",
        "verdict": Verdict.VIOLATION, "sentence": SENTENCE, "signature": "linearizability:stale-read:w-w-r",
        "findings": findings, "counts": {"ok": 190, "fail": 9, "info": 2}, "overlap": {"partition": 31, "pause": 3},
        "checks": [
            CheckResult(checker="linearizability", verdict=Verdict.VIOLATION, sentence="Key k3 is not linearizable."),
            CheckResult(checker="recovery", verdict=Verdict.PASS, sentence="Every client was served again."),
        ],
        "warnings": ["No read of key k1 was in flight after the heal."], "marks": {"leader-changed": 3},
        "statistics": {"events": 20_114, "messages": 9_313}, "replay": REPLAY, "history_sha256": "ab" * 32,
        "plan_sha256": "cd" * 32, "versions": {"faultline": "0.1.0", "python": "3.11.2"},
    }  # fmt: skip
    return Judgement(**(values | changes))


def passing_run() -> tuple[RunRecord, Judgement]:
    """A run of the correct system in which everything held."""
    history = History()
    calm_operations(history, 200, 10_000, 20_000)
    record = RunRecord(plan=plan(planted_bugs=()), world="simulated", history=history, faults=faults()[:3])
    sentence = "Everything that was checked held: 3 keys are linearizable over 200 operations."
    return record, judgement(
        [], verdict=Verdict.PASS, sentence=sentence, planted_bugs=(), signature="", warnings=[], checks=[]
    )


def long_run(operations: int = 20_000) -> tuple[RunRecord, Judgement]:
    """A long run whose only anomaly lies in its last hundredth."""
    history = History()
    calm_operations(history, operations - 3, 1_000, 5_000)
    end_us = 5_000 * operations
    shown = (
        record_operation(history, 0, "write", 7, end_us, end_us + 2_000, ok(), key="late"),
        record_operation(history, 1, "write", 9, end_us + 3_000, end_us + 4_000, ok(), key="late"),
        record_operation(history, 2, "read", None, end_us + 5_000, end_us + 6_000, ok(7), key="late"),
    )
    finding = Finding(
        checker="linearizability", anomaly="stale-read", key="late", operations=shown, time_us=end_us + 6_000,
        sentence="Linearizability of late is violated at the very end.",
    )  # fmt: skip
    record = RunRecord(plan=plan(), world="simulated", history=history, faults=faults())
    return record, judgement([finding], sentence=finding.sentence)


# -- campaigns ---------------------------------------------------------------------------------------------------


def cell(
    planted_bug: str, faults_: tuple[str, ...], expected: list[str], counts: dict[str, int], workload: str = "register"
) -> dict[str, Any]:
    """One cell of a campaign summary, without the derived rates."""
    planted_bugs = [planted_bug] if planted_bug else []
    name = f"consistent-core{'+' + planted_bug if planted_bug else ''}/{workload}/{'+'.join(faults_) or 'calm'}"
    return {
        "cell": name, "system": "consistent-core", "workload": workload, "fault_set": list(faults_), "planted_bugs": planted_bugs,
        "options": {}, "expected": expected, "verdict": "violation" if counts.get("violation") else "pass",
        "sentence": "", "runs": 50, "counts": counts,
        "violations_expected": counts.get("violation", 0) if expected else 0,
    }  # fmt: skip


def campaign_summary() -> dict[str, Any]:
    """A campaign with every status in it: one violation was expected, one was not."""
    cells = [
        cell("", (), [], {"pass": 50}),
        cell("", ("partition",), [], {"pass": 48, "unknown": 2}),
        cell("", ("kill", "pause"), [], {"violation": 3, "pass": 45, "harness-error": 2}),
        cell("stale-read", (), [], {"vacuous": 1, "pass": 40}),
        cell("stale-read", ("partition",), ["stale-read"], {"violation": 14, "pass": 36}),
        cell("stale-read", ("kill", "pause"), ["stale-read"], {"pass": 50}),
    ]
    return {
        "schema": 2, "id": "demo-3f21", "name": "demo", "verdict": "violation", "runs": 300,
        "sentence": "Campaign demo: 6 cells × 50 seeds = 300 runs; 1 distinct violation where none was expected, "
        "1 expected violation confirmed, 2 unknown, 2 harness errors.",
        "counts": {"pass": 269, "violation": 17, "unknown": 2, "vacuous": 1, "harness-error": 2},
        "cells": cells, "signatures": signatures(),
        "marks": {"leader-changed": 812, "links-cut": 1_400}, "marks_missing": ["entries-truncated"],
        "latency": latency_rows(), "overlap": {"partition": 4_120, "kill": 2_010},
        "warnings": ["entries-truncated was never reached: the campaign says nothing about log truncation."],
        "environment": {"machine": "2 cores", "master": "local[*]"},
        "versions": {"faultline": "0.1.0", "spark": "4.0.0"},
    }  # fmt: skip


def signatures() -> list[dict[str, Any]]:
    """Two distinct violations."""
    common = {"checker": "linearizability", "wilson_low": 0.17, "wilson_high": 0.42, "operations": 4, "replay": REPLAY}
    return [
        common | {
            "signature": "linearizability:lost-write:w-r", "anomaly": "lost-write",
            "cell": "consistent-core/register/kill+pause",
            "count": 3, "rate": 0.06, "wilson_low": 0.02, "wilson_high": 0.16,
            "first_seed": 8, "run_id": "r-8", "fault_kinds": ["kill"],
            "report": "runs/r-8/report.html",
            "sentence": "Linearizability of k0 is violated: the acknowledged write of 5 was never read.",
        },
        common | {
            "signature": "linearizability:stale-read:w-w-r", "anomaly": "stale-read", "count": 14, "rate": 0.28,
            "cell": "consistent-core+stale-read/register/partition", "first_seed": 17, "run_id": "r-17",
            "fault_kinds": ["partition"], "report": "", "sentence": SENTENCE, "expected": True,
        },
    ]  # fmt: skip


def latency_rows() -> list[dict[str, Any]]:
    """Latencies of one cell."""
    base = {"cell": "consistent-core/register/partition", "f": "read", "outcome": "ok", "count": 3_000}
    return [
        base | {"window": "inside", "p50_us": 2_400, "p95_us": 90_000, "p99_us": 310_000, "max_us": 990_000},
        base | {"window": "outside", "p50_us": 1_900, "p95_us": 4_000, "p99_us": 6_100, "max_us": 40_000},
        base | {"outcome": "info", "window": "inside", "count": 12} | dict.fromkeys(QUANTILES),
    ]  # fmt: skip
