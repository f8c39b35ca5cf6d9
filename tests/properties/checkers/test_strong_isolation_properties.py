"""Snapshot isolation and serializability against their definitions, on small histories."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from isolation_oracle import history_of, is_serializable, is_snapshot_isolated
from small_transactions import random_transactions, sane_transactions

from faultline.checkers.isolation.strong import SerializabilityChecker, SnapshotIsolationChecker
from faultline.harness.verdict import Verdict

LEVELS = {SerializabilityChecker: is_serializable, SnapshotIsolationChecker: is_snapshot_isolated}


@pytest.mark.parametrize("session_order", [False, True])
@pytest.mark.parametrize("make", LEVELS)
@given(transactions=random_transactions(4) | sane_transactions(5))
@settings(max_examples=2 * settings().max_examples)
def test_a_level_is_kept_exactly_when_the_transactions_can_be_run_so(make, session_order, transactions):
    result = make(session_order=session_order).check(history_of(transactions))
    kept = Verdict.PASS if result.detail["transactions"] else Verdict.VACUOUS
    assert result.verdict is (kept if LEVELS[make](transactions, session_order) else Verdict.VIOLATION)


@pytest.mark.parametrize("make", LEVELS)
@given(transactions=sane_transactions(6))
def test_the_rows_of_a_finding_are_a_violation_by_themselves(make, transactions):
    for finding in make().check(history_of(transactions)).findings:
        rows = set(finding.operations)
        gone = {
            (k, v) for n, (_, steps, _) in enumerate(transactions) if n not in rows for f, k, v in steps if f == "w"
        }
        rest = [
            (session, [step for step in steps if not (step[0] == "r" and step[1:] in gone)], outcome)
            for number, (session, steps, outcome) in enumerate(transactions)
            if number in rows
        ]
        assert not LEVELS[make](rest)


@given(transactions=sane_transactions())
def test_a_serializable_history_is_snapshot_isolated_unless_sessions_say_otherwise(transactions):
    serializable, isolated = (make().check(history_of(transactions)).verdict for make in LEVELS)
    assert not (serializable is Verdict.PASS and isolated is Verdict.VIOLATION)


@pytest.mark.parametrize("make", LEVELS)
@given(transactions=sane_transactions())
def test_a_search_that_may_not_do_anything_is_never_wrong(make, transactions):
    verdict = make(steps_max=0).check(history_of(transactions)).verdict
    assert verdict in (Verdict.UNKNOWN, make().check(history_of(transactions)).verdict)
