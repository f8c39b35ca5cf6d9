"""Reads of replicas judged while operations come and go: when a value is older for certain."""

from __future__ import annotations

import pytest
from watched_clients import Clients

from faultline.checkers import FollowerReadsChecker
from faultline.checkers.incremental.follower_reads import IncrementalFollowerReads
from faultline.harness.outcome import fail, info, ok


class _Small:
    """The checker with a twin that keeps two values of a key."""

    def incremental(self):
        return IncrementalFollowerReads(read_your_writes=True, monotonic_reads=True, values_max=2)


def test_a_session_that_reads_an_older_value_than_it_wrote_names_its_write():
    clients = Clients(FollowerReadsChecker())
    clients.do("write", 1, answer=1, process=1)
    clients.do("write", 2, answer=2)
    assert not clients.do("read", answer=1, process=1)
    assert clients.do("read", answer=1) == (1, 3)


def test_a_session_that_goes_back_names_its_earlier_read_and_another_session_may_lag():
    clients = Clients(FollowerReadsChecker())
    clients.do("write", 1, answer=1)
    clients.do("write", 2, answer=2)
    clients.do("read", answer=2, process=1)
    assert not clients.do("read", answer=1, process=2)
    assert clients.do("read", answer=1, process=1) == (2, 4)


@pytest.mark.parametrize(("own", "monotonic"), [(False, True), (True, False), (False, False)])
def test_only_the_promised_guarantees_are_judged(own, monotonic):
    clients = Clients(FollowerReadsChecker(read_your_writes=own, monotonic_reads=monotonic))
    clients.do("write", 1, answer=1, process=1)
    clients.do("write", 2, answer=2, process=1)
    assert bool(clients.do("read", answer=1, process=1)) is own
    clients.do("read", answer=2, process=2)
    assert bool(clients.do("read", answer=1, process=2)) is monotonic


def test_versions_order_two_writes_also_when_their_times_say_otherwise():
    clients = Clients(FollowerReadsChecker())
    clients.do("write", 1, answer=7, process=1)
    clients.do("write", 2, answer=3, process=1)
    clients.do("read", answer=2)
    assert not clients.do("read", answer=1)
    assert clients.do("read", answer=2) == (3, 4)


@pytest.mark.parametrize("answer", [3, 8, None])
def test_a_value_whose_write_is_open_counts_once_its_version_is_known(answer):
    clients = Clients(FollowerReadsChecker())
    clients.do("write", 1, answer=7, process=1)
    pending = clients.begin("write", 2, process=2)
    clients.do("read", answer=2)
    assert not clients.do("read", answer=1), "the open write may still get an older version"
    assert not clients.end(pending, ok(answer))
    assert bool(clients.do("read", answer=1)) is (answer != 3)


def test_a_write_without_a_version_is_older_than_one_that_began_after_it_had_completed():
    clients = Clients(FollowerReadsChecker())
    early = clients.begin("write", 1, process=1)
    clients.do("write", 2, process=2)
    clients.end(early, ok())
    clients.do("read", answer=2)
    assert not clients.do("read", answer=1), "both were open at once"
    clients.do("write", 3, process=2)
    clients.do("read", answer=3)
    assert clients.do("read", answer=1) == (5, 6)


def test_nothing_is_older_than_any_value_that_a_session_has_seen():
    clients = Clients(FollowerReadsChecker())
    clients.begin("write", 1, process=1)
    assert not clients.do("read")
    clients.do("read", answer=1)
    assert clients.do("read") == (2, 3)


def test_a_value_that_was_never_written_or_whose_write_failed_after_all_is_certain():
    clients = Clients(FollowerReadsChecker())
    pending = clients.begin("write", 1, process=1)
    assert not clients.do("read", answer=1)
    assert clients.end(pending, fail("refused")) == (1, 0)
    assert clients.do("read", answer=1) == (2,)
    assert clients.do("read", answer=9) == (3,)


def test_a_session_ends_with_an_unknown_outcome():
    clients = Clients(FollowerReadsChecker())
    clients.do("write", 1, answer=1)
    clients.do("write", 2, answer=2)
    clients.end(clients.begin("write", 3), info("timeout"))
    assert not clients.do("read", answer=1)


def test_a_key_whose_value_is_written_again_is_left_to_the_check_afterwards():
    clients = Clients(FollowerReadsChecker())
    clients.do("write", 1, answer=1)
    clients.do("write", 2, answer=2)
    clients.do("write", 1, answer=3)
    assert not clients.do("read", answer=9)
    assert clients.twin.left == ("k",)


def test_a_key_with_too_many_values_is_left_to_the_check_afterwards():
    clients = Clients(_Small())
    for value in (1, 2, 3):
        assert clients.twin.left == ()
        clients.do("write", value, answer=value)
    assert clients.twin.left == ("k",)
    assert not clients.do("read", answer=1)
    assert clients.do("read", answer=1, key="other"), "another key is still judged"
