"""`faultline explore`: a proof ends with 0, a violation is stored and repeated, and a limit is no pass."""

from __future__ import annotations

import json

import pytest

CORRECT = [
    ("quorum-register", "--delays", "1", "--crashes", "0"),
    ("paxos-kv", "--delays", "1", "--operations", "2"),
    ("transactional-kv", "--delays", "0", "--crashes", "1", "--operations", "2"),
    ("consistent-core", "--delays", "0", "--crashes", "1", "--operations", "2"),
]
BROKEN = [
    ("quorum-register", "restarted-correlation-ids", ("--crashes", "1"), "linearizability/"),
    ("paxos-kv", "local-read", (), "linearizability/"),
    ("transactional-kv", "votes-with-lost-buffers", ("--delays", "0", "--crashes", "1"), "list-append/"),
    ("consistent-core", "half-elects-leader", ("--behind", "4", "--seed", "3"), "invariants/HWM-I3"),
]


def told(faultline, *arguments: str, code: int) -> dict:
    ended = faultline("explore", *arguments, "--json")
    assert ended.code == code, ended.err
    return json.loads(ended.out)


@pytest.mark.slow
@pytest.mark.parametrize("case", CORRECT, ids=[case[0] for case in CORRECT])
def test_a_correct_system_is_explored_to_the_end(faultline, case):
    system, *bounds = case
    found = told(faultline, "--system", system, *bounds, code=0)
    assert found["complete"]
    assert found["waiting"] == 0
    assert found["schedules"] > 20
    assert found["states"] > found["schedules"]


@pytest.mark.slow
@pytest.mark.parametrize("case", BROKEN, ids=[case[1] for case in BROKEN])
def test_a_planted_bug_is_found_and_its_run_is_repeated_to_the_byte(faultline, case):
    system, bug, bounds, signature = case
    found = told(faultline, "--system", system, "--planted-bug", bug, *bounds, code=1)
    assert str(found["signature"]).startswith(signature)
    assert found["violation"]["late"] or found["violation"]["faults"]
    replayed = faultline("replay", str(found["folder"]))
    assert replayed.code == 1
    assert "Reproduced: the same history byte for byte" in replayed.out


def test_the_causes_of_an_explored_run_are_refused_in_a_sentence(faultline):
    found = told(faultline, "--system", "paxos-kv", "--planted-bug", "local-read", code=1)
    ended = faultline("causes", str(found["folder"]))
    assert ended.code == 2
    assert "its plan orders events itself" in ended.err


def test_a_limit_before_the_end_is_no_pass(faultline):
    found = told(faultline, "--schedules", "3", code=3)
    assert found["runs"] == 3
    assert not found["complete"]


def test_a_window_after_the_operations_is_refused(faultline):
    ended = faultline("explore", "--from-ms", "100000")
    assert ended.code == 2
    assert "--from-ms 100000 is not before the end of the operations" in ended.err
