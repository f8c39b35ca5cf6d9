"""The line that libfaketime reads: by its own sum it must give what the skew says, at every moment."""

from __future__ import annotations

import re

import pytest

from faultline.harness.world.hosts.agent.clock_code import Skew
from faultline.harness.world.hosts.agent.control_file import control_line

S = 1_000_000_000
START_NS = 1_700_000_000 * S
LINE = re.compile(r"([+-]\d+\.\d{9}) x(\d+\.\d{6}) (\d+)")


def told_off_ns(text: str, true_ns: int) -> float:
    """Return the offset that libfaketime gives the clock (parse_ft_string and fake_clock_gettime of version 0.9.10)."""
    matched = LINE.fullmatch(text)
    assert matched is not None
    return float(matched[1]) * S + (true_ns - START_NS) * (float(matched[2]) - 1)


def test_right_clocks_are_written_with_their_rate() -> None:
    # libfaketime keeps the last rate when a line has none.
    assert control_line(Skew(), START_NS, 7) == "+0.000000000 x1.000000 7"


@pytest.mark.parametrize("offset_ns", [3_600 * S, -3_600 * S, 500_000_000, -1, 1])
def test_a_step_is_an_offset_with_its_sign(offset_ns: int) -> None:
    text = control_line(Skew(offset_ns), START_NS, 1)
    assert text.startswith("-" if offset_ns < 0 else "+") and " x1.000000 " in text
    assert told_off_ns(text, START_NS + 10 * S) == pytest.approx(offset_ns, abs=0.5)


@pytest.mark.parametrize("rate_ppm", [100_000, -100_000, 9_000_000, -900_000, 1])
def test_a_drift_that_begins_at_a_moment_does_not_make_the_clock_jump(rate_ppm: int) -> None:
    began_ns = START_NS + 750 * S
    before, skew = Skew(5 * S), Skew(5 * S).drifting(rate_ppm, began_ns)
    old, new = control_line(before, START_NS, 1), control_line(skew, START_NS, 2)
    assert told_off_ns(new, began_ns) == pytest.approx(told_off_ns(old, began_ns), abs=1_000)
    later_ns = began_ns + 60 * S
    assert told_off_ns(new, later_ns) == pytest.approx(skew.at(later_ns), abs=1_000)
    assert told_off_ns(new, later_ns) - told_off_ns(new, began_ns) == pytest.approx(60_000 * rate_ppm, abs=1_000)


def test_two_lines_that_say_the_same_can_be_told_apart() -> None:
    first, second = control_line(Skew(), START_NS, 1), control_line(Skew(), START_NS, 2)
    assert first != second and first.rpartition(" ")[0] == second.rpartition(" ")[0]
