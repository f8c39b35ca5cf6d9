"""Anomalies of sets, lists, counters, accounts, transactions and the rest: which answers change, and how."""

from __future__ import annotations

from typing import Any

import pytest
from told_histories import FAULT, record_of

from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly
from faultline.sensitivity.families import ANOMALIES


def anomaly(workload: str, name: str, record: RunRecord) -> Anomaly:
    return next(each for each in ANOMALIES[workload](record) if each.name == name)


def changes(workload: str, name: str, record: RunRecord, row: int, chance: int = 0) -> dict[int, Any]:
    """Return the changed answers, by row, when the anomaly strikes at `row`."""
    made = anomaly(workload, name, record).insert(row, chance)
    assert made is not None
    return {each: answer.result for each, answer in made.changes.items()}


def is_place(workload: str, name: str, record: RunRecord, place: Any) -> bool:
    return anomaly(workload, name, record).insert(place, 0) is not None


SET = record_of(
    (1, "add", "s", 1, None),
    (1, "add", "s", 2, None),
    (2, "read", "s", None, [1, 2]),
    FAULT,
    (3, "read", "s", None, [1, 2]),
    (4, "read", "s", None, [2, 1]),
)
LIST = record_of(
    (1, "append", "l", 1, None),
    (1, "append", "l", 2, None),
    (2, "read", "l", None, [1, 2]),
    FAULT,
    (2, "read", "l", None, [1, 2]),
)
COUNTER = record_of(
    (1, "increment", "c", 3, 3),
    (2, "read", "c", None, 3),
    FAULT,
    (1, "increment", "c", 4, 7),
    (2, "read", "c", None, 7),
)
ACCOUNTS = record_of(
    (1, "transfer", "w", {"from": "a", "to": "b", "amount": 5}, None),
    (2, "read", "w", None, {"a": 5, "b": 15}),
    FAULT,
    (2, "read", "w", None, {"a": 5, "b": 15}),
)


@pytest.mark.parametrize("workload", ["set", "sequential", "cart"])
def test_a_lost_element_is_missing_from_the_reads_after_the_moment_alone(workload: str) -> None:
    assert changes(workload, "lost-write", SET, 1) == {3: [1], 4: [1]}


def test_an_element_that_is_added_twice_stands_there_twice_afterwards() -> None:
    assert changes("set", "duplicate-element", SET, 0) == {3: [1, 2, 1], 4: [2, 1, 1]}


def test_a_stale_read_of_a_list_ends_before_an_element_that_had_been_acknowledged() -> None:
    assert changes("append", "stale-read", LIST, 2, chance=1) == {2: [1]}
    assert changes("append", "stale-read", LIST, 2, chance=0) == {2: []}


def test_two_neighbours_in_a_list_change_places_in_one_read() -> None:
    assert changes("log-order", "reordered", LIST, 3) == {3: [2, 1]}


def test_a_set_that_lags_behind_is_wrong_only_where_a_later_element_is_there_without_an_earlier_one() -> None:
    assert changes("sequential", "reordered", SET, 2) == {2: [2]}
    assert not is_place("sequential", "stale-read", SET, 2)


def test_a_lost_increment_lowers_every_later_answer_and_one_that_counts_twice_raises_it() -> None:
    assert changes("counter", "lost-write", COUNTER, *_increment(COUNTER)) == {2: 4, 3: 4}
    assert changes("counter", "duplicate-write", COUNTER, *_increment(COUNTER)) == {2: 10, 3: 10}


def _increment(record: RunRecord) -> tuple[Any]:
    return (anomaly("counter", "lost-write", record).places[0],)


def test_a_stale_read_of_a_counter_lacks_the_last_increment() -> None:
    assert changes("counter", "stale-read", COUNTER, 3) == {3: 3}


def test_a_session_may_read_what_others_have_overtaken_but_not_what_it_counted_itself() -> None:
    own = record_of((1, "increment", "c", None, 1), (1, "read", "c", None, 1), (2, "read", "c", None, 1))
    assert changes("sessions", "stale-read", own, 1) == {1: None}
    assert not is_place("sessions", "stale-read", own, 2)


def test_an_identifier_is_drawn_again() -> None:
    record = record_of((1, "generate", "ids", None, 1), (2, "generate", "ids", None, 2))
    assert changes("unique-ids", "duplicate-id", record, 1) == {1: 1}


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("lost-write", {"a": 10, "b": 10}),
        ("half-transaction", {"a": 5, "b": 10}),
        ("duplicate-write", {"a": 0, "b": 20}),
    ],
)
def test_a_transfer_is_undone_done_by_half_or_done_twice(name: str, after: dict[str, int]) -> None:
    (place,) = anomaly("transfer", name, ACCOUNTS).places
    assert changes("transfer", name, ACCOUNTS, place) == {2: after}


def test_a_fractured_read_sees_what_left_one_account_and_not_what_arrived() -> None:
    assert changes("transfer", "fractured-read", ACCOUNTS, 1) == {1: {"a": 5, "b": 10}}


def test_a_day_that_is_forgotten_belongs_to_the_next_who_asks() -> None:
    record = record_of(
        (1, "book", "d", "ann", ["ann", "ann"]),
        FAULT,
        (2, "bookings", "d", None, ["ann", "ann"]),
        (3, "book", "d", "bob", ["ann", "ann"]),
        (2, "bookings", "d", None, ["ann", "ann"]),
    )
    (day,) = anomaly("booking", "lost-write", record).places
    assert changes("booking", "lost-write", record, day) == {1: [None, None], 2: ["bob", "bob"], 3: ["bob", "bob"]}
    assert changes("booking", "double-grant", record, 2) == {2: ["bob", "bob"]}


def test_a_lost_element_of_a_queue_does_not_come_out_and_one_that_never_came_out_changes_nothing() -> None:
    record = record_of(
        (1, "enqueue", "q", 1, None),
        (1, "enqueue", "q", 2, None),
        FAULT,
        (2, "dequeue", "q", None, 1),
        (2, "dequeue", "q", None, None),
    )
    taken, left = anomaly("queue", "lost-write", record).places
    assert changes("queue", "lost-write", record, taken) == {2: None}
    assert changes("queue", "lost-write", record, left) == {}


def test_an_element_comes_out_of_a_queue_again() -> None:
    record = record_of((1, "enqueue", "q", 1, None), (2, "dequeue", "q", None, 1), (3, "drain", "q", None, []))
    (place,) = anomaly("queue", "duplicate-element", record).places
    assert changes("queue", "duplicate-element", record, place) == {2: [1]}


TRANSACTIONS = record_of(
    (1, "txn", None, [["append", "x", 1], ["append", "y", 2]], [["append", "x", 1], ["append", "y", 2]]),
    FAULT,
    (2, "txn", None, [["r", "x", None], ["r", "y", None]], [["r", "x", [1]], ["r", "y", [2]]]),
    (3, "txn", None, [["append", "z", 3]], [["append", "z", 3]]),
)


def test_a_lost_transaction_is_lost_in_all_lists_and_half_of_one_in_one_of_them() -> None:
    assert changes("txn-append", "lost-write", TRANSACTIONS, 0) == {1: [["r", "x", []], ["r", "y", []]]}
    assert changes("txn-append", "half-transaction", TRANSACTIONS, 0) == {1: [["r", "x", []], ["r", "y", [2]]]}


def test_only_what_transactions_join_is_judged_again() -> None:
    made = anomaly("txn-append", "lost-write", TRANSACTIONS).insert(0, 0)
    assert made is not None and list(made.rows) == [0, 1]


def test_a_fractured_read_sees_one_of_two_keys_as_it_was() -> None:
    record = record_of(
        (1, "txn", None, [["w", "x", 1], ["w", "y", 1]], [["w", "x", 1], ["w", "y", 1]]),
        (2, "txn", None, [["r", "x", None], ["r", "y", None]], [["r", "x", 1], ["r", "y", 1]]),
    )
    (read, _) = anomaly("txn-register", "fractured-read", record).places
    assert changes("txn-register", "fractured-read", record, read) == {1: [["r", "x", None], ["r", "y", 1]]}


def test_a_deleted_key_is_scanned_again_and_a_lost_one_is_not() -> None:
    record = record_of(
        (1, "write", "a", 1, None),
        (1, "write", "b", 2, None),
        (1, "delete", "a", None, None),
        FAULT,
        (2, "scan", None, ["", None], [["b", 2]]),
    )
    assert changes("scans", "resurrected-element", record, 3) == {3: [["a", 1], ["b", 2]]}
    assert changes("scans", "lost-write", record, 1) == {3: []}


def test_a_watcher_is_not_told_of_an_event_or_told_twice() -> None:
    items = [["event", 3, 0, "servers/1", 7, False], ["upto", [3, 1]]]
    record = record_of(
        (1, "put", "servers/1", 7, 3),
        (2, "drain", "servers", None, {"number": 1, "items": items}),
        (3, "list", "servers", None, {"index": 3, "values": {"servers/1": 7}}),
    )
    (place,) = anomaly("watches", "skipped-event", record).places
    assert changes("watches", "skipped-event", record, place) == {1: {"number": 1, "items": items[1:]}}
    assert changes("watches", "duplicate-event", record, place) == {1: {"number": 1, "items": [items[0], *items]}}
    lost = changes("watches", "lost-write", record, 0)
    assert lost == {1: {"number": 1, "items": items[1:]}, 2: {"index": 3, "values": {}}}


def test_a_lease_is_granted_to_a_second_client_and_its_token_used_again() -> None:
    record = record_of(
        (1, "acquire", "lock", None, {"token": 4}),
        (2, "acquire", "lock", None, None, "fail", "duplicate-lease"),
        (1, "release", "lock", None, None),
        (2, "acquire", "lock", None, {"token": 9}),
    )
    assert changes("locks", "double-grant", record, 1) == {1: {"token": 5}}
    assert changes("locks", "reused-token", record, 3) == {3: {"token": 4}}


def test_a_sibling_is_lost_stale_back_or_there_twice() -> None:
    record = record_of(
        (1, "write", "k", 1, None),
        (2, "write", "k", 2, None),
        (3, "read", "k", None, [1, 2]),
        FAULT,
        (3, "read", "k", None, [1, 2]),
        (3, "read", "k", None, [2]),
    )
    assert changes("siblings", "lost-write", record, 0) == {3: [2]}
    assert changes("siblings", "stale-read", record, 2) == {2: [2]}
    assert changes("siblings", "resurrected-write", record, 4) == {4: [2, 1]}
    assert changes("siblings", "duplicate-element", record, 4) == {4: [2, 2]}
