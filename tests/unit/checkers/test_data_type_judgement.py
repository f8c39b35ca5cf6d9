"""Keys of a run that are sets, queues, stacks, locks or counters, judged by the linearizability checker."""

from __future__ import annotations

import pytest

from faultline.checkers import LinearizabilityChecker
from faultline.checkers.linearizability.models import MODEL_FACTORIES, MODELS
from faultline.checkers.linearizability.objects import object_calls
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import fail, info, ok
from faultline.harness.verdict import Verdict


def history_of(*rows, key="k"):
    """Rows (process, f, value, outcome) that run one after the other; an outcome of None never completes."""
    history = History()
    for number, (process, f, value, outcome) in enumerate(rows):
        row = history.invoke(Operation(process, f, key, value), 1_000 * number, process, f"n{process}")
        if outcome is not None:
            history.complete(row, outcome, 1_000 * number + 500)
    return history


def judged(model, *rows, **options):
    return LinearizabilityChecker(model, **options).check(history_of(*rows))


def test_every_data_type_is_a_model_by_name():
    assert set(MODEL_FACTORIES) < set(MODELS)


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        ("queue", [(0, "enqueue", 1, ok()), (1, "dequeue", None, ok(1)), (1, "dequeue", None, ok())]),
        ("queue", [(0, "enqueue", None, ok()), (1, "dequeue", None, fail("empty")), (0, "enqueue", 2, fail("no"))][1:]),
        ("queue", [(0, "enqueue", 1, info("timeout")), (1, "dequeue", None, ok(1)), (2, "dequeue", None, None)]),
        ("stack", [(0, "push", [1], ok()), (0, "push", True, ok()), (1, "pop", None, ok(True))]),
        ("set", [(0, "add", 1, ok()), (1, "contains", 1, ok(True)), (1, "read", None, ok([1]))]),
        ("lock", [(0, "acquire", None, ok()), (0, "release", None, ok()), (1, "acquire", None, ok())]),
        ("mutex", [(0, "acquire", None, ok()), (1, "release", None, ok()), (1, "acquire", None, fail("held"))]),
        ("counter", [(0, "add", 2, ok()), (1, "read", None, ok(2)), (2, "read", None, None), (1, "add", 2, None)]),
    ],
)  # fmt: skip
def test_a_correct_object_passes(model, rows):
    result = judged(model, *rows)
    assert result.verdict is Verdict.PASS, result.sentence


@pytest.mark.parametrize(
    ("model", "rows", "words"),
    [
        (
            "queue",
            [*[(0, "enqueue", each, ok()) for each in (1, 2)], *[(1, "dequeue", None, ok(each)) for each in (2, 1)]],
            "The queue k did what no queue does: 2 was enqueued after 1 and dequeued before it; 4 of 4 operations "
            "suffice to show it, the last of which, dequeue by process 1 answering 1, ended at 0.004 s.",
        ),
        ("queue", [(0, "enqueue", 1, ok()), (1, "dequeue", None, fail("empty"))], "found nothing"),
        ("stack", [(0, "push", 1, ok()), (0, "push", 2, ok()), (1, "pop", None, ok(1))], "no order of pushes and pops"),
        ("set", [(0, "add", 1, ok()), (1, "contains", 1, ok(False))], "missed although it was in the set"),
        ("set", [(0, "add", 1, ok()), (1, "read", None, ok([]))], "no order can place the next one"),
        ("lock", [(0, "acquire", None, ok()), (1, "acquire", None, ok())], "clients 0 and 1 held the lock"),
        ("mutex", [(0, "acquire", None, ok()), (1, "acquire", None, ok())], "no order can place"),
        ("counter", [(0, "add", 2, ok()), (1, "read", None, ok(4))], "a read saw 4, and the counter was between"),
    ],
)  # fmt: skip
def test_a_broken_object_is_a_violation_told_in_one_sentence(model, rows, words):
    result = judged(model, *rows)
    assert result.verdict is Verdict.VIOLATION
    (finding,) = result.findings
    assert words in finding.sentence
    assert finding.anomaly == "non-linearizable"
    assert finding.detail["confirmed"]
    assert {row["row"] for row in finding.detail["core"]} == set(finding.operations)


def test_only_the_operations_that_matter_are_named():
    rows = [(0, "add", 1, ok())] * 3 + [(1, "read", None, ok(3)), (1, "read", None, ok(7)), (0, "add", 1, ok())]
    (finding,) = judged("counter", *rows).findings
    assert 4 in finding.operations
    assert 3 not in finding.operations
    assert finding.detail["minimal"]
    assert {row["role"] for row in finding.detail["core"]} == {"bound", "optional"}


def test_foreign_histories_tell_events_instead_of_seconds():
    (finding,) = judged("lock", (0, "acquire", None, ok()), (1, "acquire", None, ok()), clock="events").findings
    assert finding.sentence.endswith("ended at event 3.")


def test_a_budget_that_ends_is_unknown():
    rows = [(number, "add", 2**number, info("timeout")) for number in range(14)]
    result = judged("counter", *rows, (20, "read", None, ok(5461)), (20, "read", None, ok(10922)), steps_max=30)
    assert result.verdict is Verdict.UNKNOWN


def test_keys_are_judged_apart():
    history = history_of((0, "enqueue", 1, ok()), key="a")
    row = history.invoke(Operation(1, "dequeue", "b", None), 9_000, 1, "n1")
    history.complete(row, ok(1), 9_500)
    result = LinearizabilityChecker("queue").check(history)
    assert [finding.key for finding in result.findings] == ["b"]


@pytest.mark.parametrize(
    ("model", "row", "words"),
    [
        ("queue", (0, "push", 1, ok()), "calls `push`, which the model queue does not know"),
        ("counter", (0, "add", "1", ok()), "works with integers"),
        ("counter", (0, "read", None, ok(True)), "works with integers"),
        ("set", (0, "contains", 1, ok("yes")), "must answer true or false"),
        ("set", (0, "read", None, ok("all")), "must answer a list"),
    ],
)
def test_rows_that_do_not_fit_the_model_are_refused_with_the_row(model, row, words):
    with pytest.raises(UsageError, match="Row 0") as refused:
        judged(model, row)
    assert words in str(refused.value)


def test_true_and_one_are_different_values_in_a_container():
    result = judged("queue", (0, "enqueue", 1, ok()), (0, "enqueue", True, ok()), (1, "dequeue", None, ok(True)))
    assert result.verdict is Verdict.VIOLATION


def test_rows_become_operations_with_their_place_in_the_common_order():
    history = history_of((3, "acquire", None, ok()), (4, "acquire", None, info("timeout")))
    first, second = object_calls(history, range(2), MODEL_FACTORIES["lock"])
    assert (first.row, first.operation.input, first.operation.call, first.operation.return_) == (
        0,
        ("acquire", 3),
        0,
        1,
    )
    assert second.operation.return_ == float("inf")
