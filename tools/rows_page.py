"""The page docs/reference/generated/rows.md: each row with its evidence, and the change under which that fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from row_evidence import Evidence, pattern_names
from witness_records import WITNESSED, Among, CounterWitness

from faultline.systems_under_test.patterns.catalogue import PATTERNS
from faultline.systems_under_test.patterns.requirement_rows import Requirements

__all__ = ["is_killed", "is_of_a_system", "rows_page"]

Shown = Mapping[str, Sequence[Evidence]]
Witnesses = Mapping[tuple[str, str], CounterWitness]

_HEAD = """\
# Requirement rows

What the source texts ask of each pattern, row by row, and what shows it: a test, a transcript, an invariant checked
during every run, or a planted bug that a campaign catches. R rows are requirements, S scenarios, I invariants, M
planted bugs.

A row is *killed* when a piece of its evidence fails under a recorded counter-witness: a small change of the code or,
for an invariant, a planted bug. The change is the nearest that was found: in the pattern's own module where there is
one. It says that the evidence can fail where the pattern's code is wrong, and not that the sentence of the row is all
that the change breaks. *System* says that the evidence runs assembled nodes; *component*, that it runs parts of them
alone. `tools/counter_witnesses.py` finds the counter-witnesses, and `--check all` runs each of them again.

Made by `make docs` from the marks in the code and `docs/reference/counter-witnesses.jsonl`; do not edit.
"""


def rows_page(found: Mapping[str, Requirements], shown: Shown, witnesses: Witnesses) -> str:
    """Return the page."""
    names = pattern_names()
    summary = [
        "| pattern | rows | shown | left out | R, S and I | killed | in the pattern's module | of a system |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    counts = {slug: _counts(slug, pattern, shown, witnesses) for slug, pattern in found.items()}
    summary += [_summary_row(names[slug], each) for slug, each in counts.items()]
    summary.append(_summary_row("all", [sum(column) for column in zip(*counts.values(), strict=True)]))
    sections = [_section(slug, names[slug], pattern, shown, witnesses) for slug, pattern in found.items()]
    return "\n".join([_HEAD, *summary, "", *sections])


def is_killed(row: str, slug: str, shown: Shown, witnesses: Witnesses) -> bool:
    """Return whether a piece of the row's evidence fails under a recorded change."""
    return _nearest(row, slug, shown, witnesses) is not None


def is_of_a_system(row: str, slug: str, shown: Shown, witnesses: Witnesses) -> bool:
    """Return whether a piece of the row's evidence runs nodes of an assembled system."""
    return any(
        item.kind in ("invariant", "planted bug")
        or ((record := witnesses.get((item.where, slug))) is not None and bool(record.systems))
        for item in shown.get(row, ())
    )


def _nearest(row: str, slug: str, shown: Shown, witnesses: Witnesses) -> CounterWitness | None:
    """Return the counter-witness of the row whose change is nearest to the pattern; None when nothing kills it."""
    records = [witnesses.get((item.where, slug)) for item in shown.get(row, ())]
    order = [*Among, None]
    killed = (record for record in records if record is not None and record.is_killed)
    return min(killed, key=lambda record: order.index(record.among), default=None)


def _counts(slug: str, pattern: Requirements, shown: Shown, witnesses: Witnesses) -> list[int]:
    rows = list(pattern.rows)
    present = [row for row in rows if row in shown]
    witnessed = [row for row in present if row.partition("-")[2][0] in WITNESSED]
    nearest = [_nearest(row, slug, shown, witnesses) for row in witnessed]
    killed = [record for record in nearest if record is not None]
    own = sum(record.among is Among.OWN or bool(record.bug) for record in killed)
    systems = sum(is_of_a_system(row, slug, shown, witnesses) for row in present)
    return [len(rows), len(present), len(pattern.left_out), len(witnessed), len(killed), own, systems]


def _summary_row(name: str, counts: Iterable[int]) -> str:
    return f"| {' | '.join([name, *map(str, counts)])} |"


def _section(slug: str, name: str, pattern: Requirements, shown: Shown, witnesses: Witnesses) -> str:
    has_page = any(each.slug == slug and each.module for each in PATTERNS)
    link = [f"[The pattern](patterns/{slug}.md), with its story and its counterexamples.", ""] if has_page else []
    lines = [
        f"## {name}",
        "",
        *link,
        "| row | what it says | shown by | level | fails under |",
        "|---|---|---|---|---|",
    ]
    for row, sentence in pattern.rows.items():
        level, change = "", ""
        if row in shown:
            level = "system" if is_of_a_system(row, slug, shown, witnesses) else "component"
            change = _change(row, slug, shown, witnesses)
        lines.append(f"| {row} | {_escaped(sentence)} | {_shown_by(row, pattern, shown)} | {level} | {change} |")
    return "\n".join([*lines, ""])


def _shown_by(row: str, pattern: Requirements, shown: Shown) -> str:
    if row in shown:
        items = list(dict.fromkeys(f"{item.kind} `{item.where}`" for item in shown[row]))
        more = f" and {len(items) - 3} more" if len(items) > 3 else ""
        return "<br>".join(items[:3]) + more
    return f"left out: {_escaped(pattern.left_out[row])}" if row in pattern.left_out else "**nothing**"


def _change(row: str, slug: str, shown: Shown, witnesses: Witnesses) -> str:
    """Return the cell of the counter-witness: empty for M rows, whose planted bug is one."""
    if row.partition("-")[2][0] not in WITNESSED:
        return ""
    record = _nearest(row, slug, shown, witnesses)
    if record is None:
        return "**unkilled**"
    if record.bug:
        return f"`{record.run}`"
    place = record.mutant.split(":")[1]
    return f"`{record.module.rpartition('.')[2]}:{place}`: `{_escaped(record.diff).replace('`', chr(39))}`"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
