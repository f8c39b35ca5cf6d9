"""Composed scenarios around one core: X-S1, X-S2, X-S4, and how `coordinated-kv` takes over, hands over and fences."""

from __future__ import annotations

from typing import Any

import pytest
from coordinated_driver import CORE, DATA, TTL_MS, CoordinatedCluster, key_in

from faultline.systems_under_test.reference.coordinated_kv.controller import CONTROLLER
from faultline.systems_under_test.reference.coordinated_kv.messages import (
    AlterInSync,
    DataRefused,
    InstallReplica,
    LeadershipResigned,
    ReadsConfirmed,
    ReplicaStored,
    ReplicateWrite,
)
from faultline.systems_under_test.reference.leases_and_watches.messages import LeaseRefreshed, WatchBatch
from faultline.systems_under_test.reference.shared.client_messages import ClientRequest
from faultline.systems_under_test.reference.shared.key_commands import (
    AppendElement,
    GetValue,
    SetValue,
)

KEY = key_in(0, 3)


def others(*names: str) -> list[str]:
    return [name for name in DATA if name not in names]


# -- the controller ---------------------------------------------------------------------------------------------------


@pytest.mark.rows("X-S1", "SYS-S13")
def test_when_the_controller_crashes_its_key_is_deleted_once_and_exactly_one_other_takes_the_lease() -> None:
    cluster = CoordinatedCluster().settled()
    jupiter = cluster.controller()
    before = len(cluster.grants_and_ends())
    cluster.posted.clear()
    cluster.kill(jupiter)
    cluster.wait(2 * TTL_MS)
    assert [what for _, what in cluster.grants_and_ends()][before:] == ["expired", "granted"]
    neptune = cluster.controller()
    assert neptune != jupiter
    for watcher in others(jupiter):
        told = cluster.told(watcher, CONTROLLER)
        assert [(event.value, event.is_deleted) for event in told] == [(None, True), (neptune, False)]
    assert cluster.broken() == []


@pytest.mark.rows("X-S2")
def test_the_expiry_that_a_dead_leader_could_not_tell_is_told_by_the_next_one_under_the_same_index() -> None:
    cluster = CoordinatedCluster().settled()
    jupiter = cluster.controller()
    cluster.posted.clear()
    cluster.lost = lambda source, _, message: source == "athens" and isinstance(message, WatchBatch)
    cluster.kill(jupiter)
    while any(cluster.nodes[name].store.leases.get(CONTROLLER) for name in CORE):
        cluster.wait(10)
    (index, *_) = [index for index, what in cluster.grants_and_ends() if what == "expired"]
    watchers = others(jupiter)
    assert [cluster.told(watcher, CONTROLLER) for watcher in watchers] == [[], []]
    cluster.kill("athens")
    cluster.wait(3 * TTL_MS)
    (leader,) = cluster.leaders()
    for watcher in watchers:
        told = cluster.told(watcher, CONTROLLER, leader)
        assert {event.index for event in told if event.is_deleted} == {index}
    assert cluster.controller() in watchers
    assert cluster.broken() == []


@pytest.mark.rows("X-S4")
def test_on_the_losing_side_the_owner_gives_up_in_time_and_no_watcher_hears_of_what_was_not_committed() -> None:
    cluster = CoordinatedCluster().settled()
    owner = cluster.entry(0).leader
    watcher, beyond = others(owner)
    cluster.split("athens", owner, watcher)
    cluster.posted.clear()
    # A client reached athens before it knew of the split: the entry is never committed.
    uncommitted: Any = SetValue("members/unknown", 1)
    cluster.hand("client", "athens", ClientRequest(cluster.nodes[owner].session._client._client_id, 999, uncommitted))
    ended_ms = refused_ms = 0
    for elapsed_ms in range(0, 4 * TTL_MS, 10):
        cluster.wait(10)
        if not cluster.leads_partition(owner) and not refused_ms:
            refused_ms = elapsed_ms
        if not ended_ms and cluster.nodes["byzantium"].store.leases.get(f"members/{owner}") is None:
            ended_ms = elapsed_ms
    assert 0 < refused_ms < ended_ms
    assert cluster.told(watcher, "members") == cluster.told(watcher, "table") == []
    refreshed = [message for _, to, message in cluster.posted if to == owner and isinstance(message, LeaseRefreshed)]
    assert [answer for answer in refreshed if answer.error is None] == []
    cluster.heal()
    cluster.wait(3 * TTL_MS)
    assert len({node.table for node in cluster.alive}) == 1
    assert len({str(cluster.values(name)) for name in CORE}) == 1
    assert "members/unknown" not in cluster.values("byzantium")
    assert beyond in cluster.nodes and cluster.broken() == []


@pytest.mark.rows("X-I2", "X-I3")
def test_what_a_deposed_controller_sent_before_changes_nothing_once_the_table_is_claimed() -> None:
    cluster = CoordinatedCluster().settled()
    jupiter = cluster.controller()
    kept = cluster.table
    cluster.lost = lambda source, target, _: jupiter in (source, target) and not {source, target} <= {*DATA, "client"}
    held: list[Any] = []
    post = cluster.post

    def hold(source: str, target: str, message: Any) -> None:
        if source == jupiter and isinstance(message, ClientRequest) and message.command.key == "table":
            held.append((source, target, message))
        else:
            post(source, target, message)

    cluster.post = hold  # type: ignore[method-assign]  # a stand-in
    leader = cluster.nodes[jupiter].controller
    entry = leader.table.entries[0]
    leader.wish(entry.leader, AlterInSync(0, entry.generation, entry.revision, (entry.leader,)))
    cluster.wait(2 * TTL_MS)
    neptune = next(name for name in others(jupiter) if cluster.nodes[name].controller.acts)
    claimed = cluster.nodes[neptune].controller.table
    assert claimed.version > kept.version and held
    cluster.hand(*held[0])
    cluster.deliver()
    assert cluster.values("athens")["table"] == cluster.values("byzantium")["table"]
    assert cluster.values("athens")["table"][2] == cluster.nodes[neptune].controller.token
    assert cluster.broken() == []


# -- leaders of partitions --------------------------------------------------------------------------------------------


@pytest.mark.rows("X-I1", "X-I4", "X-I5", "X-I7")
def test_a_replica_in_sync_takes_over_from_a_dead_leader_with_everything_that_was_acknowledged() -> None:
    cluster = CoordinatedCluster().settled()
    old = cluster.entry(0)
    for number in range(1, 6):
        cluster.write(number, KEY, number)
    cluster.kill(old.leader)
    cluster.wait(2 * TTL_MS)
    new = cluster.entry(0)
    assert new.leader in old.in_sync and new.leader != old.leader
    assert (new.generation, new.in_sync) == (old.generation + 1, (new.leader,))
    assert cluster.read(6, KEY) == 5
    cluster.restart(old.leader)
    cluster.wait(4 * TTL_MS)
    assert sorted(cluster.entry(0).in_sync) == sorted(old.replicas)
    assert cluster.nodes[old.leader].store.replica(0).values == {KEY: 5}
    assert cluster.broken() == []


@pytest.mark.rows("X-I1")
@pytest.mark.parametrize(
    ("command", "late", "value"),
    [(GetValue(KEY), ReadsConfirmed, "old"), (SetValue(KEY, "new"), ReplicaStored, None)],
    ids=["a confirmed read", "a copied write"],
)
def test_a_former_leader_may_answer_late_what_all_in_sync_had_confirmed_before_its_successor_led(
    command: Any, late: type[Any], value: str | None
) -> None:
    cluster = CoordinatedCluster(read_mode="confirmed").settled()
    old = cluster.entry(0)
    cluster.write(1, KEY, "old")
    cluster.request(old.leader, 2, command)
    cluster.deliver(lambda _, __, message: not isinstance(message, late))
    (held,) = cluster.take(lambda _, target, message: target == old.leader and isinstance(message, late))
    cluster.split(old.leader)
    cluster.wait(2 * TTL_MS)
    assert cluster.entry(0).leader not in ("", old.leader)
    assert cluster.read(3, KEY) == ("new" if late is ReplicaStored else "old")
    assert 2 not in cluster.answers()
    cluster.hand(*held)
    assert cluster.answers()[2].value == value
    assert cluster.broken() == []


def test_a_write_waits_for_all_in_sync_and_is_acknowledged_without_the_silent_one_once_the_table_says_so() -> None:
    cluster = CoordinatedCluster().settled()
    entry = cluster.entry(0)
    (follower,) = (name for name in entry.in_sync if name != entry.leader)
    cluster.lost = lambda source, target, _: (source, target) == (entry.leader, follower)
    cluster.request(entry.leader, 1, SetValue(KEY, "x"))
    cluster.wait(300)
    assert cluster.answers() == {}
    cluster.wait(400)
    assert 1 in cluster.answers()
    assert cluster.entry(0).in_sync == (entry.leader,)
    assert cluster.entry(0).generation == entry.generation


def test_a_leader_that_is_alone_in_sync_answers_when_its_own_disk_has_the_write() -> None:
    cluster = CoordinatedCluster().settled()
    leader = cluster.entry(0).leader
    for name in others(leader):
        cluster.kill(name)
    cluster.wait(2 * TTL_MS)
    assert cluster.entry(0).in_sync == (leader,)
    cluster.request(leader, 1, SetValue(KEY, "alone"))
    flushed = cluster.take(lambda source, target, _: source == target == leader)
    cluster.deliver()
    assert len(flushed) == 1 and cluster.answers() == {}
    cluster.hand(*flushed[0])
    assert 1 in cluster.answers()


@pytest.mark.rows("SYS-R10")
def test_when_all_in_sync_are_dead_no_replica_leads_until_one_of_them_is_back() -> None:
    cluster = CoordinatedCluster(replication_factor="3").settled()
    cluster.write(1, KEY, "kept")
    entry = cluster.entry(0)
    lagging = next(name for name in entry.in_sync if name != entry.leader)
    cluster.kill(lagging)
    cluster.wait(2 * TTL_MS)
    cluster.write(2, KEY, "newer")
    ahead = cluster.entry(0).in_sync
    assert lagging not in ahead
    for name in ahead:
        cluster.kill(name)
    cluster.restart(lagging)
    cluster.wait(4 * TTL_MS)
    assert cluster.entry(0).leader == ""
    cluster.restart(ahead[0])
    cluster.wait(4 * TTL_MS)
    assert cluster.entry(0).leader == ahead[0]
    assert cluster.read(3, KEY) == "newer"
    assert cluster.broken() == []


def test_who_is_not_the_leader_refuses_and_says_who_is() -> None:
    cluster = CoordinatedCluster().settled()
    entry = cluster.entry(0)
    (stranger, *_) = others(entry.leader)
    cluster.request(stranger, 1, GetValue(KEY))
    cluster.deliver()
    ((_, refused),) = cluster.inbox["client"]
    assert isinstance(refused, DataRefused)
    assert (refused.leader, refused.generation) == (entry.leader, entry.generation)


@pytest.mark.rows("X-M11")
def test_a_write_that_is_sent_again_to_the_next_leader_is_answered_and_not_executed_again() -> None:
    cluster = CoordinatedCluster().settled()
    leader = cluster.entry(0).leader
    command = AppendElement(KEY, "once")
    cluster.lost = lambda _, target, __: target == "client"
    cluster.request(leader, 1, command)
    cluster.deliver()
    cluster.lost = lambda *_: False
    cluster.kill(leader)
    cluster.wait(2 * TTL_MS)
    cluster.request(cluster.entry(0).leader, 1, command)
    cluster.deliver()
    assert 1 in cluster.answers()
    assert cluster.read(2, KEY) == ["once"]


@pytest.mark.rows("X-I6", "X-M9")
def test_a_replica_refuses_what_a_leader_of_an_earlier_generation_sends_also_after_a_restart() -> None:
    cluster = CoordinatedCluster().settled()
    old = cluster.entry(0)
    cluster.write(1, KEY, "old")
    written = next(message for _, _, message in cluster.posted if isinstance(message, ReplicateWrite))
    stale = cluster.nodes[old.leader].store.replica(0).content()
    cluster.kill(old.leader)
    cluster.wait(2 * TTL_MS)
    leader = cluster.entry(0).leader
    cluster.write(2, KEY, "new")
    cluster.restart(leader)
    cluster.hand(old.leader, leader, ReplicateWrite(old.generation, 3, written.written))
    cluster.hand(old.leader, leader, InstallReplica(0, old.generation, 9, stale))
    assert cluster.nodes[leader].store.replica(0).values == {KEY: "new"}
    assert cluster.nodes[leader].store.replica(0).generation > old.generation


# -- wishes and balance -----------------------------------------------------------------------------------------------


def test_a_wish_about_an_earlier_revision_or_generation_changes_nothing() -> None:
    cluster = CoordinatedCluster().settled()
    controller = cluster.nodes[cluster.controller()].controller
    entry = controller.table.entries[0]
    before = controller.table
    for wish in (
        AlterInSync(0, entry.generation, entry.revision - 1, (entry.leader,)),
        AlterInSync(0, entry.generation - 1, entry.revision, (entry.leader,)),
        LeadershipResigned(0, entry.generation - 1),
    ):
        controller.wish(entry.leader, wish)
        cluster.deliver()
    controller.wish("unknown", LeadershipResigned(0, entry.generation))
    cluster.deliver()
    assert controller.table == before


def test_a_member_that_came_back_is_handed_leadership_again_and_nothing_is_lost_on_the_way() -> None:
    cluster = CoordinatedCluster(rebalance_every_ms="500", partitions="6").settled()
    key = key_in(0, 6)
    cluster.write(1, key, "kept")
    gone = cluster.entry(0).leader
    cluster.kill(gone)
    cluster.wait(3_000)
    assert gone not in {entry.leader for entry in cluster.table.entries}
    cluster.restart(gone)
    cluster.wait(6_000)
    loads = [sum(entry.leader == name for entry in cluster.table.entries) for name in DATA]
    assert loads == [2, 2, 2]
    assert all(len(entry.in_sync) == 2 and entry.heir == "" for entry in cluster.table.entries)
    assert "leadership-handed-over" in cluster.marks
    assert cluster.read(2, key) == "kept"
    assert cluster.broken() == []
