"""The operations of clients in words: the evidence itself has to be readable, under every workload."""

from __future__ import annotations

from typing import Any

import pytest
from report_samples import record_operation

from faultline.harness.history import History, Row
from faultline.harness.outcome import Outcome, fail, info, ok
from faultline.reports.descriptions import operation_label, predicate
from faultline.reports.text import value_text

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
        (row("acquire", None, ok(5), "lease"), "acquired lease and got 5"),
    ],
)
def test_an_operation_is_told_in_the_words_of_its_workload(operation: Row, told: str) -> None:
    assert predicate(operation) == told


def test_a_transaction_is_told_by_its_parts_with_what_its_reads_answered() -> None:
    done = ok([["append", "x", 181], ["r", "y", LONG]])
    operation = row("txn", [["append", "x", 181], ["r", "y", None]], done)
    assert predicate(operation) == f"appended 181 to x and read {LONG} from y, in one transaction"


def test_a_transaction_of_unknown_fate_tells_no_answers() -> None:
    asked = [["r", "x", None], ["w", "y", 3]]
    assert predicate(row("txn", asked, info("timeout"))) == "tried in one transaction to read x and write 3 to y"
    assert predicate(row("txn", asked, fail("aborted"))) == "tried in one transaction to read x and write 3 to y"


def test_a_transaction_of_other_parts_is_told_as_it_is() -> None:
    operation = row("txn", [["rp", {"odd": True}, None]], ok([["rp", {"odd": True}, [3]]]))
    assert predicate(operation) == 'did rp {"odd": true} [3], in one transaction'


def test_what_is_no_list_of_parts_is_no_transaction_to_tell_by_parts() -> None:
    assert predicate(row("txn", "commit", ok())) == "did txn commit"
    assert predicate(row("txn", [1, 2], ok())) == "did txn [1, 2]"


def test_the_balances_of_some_accounts_are_shown_to_the_last() -> None:
    balances = {"boston": 71, "london": 129, "paris": 44, "oslo": 156, "rome": 113}
    assert '"rome": 113}' in predicate(row("balances", None, ok(balances)))


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


DRAINED = {
    "number": 2,
    "items": [
        ["state", [40, 1 << 30], {"servers/1": 3}, "queue-full"],
        ["event", 45, 0, "servers/1", 7, False],
        ["event", 45, 1, "servers/2", None, True],
        ["upto", [46, 1 << 30]],
    ],
}


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        (row("put", 7, ok(45), "servers/1"), "put 7 at servers/1 (revision 45)"),
        (row("put", 7, info("timeout"), "servers/1"), "tried to put 7 at servers/1"),
        (row("delete", None, ok(), "servers/1"), "deleted servers/1"),
        (row("attach", {"lease": "lease-2", "value": 4}, ok(9), "k"), "put 4 at k under lease-2 (revision 9)"),
        (row("watch", None, ok({"number": 2}), "servers"), "set watch 2 on servers"),
        (
            row("drain", None, ok(DRAINED), "servers"),
            "was told by watch 2 on servers: a new beginning at revision 40, since queue-full, with 3 at servers/1; "
            "7 at servers/1 (revision 45); nothing more at servers/2 (the second change of revision 45); "
            "that was everything up to revision 46",
        ),
        (
            row("drain", None, ok({"number": 1, "items": []}), "servers"),
            "was told by watch 1 on servers of nothing new",
        ),
        (
            row("drain", None, ok({"number": 1, "items": [["upto", [6, 1 << 30]]]}), "servers"),
            "was told by watch 1 on servers of nothing new up to revision 6",
        ),
        (
            row("list", None, ok({"index": 46, "values": {"servers/1": 7, "servers/3": 8}}), "servers"),
            "listed servers at revision 46 and got 7 at servers/1 and 8 at servers/3",
        ),
        (row("list", None, ok({"index": 4, "values": {}}), "servers"), "listed servers at revision 4 and got no keys"),
        (row("acquire", None, ok({"token": 7}), "lock0"), "acquired lock0 with token 7"),
        (row("release", None, fail("no-lease"), "lock0"), "tried to release lock0"),
        (
            row("guarded-write", 67, ok({"token": 19, "index": 20}), "lock0"),
            "wrote 67 to what lock0 guards with token 19, as change 20",
        ),
    ],
)
def test_what_watchers_and_owners_of_locks_did_is_told_without_their_records(operation: Row, told: str) -> None:
    assert predicate(operation) == told


def test_a_watcher_that_was_told_much_is_told_of_in_part_with_how_much_is_left_out() -> None:
    items = [["event", 100 + number, 0, "k", number, False] for number in range(1_020)]
    told = predicate(row("drain", None, ok({"number": 1, "items": items}), "servers"))
    assert told.count("(revision ") == 12 and told.endswith("; 1,008 things more")


@pytest.mark.parametrize("answer", [5, [1, 2], {"odd": True}, {"number": 1}])
def test_an_answer_of_another_shape_is_shown_as_it_is(answer: Any) -> None:
    assert value_text(answer) in predicate(row("drain", "all", ok(answer), "servers"))


def test_the_label_of_what_a_watcher_was_told_counts_the_items() -> None:
    assert operation_label(row("drain", None, ok(DRAINED), "servers")) == "drain → 3 items"
    assert operation_label(row("acquire", None, ok({"token": 7}), "lock0")) == "acquire → token 7"
    assert operation_label(row("attach", {"lease": "lease-2", "value": 4}, ok(9), "k")) == "attach 4 → 9"
