"""One run as one row, the input of the result tables of a campaign.

The schema is written out, so that every task produces the same types. Latencies are binned to three significant
digits: quantiles keep that precision, and a histogram of any number of runs stays small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from faultline.campaign.coverage import covered
from faultline.campaign.expectation import Expectation, telling_finding
from faultline.harness.history import OPEN, History
from faultline.harness.judgement import Judgement
from faultline.harness.run_record import FaultInterval, RunRecord
from faultline.harness.verdict import Finding, Verdict

__all__ = ["RUN_SCHEMA", "binned", "check_figures", "latencies", "run_row", "table_of_rows"]

_FIGURE_MAX = 1 << 50
"""More than any run leaves: in microseconds it is 35 years. The sum of 8,000 such figures fits in 64 bits."""


_COUNTS = pa.map_(pa.string(), pa.int64())
_TEXTS = pa.list_(pa.string())
_FINDING = pa.struct(
    [
        ("checker", pa.string()),
        ("anomaly", pa.string()),
        ("sentence", pa.string()),
        ("key", pa.string()),
        ("operations", pa.list_(pa.int64())),
        ("time_us", pa.int64()),
        ("node", pa.string()),
        ("detail", pa.string()),
    ]
)
_LATENCY = pa.struct(
    [
        ("f", pa.string()),
        ("outcome", pa.string()),
        ("during_fault", pa.bool_()),
        ("latency_us", pa.list_(pa.int64())),
        ("max_us", pa.int64()),
    ]
)
_FAULT = pa.struct(
    [
        ("kind", pa.string()),
        ("injections", pa.int64()),
        ("not_applied", pa.int64()),
        ("active_us", pa.int64()),
        ("operations_in_flight", pa.int64()),
    ]
)
_SENSITIVITY = pa.struct(
    [("anomaly", pa.string()), ("inserted", pa.int64()), ("shown", pa.int64()), ("limit", pa.string())]
)

RUN_SCHEMA = pa.schema(
    [
        ("run_id", pa.string()),
        ("cell", pa.string()),
        ("system", pa.string()),
        ("workload", pa.string()),
        ("fault_set", _TEXTS),
        ("mutants", _TEXTS),
        ("seed", pa.int64()),
        ("world", pa.string()),
        ("verdict", pa.string()),
        ("sentence", pa.string()),
        ("signature", pa.string()),
        ("checker", pa.string()),
        ("anomaly", pa.string()),
        ("counterexample_operations", pa.int64()),
        ("counterexample_faults", _TEXTS),
        ("findings", pa.list_(_FINDING)),
        ("warnings", _TEXTS),
        ("errors", _TEXTS),
        ("counts", _COUNTS),
        ("marks", _COUNTS),
        ("exposure", _COUNTS),
        ("sensitivity", pa.list_(_SENSITIVITY)),
        ("statistics", _COUNTS),
        ("latency", pa.list_(_LATENCY)),
        ("faults", pa.list_(_FAULT)),
        ("history_sha256", pa.string()),
        ("plan_sha256", pa.string()),
        ("folder_kept", pa.bool_()),
        ("replay", pa.string()),
        ("run_again", pa.string()),
        ("verdict_only", pa.bool_()),
        ("covered", _TEXTS),
    ]
)
"""The columns of a run. `folder_kept` says whether its whole folder exists, `replay` is the command that repeats it
from there, `run_again` the one that runs the seed again. `verdict_only` says that the row was made from the verdict
alone, so that the run's faults and latencies are not known. `covered` are the values drawn for the run, and the roles
that each kind of fault struck (`faultline.campaign.coverage`)."""


def table_of_rows(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Return the rows as an Arrow table with exactly the columns of RUN_SCHEMA."""
    return pa.Table.from_pylist(list(rows), schema=RUN_SCHEMA)


def check_figures(table: pa.Table) -> None:
    """Raise ValueError when a figure of the rows is so large that no run left it, and no sum over runs may hold it."""
    for name in table.column_names:
        for figures in _integers(table[name].combine_chunks()) if name != "seed" else ():
            least, most = pc.min_max(figures).as_py().values()
            if most is not None and not -_FIGURE_MAX <= least <= most <= _FIGURE_MAX:
                raise ValueError(f"a figure in {name} that no run leaves")


def _integers(values: pa.Array) -> Iterator[pa.Array]:
    """Yield all integers in `values`, also those inside lists, maps and structures."""
    if pa.types.is_integer(values.type):
        yield values
    elif pa.types.is_struct(values.type):
        for field in values.flatten():
            yield from _integers(field)
    elif pa.types.is_map(values.type):
        yield from _integers(values.items)
    elif pa.types.is_list(values.type):
        yield from _integers(values.flatten())


def run_row(
    judgement: Judgement,
    record: RunRecord | None,
    *,
    expected: Expectation,
    folder_kept: bool,
    run_again: str,
    verdict_only: bool = False,
) -> dict[str, Any]:
    """Return the row of one judged run; `record` is None where there is no history, or none was read (`verdict_only`).

    The first finding that is not `expected` represents the run, else the first.
    """
    first = telling_finding(judgement.findings, expected)
    return {
        "run_id": judgement.run_id,
        "cell": judgement.cell,
        "system": judgement.system,
        "workload": judgement.workload,
        "fault_set": judgement.fault_set,
        "mutants": judgement.planted_bugs,
        "seed": judgement.seed,
        "world": judgement.world,
        "verdict": judgement.verdict.value,
        "sentence": first.sentence if judgement.verdict is Verdict.VIOLATION and first else judgement.sentence,
        "signature": first.signature if first else "",
        "checker": first.checker if first else "",
        "anomaly": first.anomaly if first else "",
        "counterexample_operations": len(first.operations) if first else 0,
        "counterexample_faults": _faults_around(first, record) if first and record else [],
        "findings": list(map(_finding, judgement.findings)),
        "warnings": judgement.warnings,
        "errors": judgement.errors,
        "counts": list(judgement.counts.items()),
        "marks": list(judgement.marks.items()),
        "exposure": list(judgement.exposure.figures().items()),
        "sensitivity": [msgspec.to_builtins(figure) for figure in judgement.sensitivity],
        "statistics": list(judgement.statistics.items()),
        "latency": latencies(record.history, record.faults) if record else [],
        "faults": _faults(record.faults, judgement.overlap) if record else [],
        "history_sha256": judgement.history_sha256,
        "plan_sha256": judgement.plan_sha256,
        "folder_kept": folder_kept,
        "replay": judgement.replay,
        "run_again": run_again,
        "verdict_only": verdict_only,
        "covered": covered(record) if record else [],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "checker": finding.checker,
        "anomaly": finding.anomaly,
        "sentence": finding.sentence,
        "key": finding.key,
        "operations": finding.operations,
        "time_us": finding.time_us,
        "node": finding.node,
        "detail": msgspec.json.encode(finding.detail).decode(),
    }


def _faults_around(finding: Finding, record: RunRecord) -> list[str]:
    """Return the kinds of fault in force during the counterexample, else the last one that began before it."""
    history = record.history
    known = [row for row in finding.operations if row < len(history)]
    start_us = min((history.invoke_us[row] for row in known), default=finding.time_us)
    end_us = max((history.complete_us[row] for row in known), default=finding.time_us)
    during = [fault.kind for fault in record.faults if fault.start_us <= end_us and fault.stop_us >= start_us]
    before = [fault.kind for fault in record.faults if fault.start_us < start_us]
    return list(dict.fromkeys(during or before[-1:]))


def _faults(faults: Iterable[FaultInterval], overlap: dict[str, int]) -> list[dict[str, Any]]:
    by_kind: dict[str, list[FaultInterval]] = {}
    for fault in faults:
        by_kind.setdefault(fault.kind, []).append(fault)
    return [
        {
            "kind": kind,
            "injections": len(group),
            "not_applied": sum(fault.applied is not None for fault in group),
            "active_us": sum(fault.stop_us - fault.start_us for fault in group),
            "operations_in_flight": overlap.get(kind, 0),
        }
        for kind, group in sorted(by_kind.items())
    ]


def latencies(history: History, faults: Sequence[FaultInterval]) -> list[dict[str, Any]]:
    """Return the latencies of completed operations by function, outcome and whether a fault was in force."""
    groups: dict[tuple[str, str, bool], list[int]] = {}
    windows = _merged([(fault.start_us, fault.stop_us) for fault in faults])
    columns = zip(history.f, history.outcome, history.invoke_us, history.complete_us, strict=True)
    for f, outcome, invoke_us, complete_us in columns:
        if complete_us != OPEN:
            during = any(start <= complete_us and stop >= invoke_us for start, stop in windows)
            groups.setdefault((f, outcome, during), []).append(complete_us - invoke_us)
    return [
        {
            "f": f,
            "outcome": outcome,
            "during_fault": during,
            "latency_us": list(map(binned, samples)),
            "max_us": max(samples),
        }
        for (f, outcome, during), samples in sorted(groups.items())
    ]


def _merged(windows: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(windows):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def binned(latency_us: int) -> int:
    """Return `latency_us` to three significant digits, rounded half up."""
    step: int = 10 ** max(0, len(str(latency_us)) - 3)
    return (latency_us + step // 2) // step * step
