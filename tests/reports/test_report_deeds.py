"""What a client did, in words: the evidence itself has to be readable, whatever the workload."""

from __future__ import annotations

from typing import Any

import pytest
from report_samples import record_operation

from faultline.harness.history import History, Row
from faultline.harness.outcome import Outcome, fail, info, ok
from faultline.reports.deeds import deed, operation_label

LONG = list(range(101, 120))


def row(f: str, value: Any, outcome: Outcome, key: Any = None) -> Row:
    history = History()
    return history.row(record_operation(history, 0, f, value, 0, 9, outcome, key=key))


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        (row("add", 2, ok(), "set-0"), "added 2 to set-0"),
        (row("append", 7, ok(3), "log"), "appended 7 to log and got 3"),
        (row("append", 7, info("timeout"), "log"), "tried to append 7 to log"),
        (row("enqueue", 4, ok(), "jobs"), "enqueued 4 into jobs"),
        (row("dequeue", None, ok(4), "jobs"), "dequeued 4 from jobs"),
        (row("write", 7, ok(7), "k"), "wrote 7 to k"),
        (row("acquire", None, ok(5), "lease"), "did acquire on lease and got 5"),
    ],
)
def test_an_operation_is_told_in_the_words_of_its_workload(operation: Row, told: str) -> None:
    assert deed(operation) == told


def test_a_transaction_is_told_by_its_parts_with_what_its_reads_answered() -> None:
    done = ok([["append", "x", 181], ["r", "y", LONG]])
    operation = row("txn", [["append", "x", 181], ["r", "y", None]], done)
    assert deed(operation) == f"appended 181 to x and read {LONG} from y, in one transaction"


def test_a_transaction_of_unknown_fate_tells_no_answers() -> None:
    asked = [["r", "x", None], ["w", "y", 3]]
    assert deed(row("txn", asked, info("timeout"))) == "tried in one transaction to read x and write 3 to y"
    assert deed(row("txn", asked, fail("aborted"))) == "tried in one transaction to read x and write 3 to y"


def test_a_transaction_of_other_parts_is_told_as_it_is() -> None:
    operation = row("txn", [["rp", {"odd": True}, None]], ok([["rp", {"odd": True}, [3]]]))
    assert deed(operation) == 'did rp {"odd": true} [3], in one transaction'


def test_what_is_no_list_of_parts_is_no_transaction_to_tell_by_parts() -> None:
    assert deed(row("txn", "commit", ok())) == "did txn commit"
    assert deed(row("txn", [1, 2], ok())) == "did txn [1, 2]"


def test_the_balances_of_some_accounts_are_shown_to_the_last() -> None:
    balances = {"boston": 71, "london": 129, "paris": 44, "oslo": 156, "rome": 113}
    assert '"rome": 113}' in deed(row("balances", None, ok(balances)))


def test_a_label_never_counts_characters_since_the_words_stand_beside_it() -> None:
    assert operation_label(row("read", None, ok(LONG), "k")) == "read → [101, 102, 103, 104, …"


def test_the_label_of_a_transaction_is_short_and_never_counts_characters() -> None:
    label = operation_label(row("txn", [["r", "x", None]], ok([["r", f"k{n}", LONG] for n in range(4)])))
    assert label.startswith("r k0 ")
    assert label.endswith("…")
    assert len(label) <= 44


def test_a_write_that_answers_what_was_written_has_no_answer_on_its_label() -> None:
    assert operation_label(row("write", 6, ok(6), "k")) == "write 6"
    assert operation_label(row("append", 7, ok(3), "log")) == "append 7 → 3"
