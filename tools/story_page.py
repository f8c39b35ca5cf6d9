"""Make the page that sets the paragraphs of chapters 1 and 2 against the scenes of the story.

    python tools/story_page.py CHAPTERS      say which lines of the two chapters, in that text file, are not listed

docs/reference/story-paragraphs.toml has a line for each paragraph of the chapters, by its first words.
`tools/generate_reference.py` makes docs/reference/generated/story.md from it, from the scenes, and from the records of
planted bugs. The text of the book is not part of this repository, so that the last check needs a copy of it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import row_evidence
from bug_evidence import Record

from faultline.story.scenes import Paragraph, Scene, scenes
from faultline.story.telling import system_of
from faultline.systems_under_test.patterns.requirement_rows import load_requirements

__all__ = [
    "PAGE",
    "Chapters",
    "Section",
    "Told",
    "anchor",
    "faults",
    "link_of_bug",
    "load_chapters",
    "page",
    "without_line",
]

ROOT = Path(__file__).resolve().parents[1]
PARAGRAPHS = ROOT / "docs" / "reference" / "story-paragraphs.toml"
PAGE = ROOT / "docs" / "reference" / "generated" / "story.md"
_SCENES = "faultline/story/scenes"

Records = dict[tuple[str, str, str, str], Record]


class Section(msgspec.Struct, frozen=True):
    """One section of a chapter: the first words of each paragraph, and what tells it."""

    chapter: int
    title: str
    paragraphs: list[tuple[str, str]]


class Chapters(msgspec.Struct, frozen=True):
    """The two chapters: `reasons` says by name why a paragraph has nothing to show, `parts` are no paragraphs."""

    parts: list[str]
    reasons: dict[str, str]
    sections: list[Section]


class Told(NamedTuple):
    """A scene, and the numbers of the paragraphs of it that tell a paragraph of the book."""

    scene: str
    numbers: tuple[int, ...]


def load_chapters(path: Path = PARAGRAPHS) -> Chapters:
    """Return the lines of the file. Raise `msgspec.ValidationError` for one of another shape."""
    return msgspec.toml.decode(path.read_bytes(), type=Chapters)


def told_by(where: str) -> list[Told]:
    """Return the scenes that `where` names; none when it is a reason or a test module."""
    if " " not in where:
        return []
    parts = [part.split() for part in where.split("; ")]
    return [Told(name, tuple(map(int, numbers))) for name, *numbers in parts]


def faults(chapters: Chapters) -> list[str]:
    """Return the faults of the lines: what they name and is not there, and scenes that none of them names."""
    found = [
        f"{begins!r} names {wrong}"
        for section in chapters.sections
        for begins, where in section.paragraphs
        for wrong in _not_there(chapters, where)
    ]
    named = {told.scene for section in chapters.sections for _, where in section.paragraphs for told in told_by(where)}
    return found + [f"no paragraph of the book names the scene {scene}" for scene in scenes() if scene not in named]


def _not_there(chapters: Chapters, where: str) -> Iterator[str]:
    for scene, numbers in told_by(where):
        there = len(scenes()[scene].paragraphs) if scene in scenes() else 0
        if not numbers or not all(1 <= number <= there for number in numbers):
            yield f"paragraphs {numbers} of the scene {scene}, which has {there}"
    if not told_by(where) and where not in chapters.reasons and not (ROOT / where).is_file():
        yield f"{where}, which is neither a reason nor a file"


def link_of_bug(scene: Scene, bug: str, records: Records) -> str:
    """Return the bug as a link to its records, with a run that finds it; empty when none was recorded."""
    system = system_of(scene)
    # That records are of today's campaigns, tests/quality checks for all bugs together.
    found = [each for each in records.values() if (each.system, each.bug) == (system, bug) and each.found]
    if not found:
        return ""
    record = max(found, key=lambda each: each.rate)
    return f"[`{bug}`](planted-bugs.md#{system}): `{record.run} {record.first_seed}`"


def page(chapters: Chapters, records: Records) -> str:
    """Return the page docs/reference/generated/story.md."""
    lines = [
        "# The story, paragraph by paragraph",
        "",
        "Made by `make docs` from the scenes, docs/reference/story-paragraphs.toml and the records of planted bugs;",
        "do not edit. [The story](../../explanation/the-story.md) says how to read and to change a scene.",
        "",
        "## The chapters against the scenes",
        "",
        "Each line is a paragraph of chapter 1 or 2, by its first words, in the order of the book. `partitions 2 3`",
        "are paragraphs 2 and 3 of the scene `partitions`. A line in italics says why the story has no step for it.",
        "",
        f"{_count(chapters)}",
    ]
    for section in filter(lambda section: section.paragraphs, chapters.sections):
        lines += ["", f"### Chapter {section.chapter}: {section.title}", "", "| paragraph | told by |", "|---|---|"]
        lines += [f"| {begins} … | {_where(chapters, where)} |" for begins, where in section.paragraphs]
    lines += [
        "",
        "## The scenes against invariants and planted bugs",
        "",
        "`holds` names invariants that are checked on every event there, `breaks with` the planted bugs against which",
        "the paragraph stands, each with the recorded run that finds it. That run prints the counterexample, shrunken",
        "to the fewest operations; `faultline story SCENE --plant BUG` prints the one of the scene.",
    ]
    for scene in scenes().values():
        lines += _scene_lines(scene, records)
    return "\n".join(lines) + "\n"


def _count(chapters: Chapters) -> str:
    wheres = [where for section in chapters.sections for _, where in section.paragraphs]
    told = sum(bool(told_by(where)) for where in wheres)
    elsewhere = sum(where.startswith("tests/") for where in wheres)
    rest = len(wheres) - told - elsewhere
    shown = f"{told} are told by scenes, {elsewhere} by tests elsewhere"
    return f"Of {len(wheres)} paragraphs, {shown}, and {rest} have nothing to show."


def _where(chapters: Chapters, where: str) -> str:
    if where in chapters.reasons:
        return f"*{chapters.reasons[where]}*"
    if not told_by(where):
        return f"`{where}`"
    return ", ".join(f"[`{scene}`](#{scene}) {' '.join(map(str, numbers))}" for scene, numbers in told_by(where))


def _scene_lines(scene: Scene, records: Records) -> list[str]:
    table = ["| | claim | step | holds | breaks with |", "|--:|---|---|---|---|"]
    rows = []
    holds: tuple[str, ...] = ()
    for paragraph in scene.paragraphs:
        holds = paragraph.holds or holds  # They are checked to the end of the scene.
        rows.append(_paragraph_row(scene, paragraph, holds, records))
    return ["", f"### {scene.name}", "", f"{scene.title}, on `{system_of(scene)}`. {scene.about}", "", *table, *rows]


def _paragraph_row(scene: Scene, paragraph: Paragraph, held: tuple[str, ...], records: Records) -> str:
    claim = paragraph.claim.replace("|", "\\|")
    step = f"`{_SCENES}/{scene.name}.txt:{paragraph.steps[0].line}`"
    holds = ", ".join(f"[{row}](rows.md#{anchor(row)})" for row in held)
    bugs = "<br>".join(link_of_bug(scene, bug, records) or f"`{bug}`, in the story alone" for bug in paragraph.prevents)
    return f"| {paragraph.number} | {claim} | {step} | {holds} | {bugs} |"


def anchor(row: str) -> str:
    """Return the anchor of the section of docs/reference/generated/rows.md in which the row stands."""
    return re.sub(r"[^a-z0-9 -]", "", _headings()[row].lower()).replace(" ", "-")


@cache
def _headings() -> dict[str, str]:
    names = row_evidence.pattern_names()
    return {row: names[slug] for slug, pattern in load_requirements().items() for row in pattern.rows}


def without_line(chapters: Chapters, text: str) -> list[str]:
    """Return the beginnings of the paragraphs of `text`, one a line of it, that no line of the chapters names."""
    named = [section.title for section in chapters.sections] + chapters.parts
    named += [begins for section in chapters.sections for begins, _ in section.paragraphs]
    paragraphs = [plain for line in text.splitlines() if (plain := _plain(line))]
    return [plain[:60] for plain in paragraphs if not any(plain.startswith(words) for words in named)]


def _plain(text: str) -> str:
    """Return the words of `text` without marks of emphasis, quotes and the hyphen of a list."""
    return " ".join(re.sub(r"[*\\\[\]`\"‘’$]|^- ", "", text).split())


def main(arguments: Sequence[str]) -> int:
    """Print the paragraphs without a line, and return 1 when there are any."""
    (path,) = arguments
    missing = without_line(load_chapters(), Path(path).read_text(encoding="utf-8"))
    print("\n".join(missing) or "Every paragraph has a line.")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
