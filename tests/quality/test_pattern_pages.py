"""The pages of the patterns: each leads from the problem of its chapter to a counterexample, and back."""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import bug_evidence as evidence
import pattern_pages

from faultline.systems_under_test.patterns.catalogue import PATTERNS, Pattern
from faultline.systems_under_test.patterns.requirement_rows import load_requirements

ROOT = Path(__file__).resolve().parents[2]
IMPLEMENTED = [pattern for pattern in PATTERNS if pattern.module]


def page_of(pattern: Pattern) -> str:
    return pattern_pages.page(pattern, evidence.read_records(), pattern_pages.read_diagrams())


@pytest.mark.parametrize("pattern", IMPLEMENTED, ids=lambda pattern: pattern.slug)
def test_a_page_has_the_problem_the_code_the_invariants_and_what_breaks_them(pattern: Pattern) -> None:
    page = page_of(pattern)
    assert "**Problem.**" in page
    [code] = re.findall(r"from top to bottom: `([^`]+)`", page)
    assert (ROOT / code).is_file()
    invariants = [row for row in load_requirements()[pattern.slug].rows if "-I" in row]
    assert [row for row in invariants if f"- {row}: " not in page] == []
    planted = [
        bug.name
        for system in evidence.reference_systems()
        for bug in evidence.bugs(system)
        if bug.pattern == pattern.slug
    ]
    assert [name for name in planted if f"- [`{name}`]" not in page] == []


def test_the_planted_bugs_that_modules_name_can_be_planted() -> None:
    systems = evidence.reference_systems()
    known = {bug.name for system in systems for bug in evidence.bugs(system)} | {system.name for system in systems}
    for pattern in IMPLEMENTED:
        text = inspect.getdoc(import_module(f"faultline.systems_under_test.{pattern.module}"))
        section = re.search(r"\*Planted bugs\.\* (.*?)\n\n", text, re.DOTALL)
        assert section, pattern.module
        assert set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", section[1])) <= known, pattern.module


def test_every_pattern_has_its_diagrams_recorded_as_the_command_prints_them() -> None:
    assert set(pattern_pages.read_diagrams()) == {pattern.slug for pattern in IMPLEMENTED}
    printed = ["Lease – …", "", "How it goes without the bug (seed 0):", "  a → b", "", "Replay: x", "Report: y"]
    assert list(pattern_pages.drawn(printed)) == printed[2:5]


def test_the_table_of_faults_tells_runs_that_held_from_those_that_a_bug_broke() -> None:
    page = page_of(next(pattern for pattern in IMPLEMENTED if pattern.slug == "write-ahead-log"))
    [row] = [line for line in page.splitlines() if line.startswith("| durability |")]
    assert re.match(r"\| durability \| held in [\d,]+ runs \| .*`ack-before-fsync`", row)


def test_the_story_and_the_page_point_at_each_other() -> None:
    page = page_of(next(pattern for pattern in IMPLEMENTED if pattern.slug == "generation-clock"))
    scenes = re.findall(r"\(\.\./story\.md#([a-z-]+)\)", page)
    story = (ROOT / "docs/reference/generated/story.md").read_text("utf-8")
    assert scenes
    assert [scene for scene in scenes if f"### {scene}" not in story] == []
    rows = (ROOT / "docs/reference/generated/rows.md").read_text("utf-8")
    assert "(patterns/generation-clock.md)" in rows
