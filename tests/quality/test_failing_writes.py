"""No verdict is lost, invented or improved, whichever write, sync or rename of a run's results fails, and however.

This is a sample; `python tools/fail_every_write.py` tries every point (docs/reference/robustness.md has its record).
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from fail_every_write import RUNS, Point, complaints, points
from results_faults import MODES, Control

pytestmark = pytest.mark.slow

EACH = 41


@pytest.fixture(scope="module", params=RUNS, ids=lambda run: run.name)
def sample(request: pytest.FixtureRequest) -> list[Point]:
    """Some points of a run."""
    return list(points(request.param, every=EACH))


def test_no_verdict_is_lost_invented_or_improved(sample: list[Point]) -> None:
    assert {point.mode for point in sample} == set(MODES)
    assert [told for point in sample for told in complaints(point)] == []


def test_a_promise_that_is_broken_is_told_of(sample: list[Point]) -> None:
    """The negative control: of a run that is said to have the other answer, every promise is broken."""
    point = sample[0]
    other = Point(type(point.run)(point.run.name, point.run.arguments, 1 - point.run.answer), 10**6, "nothing", "full")
    told = "\n".join(complaints(other))
    for broken in ("a violation was", "verdict.json says", "check "):
        assert broken in told


def test_a_call_is_counted_over_all_processes_and_fails_once(tmp_path: Path) -> None:
    control = Control(tmp_path)
    control.aim(2, "full")
    assert [control.count("a"), control.count("b"), control.count("c")] == ["", "full", ""]
    assert control.calls() == ["a", "b", "c"]
