"""`faultline.checkers.check`: histories in every form, under models of every kind."""

from __future__ import annotations

import pytest

from faultline.checkers import (
    PENDING,
    UNKNOWN,
    Hooks,
    Model,
    NondeterministicModel,
    Operation,
    Proof,
    Result,
    check,
)
from faultline.checkers.library.own_evidence import OPERATIONS_MAX
from faultline.checkers.linearizability.checker import FINDINGS_MAX
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.operation import Operation as Invocation
from faultline.harness.outcome import ok
from faultline.harness.verdict import Cause, Verdict

WRITE_1 = Operation(0, ("write", 1), 0, None, 1)
WRITE_2 = Operation(0, ("write", 2), 2, None, 3)
STALE = Operation(1, "read", 4, 1, 5)
FRESH = Operation(1, "read", 4, 2, 5)

Bank = Model(
    init=lambda: (10, 10),
    step=lambda state, given, answer: (
        (answer == state, state) if given == "read" else (True, (state[0] - given, state[1] + given))
    ),
    describe_operation=lambda given, answer: f"read {answer}" if given == "read" else f"move {given}",
)
MOVE = Operation(0, 3, 0, None, 1)
HALF = Operation(1, "read", 2, (7, 10), 3)
WHOLE = Operation(1, "read", 2, (7, 13), 3)


def history_of_a_stale_read():
    history = History()
    for f, value, answer in (("write", 1, None), ("write", 2, None), ("read", None, 1)):
        history.complete(history.invoke(Invocation(0, f, "x", value), 0, 0, ""), ok(answer), 1)
    return history


# -- models by name -------------------------------------------------------------------------------------------------


def test_a_stale_read_is_a_violation_with_its_own_operations_as_evidence():
    result = check("register", [WRITE_1, WRITE_2, STALE])
    assert isinstance(result, Result)
    assert (result.verdict, result.model, bool(result)) == (Verdict.VIOLATION, "register", False)
    assert set(result.evidence) <= {WRITE_1, WRITE_2, STALE}
    assert STALE in result.evidence
    assert "client 1 read 1" in result.sentence


def test_a_fresh_read_is_a_pass_and_a_pass_is_true():
    result = check("register", [WRITE_1, WRITE_2, FRESH])
    assert (result.verdict, result.evidence, bool(result)) == (Verdict.PASS, (), True)


def test_operations_may_be_given_in_any_order():
    assert (
        check("register", [STALE, WRITE_2, WRITE_1]).findings == check("register", [WRITE_1, WRITE_2, STALE]).findings
    )


def test_the_same_moment_is_concurrent():
    assert check("register", [WRITE_1, Operation(1, "read", 1, None, 2)])
    assert not check("register", [WRITE_1, Operation(1, "read", 1.5, None, 2)])


@pytest.mark.parametrize("open_write", [Operation(0, ("write", 1), 0), Operation(0, ("write", 1), 0, UNKNOWN, 1)])
def test_a_write_whose_answer_was_not_seen_may_have_happened_or_not(open_write):
    assert check("register", [open_write, Operation(1, "read", 2, None, 3)])
    assert check("register", [open_write, Operation(1, "read", 2, 1, 3)])
    assert not check("register", [open_write, Operation(1, "read", 2, 7, 3)])


def test_a_compare_and_set_that_was_refused_saw_another_value():
    refused = Operation(1, ("cas", (1, 5)), 2, False, 3)
    assert not check("cas-register", [WRITE_1, refused])
    assert check("cas-register", [WRITE_1, WRITE_2, Operation(1, ("cas", (1, 5)), 4, False, 5)])
    assert not check(
        "cas-register", [WRITE_1, Operation(1, ("cas", (1, 5)), 2, True, 3), Operation(2, "read", 4, 1, 5)]
    )


def test_keys_are_judged_apart():
    write = Operation(0, ("write", "x", 1), 0, None, 1)
    assert check("register", [write, Operation(0, ("read", "y", None), 2, None, 3)])
    result = check("register", [write, Operation(0, ("read", "x", None), 2, None, 3)])
    assert result.findings[0].key == "x"


def test_transactions_are_lists_of_micro_operations_and_tuples_and_sets_count_as_lists():
    one = Operation(0, [("append", "x", 1), ("r", "y", None)], 0, [("append", "x", 1), ("r", "y", [])], 5)
    two = Operation(1, [("append", "y", 1), ("r", "x", None)], 1, [("append", "y", 1), ("r", "x", [])], 6)
    result = check("serializable", [one, two])
    assert (result.verdict, result.evidence) == (Verdict.VIOLATION, (one, two))
    assert check("snapshot-isolation", [one, two])
    assert check("linearizable-set", [Operation(0, ("add", 1), 0, None, 1), Operation(0, "read", 2, {1}, 3)])


def test_a_refused_acquire_did_not_happen():
    held = [Operation(0, "acquire", 0, True, 1), Operation(1, "acquire", 2, False, 3)]
    assert check("mutex", [*held, Operation(0, "release", 4, True, 5), Operation(1, "acquire", 6, True, 7)])
    assert not check("mutex", [*held, Operation(2, "acquire", 4, True, 5)])


def test_a_history_and_a_file_and_a_list_are_judged_alike(tmp_path):
    history = history_of_a_stale_read()
    path = tmp_path / "history.jsonl"
    path.write_bytes(history.to_jsonl())
    for given in (history, path, str(path)):
        result = check("register", given)
        assert result.verdict is Verdict.VIOLATION
        assert [operation.input for operation in result.evidence] == [
            ("write", "x", 1),
            ("write", "x", 2),
            ("read", "x", None),
        ]


def test_without_a_model_the_functions_suggest_one():
    assert check(None, [WRITE_1, WRITE_2, STALE]).model == "cas-register"
    with pytest.raises(UsageError, match="no model is known for a history of fly"):
        check(None, [Operation(0, "fly", 0, None, 1)])


def test_options_go_to_the_checker():
    read = Operation(0, "read", 0, {"a": 6, "b": 5}, 1)
    assert check("bank", [read], total=11)
    assert not check("bank", [read], total=10)
    with pytest.raises(UsageError, match="cannot be set up with totl"):
        check("bank", [read], totl=10)


def test_an_empty_history_is_vacuous_and_not_true():
    for model in ("register", Bank):
        result = check(model, [])
        assert (result.verdict, bool(result), str(result)) == (Verdict.VACUOUS, False, f"vacuous: {result.sentence}")
        assert "<html" in result.html()


def test_times_of_floats_are_seconds_in_sentences():
    result = check("register", [Operation(0, ("write", 1), 7.25, None, 7.5), Operation(1, "read", 8.25, None, 8.5)])
    assert "1.250 s" in result.sentence


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ([Operation(0, ("write", 1), 5, None, 4)], "returns at 4, before its call at 5"),
        ([Operation(0, ("write", 1), 0, None, 9), Operation(0, ("write", 2), 1, None, 2)], "is open until 9"),
        ([Operation(0, 17, 0, None, 1)], "an input that a model by name cannot read"),
        ([Operation(0, ("write", object()), 0, None, 1)], "which a model by name cannot compare"),
    ],
)
def test_operations_that_no_client_can_have_done_are_refused(operations, message):
    with pytest.raises(UsageError, match=message):
        check("register", operations)


def test_hooks_are_for_models_of_ones_own_and_options_for_named_ones():
    with pytest.raises(UsageError, match="this model has a name"):
        check("register", [WRITE_1], hooks=Hooks())
    with pytest.raises(UsageError, match="has no option total"):
        check(Bank, [MOVE], total=3)


# -- models of one's own --------------------------------------------------------------------------------------------


def test_a_read_of_half_a_transfer_is_a_violation_of_ones_own_model():
    result = check(Bank, [MOVE, HALF, Operation(2, "read", 4, (7, 13), 5)])
    assert (result.verdict, result.evidence) == (Verdict.VIOLATION, (HALF,))
    assert result.sentence == (
        "No order explains read (7, 10) of client 1, from 2 until 3, whether or not the 2 other operations happened."
    )
    assert "leads to the state (7, 13). It leaves out read (7, 10) of client 1" in str(result)


def test_what_ones_own_model_refuses_is_shown_by_the_operations_that_must_be_ordered():
    stale = Operation(1, "read", 4, (10, 10), 5)
    result = check(Bank, [MOVE, Operation(2, 0, 0, None, 9), stale])
    assert result.evidence == (MOVE, stale)
    assert "with 1 operation before or beside it, whether or not the other operation happened" in result.sentence


def test_a_part_that_is_too_large_to_be_made_smaller_is_shown_where_it_breaks():
    many = [Operation(0, 0, at, None, at + 0.5) for at in range(OPERATIONS_MAX + 1)]
    result = check(Bank, [*many, Operation(1, "read", 1_000, (9, 9), 1_001)])
    assert [operation.input for operation in result.evidence] == [0, "read"]
    said = f"No order explains {OPERATIONS_MAX + 2} operations: the longest that was found has {OPERATIONS_MAX + 1} "
    assert result.sentence.startswith(said)
    assert "with those at that moment" in str(result)


def test_reads_that_a_hook_names_are_left_out_of_what_explains_a_refusal():
    hooks = Hooks(readonly=lambda given, answer: given == "read")
    wrong = Operation(1, "read", 6, (0, 0), 7)
    assert check(Bank, [MOVE, WHOLE, wrong], hooks=hooks).evidence == (wrong,)


def test_a_read_of_a_whole_transfer_is_a_pass_of_ones_own_model():
    assert check(Bank, [MOVE, WHOLE])
    assert check(Bank, [Operation(0, 3, 0), WHOLE])
    assert check(Bank, [Operation(0, 3, 0), Operation(1, "read", 2, (10, 10), 3)])


def test_each_part_of_ones_own_model_is_judged_and_numbers_run_through():
    by_client = Model(
        init=Bank.init,
        step=Bank.step,
        partition=lambda history: [[o for o in history if o.client_id == c] for c in (0, 1)],
    )
    wrong = Operation(0, "read", 0, (0, 0), 1)
    result = check(by_client, [wrong, MOVE.__class__(1, "read", 0, (1, 1), 1)])
    assert [finding.operations for finding in result.findings] == [(0,), (1,)]
    assert result.sentence.endswith("1 other part is not linearizable either.")
    many = check(
        Model(init=Bank.init, step=Bank.step, partition=lambda history: [[each] for each in history]),
        [Operation(client, "read", 0, (0, 0), 1) for client in range(FINDINGS_MAX + 2)],
    )
    assert len(many.findings) == FINDINGS_MAX
    assert many.sentence.endswith(f"{FINDINGS_MAX + 1} other parts are not linearizable either.")


def test_a_nondeterministic_model_is_taken_as_it_is():
    lossy = NondeterministicModel(
        init=lambda: [0],
        step=lambda state, given, answer: [state, given] if answer is None else [state] if answer == state else [],
    )
    write, zero, one = Operation(0, 1, 0, None, 1), Operation(0, 0, 2, 0, 3), Operation(0, 0, 4, 1, 5)
    assert check(lossy, [write, one])
    result = check(lossy, [write, zero, one])
    assert result.verdict is Verdict.VIOLATION
    assert "leads to the state {0}." in str(result)


def test_ones_own_model_reads_histories_as_operations():
    Register = Model(
        init=lambda: None,
        step=lambda state, given, answer: (True, given[2]) if given[0] == "write" else (answer == state, state),
    )
    assert check(Register, history_of_a_stale_read()).verdict is Verdict.VIOLATION


def test_what_the_budget_does_not_decide_is_unknown_and_says_why():
    hard = [Operation(client, client, 0, None, 100) for client in range(9)]
    hard.append(Operation(9, "read", 101, (99, 99), 102))
    result = check(Bank, hard, steps_max=3)
    assert (result.verdict, bool(result), result.reason.cause) == (Verdict.UNKNOWN, False, Cause.BUDGET)
    assert "the steps ended when" in result.sentence
    assert "No linearization of every operation that returned was found." in result.html()
    assert 'class="unknown"' in result.html()
    assert check(Bank, hard).verdict is Verdict.VIOLATION


def test_a_timeout_is_unknown_by_time_and_zero_is_none(monkeypatch):
    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    clock = Clock()

    def slow(state, given, answer):
        clock.now += 0.3
        return Bank.step(state, given, answer)

    monkeypatch.setattr("faultline.checkers.porcupine.budget.time", clock)
    model = Model(init=Bank.init, step=slow)
    result = check(model, [MOVE, Operation(2, 1, 0, None, 1), WHOLE], timeout_s=0.1)
    assert (result.verdict, result.reason.cause) == (Verdict.UNKNOWN, Cause.TIME)
    assert check(model, [MOVE, HALF], timeout_s=0).verdict is Verdict.VIOLATION


# -- how a result is shown ------------------------------------------------------------------------------------------


def test_a_result_prints_its_verdict_with_the_operations_and_its_repr_is_one_line():
    for model, operations, shown in (
        ("register", [WRITE_1, WRITE_2, STALE], "client 1 read 1"),
        (Bank, [MOVE, HALF], "1. from 2 until 3: client 1: read (7, 10)"),
    ):
        result = check(model, operations)
        assert str(result).startswith("violation: ")
        assert shown in str(result)
        assert "\n" not in repr(result)


@pytest.mark.parametrize(
    ("model", "operations", "shown"),
    [
        ("register", [WRITE_1, WRITE_2, STALE], "client 1 read 1"),
        ("register", [WRITE_1, WRITE_2, FRESH], "All 3 operations on 1 key are linearizable."),
        (Bank, [MOVE, HALF], "What the longest linearization leaves out"),
        (Bank, [MOVE, WHOLE], "There is a linearization of every operation that returned."),
    ],
)
def test_a_picture_is_written_whole_and_is_the_same_in_a_notebook(tmp_path, model, operations, shown):
    result = check(model, operations)
    path = result.write_html(tmp_path / "new" / "picture.html")
    text = path.read_text("utf-8")
    assert shown in text
    assert "<svg" in text
    frame = result._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert frame.count('"') == 8, "no quote of the page ends the attribute"


def test_a_cycle_of_transactions_is_drawn_as_a_ring_and_argued(tmp_path):
    one = Operation(0, [["append", "x", 1], ["r", "y", None]], 0, [["append", "x", 1], ["r", "y", []]], 5)
    two = Operation(1, [["append", "y", 1], ["r", "x", None]], 1, [["append", "y", 1], ["r", "x", []]], 6)
    page = check("serializable", [one, two]).html()
    assert "T1 before T2 (rw)" in page
    assert 'aria-label="Cycle of transactions"' in page


def test_a_pending_operation_is_pending_in_the_evidence_of_a_history():
    history = History()
    history.invoke(Invocation(0, "write", None, 1), 0, 0, "")
    for answer in (1, None):
        history.complete(history.invoke(Invocation(1, "read"), 2, 1, ""), ok(answer), 3)
    result = check("register", history)
    assert result.verdict is Verdict.VIOLATION
    assert Operation(0, ("write", 1), 0, UNKNOWN, PENDING) in result.evidence


# -- certificates ---------------------------------------------------------------------------------------------------


OVERTAKEN = [
    Operation(0, ("enqueue", 1), 0, None, 1),
    Operation(0, ("enqueue", 2), 2, None, 3),
    Operation(1, "dequeue", 4, 2, 5),
    Operation(1, "dequeue", 6, 1, 7),
]


@pytest.mark.parametrize(
    ("model", "operations", "verdict"),
    [
        ("register", [WRITE_1, WRITE_2, STALE], Verdict.VIOLATION),
        ("register", [WRITE_1, WRITE_2, FRESH], Verdict.PASS),
        ("linearizable-queue", OVERTAKEN, Verdict.VIOLATION),
        ("linearizable-queue", OVERTAKEN[:2], Verdict.PASS),
        (
            "linearizable-queue",
            [Operation(0, ("enqueue", [1, None]), 0, None, 1), Operation(1, "dequeue", 2, [1, None], 3)],
            Verdict.PASS,
        ),
        (
            "linearizable-set",
            [Operation(0, ("add", 1), 0, None, 1), Operation(0, "read", 2, {1, "b", None}, 3)],
            Verdict.VIOLATION,
        ),
        (
            "mutex",
            [Operation(0, "acquire", 0, None, 1), Operation(1, "acquire", 2, None, 3)],
            Verdict.VIOLATION,
        ),
    ],
)
def test_a_certificate_proves_the_verdict_also_when_it_comes_back_from_a_file(tmp_path, model, operations, verdict):
    result = check(model, operations)
    assert result.verdict is verdict
    assert result.certificate.verify() is verdict
    path = result.certificate.write(tmp_path / "proof.json")
    assert path.read_bytes() == result.certificate.json()
    assert Proof.read(path) == result.certificate
    assert Proof.read(path).verify() is verdict


def test_a_certificate_that_was_changed_is_refused(tmp_path):
    path = check("linearizable-queue", OVERTAKEN).certificate.write(tmp_path / "proof.json")
    path.write_bytes(path.read_bytes().replace(b'["dequeue",[null,2]', b'["dequeue",[null,3]'))
    with pytest.raises(UsageError, match="do not break the rule"):
        Proof.read(path).verify()


def test_there_is_no_certificate_of_a_model_of_ones_own():
    with pytest.raises(UsageError, match="a model of your own"):
        _ = check(Bank, [MOVE, HALF]).certificate
