"""The pages docs/reference/generated/patterns/*.md: for each pattern of the book the way from its problem to a
counterexample and back.

    python tools/pattern_pages.py            records the diagrams of all patterns, five minutes of processor time
    python tools/pattern_pages.py lease      those of this pattern; the others stay

A page is made of what stands elsewhere: the lesson in the module, the scenes of the story, the requirement rows, and
the records of planted bugs and of correct systems. Only diagrams are recorded for it, in
docs/reference/pattern-diagrams.jsonl, as `faultline show PATTERN` prints them. `tools/generate_reference.py` writes
the pages.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from bug_evidence import Record, best_record, bugs, correct_places, fresh_record, reference_systems
from story_page import anchor

from faultline.harness.system import NodeSystem, PlantedBug
from faultline.story.scenes import scenes
from faultline.systems_under_test.patterns.catalogue import PATTERNS, Pattern
from faultline.systems_under_test.patterns.lesson import lesson_of
from faultline.systems_under_test.patterns.requirement_rows import load_requirements

__all__ = ["DIAGRAMS", "FOLDER", "Diagram", "drawn", "main", "page", "pages", "read_diagrams"]

_REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
FOLDER = _REFERENCE / "generated" / "patterns"
DIAGRAMS = _REFERENCE / "pattern-diagrams.jsonl"
_BEGINNINGS = ("How it goes without the bug", "At work in ")
_ENDINGS = ("Replay:", "Report:")

Records = dict[tuple[str, str, str, str], Record]


class Diagram(msgspec.Struct, frozen=True):
    """The diagrams of one pattern, as `faultline show` prints them; `lines` is empty where it prints none."""

    pattern: str
    lines: tuple[str, ...]


def read_diagrams(path: Path = DIAGRAMS) -> dict[str, Diagram]:
    """Return the recorded diagrams by pattern; none when `path` does not exist."""
    if not path.exists():
        return {}
    return {one.pattern: one for one in msgspec.json.Decoder(Diagram).decode_lines(path.read_bytes())}


def pages(records: Records, diagrams: Mapping[str, Diagram]) -> dict[Path, str]:
    """Return the page of each pattern that has a module."""
    return {FOLDER / f"{each.slug}.md": page(each, records, diagrams) for each in PATTERNS if each.module}


def page(pattern: Pattern, records: Records, diagrams: Mapping[str, Diagram]) -> str:
    """Return the page of `pattern`."""
    lesson = lesson_of(pattern)
    path = f"faultline/systems_under_test/{pattern.module.replace('.', '/')}.py"
    planted = [(system, bug) for system in reference_systems() for bug in bugs(system) if bug.pattern == pattern.slug]
    lines = [
        f"# {pattern.name}",
        "",
        "Made by `make docs` (`tools/pattern_pages.py`); do not edit.",
        "",
        f"{pattern.part}, chapter {pattern.chapter} of *Patterns of Distributed Systems*. {lesson.promise}",
        "",
        f"Its code, to be read from top to bottom: `{path}`. In the terminal: `faultline show {pattern.slug}`.",
        "",
    ]
    for heading, text in lesson.parts.items():
        lines += [f"**{heading}.** {text}", ""]
    lines += _story(pattern, {bug.name for _, bug in planted})
    lines += _invariants(pattern)
    lines += _diagrams(diagrams.get(pattern.slug))
    lines += _planted_bugs(planted, records)
    lines += _promise(pattern, planted, records)
    return "\n".join(lines).rstrip() + "\n"


def _story(pattern: Pattern, planted: set[str]) -> list[str]:
    """Return the paragraphs of the story that the pattern's invariants hold, or that its planted bugs break."""
    requirements = load_requirements().get(pattern.slug)
    own = set(requirements.rows) if requirements else set()
    told = [
        f"- [{scene.name}](../story.md#{scene.name}) {paragraph.number}: {paragraph.claim}"
        for scene in scenes().values()
        for paragraph in scene.paragraphs
        if own & set(paragraph.holds) or planted & set(paragraph.prevents)
    ]
    if not told:
        return []
    opening = "Paragraphs of [the story](../../../explanation/the-story.md) that stand on it:"
    return ["## In the story", "", opening, "", *told, ""]


def _invariants(pattern: Pattern) -> list[str]:
    requirements = load_requirements().get(pattern.slug)
    if requirements is None:
        return []
    rows = [(row, text) for row, text in requirements.rows.items() if "-I" in row]
    opening = "What shows each of them, and the requirements and scenarios, stands in the [requirement rows]"
    link = f"(../rows.md#{anchor(next(iter(requirements.rows)))})."
    lines = [f"- {row}: {text}" for row, text in rows]
    return ["## Its invariants", "", opening + link, "", *lines, ""] if lines else []


def _diagrams(diagram: Diagram | None) -> list[str]:
    if diagram is None or not diagram.lines:
        return []
    return [
        "## Without a bug and with one",
        "",
        f"Recorded from `faultline show {diagram.pattern}`, which runs it again.",
        "",
        "```text",
        *diagram.lines,
        "```",
        "",
    ]


def _planted_bugs(planted: Sequence[tuple[NodeSystem, PlantedBug]], records: Records) -> list[str]:
    if not planted:
        return []
    lines = ["## Its planted bugs", "", "The command repeats the counterexample, and its report draws it.", ""]
    for system, bug in planted:
        lines.append(f"- [`{bug.name}`](../planted-bugs.md#{system.name}) of `{system.name}`: {bug.summary}.")
        record = best_record(records, system.name, bug)
        if record is not None and record.found:
            found = f"{record.found} of {record.runs} runs of the campaign `{record.campaign}`"
            lines += [f"  Found in {found}: {record.sentence}", f"  `{record.run} {record.first_seed}`"]
    return [*lines, ""]


def _promise(pattern: Pattern, planted: Sequence[tuple[NodeSystem, PlantedBug]], records: Records) -> list[str]:
    """Return the table of fault sets: runs of correct systems that use the pattern, and its bugs that were found."""
    clean: dict[str, list[Record]] = {}
    for system in reference_systems():
        if pattern.slug in system.patterns:
            for one in filter(None, (fresh_record(records, place) for place in correct_places(system.name))):
                clean.setdefault(_faults(one), []).append(one)
    broken: dict[str, set[str]] = {}
    names = {(system.name, bug.name) for system, bug in planted}
    for one in records.values():
        if (one.system, one.bug) in names and one.found:
            broken.setdefault(_faults(one), set()).add(one.bug)
    rows = [
        f"| {faults} | {_held(clean.get(faults, ()))} | {_listed(broken.get(faults, ()))} |"
        for faults in sorted({*clean, *broken})
    ]
    if not rows:
        return []
    opening = "Recorded runs of the systems that use it, as they are and with its bugs planted, by fault set."
    head = ["| faults | correct systems | broken by the planted bugs |", "|---|---|---|"]
    return ["## Its promise under faults", "", opening, "", *head, *rows, ""]


def _faults(record: Record) -> str:
    return record.cell.rsplit("/", 1)[-1]


def _held(records: Iterable[Record]) -> str:
    several = list(records)
    if not several:
        return "–"
    runs, accused = sum(one.runs for one in several), sum(one.found for one in several)
    return f"held in {runs:,} runs" if not accused else f"broken in {accused} of {runs:,} runs"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "–"


def _recorded(pattern: Pattern) -> Diagram:
    """Return the diagrams that `faultline show` prints now."""
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, "-m", "faultline", "show", pattern.slug, "--output", output]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Diagram(pattern.slug, tuple(drawn(printed.splitlines())))


def drawn(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of what `faultline show` prints that belong to diagrams."""
    is_drawn = False
    for line in lines:
        is_drawn = (is_drawn or line.startswith(_BEGINNINGS)) and not line.startswith(_ENDINGS)
        if is_drawn:
            yield line


def main(arguments: Sequence[str]) -> int:
    """Record the diagrams of the patterns that are named, or of all."""
    known = read_diagrams()
    for pattern in PATTERNS:
        if pattern.module and (not arguments or pattern.slug in arguments):
            known[pattern.slug] = _recorded(pattern)
            print(f"{pattern.slug}: {len(known[pattern.slug].lines)} lines", flush=True)
            DIAGRAMS.write_bytes(msgspec.json.Encoder().encode_lines(known[each] for each in sorted(known)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
