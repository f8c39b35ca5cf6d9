"""Watches judged while operations come and go: which events are wrong or missed for certain."""

from __future__ import annotations

import pytest
from watched_clients import Clients

from faultline.checkers.incremental.watches import IncrementalWatches
from faultline.checkers.watches import WatchesChecker
from faultline.harness.outcome import fail, info, ok
from faultline.harness.revisions import WHOLE_ENTRY

BEGIN = ["state", [0, WHOLE_ENTRY], {}, "begin"]


class _Small:
    """The checker with a twin that keeps two entries, and two values of a key."""

    def incremental(self):
        return IncrementalWatches(entries_kept=2, values_max=2)


def upto(index):
    return ["upto", [index, WHOLE_ENTRY]]


def event(index, key="a", value=None, ordinal=0):
    return ["event", index, ordinal, key, index if value is None else value, False]


class Watched(Clients):
    """Clients of keys: `put` writes the number of the entry, `drain` takes items for the watch of a process."""

    def __init__(self, checker=None, puts=0):
        super().__init__(checker or WatchesChecker())
        for index in range(1, puts + 1):
            assert not self.put(index)

    def put(self, index, key="a"):
        return self.do("put", index, answer=index, process=9, key=key)

    def drain(self, *items, process=0, path="a", number=1):
        return self.do("drain", answer={"number": number, "items": list(items)}, process=process, key=path)


def test_events_in_order_are_right():
    clients = Watched(puts=3)
    assert not clients.drain(BEGIN, event(1), event(2))
    assert not clients.drain(event(3), upto(3))


@pytest.mark.parametrize("index", [1, 2])
def test_an_event_that_comes_again_or_late_is_certain(index):
    clients = Watched(puts=2)
    assert not clients.drain(BEGIN, event(1), event(2))
    assert clients.drain(event(index)) == (2, 3)


def test_an_event_after_the_word_that_all_up_to_it_was_told_is_certain():
    clients = Watched()
    pending = clients.begin("put", 1, process=9, key="a")
    assert not clients.drain(BEGIN, upto(1))
    assert clients.drain(event(1)) == (1, 2)
    assert not clients.end(pending, info("timeout"))


def test_a_writers_change_may_be_any_of_its_entry():
    clients = Watched(puts=1)
    clients.do("put", 2, answer=2, process=8, key="a/b")
    clients.do("delete", answer=2, process=7, key="a")
    deleted = ["event", 2, 0, "a", None, True]
    assert not clients.drain(BEGIN, event(1), deleted, ["upto", [2, 0]])
    assert not clients.drain(event(2, key="a/b", ordinal=1), upto(2))


def test_a_state_that_goes_back_is_certain_and_a_later_one_announces_a_gap():
    clients = Watched(puts=3)
    clients.drain(BEGIN, event(1))
    assert not clients.drain(["state", [2, WHOLE_ENTRY], {"a": 2}, "overflow"], event(3))
    assert clients.drain(["state", [2, WHOLE_ENTRY], {"a": 2}, "overflow"])


def test_an_event_or_a_state_of_another_path_is_certain():
    clients = Watched()
    clients.put(1, key="ab")
    assert clients.drain(BEGIN, event(1, key="ab")) == (1,)
    assert Watched().drain(["state", [3, WHOLE_ENTRY], {"b": 3}, "begin"]) == (0,)


def test_an_event_of_a_value_that_was_never_written_or_whose_write_fails_after_all_is_certain():
    clients = Watched()
    pending = clients.begin("put", 1, process=9, key="a")
    assert not clients.drain(BEGIN, event(1))
    assert clients.end(pending, fail("refused")) == (1, 0)
    assert Watched().drain(BEGIN, event(1)) == (0,)


def test_an_attached_value_is_written_as_one_that_is_put():
    clients = Watched()
    clients.do("attach", {"lease": "l", "value": 1}, answer=1, process=9, key="a")
    assert not clients.drain(BEGIN, event(1))


def test_another_index_than_the_writer_was_told_is_certain_once_it_was_told():
    clients = Watched()
    pending = clients.begin("put", 1, process=9, key="a")
    assert not clients.drain(BEGIN, event(4, value=1))
    assert clients.end(pending, ok(3)) == (1, 0)
    told = Watched(puts=1)
    assert told.drain(BEGIN, event(4, value=1)) == (0, 1)


def test_two_watches_that_are_told_different_things_of_one_event_are_certain():
    clients = Watched()
    for value in (1, 2):
        clients.end(clients.begin("put", value, process=value, key="a"), info("timeout"))
    assert not clients.drain(BEGIN, event(5, value=1), process=3)
    assert clients.drain(BEGIN, event(5, value=2), process=4) == (2, 3)


def test_an_event_that_another_watch_got_and_this_one_passed_over_is_certain():
    clients = Watched()
    for value in (1, 2):
        clients.end(clients.begin("put", value, process=value, key="a"), info("timeout"))
    clients.drain(BEGIN, event(1), event(2), process=3)
    assert not clients.drain(BEGIN, process=4)
    assert clients.drain(event(2), process=4) == (2, 4)


def test_an_acknowledged_change_that_a_watch_has_passed_over_is_certain_at_its_acknowledgement():
    clients = Watched(puts=1)
    pending = clients.begin("put", 2, process=8, key="a/b")
    assert not clients.drain(BEGIN, event(1), upto(2))
    assert clients.end(pending, ok(2)) == (2, 1)


def test_a_change_is_not_missed_outside_of_the_path_or_before_the_span_or_within_an_entry_that_may_go_on():
    clients = Watched(puts=1)
    clients.put(2, key="ab")
    assert not clients.drain(["state", [1, WHOLE_ENTRY], {"a": 1}, "begin"], upto(2))
    clients.put(3, key="a/b")
    clients.do("put", 3, answer=3, process=8, key="a")
    assert not clients.drain(event(3))
    assert not clients.drain(event(3, key="a/b", ordinal=1))


def test_a_watch_ends_with_its_process_and_another_number_is_another_watch():
    clients = Watched(puts=3)
    clients.drain(BEGIN, event(1), event(2), event(3))
    assert not clients.drain(BEGIN, event(1), number=2)
    clients.end(clients.begin("drain", process=0, key="a"), info("timeout"))
    assert not clients.drain(BEGIN, event(1), number=2)


def test_earlier_entries_and_further_values_are_forgotten_and_left_to_the_check_afterwards():
    clients = Watched(_Small(), puts=40)
    assert clients.twin.left == ("a",)
    assert clients.twin.size == 2
    assert not clients.drain(BEGIN, upto(38))
    assert clients.drain(upto(40)), "the events of the newest entries are still missed"
