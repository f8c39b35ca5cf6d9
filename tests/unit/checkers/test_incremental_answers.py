"""Sets, queues, counters, orders, banks and identifiers judged while operations come and go."""

from __future__ import annotations

import pytest
from watched_clients import Clients

from faultline.checkers.adapted import adapted, renamed
from faultline.checkers.bookings import BookingsChecker
from faultline.checkers.classic.bank import BankChecker
from faultline.checkers.classic.counter import CounterChecker
from faultline.checkers.classic.lock import LockChecker
from faultline.checkers.classic.monotonic import MonotonicChecker
from faultline.checkers.classic.queues import QueueChecker, TotalQueueChecker
from faultline.checkers.classic.set_full import SetFullChecker
from faultline.checkers.classic.unique_ids import UniqueIdsChecker
from faultline.harness.incremental import incremental_checkers
from faultline.harness.outcome import fail, info, ok


def test_a_read_that_lacks_an_acknowledged_element_names_the_add_and_itself():
    clients = Clients(SetFullChecker(linearizable=True))
    clients.do("add", 1)
    clients.do("add", 2)
    assert clients.do("read", answer=[1]) == (1, 2)


def test_a_read_that_was_called_before_an_add_returned_may_lack_it():
    clients = Clients(SetFullChecker(linearizable=True))
    read = clients.begin("read")
    clients.do("add", 1)
    assert not clients.end(read, ok([]))


def test_a_set_that_need_not_be_linearizable_may_be_stale_but_not_invent():
    clients = Clients(SetFullChecker())
    clients.do("add", 1)
    assert not clients.do("read", answer=[])
    assert clients.do("read", answer=[2])


def test_an_element_of_an_add_that_failed_after_it_was_read_is_certain_then():
    clients = Clients(SetFullChecker())
    add = clients.begin("add", 1)
    assert not clients.do("read", answer=[1])
    assert clients.end(add, fail("refused")) == (1, 0)


def test_an_element_that_comes_out_twice_is_certain_and_a_queue_keeps_only_what_is_in_it():
    clients = Clients(TotalQueueChecker())
    for element in range(100):
        clients.do("enqueue", element)
        assert not clients.do("dequeue", answer=element)
    assert clients.twin.size == 0
    assert clients.do("dequeue", answer=7)


def test_a_queue_that_allows_duplicates_has_no_twin():
    assert incremental_checkers([QueueChecker(allow_duplicates=True)]) == ()


def test_a_read_beyond_the_additions_that_were_called_is_certain():
    clients = Clients(CounterChecker())
    clients.do("add", 2)
    pending = clients.begin("add", 3)
    assert not clients.do("read", answer=5)
    assert clients.do("read", answer=6)
    assert pending == 1


def test_an_addition_with_an_unknown_outcome_may_count_at_any_time():
    clients = Clients(CounterChecker())
    clients.end(clients.begin("add", 2), info("timeout"))
    assert not clients.do("read", answer=2)
    assert not clients.do("read", answer=0), "bounds are judged one read at a time"
    assert clients.do("read", answer=-1)


def test_an_operation_that_changes_no_counter_is_refused():
    with pytest.raises(ValueError, match="no addition"):
        Clients(CounterChecker()).begin("add", "two")


def test_a_value_that_goes_back_is_certain_for_the_client_that_saw_more_or_for_all():
    for scope, certain in (("process", False), ("global", True)):
        clients = Clients(MonotonicChecker(scope=scope))
        clients.do("read", answer=3, process=1)
        assert bool(clients.do("read", answer=2, process=2)) is certain
        assert clients.do("read", answer=2, process=1)[-1] == 2


def test_a_worker_outlives_its_processes_so_orders_of_workers_have_no_twin():
    assert incremental_checkers([MonotonicChecker(scope="worker")]) == ()


@pytest.mark.parametrize("read", [{"a": 5, "b": 4}, {"a": 9}, {"a": 5, "b": 4, "c": 0}, {"a": 10, "b": -1}])
def test_a_wrong_read_of_a_bank_is_certain_and_a_right_one_is_not(read):
    clients = Clients(BankChecker(total=9, accounts=("a", "b")))
    assert not clients.do("read", answer={"a": 3, "b": 6})
    assert bool(clients.do("read", answer=read)) is (read != {"a": 5, "b": 4})


@pytest.mark.parametrize("answer", [["a", None], ["a", "b"], ["b", "b"], [None, None], ["a", "a"]])
def test_a_day_that_is_split_given_to_another_guest_or_free_again_is_certain(answer):
    clients = Clients(BookingsChecker())
    clients.begin("book", "b", process=1)
    assert not clients.do("book", "a", answer=["a", "a"])
    assert bool(clients.do("bookings", answer=answer)) is (answer != ["a", "a"])


def test_an_answer_asked_for_before_a_guest_was_named_may_name_none_and_a_guest_who_did_not_ask_is_certain():
    clients = Clients(BookingsChecker())
    early = clients.begin("bookings", process=1)
    clients.do("book", "a", answer=["a", "a"])
    assert not clients.end(early, ok([None, None]))
    assert Clients(BookingsChecker()).do("bookings", answer=["a", "a"]) == (0,)


def test_an_identifier_that_is_handed_out_twice_names_both():
    clients = Clients(UniqueIdsChecker())
    assert not clients.do("generate", answer=1)
    assert not clients.do("generate", answer=True)
    assert clients.do("generate", answer=1) == (0, 2)


def test_an_adapted_twin_sees_requests_and_answers_as_its_checker_does():
    checker = adapted(SetFullChecker(linearizable=True), requests=renamed({"put": "add"}), answers=lambda text: [*text])
    clients = Clients(checker)
    clients.do("put", "a")
    assert not clients.do("read", answer="a")
    assert clients.do("read", answer="b")


def test_a_checker_without_a_twin_has_none_when_it_is_adapted():
    assert incremental_checkers([adapted(LockChecker(lease_us=5))]) == ()
