"""The page docs/reference/generated/planted-bugs.md, made from the recorded measurements alone."""

from __future__ import annotations

from pathlib import Path

import msgspec
from bug_evidence import (
    ROOT,
    Record,
    Untailored,
    anomaly_places,
    best_record,
    bug_places,
    bugs,
    correct_places,
    fresh_record,
    marks_missing,
    read_untailored,
    reference_systems,
    runs_until_found,
)

from faultline.harness.system import NodeSystem, PlantedBug

__all__ = ["PAGE", "page"]

PAGE: Path = ROOT / "docs" / "reference" / "generated" / "planted-bugs.md"

Records = dict[tuple[str, str, str, str], Record]

_OPENING = """\
# Planted bugs: what finds them, and how soon

Made by `make campaign` (`tools/record_evidence.py`) from the records in `docs/reference/planted-bugs.jsonl`; do not
edit. A run is one seed, from 0 on, in the simulated world. *Found in* is the share of runs with a finding by one of
the checkers or invariants that the bug names, with its Wilson 95 % interval. *Runs until found*: the median at that
rate, and the number of runs that find the bug with 95 % certainty at the lower end of the interval. Where a campaign
has several cells, the row is the one in which the bug was found most often; the others stand below the table.
*Clients* and *any*: the runs that a checker of clients' answers accused, and those with any violation, also by
invariants that see into nodes. *Default campaign*: the same of runs of `faultline campaign --system S --planted-bug B`,
which is fitted to no bug, measured by `tools/untailored_evidence.py`. A dash: not measured yet.
"""


def page(records: Records) -> str:
    """Return the whole page, a section for each system."""
    return "\n".join([_OPENING, *(_section(system, records) for system in reference_systems())])


def _section(system: NodeSystem, records: Records) -> str:
    best = {planted_bug.name: best_record(records, system.name, planted_bug) for planted_bug in bugs(system)}
    shown = [(planted_bug, record) for planted_bug in bugs(system) if (record := best[planted_bug.name]) is not None]
    missing = [f"`{name}`" for name, record in best.items() if record is None]
    lines = [f"## {system.name}", ""]
    if shown:
        lines += _table(shown)
        lines += _other_cells(system, records)
        lines += ["### How each one shows", "", *(_story(planted_bug, record) for planted_bug, record in shown), ""]
    if missing:
        lines += [f"Not recorded yet: {', '.join(missing)}.", ""]
    return "\n".join([*lines, *_anomalies(system, records), *_correct(system, records)])


def _table(shown: list[tuple[PlantedBug, Record]]) -> list[str]:
    untailored = read_untailored()
    return [
        "| pattern | bug | row | campaign: cell | runs | found in | clients | any | runs until found: median, 95 % "
        "| default campaign: runs | clients | any | shows as |",
        "|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|",
        *(_row(planted_bug, record, untailored.get((record.system, record.bug))) for planted_bug, record in shown),
        "",
    ]


def _row(planted_bug: PlantedBug, record: Record, untailored: Untailored | None) -> str:
    low, high = record.interval
    cells = (
        f"[{planted_bug.pattern}](patterns/{planted_bug.pattern}.md)",
        f"`{planted_bug.name}`",
        planted_bug.id,
        _cell(record),
        f"{record.runs:,}",
        f"{100 * record.rate:.1f} % ({100 * low:.1f}–{100 * high:.1f} %)",
        _share(record.by_clients, record.runs),
        _share(record.by_any, record.runs),
        f"{_number(runs_until_found(record.rate, 0.5))}, {_number(runs_until_found(low, 0.95))}",
        *(("–", "–", "–") if untailored is None else _untailored(untailored)),
        record.finding or "–",
    )
    return f"| {' | '.join(cells)} |"


def _untailored(one: Untailored) -> tuple[str, str, str]:
    made = one.runs - one.refused
    return f"{made:,}", _share(one.by_clients, made), _share(one.by_any, made)


def _share(found: int | msgspec.UnsetType, runs: int) -> str:
    return "–" if found is msgspec.UNSET or not runs else f"{100 * found / runs:.1f} %"


def _cell(record: Record) -> str:
    return f"`{record.campaign}`: {record.cell.rsplit('/', 1)[-1]}"


def _other_cells(system: NodeSystem, records: Records) -> list[str]:
    """Return the cells of campaigns with several in which a bug was found less often, a line for each bug."""
    lines = []
    for planted_bug in bugs(system):
        best = best_record(records, system.name, planted_bug)
        known = [fresh_record(records, place) for place in bug_places(system.name, planted_bug)]
        if others := [each for each in known if each is not None and each != best]:
            told = "; ".join(f"{_cell(each)}, {each.found} of {each.runs:,}" for each in others)
            lines.append(f"- `{planted_bug.name}`: {told}")
    return ["Other cells of the same campaigns:", "", *lines, ""] if lines else []


def _number(runs: int | None) -> str:
    return "–" if runs is None else f"{runs:,}"


def _story(planted_bug: PlantedBug, record: Record) -> str:
    """Return the bug, the sentence of its first finding, the command that repeats it, and the worlds without it."""
    lines = [f"- **{planted_bug.name}**: {planted_bug.summary}; {planted_bug.shows_as}."]
    if record.found:
        lines += [f"  Seed {record.first_seed}: {record.sentence}", f"  `{record.run} {record.first_seed}`;"]
    else:
        lines += ["  It was not found."]
    lines += [f"  `{record.command}`"]
    if planted_bug.why_not:
        worlds = [world for world in ("simulated", "local") if world not in planted_bug.worlds]
        lines += [f"  Not in the {' and '.join(worlds)} world: {planted_bug.why_not}."]
    return "\n".join(lines)


def _anomalies(system: NodeSystem, records: Records) -> list[str]:
    """Yield the lines on options that break the promise; the twin with the other setting is among the clean cells."""
    places = anomaly_places(system.name)
    if not places:
        return []
    lines = [f"### {system.name}: expected anomalies", "", "Options, not bugs, break the promise here by design.", ""]
    for place in places:
        record = records.get(place.key)
        if record is None or record.run != place.run:
            lines += [f"- `{place.campaign}`, {place.cell.name}: not recorded yet."]
        else:
            rate = f"{100 * record.rate:.1f} % of {record.runs:,} runs"
            lines += [f"- `{record.campaign}`, {record.cell}: in {rate}, {record.finding}. `{record.command}`"]
    return [*lines, ""]


def _correct(system: NodeSystem, records: Records) -> list[str]:
    rows = [
        record
        for place in correct_places(system.name)
        if (record := records.get(place.key)) is not None and record.run == place.run
    ]
    head = [f"### {system.name} without bugs", ""]
    if not rows:
        return [*head, "Not recorded yet.", ""]
    runs = sum(record.runs for record in rows)
    accused = sum(record.found for record in rows)
    return [
        *head,
        f"{runs:,} runs, {accused or 'none'} accused.",
        "",
        "| cell | seeds | violations | not decided | command |",
        "|---|--:|--:|--:|---|",
        *(
            f"| `{record.cell}` | 0..{record.runs - 1} | {record.found} | {record.undecided} | `{record.command}` |"
            for record in rows
        ),
        "",
        *(f"Demanded and never reached: {mark}." for mark in marks_missing(rows)),
        "",
    ]
