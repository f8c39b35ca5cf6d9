"""Evidence of requirement rows fails under its counter-witness, a small change of the code; a sample on each run."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import os
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import changed_code
import forks
import rows_page
import witness_records
from row_evidence import Evidence, evidence

from faultline.power.modules import SourceModule
from faultline.power.mutants import EMPTY_FUNCTION, mutants_of
from faultline.systems_under_test.patterns.requirement_rows import Requirements, load_requirements

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
PATTERNS = ROOT / "faultline" / "systems_under_test" / "patterns"
SAMPLE = 12
KILLED_MIN = 0.95
OF_A_SYSTEM_MIN = 0.60


def check(*arguments: str, records: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the tool's check in a process of its own, over other records when some are given."""
    script = "import sys, witness_records, counter_witnesses\n"
    if records is not None:
        script += f"witness_records.RECORDS = __import__('pathlib').Path({str(records)!r})\n"
    script += "sys.exit(counter_witnesses.main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, *arguments, "--processes", "1"]
    return subprocess.run(command, cwd=TOOLS, capture_output=True, text=True, check=False, timeout=900)


# -- the recorded counter-witnesses -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_sample_of_the_recorded_changes_still_kills_its_evidence() -> None:
    # Another sample for each state of the patterns, and the same one for the same state.
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(PATTERNS.rglob("*.py")))).hexdigest()
    done = check("--check", str(SAMPLE), "--seed", str(int(digest[:8], 16)))
    assert f"{SAMPLE} counter-witnesses checked, 0 of them wrong." in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


def test_most_rows_are_killed_and_shown_by_a_running_system() -> None:
    found, shown, witnesses = load_requirements(), evidence(), witness_records.read_witnesses()
    rows = [(row, slug) for slug, pattern in found.items() for row in pattern.rows if row in shown]
    wanted = [(row, slug) for row, slug in rows if row.partition("-")[2][0] in witness_records.WITNESSED]
    unkilled = [row for row, slug in wanted if not rows_page.is_killed(row, slug, shown, witnesses)]
    again = "tools/counter_witnesses.py searches anew where code has changed; rows that nothing kills: "
    assert len(unkilled) <= (1 - KILLED_MIN) * len(wanted), again + " ".join(unkilled)
    of_a_system = [row for row, slug in rows if rows_page.is_of_a_system(row, slug, shown, witnesses)]
    assert len(of_a_system) >= OF_A_SYSTEM_MIN * len(rows)


# -- the check can say no ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_change_that_the_evidence_survives_is_told(tmp_path: Path) -> None:
    where = "tests/unit/patterns/test_low_water_mark.py::test_the_open_segment_is_never_deleted"
    module = "faultline.systems_under_test.patterns.data_replication.write_ahead_log"
    text = (PATTERNS / "data_replication" / "write_ahead_log.py").read_text(encoding="utf-8")
    # The test truncates nothing.
    mutant = next(one for one in mutants_of(text, module) if one.place == "WriteAheadLog.truncate_from")
    records = tmp_path / "records.jsonl"
    record = witness_records.CounterWitness(
        where=where, pattern="low-water-mark", module=module, mutant=mutant.id, diff=mutant.diff
    )
    records.write_bytes(msgspec.json.encode(record))
    done = check("--check", "all", records=records)
    assert f"{where} (low-water-mark): it passes with the change." in done.stdout
    assert "1 counter-witnesses checked, 1 of them wrong." in done.stdout
    assert done.returncode == 1


TEXT = """\
from contextlib import contextmanager
from functools import cache

class Clock:
    now, limit = 5, 5

    @property
    def is_late(self):
        return self.now > self.limit

@cache
def is_smaller(a, b):
    return a < b

@contextmanager
def below(limit):
    yield lambda value: value < limit

def counted(values):
    least = values[0]
    def inside(value):
        return value + 1 if value == least else value
    return [inside(value) for value in values]
"""


@pytest.fixture
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], ModuleType]:
    """Imports the module `TEXT`, and puts the first mutant of this place and operator into it."""

    def change(place: str, operator: str) -> ModuleType:
        file = tmp_path / "clocks_to_change.py"
        file.write_text(TEXT, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("clocks_to_change", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "clocks_to_change", module)
        spec.loader.exec_module(module)
        source = SourceModule("clocks_to_change", str(file), TEXT)
        found = mutants_of(TEXT, "clocks_to_change", thorough=True)
        changed_code.mutate(source, next(one for one in found if (one.place, one.operator) == (place, operator)))
        return module

    return change


def test_code_is_exchanged_in_properties_and_behind_decorators(changed: Callable[[str, str], ModuleType]) -> None:
    assert changed("Clock.is_late", "shift-comparison").Clock().is_late
    assert changed("is_smaller", "shift-comparison").is_smaller(1, 1)
    with changed("below", "shift-comparison").below(3) as is_below:
        assert is_below(3)


def test_a_function_inside_another_is_changed_with_it(changed: Callable[[str, str], ModuleType]) -> None:
    assert changed("counted.inside", "off-by-one").counted([4, 5]) == [4, 5]


def test_a_function_is_emptied_where_no_smaller_change_is_known(changed: Callable[[str, str], ModuleType]) -> None:
    assert changed("counted", EMPTY_FUNCTION).counted([4, 5]) is None
    assert changed("Clock.is_late", EMPTY_FUNCTION).Clock().is_late is None


def test_marks_tell_the_functions_and_places_that_were_executed(
    changed: Callable[[str, str], ModuleType], tmp_path: Path
) -> None:
    module = changed("is_smaller", EMPTY_FUNCTION)
    reached = set[str]()
    changed_code.mark([SourceModule(module.__name__, str(module.__file__), TEXT)], reached)
    assert module.counted([1, 2]) == [2, 2]
    assert {tuple(each.split(":")[1:3]) for each in reached} == {
        ("counted", EMPTY_FUNCTION),
        ("counted.inside", EMPTY_FUNCTION),
        ("counted.inside", "invert-comparison"),
        ("counted.inside", "off-by-one"),
    }


def test_a_module_without_a_source_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiled = ModuleType("clocks_to_change.kernel")
    compiled.__file__ = str(tmp_path / "kernel.abi3.so")
    (tmp_path / "kernel.abi3.so").write_bytes(b"\x7fELF\xff")
    monkeypatch.setitem(sys.modules, compiled.__name__, compiled)
    assert changed_code.imported_modules(("clocks_to_change",)) == []


def test_a_fork_that_hangs_or_dies_has_failed_and_one_that_answers_has_not() -> None:
    assert forks.answer_of_fork(lambda: {"answer": 7}, 5) == {"answer": 7}
    with pytest.raises(forks.ForkFailed):
        forks.answer_of_fork(lambda: os._exit(3), 5)
    with pytest.raises(forks.ForkFailed):
        forks.answer_of_fork(lambda: all(itertools.repeat(True)), 1)


def test_lines_of_a_fork_come_with_the_way_in_which_it_ended() -> None:
    def told(last: Callable[[], object]) -> tuple[list[str], str]:
        return forks.lines_of_fork(lambda tell: (tell("first"), last(), tell("second"))[1], silence_s=1)

    assert told(lambda: None) == (["first", "second"], "")
    assert told(lambda: os._exit(0)) == (["first"], "died")
    assert told(lambda: select.select([], [], [])) == (["first"], "hung")


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_page_tells_killed_rows_from_unkilled_ones_and_systems_from_components() -> None:
    rows = Requirements(pattern="abc", rows={"ABC-R1": "a", "ABC-R2": "b", "ABC-M1": "c"})
    shown = {
        "ABC-R1": [Evidence("ABC-R1", "test", "t1")],
        "ABC-R2": [Evidence("ABC-R2", "test", "t2")],
        "ABC-M1": [Evidence("ABC-M1", "planted bug", "s+b")],
    }
    killed = witness_records.CounterWitness(
        where="t1", pattern="quorum", module="a.b", mutant="a.b:f:off-by-one:00:0", diff="x + 1 → x"
    )
    page = rows_page.rows_page({"quorum": rows}, shown, {killed.key: killed})
    assert "| ABC-R1 | a | test `t1` | component | `b:f`: `x + 1 → x` |" in page
    assert "| ABC-R2 | b | test `t2` | component | **unkilled** |" in page
    assert "| ABC-M1 | c | planted bug `s+b` | system |  |" in page
    assert "| all | 3 | 3 | 0 | 2 | 1 | 0 | 1 |" in page
