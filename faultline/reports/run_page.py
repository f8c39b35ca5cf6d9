"""The report on one run: `report.html`, and the values its template prints.

It follows the questions of a reader whose store has just failed: the violation, the command that repeats it, the few
operations that show it, the faults meanwhile, the signs that the run tested enough, and the settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from faultline.harness.exposure import Exposure
from faultline.harness.history import OPEN, History
from faultline.harness.judgement import Judgement
from faultline.harness.next_step import check_line, next_step_of
from faultline.harness.plan import Plan
from faultline.harness.run_record import FaultInterval, MessageRecord, RunRecord
from faultline.harness.sensitivity import sensitivity_sentence
from faultline.harness.verdict import Finding
from faultline.reports.cycle import cycle_lines, cycle_svg, edge_meanings, transaction_names
from faultline.reports.fault_choice import needed_for, settled_faults
from faultline.reports.latency import latency_finding, latency_svg, latency_table
from faultline.reports.legend import fault_family
from faultline.reports.node_logs import Excerpt, LogLine, node_logs_excerpt
from faultline.reports.page import render, write_page
from faultline.reports.selection import Shown, shown_of
from faultline.reports.sentences import (
    decimals_for,
    ending_sentence,
    exposure_sentence,
    fault_subject,
    judgement_sentence,
    message_text,
    operation_sentence,
    other_seeds_sentence,
    universe_sentence,
)
from faultline.reports.space_time import space_time_svg
from faultline.reports.terminal import run_lines
from faultline.reports.text import count, duration, value_text

__all__ = ["counterexample", "run_values", "write_run_report"]

_MOST_FINDINGS = 20
_MOST_FAULT_ROWS = 200
_MOST_MESSAGE_ROWS = 200


def write_run_report(folder: Path, record: RunRecord, judgement: Judgement) -> Path:
    """Write `folder/report.html` and return its path. The same run gives the same bytes."""
    return write_page(folder / "report.html", render("run.html", run_values(record, judgement)))


def run_values(record: RunRecord, judgement: Judgement) -> dict[str, Any]:
    """Return the values for the template of the run page, as plain data."""
    findings = judgement.findings
    main = counterexample(record, judgement, findings[0], "counterexample") if findings else None
    minimal: dict[str, Any] = judgement.detail.get("minimal") or {}
    return {
        "title": judgement_sentence(judgement),
        "verdict": judgement.verdict.value,
        "judgement": judgement,
        "plan": record.plan,
        "main": main,
        "others": [_other(record, judgement, index) for index in range(2, min(len(findings), _MOST_FINDINGS) + 1)],
        "findings_left_out": max(0, len(findings) - _MOST_FINDINGS),
        "faults": [_fault_row(record.history, fault) for fault in settled_faults(record)[:_MOST_FAULT_ROWS]],
        "faults_left_out": max(0, len(record.faults) - _MOST_FAULT_ROWS),
        "latency_svg": latency_svg(record),
        "latency_finding": latency_finding(record),
        "latency": latency_table(record),
        "operations": _operation_counts(record.history),
        "overlap": sorted(judgement.overlap.items()),
        "exposure": exposure_sentence(judgement.exposure),
        "sensitivity": sensitivity_sentence(judgement.sensitivity),
        "faults_by_kind": _faults_by_kind(judgement.exposure),
        "marks": sorted((judgement.marks or record.marks).items()),
        "features_missing": sorted(name for name, times in judgement.exposure.features.items() if not times),
        "settings": _settings(record, judgement),
        "statements": judgement.statements or {},
        "summaries": judgement.summaries or {},
        "universe": _universe(record.plan, judgement),
        "changed": sorted(judgement.options_changed.items()),
        "options": sorted(judgement.options.items()),
        "host_options": sorted(judgement.host_options.items()),
        "errors": list(dict.fromkeys([*judgement.errors, *record.errors])),
        "ending": ending_sentence(record),
        "recheck": check_line(judgement.replay),
        "next_step": next_step_of(judgement),
        "minimal": minimal,
        "minimal_universe": universe_sentence(minimal["universe"]) if "universe" in minimal else "",
        "other_seeds": other_seeds_sentence(minimal),
        "robust": minimal.get("robust"),
        "ticket": "\n".join(run_lines(record, judgement)),
    }


def counterexample(record: RunRecord, judgement: Judgement, finding: Finding, prefix: str) -> dict[str, Any]:
    """Return the figure of `finding`, its numbered list, the faults and messages around it, and the omissions."""
    shown = shown_of(record, finding, needed=needed_for(judgement, finding))
    ends = [row.complete_us for row in shown.rows if row.complete_index != OPEN]
    decimals = decimals_for([row.invoke_us for row in shown.rows] + ends)
    title, names = finding.sentence[:300], transaction_names(finding)
    logs = node_logs_excerpt(record, shown.start_us, shown.stop_us, shown.faults.since_us)
    return {
        "finding": finding,
        "svg": space_time_svg(shown, title=title, prefix=prefix, names=names, logged=_meanwhile(logs, shown)),
        "operations": [
            {
                "name": names.get(row.row),
                "text": operation_sentence(row, decimals),
                "telling": row.row == shown.telling,
                "outcome": row.outcome,
            }
            for row in shown.rows
        ],
        "faults": shown.faults.sentences(decimals),
        "silence": shown.faults.silence,
        "caption": _caption(finding, len(shown.rows), len(record.history)),
        "cycle_svg": cycle_svg(finding, prefix),
        "cycle": cycle_lines(finding),
        "edge_meanings": edge_meanings(finding),
        "detail": _details(finding.detail),
        "messages": [_message(message) for message in shown.messages.drawn],
        "messages_sent": shown.messages.sent,
        "messages_left_out": shown.messages.left_out,
        "messages_dropped_us": record.messages_dropped_us if record.messages_dropped_us > shown.start_us else 0,
        "logs": logs,
    }


def _meanwhile(logs: Excerpt | None, shown: Shown) -> list[LogLine]:
    """Return the lines of the nodes' logs from the time that the figure shows."""
    lines = logs.lines if logs else []
    return [line for line in lines if isinstance(line, LogLine) and shown.start_us <= line.time_us <= shown.stop_us]


def _caption(finding: Finding, shown: int, total: int) -> str:
    if not shown:
        return "No operation was in flight around this moment."
    named = len({row for row in finding.operations if row < total})
    if not named:
        return f"The {count(shown, 'operation')} nearest to the moment it happened, of {total:,}."
    if shown < named:
        return f"The {shown} operations nearest to the anomaly, of {named:,} that show it and {total:,} in the run."
    return f"{count(shown, 'operation')} of {total:,} {'suffices' if shown == 1 else 'suffice'} to show it."


def _details(detail: dict[str, Any]) -> list[tuple[str, str]]:
    told = () if detail.get("edges") else ("",)  # The edges of a cycle and its transactions are already in words.
    shown = ((name, value) for name, value in sorted(detail.items()) if told or name not in ("edges", "transactions"))
    return [(name.replace("_", " "), value_text(value, 1_500)) for name, value in shown]


def _message(message: MessageRecord) -> dict[str, Any]:
    return {
        "sent": message.send_us,
        "received": "lost"
        if message.receive_us < 0
        else f"{message.receive_us / 1e6:.6f} s{', stale' * message.stale}",
        "way": f"{message.source} → {message.target}",
        "what": value_text(message_text(message), 200),
    }


def _other(record: RunRecord, judgement: Judgement, index: int) -> dict[str, Any]:
    """Return a further finding: in full when it names operations, else its sentence alone."""
    finding = judgement.findings[index - 1]
    is_full = index <= 4 and finding.operations
    shown = counterexample(record, judgement, finding, f"finding-{index}") if is_full else None
    return {"finding": finding, "counterexample": shown}


def _fault_row(history: History, fault: FaultInterval) -> dict[str, Any]:
    recovered = _recovery_us(history, fault.stop_us)
    return {
        "fault": fault,
        "glyph": fault_family(fault.kind).begin,
        "subject": fault_subject(fault),
        "roles": ", ".join(fault.roles),
        "length": duration(max(0, fault.stop_us - fault.start_us)),
        "recovery": "none seen" if recovered is None else duration(recovered),
    }


def _recovery_us(history: History, healed_us: int) -> int | None:
    """Return the time from the end of a fault to the first success of an operation invoked after it."""
    completions = [
        history.complete_us[row]
        for row in range(len(history))
        if history.invoke_us[row] >= healed_us and history.outcome[row] == "ok"
    ]
    return min(completions) - healed_us if completions else None


def _operation_counts(history: History) -> list[tuple[str, dict[str, int]]]:
    table: dict[str, dict[str, int]] = {}
    for f, outcome in zip(history.f, history.outcome, strict=True):
        line = table.setdefault(f, {"ok": 0, "fail": 0, "info": 0})
        line[outcome] = line.get(outcome, 0) + 1
    return sorted(table.items())


def _settings(record: RunRecord, judgement: Judgement) -> list[tuple[str, str]]:
    plan = record.plan
    pairs = [
        ("seed", str(judgement.seed)),
        ("system", judgement.system),
        ("planted bugs", ", ".join(judgement.planted_bugs) or "none"),
        ("workload", judgement.workload),
        ("fault set", ", ".join(judgement.fault_set) or "calm (no faults)"),
        ("world", judgement.world),
        ("started at", judgement.started_at),
        ("nodes", ", ".join(plan.nodes)),
        ("racks", "; ".join(f"{name}: {', '.join(rack)}" for name, rack in (plan.racks or {}).items())),
        ("clients", str(plan.workers)),
        ("operations planned", f"{len(plan.operations):,}"),
        ("healed at", duration(plan.heal_us)),
        ("cell", judgement.cell),
        ("run", judgement.run_id),
        ("signature", judgement.signature),
        ("history (SHA-256)", judgement.history_sha256),
        ("plan (SHA-256)", judgement.plan_sha256),
    ]
    versions = [(f"{name} version", version) for name, version in sorted(judgement.versions.items())]
    return [(name, value) for name, value in pairs + versions if value]


def _universe(plan: Plan, judgement: Judgement) -> dict[str, Any] | None:
    """Return the drawn values that differ from the calm ones, each with its calm value, and those that are equal.

    A verdict of a former version has no calm values: None stands in their place.
    """
    if not plan.universe:
        return None
    calm = judgement.universe_calm or {}
    rows = [(name, value, calm.get(name)) for name, value in plan.universe.items()]
    return {
        "known": bool(calm),
        "changed": [row for row in rows if row[1] != row[2]],
        "calm": [(name, value) for name, value, usual in rows if value == usual],
    }


def _faults_by_kind(exposure: Exposure) -> list[tuple[str, dict[str, float]]]:
    """Return, for each kind of fault, the numbers planned, applied and proved, those whose event did not come, and the
    seconds they lasted."""
    rows: dict[str, dict[str, float]] = {}
    for fault in exposure.faults:
        row = rows.setdefault(fault.kind, {"planned": 0, "waited": 0, "applied": 0, "proved": 0, "seconds": 0.0})
        row["planned"] += 1
        row["waited"] += bool(fault.waited)
        row["applied"] += fault.applied
        row["proved"] += fault.proved
        row["seconds"] += fault.duration_us / 1_000_000 if fault.applied else 0.0
    return sorted(rows.items())
