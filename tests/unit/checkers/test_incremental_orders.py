"""Causal pairs, writes in order, long forks and transfers judged while operations come and go."""

from __future__ import annotations

import pytest
from watched_clients import Clients

from faultline.checkers.causal_pairs import CausalPairsChecker
from faultline.checkers.classic.causal_reverse import CausalReverseChecker
from faultline.checkers.classic.long_fork import LongForkChecker
from faultline.checkers.classic.transfers import TransfersChecker
from faultline.checkers.incremental.causes import IncrementalCausalPairs
from faultline.harness.outcome import fail, info, ok


class _SmallPairs:
    """The checker of pairs with a twin that keeps two numbers."""

    def incremental(self):
        return IncrementalCausalPairs(values_max=2)


@pytest.mark.parametrize(("halves", "is_wrong"), [([1, 2], True), ([None, 1], True), ([2, 1], False), ([2, 9], True)])
def test_a_right_half_without_its_left_one_and_a_half_that_was_never_written_are_certain(halves, is_wrong):
    clients = Clients(CausalPairsChecker())
    clients.do("write-pair", 1)
    clients.begin("write-pair", 2, process=1)
    assert bool(clients.do("read-pair", answer=halves)) is is_wrong


def test_a_pair_that_failed_may_have_written_its_left_half():
    clients = Clients(CausalPairsChecker())
    clients.end(clients.begin("write-pair", 1), fail("refused"))
    assert not clients.do("read-pair", answer=[1, None])
    clients.do("write-pair", 1)
    assert not clients.do("read-pair", answer=[1, 1])


def test_a_pair_with_too_many_numbers_is_judged_by_those_that_are_kept():
    clients = Clients(_SmallPairs())
    for number in (1, 2, 3, 4):
        clients.do("write-pair", number)
    assert clients.twin.left == ("k",)
    assert not clients.do("read-pair", answer=[9, 9])
    assert clients.do("read-pair", answer=[1, 2])


def test_a_read_that_sees_a_write_without_an_earlier_one_names_both():
    clients = Clients(CausalReverseChecker())
    clients.do("write", 1)
    clients.do("write", 2)
    assert not clients.do("read", answer=[1])
    assert clients.do("read", answer=[2]) == (0, 1, 3)


def test_writes_that_were_open_at_once_may_be_seen_in_either_order():
    clients = Clients(CausalReverseChecker())
    early = clients.begin("write", 1, process=1)
    clients.begin("write", 2, process=2)
    clients.end(early, ok())
    assert not clients.do("read", answer=[2])


def test_a_value_that_was_never_written_or_whose_write_failed_after_all_is_certain():
    clients = Clients(CausalReverseChecker())
    pending = clients.begin("write", 1, process=1)
    assert not clients.do("read", answer=[1])
    assert clients.end(pending, fail("refused")) == (1, 0)
    assert clients.do("read", answer=[1]) == (2,)
    assert clients.do("read", answer=[7]) == (3,)


def test_a_key_whose_value_is_written_again_is_left_to_the_check_afterwards():
    clients = Clients(CausalReverseChecker())
    clients.do("write", 1)
    clients.do("write", 1)
    assert clients.twin.left == ("k",)
    assert not clients.do("read", answer=[7])


def read_of(**values):
    return [["r", key, value] for key, value in values.items()]


def test_two_reads_that_see_two_writes_in_opposite_orders_name_each_other():
    clients = Clients(LongForkChecker())
    assert not clients.do("read", read_of(x=None, y=None), answer=read_of(x=1, y=None))
    assert not clients.do("read", read_of(x=None, y=None), answer=read_of(x=1, y=2))
    assert not clients.do("read", read_of(x=None, y=None), answer=read_of(x=None, y=None))
    assert clients.do("txn", read_of(x=None, y=None), answer=read_of(x=None, y=2)) == (0, 3)


def test_a_read_that_does_not_fit_below_a_later_one_is_a_fork_and_other_groups_are_apart():
    clients = Clients(LongForkChecker())
    assert not clients.do("read", answer=read_of(x=1, y=2, z=None))
    assert not clients.do("read", answer=read_of(p=None, q=2))
    assert clients.do("read", answer=read_of(x=None, y=None, z=3)) == (0, 2)


def test_another_value_than_the_one_that_was_written_is_certain():
    clients = Clients(LongForkChecker())
    clients.begin("write", [["w", "x", 1]], process=1)
    assert not clients.do("read", answer=read_of(x=1, y=None))
    assert clients.do("read", answer=read_of(x=2, y=None)) == (0, 2)


def transfer(giver, taker, amount):
    return {"from": giver, "to": taker, "amount": amount}


@pytest.mark.parametrize("given", [0, 3])
def test_a_transfer_in_flight_counts_on_both_accounts_or_on_none(given):
    clients = Clients(TransfersChecker(opening={"a": 5}))
    clients.begin("transfer", transfer("a", "b", 3), process=1)
    assert not clients.do("read", answer={"a": 5 - given, "b": given})
    assert clients.do("read", answer={"a": 1, "b": given})
    assert clients.do("read", answer={"a": 5, "b": 4})


def test_an_acknowledged_transfer_must_count_and_one_that_failed_must_not():
    clients = Clients(TransfersChecker(opening={"a": 5}))
    clients.do("transfer", transfer("a", "b", 3))
    clients.end(clients.begin("transfer", transfer("a", "b", 1)), fail("refused"))
    assert not clients.do("read", answer={"a": 2, "b": 3})
    assert clients.do("read", answer={"a": 5, "b": 0})
    assert clients.do("read", answer={"a": 1, "b": 4})


def test_a_transfer_of_unknown_outcome_and_one_to_the_same_account_leave_bounds_as_they_are():
    clients = Clients(TransfersChecker(opening={"a": 5}))
    clients.end(clients.begin("transfer", transfer("a", "b", 3)), info("timeout"))
    clients.do("transfer", transfer("a", "a", 4))
    assert not clients.do("read", answer={"a": 2, "b": 3})
    assert not clients.do("read", answer={"a": 5, "b": 0})
    assert clients.do("read", answer={"a": 6, "b": 0})


def test_a_read_that_began_before_an_account_was_named_may_see_it_empty():
    clients = Clients(TransfersChecker(opening={"a": 5}))
    read = clients.begin("read", process=1)
    clients.do("transfer", transfer("a", "b", 3))
    assert not clients.end(read, ok({"a": 5, "b": 0}))
    assert clients.do("read", answer={"a": 5, "b": 0})


def test_an_operation_that_changes_no_account_is_refused():
    with pytest.raises(ValueError, match="no transfer"):
        Clients(TransfersChecker()).begin("transfer", {"from": "a", "to": "b", "amount": "two"})
