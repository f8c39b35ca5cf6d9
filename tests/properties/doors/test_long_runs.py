"""A long run of a few bytes, anywhere in an input, costs time in proportion to its length."""

from __future__ import annotations

import fuzz_doors
import pytest
from door_mutations import UNITS
from doors import DOORS, Door, seeds_of

LENGTH = 100_000
ONE_TEXT = [door for door in DOORS if len(seeds_of(door)[0]) == 1]


def places(data: bytes) -> set[int]:
    """The beginning, the end, and the beginnings of a line, a token and a string in the middle."""
    middle = len(data) // 2
    return {0, len(data)} | {data.find(each, middle) + 1 or len(data) for each in (b"\n", b" ", b'"')}


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=ascii)
@pytest.mark.parametrize("door", ONE_TEXT, ids=lambda door: door.name)
def test_a_long_run_ends_in_time(door: Door, unit: bytes, tmp_path):
    ((name, seed),) = seeds_of(door)[0].items()
    for place in sorted(places(seed)):
        data = seed[:place] + unit * (LENGTH // len(unit)) + seed[place:]
        knock = fuzz_doors.Knock(door, 0, {name: data}, frozenset(range(5)))
        fuzz_doors.placed(knock, tmp_path)
        assert fuzz_doors.answered(knock, tmp_path).wrong == ""
