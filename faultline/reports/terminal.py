"""The report on a terminal or in a ticket: plain lines, at most twenty-five per violation.

A line is never wrapped here and carries no colour unless asked for, so that it can be piped, pasted and compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faultline.harness.history import OPEN
from faultline.harness.judgement import Judgement
from faultline.harness.next_step import next_step_of
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import sensitivity_sentence
from faultline.harness.verdict import Finding
from faultline.reports.campaign_summary import Cell, Signature, campaign_sentence, read_summary, reconciliation
from faultline.reports.cycle import cycle_lines, transaction_names
from faultline.reports.fault_choice import needed_for
from faultline.reports.legend import status
from faultline.reports.selection import shown_of
from faultline.reports.sentences import (
    decimals_for,
    ending_sentence,
    exposure_sentence,
    judgement_sentence,
    operation_sentence,
    other_seeds_sentence,
    racks_sentence,
    undecided_sentences,
    universe_sentence,
)
from faultline.reports.text import count, percent, shorten, visible

__all__ = ["LINES_PER_VIOLATION", "campaign_lines", "minimal_lines", "run_lines"]

LINES_PER_VIOLATION = 25
_MOST_OPERATION_LINES = 12
_MOST_FAULT_LINES = 4
_MOST_CYCLE_LINES = 4
_MOST_FINDING_LINES = 2
_LINE_LIMIT = 400
_COLOURS = {"violation": "31", "expected": "35", "harness-error": "31", "unknown": "33", "vacuous": "33", "pass": "32"}


def run_lines(record: RunRecord, judgement: Judgement, *, colour: bool = False) -> list[str]:
    """Return the report on one run: the sentence, the numbered counterexample, its faults, and the replay line."""
    lines = [_coloured(judgement_sentence(judgement), judgement.verdict.value, colour)]
    if ending := ending_sentence(record):
        lines.append(f"  ! {ending}")
    if judgement.findings:
        lines += _statement_lines(judgement)
        lines += _counterexample_lines(record, judgement, judgement.findings[0])
        lines += _other_finding_lines(judgement.findings[1:])
    else:
        lines += [f"  ? {_line(sentence)}" for sentence in undecided_sentences(judgement)[:_MOST_FINDING_LINES]]
    step = next_step_of(judgement)
    if step:
        lines.append(f"  Next: {_line(step)}")
    # A run that was stopped for its violation tested less than planned, as it should.
    warnings = judgement.warnings if record.stopped_by is None else []
    for problem in [*judgement.errors[:2], *warnings[:2]]:
        lines.append(f"  ! {_line(problem)}")
    for sentence in (exposure_sentence(judgement.exposure), sensitivity_sentence(judgement.sensitivity)):
        if sentence:
            lines.append(f"  {sentence}")
    if record.plan.universe:
        lines.append(f"  {_line(universe_sentence(record.plan.universe))}")
    if record.plan.racks:
        lines.append(f"  {_line(racks_sentence(record.plan.racks))}")
    if judgement.host_options:
        settings = ", ".join(f"{name}={value}" for name, value in sorted(judgement.host_options.items()))
        lines.append(f"  On hosts with {_line(settings)}.")
    if judgement.replay:
        lines.append(f"  Replay: {_line(judgement.replay)}")
    return lines + minimal_lines(judgement)


def _statement_lines(judgement: Judgement) -> list[str]:
    """Return what the broken invariant says; no line for a finding of another checker."""
    broken, statements = judgement.findings[0].anomaly, judgement.statements or {}
    return [f"  {broken}: {_line(statements[broken])}"] if broken in statements else []


def minimal_lines(judgement: Judgement) -> list[str]:
    """Return the size of the minimal run and the command that repeats it; no lines when it was not shrunk."""
    minimal = judgement.detail.get("minimal")
    if not minimal:
        return []
    size = f"{count(minimal['operations'], 'operation')} and {count(minimal['faults'], 'fault')}"
    whole = f"of {minimal['operations_before']} and {minimal['faults_before']}"
    limit = "" if minimal["complete"] else " (the search was cut short: it may be smaller still)"
    lines = [f"  Minimal: {size} {whole} still show it{limit}."]
    if "universe" in minimal:
        lines.append(f"  {_line(universe_sentence(minimal['universe']))}")
    lines.append(f"  Replay: {_line(minimal['replay'])}")
    if told := other_seeds_sentence(minimal):
        lines.append(f"  {told}")
    if minimal.get("robust"):
        lines.append(f"  Replay: {_line(minimal['robust']['replay'])}")
    return lines


def _counterexample_lines(record: RunRecord, judgement: Judgement, finding: Finding) -> list[str]:
    needed = needed_for(judgement, finding)
    shown = shown_of(record, finding, operations_max=_MOST_OPERATION_LINES, messages_max=0, needed=needed)
    if not shown.rows:
        return []
    ends = [row.complete_us for row in shown.rows if row.complete_index != OPEN]
    decimals = decimals_for([*(row.invoke_us for row in shown.rows), *ends])
    names = transaction_names(finding)
    lines = [f"  {_heading(finding, len(shown.rows), len(record.history))}"]
    for position, row in enumerate(shown.rows, start=1):
        mark = "✖" if row.row == shown.telling else " "
        lines.append(f"  {mark} {names.get(row.row, position):>2}. {_line(operation_sentence(row, decimals))}")
    lines += [f"     {_line(line)}" for line in cycle_lines(finding)[:_MOST_CYCLE_LINES]]
    faults = shown.faults.sentences(decimals, _MOST_FAULT_LINES)
    lines += [f"  {shown.faults.silence}"] if shown.faults.silence else []
    if faults:
        lines.append("  Before:" if shown.faults.silence else "  Meanwhile:")
    return lines + [f"    - {_line(sentence)}" for sentence in faults]


def _heading(finding: Finding, shown: int, total: int) -> str:
    named = len(set(finding.operations))
    if not named:
        return f"Operations around that moment ({shown} of {total:,}):"
    if shown < named:
        return f"Counterexample (the {shown} operations nearest to the anomaly, of {named:,} that show it):"
    return f"Counterexample ({shown} of {count(total, 'operation')} show it):"


def _other_finding_lines(others: list[Finding]) -> list[str]:
    lines = [f"  Also: {_line(finding.sentence)}" for finding in others[:_MOST_FINDING_LINES]]
    left = len(others) - _MOST_FINDING_LINES
    return lines + ([f"  … and {count(left, 'further finding')}."] if left > 0 else [])


def campaign_lines(summary: Mapping[str, Any], *, colour: bool = False) -> list[str]:
    """Return the report on a campaign, from the data of its `campaign.json`: sentence, sums, cells, distinct
    violations."""
    campaign = read_summary(summary)
    lines = [_coloured(campaign_sentence(campaign), campaign.shown_status, colour), f"  {reconciliation(campaign)}"]
    lines += [_cell_line(cell, colour) for cell in campaign.cells]
    for number, signature in enumerate(campaign.signatures, start=1):
        lines += _signature_lines(number, signature)
    if campaign.marks_missing:
        lines.append(f"  Never reached: {_line(', '.join(campaign.marks_missing))}")
    return lines + [f"  ! {_line(warning)}" for warning in campaign.warnings]


def _cell_line(cell: Cell, colour: bool) -> str:
    known = status(cell.status)
    name = f"{cell.system_name} / {cell.workload} / {cell.fault_set_name}"
    return f"  {_coloured(f'{known.glyph} {known.word}', cell.status, colour)} {cell.fraction}  {_line(name)}"


def _signature_lines(number: int, signature: Signature) -> list[str]:
    of_judged = f" of {signature.judged:,}" if signature.judged else ""
    seen = f"     Seen in {count(signature.count, 'run')}{of_judged} ({percent(signature.rate)}"
    lines = [
        f"  {number}. {_line(signature.sentence or signature.signature)}",
        f"{seen}, 95 % interval {signature.interval}); first with seed {signature.first_seed}",
    ]
    if signature.replay:
        lines.append(f"     Replay: {_line(signature.replay)}")
    return lines + ([f"     Report: {_line(signature.report)}"] if signature.report else [])


def _line(text: str) -> str:
    return " ".join(visible(shorten(text, _LINE_LIMIT)).split())


def _coloured(text: str, name: str, colour: bool) -> str:
    code = _COLOURS.get(name)
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code else text
