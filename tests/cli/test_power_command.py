"""`faultline power`: lists mutants, measures some, and tells the result in words, as JSON and as a page."""

from __future__ import annotations

import json

import pytest

from faultline.cli import progress

SYSTEM = ("power", "--system", "quorum-register")


def test_all_mutants_are_listed_and_none_runs(faultline):
    ended = faultline(*SYSTEM, "--list", "--json")
    listed = json.loads(ended.out)
    assert ended.code == 0
    assert len(listed) > 200
    assert {"id", "module", "place", "operator", "line", "before", "after"} == set(listed[0])
    assert listed[0]["id"] in faultline(*SYSTEM, "--list").out


@pytest.mark.real
def test_a_mutant_is_measured_and_told_in_each_form(faultline, tmp_path):
    (mutant,) = [
        one["id"]
        for one in json.loads(faultline(*SYSTEM, "--list", "--json").out)
        if one["place"] == "Coordinator._next_stamp" and one["operator"] == "swap-extremum"
    ]
    asked = (*SYSTEM, "--mutant", mutant, "--workload", "read-write", "--runs", "40")
    told = json.loads(faultline(*asked, "--json", "--markdown", "power.md").out)
    assert told["clients"]["found"] == told["clients"]["of"] == 1
    (measured,) = told["mutants"]
    assert measured["ending"] == "client-visible"
    assert measured["runs_reached"] > 0
    assert {cell["checker"] for cell in told["matrix"]} >= {"clients", "any", "linearizability"}
    assert mutant in (tmp_path / "power.md").read_text()
    words = faultline(*asked)
    assert words.code == 0
    assert measured["first_client"]["replay"] in words.out


@pytest.mark.real
def test_after_ctrl_c_the_mutants_that_are_finished_are_told(faultline, monkeypatch):
    def interrupted(words):
        if words == "2 of 4 mutants":
            raise KeyboardInterrupt

    monkeypatch.setattr(progress, "words_now_and_then", lambda: interrupted)
    ended = faultline(*SYSTEM, "--mutants", "4", "--runs", "1")
    assert ended.code == 130
    assert "Interrupted: 2 mutants not measured." in ended.out
    assert ended.out.count("\n    line ") == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("power", "--system", "qourum-register"), "Did you mean quorum-register?"),
        (("power", "--system", "etcd"), "no source that could be mutated"),
        ((*SYSTEM, "--mutant", "nothing"), "has no mutant 'nothing'"),
        ((*SYSTEM, "--mutants", "0"), "--mutants"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_a_sentence(faultline, arguments, said):
    ended = faultline(*arguments)
    assert ended.code == 2
    assert said in ended.err
