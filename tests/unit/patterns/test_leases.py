"""Leases: the replicated table, the leader's times, and what an owner may believe."""

from __future__ import annotations

import pytest

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.cluster_management.lease import (
    NO_LEASE,
    DuplicateLease,
    FollowerLeaseTracker,
    HeldLease,
    LeaderLeaseTracker,
    Lease,
    LeaseTable,
    NoLease,
)
from faultline.systems_under_test.reference.leases_and_watches.lease_holding import LeaseHolding
from faultline.systems_under_test.reference.leases_and_watches.messages import LeaseRefreshed, RefreshLease
from faultline.systems_under_test.reference.leases_and_watches.settings import ServiceSettings
from faultline.testing.fake_ports import FakePorts

TTL_US = 600_000
CORE = tuple(map(NodeId, ("athens", "byzantium", "cyrene")))


def table_with(*names: str) -> LeaseTable:
    table = LeaseTable()
    for index, name in enumerate(names, 1):
        table.register(name, TTL_US, index)
    return table


@pytest.mark.rows("LS-R6", "LS-R24")
def test_a_name_that_is_taken_is_not_granted_again() -> None:
    table = table_with("a")
    with pytest.raises(DuplicateLease, match="held since entry 1"):
        table.register("a", TTL_US, 7)
    assert table.get("a") == Lease("a", TTL_US, 1)
    assert table.get("b") is None


@pytest.mark.rows("LS-R27", "LS-S14")
def test_an_end_that_names_an_earlier_incarnation_leaves_the_new_owner_alone() -> None:
    table = table_with("a")
    assert table.end("a", 1) is not None
    table.register("a", TTL_US, 9)
    assert table.end("a", 1) is None
    assert table.get("a") == Lease("a", TTL_US, 9)


@pytest.mark.rows("LS-R18")
def test_nothing_is_attached_to_a_lease_that_there_is_not() -> None:
    with pytest.raises(NoLease, match="no lease b"):
        table_with("a").attach("b", "k")


@pytest.mark.rows("LS-R26")
def test_a_key_has_one_lease_at_a_time_and_is_attached_once() -> None:
    table = table_with("a", "b")
    table.attach("a", "k")
    table.attach("a", "k")
    assert table.get("a") == Lease("a", TTL_US, 1, ("k",))
    table.attach("b", "k")
    assert [lease.keys for lease in table.all()] == [(), ("k",)]
    table.detach("k")
    assert [lease.keys for lease in table.all()] == [(), ()]


@pytest.mark.rows("LS-R19")
def test_a_restored_table_knows_leases_and_attachments() -> None:
    table = table_with("a", "b")
    table.attach("b", "k")
    other = table_with("c")
    other.restore(table.content())
    assert other.content() == table.content()
    other.attach("a", "k")
    assert [lease.keys for lease in other.all()] == [("k",), ()]


@pytest.mark.rows("LS-R3", "LS-R9")
def test_a_lease_is_over_after_its_time_and_not_at_it() -> None:
    clock = FakePorts()
    tracker = LeaderLeaseTracker(clock, table_with("a").all())
    clock.now_us += TTL_US
    assert tracker.expired() == []
    clock.now_us += 1
    assert [lease.name for lease in tracker.expired()] == ["a"]


@pytest.mark.rows("LS-R10")
def test_what_was_found_over_is_told_once_and_not_refreshed_any_more() -> None:
    clock = FakePorts()
    tracker = LeaderLeaseTracker(clock, table_with("a").all())
    clock.now_us += TTL_US + 1
    assert len(tracker.expired()) == 1
    assert tracker.expired() == []
    assert not tracker.refresh("a", 1)


@pytest.mark.rows("LS-R13", "LS-R12")
def test_a_refresh_gives_a_full_time_to_the_incarnation_that_it_names_and_to_no_other() -> None:
    clock = FakePorts()
    tracker = LeaderLeaseTracker(clock, table_with("a").all())
    clock.now_us += TTL_US
    assert tracker.refresh("a", 1)
    assert not tracker.refresh("a", 2)
    assert not tracker.refresh("b", 1)
    clock.now_us += TTL_US
    assert tracker.expired() == []


@pytest.mark.rows("LS-R2")
def test_steps_of_the_wall_clock_end_nothing_and_prolong_nothing() -> None:
    clock = FakePorts()
    tracker = LeaderLeaseTracker(clock, table_with("a").all())
    clock.wall_offset_us = 7_200_000_000
    assert tracker.expired() == []
    clock.wall_offset_us = -7_200_000_000
    clock.now_us += TTL_US + 1
    assert len(tracker.expired()) == 1


@pytest.mark.rows("LS-R7")
def test_a_follower_finds_nothing_over_and_refreshes_nothing() -> None:
    tracker = FollowerLeaseTracker()
    tracker.track(Lease("a", TTL_US, 1))
    assert not tracker.refresh("a", 1)
    assert tracker.expired() == []


@pytest.mark.rows("LS-R17", "LS-R16")
def test_an_owner_counts_from_its_request_and_leaves_a_margin() -> None:
    clock = FakePorts()
    sent_us = clock.now_us
    clock.now_us += 100_000
    held = HeldLease(clock, "a", 1, TTL_US, 25, sent_us)
    clock.now_us = sent_us + 449_999
    assert held.is_valid()
    clock.now_us += 1
    assert not held.is_valid()


@pytest.mark.rows("LS-S10")
def test_an_owner_that_has_slept_too_long_does_not_come_back_by_a_late_answer() -> None:
    clock = FakePorts()
    held = HeldLease(clock, "a", 1, TTL_US, 25, clock.now_us)
    sent_us = clock.now_us + 300_000
    clock.now_us += 500_000
    held.refreshed(sent_us)
    assert not held.is_valid()


@pytest.mark.rows("LS-R15")
def test_an_owner_refreshes_after_half_of_the_time() -> None:
    assert HeldLease(FakePorts(), "a", 1, TTL_US, 25, 0).refresh_interval_us == TTL_US // 2


def owner_of(*tokens: int) -> tuple[FakePorts, LeaseHolding]:
    """An owner to which the lease `a` was granted under each of the tokens, and that has sent its first refresh."""
    ports = FakePorts("alice")
    holding = LeaseHolding(ports, CORE, CORE[0], ServiceSettings.read({}))
    for token in tokens:
        holding.drop("a")
        holding.granted("a", token, ports.now_us)
        ports.pass_time(TTL_US // 2)
    return ports, holding


def refreshes(ports: FakePorts) -> list[tuple[NodeId, RefreshLease]]:
    return [(to, message) for to, message in ports.take_sent() if isinstance(message, RefreshLease)]


@pytest.mark.rows("LS-R15", "LS-R17")
def test_an_answer_counts_that_comes_after_the_refresh_was_sent_a_second_time() -> None:
    ports, holding = owner_of(7)
    ((_, first),) = refreshes(ports)
    ports.pass_time(TTL_US // 8 + 1)
    ((asked, _),) = refreshes(ports)
    assert asked == CORE[1]
    holding.receive(CORE[0], LeaseRefreshed("a", first.correlation_id))
    ports.pass_time(TTL_US // 4)
    assert holding.held("a") is not None
    assert refreshes(ports)[0][0] == CORE[0], "the server that answered leads"


@pytest.mark.rows("LS-R15", "LS-R17")
def test_a_late_answer_extends_the_lease_from_the_sending_of_its_own_refresh() -> None:
    ports, holding = owner_of(7)
    ((_, first),) = refreshes(ports)
    sent_us = ports.now_us
    ports.pass_time(TTL_US // 8 + 1)
    holding.receive(CORE[0], LeaseRefreshed("a", first.correlation_id))
    ports.now_us = sent_us + TTL_US * 3 // 4 - 1
    assert holding.held("a") is not None
    ports.now_us += 1
    assert holding.held("a") is None


@pytest.mark.rows("LS-R27")
def test_a_late_answer_about_a_former_lease_says_nothing_about_its_successor() -> None:
    ports, holding = owner_of(7, 9)
    former = next(message for _, message in refreshes(ports) if message.incarnation == 7)
    holding.receive(CORE[0], LeaseRefreshed("a", former.correlation_id, NO_LEASE))
    assert holding.held("a") is not None


class EndsByName(LeaseTable):
    """LS-M12: whichever incarnation was meant."""

    def is_meant(self, lease: Lease, incarnation: int) -> bool:
        return True


@pytest.mark.rows("LS-M12")
@pytest.mark.parametrize(("table_type", "is_kept"), [(LeaseTable, True), (EndsByName, False)])
def test_a_table_that_ends_leases_by_name_ends_the_next_owners_lease(
    table_type: type[LeaseTable], is_kept: bool
) -> None:
    table = table_type()
    table.register("a", TTL_US, 1)
    table.end("a", 1)
    table.register("a", TTL_US, 9)
    table.end("a", 1)
    assert (table.get("a") is not None) is is_kept
