"""A checker that did not decide does not pass: one table for each way in which a history leaves it nothing to judge."""

from __future__ import annotations

from typing import Any

import pytest
from checker_samples import SAMPLES, TRANSACTIONS, Step, asked, lost
from classic_histories import op

from faultline.checkers import CHECKERS
from faultline.harness.errors import UsageError
from faultline.harness.verdict import Verdict

OF_THE_TEST = [name for name in CHECKERS if getattr(CHECKERS[name](), "judges_the_test", False)]
"""The checkers that judge the test or collect figures, and make no pass by themselves."""


def refused(name: str, *steps: Step) -> bool:
    """Return whether the checker refuses the history by its own name; what it answers otherwise must be no pass."""
    try:
        result = asked(name, *steps)
    except UsageError as error:
        return name in error.message or "Row" in error.message
    assert result.verdict is Verdict.UNKNOWN, (result.verdict, result.sentence)
    return False


def test_each_checker_has_its_row() -> None:
    of_logs = {"log-patterns"}
    assert set(CHECKERS) == set(SAMPLES) | TRANSACTIONS | set(OF_THE_TEST) | of_logs


@pytest.mark.parametrize("name", [name for name in CHECKERS if name not in OF_THE_TEST])
def test_an_empty_history_is_no_pass(name: str) -> None:
    assert asked(name).verdict in (Verdict.VACUOUS, Verdict.UNKNOWN)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_history_of_unknown_outcomes_alone_is_no_pass(name: str) -> None:
    steps = [lost(step["f"], step["value"], process=step["process"], key=step["key"]) for step in SAMPLES[name].legal]
    result = asked(name, *steps)
    assert result.verdict in (Verdict.VACUOUS, Verdict.UNKNOWN), result.sentence


@pytest.mark.parametrize("name", [name for name in sorted(TRANSACTIONS) if name.startswith("rw-")])
def test_registers_of_which_no_transaction_is_known_to_have_committed_are_no_pass(name: str) -> None:
    steps = [lost("txn", [["w", "x", number], ["r", "y", None]], process=number) for number in (1, 2)]
    result = asked(name, *steps)
    assert result.verdict in (Verdict.VACUOUS, Verdict.UNKNOWN), result.sentence


@pytest.mark.parametrize("name", SAMPLES)
def test_an_operation_that_the_checker_does_not_know_is_refused(name: str) -> None:
    assert refused(name, *SAMPLES[name].legal, op("frobnicate", 1, 1, key="x"))


@pytest.mark.parametrize("name", [name for name in SAMPLES if SAMPLES[name].refused])
def test_a_value_of_a_wrong_type_is_refused(name: str) -> None:
    assert refused(name, *SAMPLES[name].refused)


@pytest.mark.parametrize("name", [name for name in SAMPLES if SAMPLES[name].unread])
def test_an_acknowledged_change_that_no_answer_could_show_is_unknown(name: str) -> None:
    result = asked(name, *SAMPLES[name].unread)
    assert result.verdict is Verdict.UNKNOWN, result.sentence


@pytest.mark.parametrize("name", [name for name in SAMPLES if SAMPLES[name].single])
def test_an_answer_that_nothing_can_contradict_is_no_pass(name: str) -> None:
    result = asked(name, *SAMPLES[name].single)
    assert result.verdict in (Verdict.VACUOUS, Verdict.UNKNOWN), result.sentence


@pytest.mark.parametrize("name", SAMPLES)
def test_a_legal_history_with_unknown_outcomes_and_retries_passes(name: str) -> None:
    result = asked(name, *SAMPLES[name].legal)
    assert result.verdict is Verdict.PASS, result.sentence


@pytest.mark.parametrize("name", [name for name in SAMPLES if SAMPLES[name].repeated])
def test_a_value_that_was_written_twice_is_not_taken_for_an_impossible_read(name: str) -> None:
    result = asked(name, *SAMPLES[name].repeated)
    assert result.verdict in (Verdict.PASS, Verdict.UNKNOWN), result.sentence


@pytest.mark.parametrize("name", SAMPLES)
def test_a_verdict_that_decides_nothing_has_a_reason(name: str) -> None:
    sample = SAMPLES[name]
    for steps in filter(None, (sample.unread, sample.single, sample.repeated)):
        result = asked(name, *steps)
        assert (result.reason is not None) is (result.verdict in (Verdict.UNKNOWN, Verdict.VACUOUS))


# -- budgets of the searches -----------------------------------------------------------------------------------------

OPEN_OPERATIONS = 80
"""More than the bits of a machine word, in which engines keep what is under way."""

ILLEGAL: dict[str, tuple[tuple[str, Any], Step]] = {
    "register": (("write", 1), op("read", None, 2)),
    "cas-register": (("cas", [1, 2]), op("read", None, 2)),
    "kv": (("append", "a"), op("get", None, "b")),
    "set": (("add", 1), op("read", None, [2])),
    "queue": (("enqueue", 1), op("dequeue", None, 2)),
    "stack": (("push", 1), op("pop", None, 2)),
    "counter": (("add", 2), op("read", None, 3)),
    "mutex": (("acquire", None), op("acquire", None)),
    "lock": (("acquire", None), op("release", None, process=99)),
}
"""For each model an operation that may be open, and an answer that no number of these explains."""


@pytest.mark.parametrize("limit", [{"steps_max": 1}, {"timeout_s": 0.0}, {"steps_max": 2_000}])
@pytest.mark.parametrize("model", ILLEGAL)
def test_a_search_that_must_give_up_among_many_open_operations_does_not_pass(model: str, limit: dict[str, Any]) -> None:
    (f, value), impossible = ILLEGAL[model]
    lost_ones = [op(f, value, span=(0, None), process=number, key="x") for number in range(OPEN_OPERATIONS)]
    under_way = [op(f, value, span=(1, 9), process=100 + number, key="x") for number in range(2)] if f != "cas" else []
    result = asked(
        "linearizability", *lost_ones, *under_way, impossible | {"span": (2, 3), "key": "x"}, model=model, **limit
    )
    assert result.verdict in (Verdict.VIOLATION, Verdict.UNKNOWN), result.sentence
