"""The linearizability checker on hand-written histories: verdict, name of the anomaly, sentence and core."""

from __future__ import annotations

import pytest

from faultline.checkers import LinearizabilityChecker
from faultline.checkers.linearizability.rows import check_rows
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, Outcome, fail, info, ok
from faultline.harness.verdict import Verdict


def history_of(*operations):
    """A sequential history from (process, f, value, outcome), one operation every 10 ms on key k0."""
    history = History()
    for number, (process, f, value, outcome) in enumerate(operations):
        row = history.invoke(Operation(process, f, "k0", value), 10_000 * number, process, f"n{process}")
        if outcome is not None:
            history.complete(row, outcome, 10_000 * number + 5_000)
    return history


def check(*operations, **options):
    return LinearizabilityChecker(**options).check(history_of(*operations), None)


MISMATCH = fail(CAS_MISMATCH)


def reads(*values):
    return [(0, "read", None, ok(value)) for value in values]


ANOMALIES = {
    "stale-read": [(0, "write", 1, ok()), (1, "write", 2, ok()), (2, "read", None, ok(1)), (0, "read", None, ok(2))],
    "garbage-read": [(0, "write", 1, ok()), (1, "read", None, ok(9))],
    "aborted-read": [(0, "write", 1, ok()), (1, "write", 9, fail("not-leader")), (2, "read", None, ok(9))],
    "future-read": [(0, "read", None, ok(5)), (1, "write", 5, ok())],
    "lost-update": [(0, "write", 1, ok()), (1, "cas", [1, 2], ok()), (2, "cas", [1, 3], ok())],
    "lost-write": [
        (0, "write", 1, ok()),
        (1, "write", 2, ok()),
        (2, "read", None, ok(1)),
        (0, "read", None, ok(1)),
    ],
    "stale-read of a compare-and-set": [
        (0, "write", 1, ok()),
        (1, "write", 2, ok()),
        (2, "cas", [1, 3], ok()),
        *reads(2, 3),
    ],
    "refused-cas": [(0, "write", 1, ok()), (1, "cas", [1, 2], MISMATCH)],
}


@pytest.mark.parametrize("name", ANOMALIES)
def test_each_anomaly_has_its_name(name):
    result = check(*ANOMALIES[name])
    assert result.verdict is Verdict.VIOLATION
    assert [finding.anomaly for finding in result.findings] == [name.partition(" of ")[0]]
    assert result.sentence == result.findings[0].sentence


def test_a_write_that_another_may_have_replaced_at_once_is_not_called_lost():
    history = history_of((0, "write", 1, ok()), (3, "write", 9, None), (1, "write", 2, ok()), (2, "read", None, ok(1)))
    # Client 3's write of 9 overlaps that of 2: a read of 9 shows that it came second, and no loss.
    history.complete(1, ok(), 50_000)
    history.complete(history.invoke(Operation(0, "read", "k0", None), 60_000, 0, "n0"), ok(9), 65_000)
    (finding,) = LinearizabilityChecker().check(history, None).findings
    assert finding.anomaly == "stale-read"


def test_the_sentence_says_who_saw_what_when_and_what_it_contradicts():
    assert check(*ANOMALIES["stale-read"]).sentence == (
        "At 0.025 s client 2 read 1 from k0 although client 1's write of 2 had completed at 0.015 s; "
        "3 of 4 operations suffice to show it."
    )


def test_the_finding_holds_the_core_and_the_dead_end():
    (finding,) = check(*ANOMALIES["stale-read"]).findings
    assert finding.operations == (0, 1, 2)
    assert (finding.key, finding.time_us, finding.node) == ("k0", 25_000, "n2")
    assert finding.detail["state"] == 2
    assert finding.detail["refused"] == [2]
    assert finding.detail["longest_prefix"] == 2
    assert finding.detail["minimal"]
    assert [row["role"] for row in finding.detail["core"]] == ["bound", "bound", "refused"]


LEGAL = {
    "an indeterminate write may show late": [
        (0, "write", 1, ok()),
        (1, "write", 2, info("timeout")),
        (2, "read", None, ok(1)),
        (2, "read", None, ok(2)),
    ],
    "an indeterminate write may never show": [(1, "write", 2, info("timeout")), (2, "read", None, ok(None))],
    "an operation without completion is indeterminate": [(1, "write", 2, None), (2, "read", None, ok(2))],
    "an indeterminate read says nothing": [(0, "write", 1, ok()), (0, "read", None, info("timeout"))],
    "a failed write did not happen": [(0, "write", 1, fail("not-leader")), (1, "read", None, ok(None))],
    "a failed cas saw another value": [(0, "write", 1, ok()), (1, "cas", [2, 3], MISMATCH)],
    "a cas of another failure saw nothing": [(0, "write", 1, ok()), (1, "cas", [1, 3], fail("not-leader"))],
    "an indeterminate cas may have been refused": [
        (0, "write", 1, ok()),
        (1, "cas", [5, 6], info("timeout")),
        (2, "read", None, ok(1)),
    ],
    "a cas to the same value is a read": [(0, "write", 1, ok()), (1, "cas", [1, 1], ok()), (2, "read", None, ok(1))],
}


@pytest.mark.parametrize("name", LEGAL)
def test_what_may_be_is_not_condemned(name):
    result = check(*LEGAL[name])
    assert result.verdict is Verdict.PASS
    assert result.findings == ()


def test_a_failed_cas_that_may_be_ignored_is_ignored_on_request():
    assert check(*ANOMALIES["refused-cas"], failed_cas="ignore").verdict is Verdict.PASS


def test_a_spent_budget_is_unknown_and_says_how_far_it_came():
    result = check(*[(0, "write", value % 2, ok()) for value in range(30)], steps_max=10)
    assert result.verdict is Verdict.UNKNOWN
    assert "10 of 30 completed operations, all that had ended by 0.095 s" in result.sentence
    assert "It stopped before what ends next, client 0's write of 0." in result.sentence
    assert result.detail["unknown_keys"] == {"k0": [10, 30]}
    known = result.detail["undecided"][0]
    assert (known["order"], known["state"], known["stuck"]) == (list(range(10)), 1, 10)


def test_each_illegal_key_is_a_finding_up_to_five_and_the_rest_is_counted():
    history = History()
    for number in range(7):
        row = history.invoke(Operation(0, "read", f"k{number}"), number, 0, "n0")
        history.complete(row, ok(1), number)
    result = LinearizabilityChecker().check(history)
    assert [finding.key for finding in result.findings] == ["k0", "k1", "k2", "k3", "k4"]
    assert result.detail["illegal_keys"] == 7
    assert "6 more of 7 keys" in result.sentence


@pytest.mark.parametrize(
    ("operation", "model"),
    [
        ((0, "enqueue", 1, ok()), "cas-register"),
        ((0, "cas", 1, ok()), "cas-register"),
        ((0, "cas", [1, 2], ok()), "register"),
        ((0, "append", 7, info("timeout")), "kv"),
    ],
)
def test_operations_that_the_model_does_not_know_are_refused(operation, model):
    with pytest.raises(UsageError, match="Row 0"):
        check(operation, model=model)


def test_an_unknown_model_is_refused_by_name():
    with pytest.raises(UsageError, match=r"no model called `quueue`.*cas-register"):
        LinearizabilityChecker("quueue")


def test_one_key_checked_from_its_columns_gets_the_same_verdict():
    history = history_of(*ANOMALIES["stale-read"])
    columns = (
        *("process", "node", "f", "value", "outcome", "result", "error"),
        *("invoke_us", "complete_us", "invoke_index", "complete_index"),
    )
    judged = check_rows(key="k0", **{name: getattr(history, name) for name in columns})
    assert judged.verdict is Verdict.VIOLATION
    assert judged.finding == LinearizabilityChecker().check(history).findings[0]


def test_checking_twice_gives_the_same_answer():
    assert check(*ANOMALIES["lost-write"]) == check(*ANOMALIES["lost-write"])


def test_the_string_store_tells_unwritten_lost_and_stale_values_apart():
    append = [(0, "append", "ab", ok("ab")), (0, "append", "cd", ok("cd"))]
    assert check(*append, (1, "get", None, ok("abcd")), model="kv").verdict is Verdict.PASS
    missed = (1, "get", None, ok("ab"))
    for later, name in (((), "lost-write"), ([(2, "get", None, ok("abcd"))], "stale-read")):
        assert [finding.anomaly for finding in check(*append, missed, *later, model="kv").findings] == [name]
    overwritten = check(*append, missed, (0, "put", "e", ok()), (1, "get", None, ok("e")), model="kv")
    assert [finding.anomaly for finding in overwritten.findings] == ["stale-read"]
    corrupted = check(*append, (1, "get", None, ok("abcd!")), model="kv")
    assert [finding.anomaly for finding in corrupted.findings] == ["garbage-read"]


def test_a_pending_append_may_show_or_not():
    pending = (0, "append", "x", Outcome("info", None, "timeout"))
    assert check(pending, (1, "get", None, ok("")), (1, "get", None, ok("x")), model="kv").verdict is Verdict.PASS
    seen_then_gone = check(pending, (1, "get", None, ok("x")), (1, "get", None, ok("")), model="kv")
    assert seen_then_gone.verdict is Verdict.VIOLATION


def concurrent_history(waves):
    """Waves of four overlapping operations each: three writes of fresh values, and a read of the first one."""
    history = History()
    for wave in range(waves):
        rows = [history.invoke(Operation(p, "write", "k0", 3 * wave + p), wave, p, f"n{p}") for p in range(3)]
        rows.append(history.invoke(Operation(3, "read", "k0"), wave, 3, "n0"))
        for row, outcome in zip(rows, [ok(), ok(), ok(), ok(3 * wave)], strict=True):
            history.complete(row, outcome, wave)
    return history


def test_a_long_history_with_one_stale_read_is_told_by_a_few_operations():
    history = concurrent_history(500)
    assert LinearizabilityChecker().check(history).verdict is Verdict.PASS
    history.result[4 * 499 + 3] = 3 * 400
    (finding,) = LinearizabilityChecker().check(history).findings
    assert finding.anomaly == "stale-read"
    assert len(finding.operations) <= 4


def test_an_anomaly_is_shown_even_when_the_whole_search_is_too_much():
    history = concurrent_history(500)
    history.result[4 * 499 + 3] = 3 * 400
    steps = LinearizabilityChecker().check(concurrent_history(500)).detail["steps"]
    result = LinearizabilityChecker(steps_max=steps).check(history)
    assert result.verdict is Verdict.VIOLATION
