"""Damaged input at every door gives an exit code and never a crash; rewritten histories keep their verdict."""

from __future__ import annotations

import argparse
import random
from collections import Counter
from pathlib import Path

import fuzz_doors
import pytest
from door_rewrites import rewritten
from doors import CORPUS, DOORS, Door, door_named, known_histories, seeds_of, violating_run

INPUTS = 20_000
PARTS = 4
ONCE_FAILED = sorted(path for path in CORPUS.rglob("*") if path.is_file())


def from_corpus(path: Path) -> fuzz_doors.Knock:
    """The input that once failed: the seed of its door with the file in place of the one that it is called after."""
    name, *part = path.relative_to(CORPUS).parent.parts
    door = door_named(name)
    seed = seeds_of(door)[0]
    target = next(file for file in seed if not part or Path(file).name == part[0])
    return fuzz_doors.Knock(door, 0, seed | {target: path.read_bytes()}, frozenset(range(5)))


@pytest.mark.parametrize("path", ONCE_FAILED, ids=lambda path: str(path.relative_to(CORPUS)))
def test_what_once_failed_ends_with_an_exit_code(path, tmp_path):
    knock = from_corpus(path)
    fuzz_doors.placed(knock, tmp_path)
    answer = fuzz_doors.answered(knock, tmp_path)
    assert answer.wrong == ""
    assert answer.code != 0, "every one of them is damaged"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_twenty_thousand_damaged_and_rewritten_inputs_come_to_nothing_but_exit_codes(part):
    first = part * INPUTS // PARTS
    asked = argparse.Namespace(first=first, inputs=INPUTS // PARTS, process_every=INPUTS, seconds=600.0, keep=None)
    tally = fuzz_doors.tallied(DOORS, asked)
    assert tally.findings == []
    codes = sum(tally.codes.values(), Counter())
    assert min(codes[code] for code in range(5)) > 10, "planted_bugs get past the first question of each door"


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_a_door_takes_its_seeds_as_they_are(door: Door, tmp_path):
    for seed in seeds_of(door):
        knock = fuzz_doors.Knock(door, 0, seed, frozenset((0, 1, 3)))
        fuzz_doors.placed(knock, tmp_path)
        assert fuzz_doors.answered(knock, tmp_path).wrong == ""


def test_there_are_passing_and_violating_histories_of_each_kind_that_is_rewritten():
    found = Counter((known.kind, known.violates) for known in known_histories())
    assert all(found[kind, violates] for kind in ("register", "kv", "other") for violates in (True, False))
    assert found["txn", True]


# -- the fuzzer can say no -------------------------------------------------------------------------------------------


def test_the_same_number_is_the_same_input():
    for door in DOORS:
        assert fuzz_doors.knock_number(door, 7) == fuzz_doors.knock_number(door, 7)


def test_a_crash_behind_a_door_is_found(tmp_path):
    def stumbles(_path: Path) -> object:
        raise KeyError("no such key")

    knock = fuzz_doors.Knock(Door("stumbling", ("input",), function=stumbles), 0, {}, frozenset(range(5)))
    answer = fuzz_doors.answered(knock, tmp_path)
    assert answer.code == -1 and "KeyError" in answer.wrong


def test_a_passed_violation_is_found(tmp_path):
    known = next(known for known in known_histories() if known.kind == "register" and not known.violates)
    text = rewritten(random.Random(0), known, "jepsen-edn")
    knock = fuzz_doors.Knock(door_named("jepsen-edn"), 0, {"input": text}, frozenset({1}))
    fuzz_doors.placed(knock, tmp_path)
    assert "exit code 0 instead of [1]" in fuzz_doors.answered(knock, tmp_path).wrong


def test_a_run_whose_history_violates_may_not_pass_whatever_happens_to_its_verdict():
    allowed = [
        knock.allowed
        for knock in (fuzz_doors.knock_number(door_named("run-folder"), number) for number in range(100))
        if knock.files["run/history.jsonl"] == violating_run()["history.jsonl"]
    ]
    assert allowed and all(0 not in codes for codes in allowed)
