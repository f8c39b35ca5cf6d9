"""Variants and figures of patterns: read from the systems and the records, complete, and readable in 100 columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from faultline.cli.pattern_listing import figures_line, pattern_entry, pattern_lines, variant_lines
from faultline.harness.options import all_options
from faultline.registry import load_system, systems
from faultline.systems_under_test.patterns.catalogue import PATTERNS
from faultline.systems_under_test.patterns.variants import VARIANTS, Detection, detections

REFERENCE = {name: load_system(name) for name, path in systems().items() if ".reference." in path}
ENTRIES = {pattern.slug: pattern_entry(pattern, REFERENCE) for pattern in PATTERNS}


def test_variants_name_patterns_systems_and_options_that_exist() -> None:
    assert set(VARIANTS) <= set(ENTRIES)
    unknown = [
        f"{slug}: {system} {name}"
        for slug, named in VARIANTS.items()
        for system, names in named.items()
        for name in names
        if name not in all_options(REFERENCE[system])
    ]
    assert unknown == []


def test_every_option_with_named_values_selects_a_variant_of_some_pattern() -> None:
    told = {(system, name) for named in VARIANTS.values() for system, names in named.items() for name in names}
    choices = {
        (system.name, name)
        for system in REFERENCE.values()
        for name, option in system.options.items()
        if option.choices and not option.choices[0].isdigit()
    }
    assert choices - told == set()


def test_every_measured_bug_exists_and_every_bug_of_a_pattern_is_listed_with_its_figures() -> None:
    planted = {(system.name, bug) for system in REFERENCE.values() for bug in system.planted_bugs}
    assert set(detections()) <= planted
    listed = {name: bug for entry in ENTRIES.values() for name, bug in entry["planted_bugs"].items()}
    assert set(listed) == {f"{system}+{bug}" for system, bug in planted}
    for (system, bug), seen in detections().items():
        assert listed[f"{system}+{bug}"]["found"] == seen.found


@pytest.mark.parametrize("slug", list(ENTRIES))
def test_a_pattern_is_told_in_100_columns_with_promise_variants_bugs_and_figures(slug: str) -> None:
    lines = pattern_lines(ENTRIES[slug]) + variant_lines(ENTRIES[slug])
    assert max(map(len, lines)) <= 100
    labels = [line[2:12].strip() for line in lines if line.startswith("  ") and line[2] != " "]
    assert labels[:4] == ["promise", "variants", "bugs", "detection"]


@pytest.mark.parametrize(
    ("figures", "line"),
    [
        ({}, "–"),
        (((3, 6), (1, 4)), "2 of 2 found, each in 25 to 50 % of runs, median 37.5 %"),
        (((0, 6), (1, 4)), "1 of 2 found, each in 0 to 25 % of runs, median 12.5 %"),
        (((1, 4),), "1 of 1 found, each in 25 % of runs"),
    ],
)
def test_figures_tell_how_many_bugs_were_found_and_in_which_share_of_runs(
    monkeypatch: pytest.MonkeyPatch, figures: Any, line: str
) -> None:
    monkeypatch.setattr("faultline.systems_under_test.patterns.variants.detections", measured(figures))
    pattern = next(pattern for pattern in PATTERNS if pattern.slug == "request-pipeline")
    systems_of_it = {"only": Bugs(len(figures))}
    assert figures_line(pattern_entry(pattern, systems_of_it)["detection"]) == line


def measured(figures: Any) -> Callable[[], dict[tuple[str, str], Detection]]:
    found = {
        ("only", f"bug-{number}"): Detection(system="only", bug=f"bug-{number}", campaign="c", runs=runs, found=hits)
        for number, (hits, runs) in enumerate(figures)
    }
    return lambda: found


class Bugs:
    """A system with planted bugs of one pattern and nothing else."""

    name = "only"

    def __init__(self, count: int) -> None:
        one = next(
            bug for bug in REFERENCE["consistent-core"].planted_bugs.values() if bug.pattern == "request-pipeline"
        )
        self.planted_bugs = {f"bug-{number}": _named(one, f"bug-{number}") for number in range(count)}


def _named(planted_bug: Any, name: str) -> Any:
    import msgspec

    return msgspec.structs.replace(planted_bug, name=name)
