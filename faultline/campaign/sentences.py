"""A campaign's verdict in words: one sentence per cell, per kind of violation, and for the whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from faultline.campaign.expectation import Expectation
from faultline.campaign.outcome import RunCounts
from faultline.campaign.statistics import rule_of_three, wilson_interval
from faultline.campaign.summary import CellSummary, total_exposure
from faultline.harness.exposure import exposure_parts
from faultline.harness.sensitivity import sensitivity_sentence
from faultline.harness.verdict import Verdict

__all__ = [
    "campaign_sentence",
    "cell_sentence",
    "exposure_sentence",
    "faults_sentence",
    "in_short",
    "listed",
    "marks_sentence",
    "never_reached",
    "percent",
    "plural",
    "sensitivity_sentences",
    "signature_sentence",
]

_FAULT_SETS_IN_A_NAME = 3
"""The most fault sets that the name of a cell tells on a terminal."""


def percent(rate: float) -> str:
    """Return a rate in per cent: with one decimal, or as many as two significant digits need."""
    value = 100 * rate
    if value == 0 or value >= 0.1:
        return f"{value:.1f}"
    return f"{value:.2g}"


def plural(count: int, noun: str) -> str:
    """Return the number with its noun: `1 run`, `2 runs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(names: Sequence[str], none: str) -> str:
    """Return `a`, `a and b`, `a, b and c`; `none` for an empty list."""
    *first, last = names or [none]
    return f"{', '.join(first)} and {last}" if first else last


def cell_sentence(
    cell: str,
    expected: Expectation,
    counts: RunCounts,
    broken: Sequence[str],
    smallest: tuple[int, int, Sequence[str] | None] | None,
    first_error: str = "",
    unexpected: Sequence[str] = (),
) -> str:
    """Return the verdict on a cell. `broken` names the violations, `unexpected` those that the plan does not
    allow.

    `smallest` is (seed, operations, fault kinds); kinds are None where they are not known.
    """
    parts = [_counted(counts, broken)]
    if smallest is not None:
        seed, operations, kinds = smallest
        shown = plural(operations, "operation") if operations else "seen inside the system"
        faults = "faults not known" if kinds is None else listed(kinds, "no fault")
        parts.append(f"smallest: seed {seed}, {shown}, {faults}")
    if counts.harness_errors:
        parts.append(
            f"{plural(counts.harness_errors, 'run')} failed in the harness, the first with: {first_error.rstrip('.')}"
        )
    if counts.unknown:
        parts.append(f"{plural(counts.unknown, 'run')} could not be decided")
    if counts.missing:
        parts.append(f"{plural(counts.missing, 'run')} did not end")
    if counts.vacuous:
        parts.append(f"{plural(counts.vacuous, 'run')} tested too little")
    if expected:
        parts.append(_compared(expected, counts, unexpected))
    return f"{cell}: {'; '.join(parts)}."


def _compared(expected: Expectation, counts: RunCounts, unexpected: Sequence[str]) -> str:
    if counts.unexpected:
        shown = "shows" if counts.unexpected == 1 else "show"
        names = listed(unexpected, "a violation without a name")
        return f"{plural(counts.unexpected, 'run')} {shown} what the plan does not allow: {names}"
    return "as expected" if counts.expected else f"expected and not seen: {listed(expected, '')}"


def _counted(counts: RunCounts, broken: Sequence[str]) -> str:
    judged = counts.judged
    if not judged:
        return "no run came to a verdict"
    if not counts.violations:
        return f"0 of {plural(judged, 'run')} violate anything: below {percent(rule_of_three(judged))} % of runs do"
    low, high = wilson_interval(counts.violations, judged)
    verb = "violates" if counts.violations == 1 else "violate"
    rate = f"{percent(counts.violations / judged)} %, 95 % interval {percent(low)}–{percent(high)} %"
    return f"{counts.violations} of {plural(judged, 'run')} {verb} {listed(broken, 'a promise')} ({rate})"


def signature_sentence(values: Mapping[str, object], judged: int) -> str:
    """Return the sentence of one kind of violation: its frequency, first seed, and smallest counterexample."""
    example = str(values["example"]).rstrip(".")
    return (
        f"{values['cell']}: {values['signature']} in {values['count']} of {plural(judged, 'run')}, "
        f"first at seed {values['first_seed']}. Seed {values['seed']}: {example}."
    )


def campaign_sentence(
    name: str, verdict: Verdict, cells: Sequence[CellSummary], runs: int, planned: int, stopped: str
) -> str:
    """Return the first line of a campaign's result; `stopped` says why it is incomplete, empty when it is not."""
    standings = [cell.standing for cell in cells]
    counted = ", ".join(f"{standings.count(each)} × {each}" for each in dict.fromkeys(standings))
    scope = plural(runs, "run") if runs == planned else f"{runs} of {plural(planned, 'run')}"
    reason = f" ({stopped})" if stopped else ""
    return f"Campaign {name}{reason}: {verdict.value}. {scope} in {plural(len(cells), 'cell')}: {counted or 'none'}."


def exposure_sentence(cells: Iterable[CellSummary]) -> str:
    """Return the exposure of the systems in the runs of all `cells`."""
    return f"Exposure: {'; '.join(exposure_parts(total_exposure(cells)))}."


def sensitivity_sentences(cells: Iterable[CellSummary]) -> list[str]:
    """Yield, for each cell with passes, the share of inserted anomalies that the sampled passes would have shown."""
    told = []
    for cell in cells:
        if any(figure.inserted for figure in cell.sensitivity):
            said = sensitivity_sentence(cell.sensitivity)
            told.append(f"{cell.cell}: {said[0].lower()}{said[1:]}")
    return told


def marks_sentence(reached: Mapping[str, int], runs: int) -> str:
    """Return the rare situations that the campaign's runs reached, most frequent first, with the number of runs."""
    if not reached:
        return "No run reached any mark."
    ordered = sorted(reached.items(), key=lambda item: (-item[1], item[0]))
    return f"Reached in {plural(runs, 'run')}: {', '.join(f'{mark} in {count}' for mark, count in ordered)}."


def faults_sentence(rows: Iterable[Mapping[str, Any]], runs: int, verdicts_only: int = 0) -> str:
    """Return how often each kind of fault took effect in `runs` runs; for `verdicts_only` of them it is unknown."""
    applied: dict[str, int] = {}
    for row in rows:
        applied[row["kind"]] = applied.get(row["kind"], 0) + row["injections"] - row["not_applied"]
    times = ", ".join(f"{kind} {plural(count, 'time')}" for kind, count in sorted(applied.items()))
    counted = [times] if times else []
    if verdicts_only:
        counted.append(f"not known: {plural(verdicts_only, 'run')} left only their verdicts")
    if not runs:
        counted = ["not known: no run ended"]
    return f"Faults that took effect: {'; '.join(counted)}." if counted else "No fault was injected."


def never_reached(marks: Iterable[Mapping[str, Any]]) -> list[str]:
    """Yield, for each cell, the marks that none of its runs reached."""
    missed: dict[str, list[str]] = {}
    for mark in marks:
        if not mark["runs"]:
            missed.setdefault(mark["cell"], []).append(mark["mark"])
    return [f"{cell}: never reached {', '.join(names)}." for cell, names in missed.items()]


def in_short(lines: Sequence[str], fault_sets: Iterable[tuple[str, ...]]) -> list[str]:
    """Return `lines` with `*` for the fault sets that every cell has, and a second line that tells them.

    The campaign of a system has a dozen in each cell, which would fill every line. As a pattern, the short name
    matches the whole one.
    """
    each = set(fault_sets)
    shared = each.pop() if len(each) == 1 else ()
    if len(shared) <= _FAULT_SETS_IN_A_NAME:
        return list(lines)
    first, *others = (line.replace(f"/{'+'.join(shared)}", "/*") for line in lines)
    return [first, f"In the names of cells, * stands for the fault sets {listed(shared, '')}.", *others]
