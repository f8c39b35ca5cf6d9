"""Read committed, read atomicity and causal consistency against their definitions, on small histories."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from isolation_oracle import history_of, holds
from small_transactions import random_transactions, sane_transactions

from faultline.checkers.isolation.weak import CausalConsistencyChecker, ReadAtomicChecker, ReadCommittedChecker
from faultline.harness.verdict import Verdict

LEVELS = {"rc": ReadCommittedChecker, "ra": ReadAtomicChecker, "cc": CausalConsistencyChecker}
KEYS = "xyz"


@pytest.mark.parametrize("level", LEVELS)
@given(transactions=random_transactions() | sane_transactions())
@settings(max_examples=3 * settings().max_examples)
def test_a_level_is_kept_exactly_when_some_order_satisfies_its_axiom(level, transactions):
    result = LEVELS[level]().check(history_of(transactions))
    kept = Verdict.PASS if result.detail["transactions"] else Verdict.VACUOUS
    assert result.verdict is (kept if holds(level, transactions) else Verdict.VIOLATION)


@given(transactions=sane_transactions())
def test_stronger_levels_are_violated_wherever_weaker_ones_are(transactions):
    verdicts = [checker().check(history_of(transactions)).verdict for checker in LEVELS.values()]
    violated = [verdict is Verdict.VIOLATION for verdict in verdicts]
    assert violated == sorted(violated)


@given(transactions=sane_transactions())
def test_the_rows_of_a_finding_are_a_violation_by_themselves(transactions):
    """The transactions that a finding names violate the level without the others and without reads of their writes."""
    for level, checker in LEVELS.items():
        for finding in checker().check(history_of(transactions)).findings:
            assert not holds(level, _restricted(transactions, set(finding.operations)))


def _restricted(transactions, rows):
    gone = {(k, v) for n, (_, steps, _) in enumerate(transactions) if n not in rows for f, k, v in steps if f == "w"}
    return [
        (session, [step for step in steps if not (step[0] == "r" and step[1:] in gone)], outcome)
        for number, (session, steps, outcome) in enumerate(transactions)
        if number in rows
    ]
