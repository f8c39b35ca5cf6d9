"""`faultline show`: a pattern's promise, a diagram of it, and a counterexample that can be replayed."""

from __future__ import annotations

import shlex

import pytest

from faultline.cli.main import perform
from faultline.harness.errors import UsageError
from faultline.registry import load_system, systems
from faultline.systems_under_test.patterns.catalogue import PATTERNS
from faultline.systems_under_test.patterns.lesson import lesson_of

WITHOUT_A_BUG_OF_THEIR_OWN = {"consistent-core"}
"""Its bugs are those of the patterns it is made of."""

IMPLEMENTED = [pattern for pattern in PATTERNS if pattern.module]


@pytest.fixture
def show(tmp_path, capsys):
    def command(*arguments: str) -> str:
        assert perform(["show", *arguments, "--output", str(tmp_path / "store")]) == 0
        return capsys.readouterr().out

    return command


def test_a_pattern_is_shown_with_its_promise_a_diagram_and_a_counterexample(show):
    out = show("high-water-mark")
    assert "High-Water Mark – Data replication, chapter 12" in out
    assert "\nProblem. " in out
    assert "without the bug" in out and "✔ No promise and no invariant is broken" in out
    assert "├───" in out and "✖ " in out


def test_the_counterexample_replays(show, capsys):
    out = show("leader-and-followers", "--planted-bug", "stale-read")
    (line,) = (line for line in out.splitlines() if line.startswith("Replay: "))
    assert perform(shlex.split(line.removeprefix("Replay: faultline "))) == 1


def test_an_unknown_pattern_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="Did you mean high-water-mark"):
        perform(["show", "hi-water-mark"])


def test_an_unknown_bug_is_answered_with_those_there_are():
    with pytest.raises(UsageError, match="stale-read"):
        perform(["show", "leader-and-followers", "--planted-bug", "no-such-bug"])


@pytest.mark.parametrize("pattern", IMPLEMENTED, ids=lambda pattern: pattern.slug)
def test_every_module_teaches_under_all_headings(pattern):
    lesson = lesson_of(pattern)
    assert lesson.promise
    assert {"Problem", "Idea", "Invariants", "Tolerates", "Does not tolerate"} <= set(lesson.parts)
    assert all(lesson.parts.values())


def test_every_implemented_pattern_has_a_planted_bug_to_show():
    planted = {planted_bug.pattern for name in systems() for planted_bug in load_system(name).planted_bugs.values()}
    assert {pattern.slug for pattern in IMPLEMENTED} - planted == WITHOUT_A_BUG_OF_THEIR_OWN


def test_an_election_that_goes_wrong_without_operations_is_drawn_by_its_votes(show):
    out = show("generation-clock", "--planted-bug", "vote-twice")
    right, _, wrong = out.partition("The same with `vote-twice`")
    assert "VoteRequest" in right
    assert wrong.count("VoteRequest") >= 2 and "VoteResponse" in wrong


def test_the_bug_shown_is_one_that_the_lesson_names_and_clients_see(show):
    assert "The same with `duplicate-lease-granted`" in show("lease")
