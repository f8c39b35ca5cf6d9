"""The test, invariant or planted bug that shows each requirement row, found in the code itself.

    python tools/row_evidence.py          print how many rows of each pattern are shown, and those that are not

Evidence is of four kinds: a test marked `@pytest.mark.rows("LWM-R1")` (or a module's `pytestmark`), a transcript or a
scene of the story whose first line reads `# rows: LWM-S4`, an invariant class with `id = "LWM-I1"`, and a registered
planted bug with that id.
`tools/rows_page.py` makes docs/reference/generated/rows.md from it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from faultline.registry import load_system, systems
from faultline.systems_under_test.patterns.catalogue import PATTERNS
from faultline.systems_under_test.patterns.requirement_rows import (
    COMPOSED_SCENARIOS,
    NARRATIVES,
    Requirements,
    load_requirements,
)

__all__ = ["COVERED_CHAPTERS", "Evidence", "evidence", "main", "marked_tests", "pattern_names", "unshown"]

ROOT = Path(__file__).resolve().parents[1]
COVERED_CHAPTERS = frozenset(range(3, 33))
"""The chapters whose patterns must have a file of rows."""

_ROW = re.compile(r"[A-Z]{1,3}-[RSIM][0-9]+[a-z]?")


class Evidence(msgspec.Struct, frozen=True):
    """One piece of evidence for a row: the row's id, the kind of evidence, and its place."""

    row: str
    kind: str
    where: str


def evidence() -> dict[str, list[Evidence]]:
    """Return all evidence, by the row's id."""
    found: dict[str, list[Evidence]] = {}
    for item in (*_tests(), *_transcripts(), *_invariants(), *_planted_bugs()):
        found.setdefault(item.row, []).append(item)
    return found


def _tests() -> Iterator[Evidence]:
    folders = (ROOT / "tests", *ROOT.glob("examples/*/tests"))
    for file in sorted(file for folder in folders for file in folder.rglob("test_*.py")):
        where = file.relative_to(ROOT).as_posix()
        for test, rows in marked_tests(file.read_text(encoding="utf-8")):
            for row in rows:
                yield Evidence(row, "test", f"{where}::{test}")


def marked_tests(source: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each test of a module that carries rows, its own or its module's or class's, with their ids."""
    module = ast.parse(source)
    yield from _marked(module.body, _pytestmark(module.body), "")


def _marked(body: Iterable[ast.stmt], inherited: list[str], prefix: str) -> Iterator[tuple[str, list[str]]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            own = inherited + _rows_of(node.decorator_list) + _pytestmark(node.body)
            yield from _marked(node.body, own, f"{prefix}{node.name}::")
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            rows = inherited + _rows_of(node.decorator_list)
            if rows:
                yield prefix + node.name, rows


def _pytestmark(body: Iterable[ast.stmt]) -> list[str]:
    return [
        row
        for node in body
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)
        for row in _rows_of([node.value])
    ]


def _rows_of(expressions: Iterable[ast.expr]) -> list[str]:
    """Return the ids inside every `pytest.mark.rows(…)`, also within parameters and lists of marks."""
    return [
        argument.value
        for expression in expressions
        for node in ast.walk(expression)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.rows"
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def _transcripts() -> Iterator[Evidence]:
    folders = (ROOT / "tests" / "scenarios", ROOT / "faultline" / "story" / "scenes")
    for file in sorted(file for folder in folders for file in folder.rglob("*.txt")):
        first = file.read_text(encoding="utf-8").partition("\n")[0]
        if first.startswith("# rows:"):
            for row in _ROW.findall(first):
                yield Evidence(row, "transcript", file.relative_to(ROOT).as_posix())


def _invariants() -> Iterator[Evidence]:
    for file in sorted((ROOT / "faultline").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                for row in _class_ids(node):
                    yield Evidence(row, "invariant", f"{file.relative_to(ROOT).as_posix()}::{node.name}")


def _class_ids(node: ast.ClassDef) -> Iterator[str]:
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="id")], value=ast.Constant(value=str(row))) if _ROW.fullmatch(row):
                yield row


def _planted_bugs() -> Iterator[Evidence]:
    for system in sorted(systems()):
        for planted_bug in load_system(system).planted_bugs.values():
            for row in _ROW.findall(planted_bug.id):
                yield Evidence(row, "planted bug", f"{system}+{planted_bug.name}, campaign {planted_bug.campaign}")


def unshown(requirements: Requirements, shown: Mapping[str, Sequence[Evidence]]) -> list[str]:
    """Return the rows without evidence that are not left out for a reason."""
    return [row for row in requirements.rows if row not in shown and row not in requirements.left_out]


def pattern_names() -> dict[str, str]:
    """Return the headings of the page by the names under which the rows are found."""
    return {pattern.slug: pattern.name for pattern in PATTERNS} | {
        NARRATIVES: "Narratives (chapters 1 and 2)",
        COMPOSED_SCENARIOS: "Composed scenarios",
    }


def main() -> int:
    """Print the summary; return 1 when a row has no evidence."""
    found, shown = load_requirements(), evidence()
    missing = 0
    for slug, pattern in found.items():
        rows = unshown(pattern, shown)
        missing += len(rows)
        counts = f"{len(pattern.rows):>4} rows, {len(pattern.left_out):>2} left out"
        print(f"{slug:<24} {counts}, open: {' '.join(rows) or '–'}")
    without = [p.slug for p in PATTERNS if p.chapter in COVERED_CHAPTERS and p.slug not in found]
    print(f"no file of rows yet: {' '.join(without) or '–'}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
