"""Transactions on registers: what inference cannot tell is searched, and no more is claimed than was found."""

from __future__ import annotations

import pytest

from faultline.checkers.judges import Budget, judge, models
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok
from faultline.harness.verdict import Cause, CheckResult, Reason, Verdict


def at_once(*transactions):
    """Transactions that all began before any ended, each by a client of its own."""
    history = History()
    for client, parts in enumerate(transactions):
        asked = [[f, key, None if f == "r" else value] for f, key, value in parts]
        history.invoke(Operation(client, "txn", None, asked), client, client, "")
    for row, parts in enumerate(transactions):
        history.complete(row, ok([list(part) for part in parts]), 100 + row)
    return history


def timed(*transactions):
    """Transactions with the moments of their beginning and end, each by a client of its own."""
    history, rows = History(), {}
    moments = [(moment, end, row) for row, (*span, _) in enumerate(transactions) for end, moment in enumerate(span)]
    for _, end, row in sorted(moments):
        parts = transactions[row][2]
        if end:
            history.complete(rows[row], ok([list(part) for part in parts]), history.next_index)
        else:
            asked = [[f, key, None if f == "r" else value] for f, key, value in parts]
            rows[row] = history.invoke(Operation(row, "txn", None, asked), history.next_index, row, "")
    return history


def silent_contradiction():
    """T1 and T3 order the writes of x one way, T2's and T1's of y the other; no edge of it is certain by itself."""
    return at_once(
        [("r", "x", 1), ("r", "y", 1)],
        [("w", "y", 1)],
        [("w", "x", 1), ("w", "y", 2)],
        [("w", "x", 2)],
        [("r", "x", 2), ("r", "y", 2)],
    )


def plain_history():
    return at_once([("w", "x", 1)], [("r", "x", 1), ("w", "y", 1)])


def test_a_contradiction_that_inference_does_not_see_is_found_by_search():
    history = silent_contradiction()
    result = judge("serializable", history).check(history)
    assert result.verdict is Verdict.VIOLATION
    assert result.checker == "rw-register"
    assert result.findings[0].anomaly == "conflicting-write-order"


def test_a_weaker_model_than_the_one_that_is_broken_passes():
    history = silent_contradiction()
    assert judge("read-committed", history).check(history).verdict is Verdict.PASS


@pytest.mark.parametrize(
    "model", ["read-committed", "read-atomic", "causal", "snapshot-isolation", "serializable", "strict-serializable"]
)
def test_a_search_that_decides_confirms_what_inference_lets_pass(model):
    result = judge(model, plain_history()).check(plain_history())
    assert result.verdict is Verdict.PASS
    assert "A search confirms it" in result.sentence
    assert result.detail["search"]["verdict"] == "pass"


@pytest.mark.parametrize("model", ["repeatable-read", "monotonic-atomic-view"])
def test_a_model_that_is_not_searched_itself_is_not_said_to_be_confirmed(model):
    result = judge(model, plain_history()).check(plain_history())
    assert result.verdict is Verdict.PASS
    assert "confirms" not in result.sentence


def test_options_go_to_inference_and_unknown_ones_are_refused():
    with pytest.raises(UsageError, match="cannot be set up with model, timeout_s, depth"):
        judge("serializable", silent_contradiction(), options={"depth": 3})


def test_models_that_forbid_nothing_visible_are_not_offered():
    assert {"PRAM", "monotonic-reads", "linearizable"} & models().keys() == set()
    with pytest.raises(UsageError, match="no model called `PRAM`"):
        judge("PRAM", plain_history())


@pytest.mark.parametrize("model", ["rw-serializable", "rw-snapshot-isolation"])
def test_no_search_for_an_order_goes_on_when_the_time_is_up(model):
    history = silent_contradiction()
    assert judge(model, history).check(history).verdict is Verdict.VIOLATION
    result = judge(model, history, Budget(timeout_s=0.0)).check(history)
    assert result.verdict is Verdict.UNKNOWN
    assert result.detail["steps"] == 0


def test_inference_and_search_share_their_time_and_no_more_is_claimed_than_was_found():
    history = silent_contradiction()
    result = judge("serializable", history, Budget(timeout_s=0.0)).check(history)
    assert result.verdict is Verdict.UNKNOWN
    assert result.reason == Reason(cause=Cause.TIME)
    assert "Inference finds nothing against serializable" in result.sentence


def test_a_search_that_gives_up_leaves_unknown_with_the_option_to_raise(monkeypatch):
    monkeypatch.setattr("faultline.checkers.isolation.strong.SerializabilityChecker.judge", gives_up)
    result = judge("serializable", plain_history()).check(plain_history())
    assert result.verdict is Verdict.UNKNOWN
    assert result.reason == Reason(cause=Cause.SIZE, option="transactions_max", value=4500)


def gives_up(checker, history, committed):
    reason = Reason(cause=Cause.SIZE, option="transactions_max", value=4500)
    return CheckResult(checker=checker.name, verdict=Verdict.UNKNOWN, sentence="Too large.", reason=reason)


def test_the_clock_is_looked_at_while_choices_are_made(monkeypatch):
    history = silent_contradiction()
    looks = []

    class Clock:
        @staticmethod
        def monotonic():
            looks.append(None)
            return float(len(looks))

    monkeypatch.setattr("faultline.checkers.porcupine.budget.time", Clock)
    full = judge("rw-serializable", history, Budget(timeout_s=1000.0)).check(history)
    needed = len(looks)
    assert full.verdict is Verdict.VIOLATION and needed > 5
    assert judge("rw-serializable", history, Budget(timeout_s=3.0)).check(history).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("model", ["list-append", "txn-set", "txn-counter", "closed-predicate", "rw-register"])
def test_every_checker_that_searches_takes_a_time_limit(model):
    assert judge(model, History(), Budget(timeout_s=0.5)).timeout_s == 0.5


def three_among(others):
    """Three transactions that no order explains, in one component with others that are in order."""
    chained = []
    for number in range(others // 2):
        seen = ("r", "z", number - 1 if number else None)
        chained += [[seen, ("w", "z", number), ("w", "x", 10 + number)], [("r", "z", number)]]
    return at_once(
        [("w", "x", 1), ("w", "y", 1)],
        [("r", "y", None), ("w", "y", 2)],
        [("r", "y", 2), ("r", "x", 1)],
        *chained,
    )


@pytest.mark.parametrize("others", [0, 500, 4500])
def test_three_transactions_without_an_order_are_found_among_thousands_in_one_component(others):
    history = three_among(others)
    result = judge("serializable", history).check(history)
    assert result.verdict is Verdict.VIOLATION
    assert result.findings[0].operations == (0, 1, 2)


def test_their_twin_that_read_no_contradiction_passes():
    history = three_among(4500)
    history.result[2][1][2] = None
    result = judge("serializable", history).check(history)
    assert result.verdict is Verdict.PASS


def test_a_stale_read_of_strictly_sequential_transactions_breaks_strong_snapshot_isolation_alone():
    stale = timed((0, 1, [("w", "x", 1)]), (2, 3, [("w", "x", 2)]), (4, 5, [("r", "x", 1)]))
    assert judge("strong-snapshot-isolation", stale).check(stale).verdict is Verdict.VIOLATION
    assert judge("strong-session-snapshot-isolation", stale).check(stale).verdict is Verdict.PASS
    fresh = timed((0, 1, [("w", "x", 1)]), (2, 3, [("w", "x", 2)]), (4, 5, [("r", "x", 2)]))
    assert judge("strong-snapshot-isolation", fresh).check(fresh).verdict is Verdict.PASS


def test_two_writers_of_an_unread_element_of_which_either_order_is_read_skew_break_snapshot_isolation():
    skewed = [("append", "y", 1), ("r", "x", []), ("append", "x", 2)]
    history = at_once(skewed, [("r", "y", []), ("append", "x", 1)])
    result = judge("snapshot-isolation", history).check(history)
    assert result.verdict is Verdict.VIOLATION
    assert result.findings[0].operations == (0, 1)
    twin = at_once(skewed, [("r", "y", []), ("append", "z", 1)])
    assert judge("snapshot-isolation", twin).check(twin).verdict is Verdict.PASS


def test_an_unread_append_comes_after_the_last_one_that_was_read_even_if_no_other_transaction_read_it():
    history = at_once(
        [("append", "y", 1), ("r", "y", [1])],
        [("r", "y", []), ("append", "z", 4)],
        [("r", "y", []), ("append", "z", 5)],
        [("append", "y", 6), ("r", "z", [])],
    )
    assert judge("snapshot-isolation", history).check(history).verdict is Verdict.VIOLATION


@pytest.mark.parametrize(("write", "empty"), [("w", None), ("append", [])])
def test_the_strongest_model_that_holds_and_the_weakest_that_does_not_are_named(write, empty):
    skew = at_once([("r", "x", empty), (write, "y", 1)], [("r", "y", empty), (write, "x", 2)])
    result = judge("strict-serializable", skew).check(skew)
    assert result.detail["holds"] == ["strong-snapshot-isolation"]
    assert {"repeatable-read", "update-serializable"} <= set(result.detail["not"])
    assert "They keep strong-snapshot-isolation; the weakest ruled out: " in result.sentence
    weaker = judge("snapshot-isolation", skew).check(skew)
    assert (weaker.verdict, weaker.detail["holds"]) == (Verdict.PASS, ["strong-snapshot-isolation"])


def test_a_model_that_only_a_search_refutes_is_ruled_out_with_all_that_are_stronger():
    detail = judge("serializable", silent_contradiction()).check(silent_contradiction()).detail
    assert "serializable" in (*detail["not"], *detail["also_not"])
    assert "strict-serializable" in detail["also_not"]


def test_one_cause_is_told_once_with_its_other_names():
    history = at_once([("w", "x", 1), ("w", "y", 1)], [("r", "x", 1), ("r", "y", None)])
    result = judge("serializable", history).check(history)
    assert [finding.anomaly for finding in result.findings] == ["G-single-item"]
    finding = result.findings[0]
    assert finding.operations == (0, 1)
    assert set(finding.detail["also_called"]) == {"fractured-read", "G-monotonic", "G-update"}
    assert len(finding.detail["edges"]) == 2


def test_strict_serializability_of_registers_searches_with_real_time():
    """Serializable, and no value of a key is used in an order that real time contradicts."""
    history = timed(
        (0, 3, [("w", "x", 1), ("r", "x", 1)]),
        (1, 4, [("r", "x", 4), ("w", "x", 2), ("w", "x", 3)]),
        (2, 6, [("r", "x", None), ("w", "x", 4)]),
        (5, 7, [("r", "x", 3), ("w", "x", 5), ("w", "x", 6)]),
    )
    assert judge("serializable", history).check(history).verdict is Verdict.PASS
    result = judge("strict-serializable", history).check(history)
    assert result.verdict is Verdict.VIOLATION
    assert "had completed before" in result.sentence


def test_reads_count_in_the_order_in_which_they_were_made():
    """Read committed lets a transaction see y of another, and x only before: the first read came first."""
    history = at_once([("w", "x", 1)], [("w", "x", 2), ("w", "y", 2)], [("r", "x", 1), ("r", "y", 2)])
    assert judge("read-committed", history).check(history).verdict is Verdict.PASS
    back = at_once([("w", "x", 1)], [("r", "x", 1), ("w", "x", 2)], [("r", "x", 2), ("r", "x", 1)])
    assert judge("read-committed", back).check(back).verdict is Verdict.VIOLATION
