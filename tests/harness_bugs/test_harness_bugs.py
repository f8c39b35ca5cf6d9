"""The harness tested as it tests stores: each planted bug of its own fails the scenario that is said to catch it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bug_tables import SCENARIOS, TABLES
from planted_harness_bug import HarnessBug, plant

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "generated" / "harness-bugs.md"
BUGS = [bug for bugs in TABLES.values() for bug in bugs]


def tried(*arguments: str) -> dict[str, dict[str, str]]:
    """Run `bug_trials.py` and return the scenarios that failed, by bug."""
    command = [sys.executable, str(Path(__file__).with_name("bug_trials.py")), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env={**os.environ})
    assert done.returncode == 0, done.stderr
    return {told["bug"]: told["noticed"] for told in map(json.loads, done.stdout.splitlines())}


@pytest.mark.slow
def test_every_scenario_passes_on_the_harness_as_it_is() -> None:
    assert tried("none") == {"": {}}


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_each_planted_bug_is_caught_by_its_scenario_and_each_hole_is_one(table: str) -> None:
    noticed = tried("named", table)
    assert list(noticed) == [bug.name for bug in TABLES[table]]
    missed = [bug.name for bug in TABLES[table] if bug.caught_by and bug.caught_by not in noticed[bug.name]]
    assert missed == [], "no scenario catches these any more"
    closed = {bug.name: noticed[bug.name] for bug in TABLES[table] if bug.hole and noticed[bug.name]}
    assert closed == {}, "these are holes no more; name what catches them"


def test_there_are_at_least_fifty_and_each_has_a_name_of_its_own_and_one_fate() -> None:
    assert len(BUGS) >= 50
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert all(bool(bug.caught_by) is not bool(bug.hole) for bug in BUGS)
    assert {bug.caught_by for bug in BUGS if bug.caught_by and not bug.by_test} == set(SCENARIOS)


def test_the_page_tells_of_every_bug_what_catches_it() -> None:
    rows = dict(re.findall(r"^\| `([^`]+)` \|.*\| ([^|]*) \|$", PAGE.read_text("utf-8"), re.MULTILINE))
    expected = {bug.name: bug.told_as or "hole" for bug in BUGS}
    assert {name: told.split(",")[0] for name, told in rows.items()} == expected, "run: make harness-bugs"


def bug(before: str, after: str, place: str = "faultline.harness.verdict:merge") -> HarnessBug:
    return HarnessBug(name="b", breaks="", place=place, before=before, after=after, hole="It is an example.")


def test_an_edit_that_does_not_fit_the_code_is_refused() -> None:
    with pytest.raises(ValueError, match="0 times, not once; plant it anew"):
        plant(bug("min(verdicts", "max(verdicts"))
    with pytest.raises(ValueError, match="2 times, not once"):
        plant(bug("outcomes.count(", "len(", "faultline.harness.judge:_counts"))


def test_a_slip_in_a_name_is_no_planted_bug() -> None:
    with pytest.raises(ValueError, match="uses verdikts, which faultline.harness.verdict does not know"):
        plant(bug("max(verdicts", "max(verdikts"))


def test_a_bug_that_is_planted_breaks_every_importer_of_the_function() -> None:
    script = (
        "from faultline.harness.verdict import Verdict, merge\nfrom planted_harness_bug import *\n"
        "from bug_tables import *\n"
        "plant(next(bug for bug in TABLES['verdicts'] if bug.name == 'last-verdict-wins'))\n"
        "print(merge([Verdict.VIOLATION, Verdict.PASS]).value)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment)
    assert done.stdout == "pass\n"
