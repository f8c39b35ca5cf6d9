"""Transactions on lists judged while they come and go: cycles as they close, and wrong answers without one."""

from __future__ import annotations

import pytest
from watched_clients import Clients

from faultline.checkers.incremental.lists import IncrementalLists
from faultline.checkers.transactions.checker import ListAppendChecker
from faultline.harness.incremental import incremental_checkers
from faultline.harness.operation import Operation
from faultline.harness.outcome import fail, info, ok
from faultline.workloads.appends import Appends

STRICT, SERIALIZABLE = ListAppendChecker(), ListAppendChecker("serializable")


class Transactions(Clients):
    """Clients whose transactions are written as text: `ax1` appends 1 to x, `rx12` reads 1 and 2 in x."""

    def begin(self, text, process=0):
        asked = [step if step[0] == "append" else [*step[:2], None] for step in steps(text)]
        return super().begin("txn", asked, process)

    def end(self, row, text):
        return super().end(row, ok(steps(text)) if isinstance(text, str) else text)

    def do(self, text, process=0):
        return self.end(self.begin(text, process), text)


def steps(text):
    return [
        ["append", word[1], int(word[2:])] if word[0] == "a" else ["r", word[1], list(map(int, word[2:]))]
        for word in text.split()
    ]


def test_two_transactions_that_miss_each_other_are_certain_when_the_second_commits():
    clients = Transactions(SERIALIZABLE)
    one, other = clients.begin("rx ay1", 1), clients.begin("ry ax2", 2)
    assert not clients.end(one, "rx ay1")
    assert clients.end(other, "ry ax2") == (0, 1)


def test_a_stale_read_is_certain_in_real_time_and_legal_without_it():
    for checker, rows in ((STRICT, (0, 1)), (SERIALIZABLE, ())):
        clients = Transactions(checker)
        clients.do("ax1")
        assert clients.do("rx", 1) == rows


def test_a_stale_read_of_the_same_client_is_certain_in_the_order_of_sessions():
    for process, is_certain in ((0, True), (1, False)):
        clients = Transactions(ListAppendChecker("strong-session-serializable"))
        clients.do("ax1", 0)
        assert bool(clients.do("rx", process)) is is_certain


def test_two_reads_of_which_none_begins_the_other_name_both():
    clients = Transactions(STRICT)
    one, other = clients.begin("ax1", 1), clients.begin("ax2", 2)
    early = clients.begin("rx1", 3)
    assert not clients.end(early, "rx1")
    assert clients.do("rx21", 4) == (2, 3)
    assert (one, other) == (0, 1)


def test_an_element_that_was_seen_and_whose_transaction_then_fails_is_certain_and_one_of_unknown_outcome_is_not():
    for outcome, rows in ((fail("aborted"), (1, 0)), (info("timeout"), ())):
        clients = Transactions(STRICT)
        append = clients.begin("ax1", 1)
        assert not clients.do("rx1", 2)
        assert clients.end(append, outcome) == rows


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("rx1 ax3 rx13", False),
        ("rx1 ax3 rx1", True),
        ("rx13 ax3", True),
        ("rx1 rx12", True),
        ("ax3 rx13", False),
        ("rx11", True),
    ],
)
def test_a_transaction_that_disagrees_with_itself_is_certain(text, is_wrong):
    clients = Transactions(STRICT)
    clients.do("ax1")
    clients.begin("ax2", 1)
    assert bool(clients.do(text, 2)) is is_wrong


def test_an_intermediate_read_is_certain_and_the_transaction_itself_may_see_it():
    clients = Transactions(SERIALIZABLE)
    assert not clients.do("ax1 rx1 ax2", 1)
    assert clients.do("rx1", 2) == (0, 1)


def test_an_element_that_no_transaction_has_appended_yet_is_certain_in_real_time_only():
    for checker, rows in ((STRICT, (0,)), (SERIALIZABLE, ())):
        assert Transactions(checker).do("rx5") == rows


def test_what_is_kept_of_transactions_depends_on_those_that_overlap_and_not_on_their_number():
    clients = Transactions(STRICT)
    sizes = []
    for number in range(300):
        append = clients.begin(f"ax{number}", 1)
        clients.twin.invoke(clients.rows, Operation(2, "txn", None, [["r", "x", None]]))
        clients.rows += 1
        assert not clients.end(append, f"ax{number}")
        assert not clients.end(clients.rows - 1, ok([["r", "x", list(range(number + 1))]]))
        sizes.append(clients.twin.size)
    assert max(sizes) <= 6


def test_crashed_transactions_that_were_shown_leave_the_graph_and_a_read_without_them_is_still_certain():
    clients = Transactions(STRICT)
    for number in range(1, 10):
        clients.end(clients.begin(f"ax{number}", number), info("timeout"))
        assert not clients.do("rx" + "123456789"[:number], 20)
    clients.do("ry", 20)
    assert clients.twin.size <= 4
    assert clients.do("rx12345", 20)


def test_without_real_time_too_many_transactions_are_left_to_the_check_afterwards():
    twin = IncrementalLists(process=False, realtime=False, transactions_max=50)
    for row in range(60):
        twin.invoke(row, Operation(0, "txn", None, [["append", "x", row]]))
        assert not twin.complete(row, ok([["append", "x", row]]))
    assert twin.is_left
    twin.invoke(60, Operation(0, "txn", None, [["r", "x", None]]))
    assert not twin.complete(60, ok([["r", "x", [99]]]))


def test_models_that_allow_some_cycles_have_no_twin():
    assert incremental_checkers([ListAppendChecker("snapshot-isolation")]) == ()


def test_single_appends_and_reads_are_judged_as_transactions():
    clients = Clients(Appends().checkers()[0])
    assert not clients.do("read", answer=None)
    clients.do("append", 1)
    assert not clients.do("read", answer=[1])
    assert clients.do("read", answer=None) == (1, 3)
