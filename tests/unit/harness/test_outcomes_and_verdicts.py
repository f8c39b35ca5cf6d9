"""Indefinite is the default, and a violation outranks everything."""

import itertools

import pytest

from faultline.harness.errors import HarnessError, Interrupted, UsageError
from faultline.harness.outcome import OutcomeRegistry
from faultline.harness.verdict import Verdict, exit_code, merge


def test_an_error_is_indefinite_unless_it_is_registered_as_definite():
    registry = OutcomeRegistry(["cas-mismatch"])
    assert registry.outcome("cas-mismatch").kind == "fail"
    for error in ("timeout", "connection-reset", "", "Cas-Mismatch"):
        assert registry.outcome(error).kind == "info"


def test_verdicts_merge_by_rank_in_any_order():
    ranked = [Verdict.PASS, Verdict.VACUOUS, Verdict.UNKNOWN, Verdict.HARNESS_ERROR, Verdict.VIOLATION]
    for subset in itertools.chain.from_iterable(itertools.permutations(ranked, size) for size in (1, 2, 3)):
        assert merge(subset) is max(subset, key=ranked.index)


def test_nothing_merges_to_pass():
    assert merge([]) is Verdict.PASS


def test_every_verdict_has_the_exit_code_of_the_design():
    assert {verdict.value: exit_code(verdict) for verdict in Verdict} == {
        "pass": 0,
        "violation": 1,
        "unknown": 3,
        "vacuous": 3,
        "harness-error": 4,
    }


@pytest.mark.parametrize(("error", "code"), [(UsageError, 2), (HarnessError, 4), (Interrupted, 130)])
def test_every_deliberate_error_has_its_exit_code_and_says_the_next_step(error, code):
    raised = error("It broke.", "Mend it.")
    assert raised.exit_code == code
    assert str(raised) == "It broke. Mend it."
