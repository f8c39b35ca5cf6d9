"""Bugs of one step in `coordinated-kv`, X-M4, X-M14 and X-M15: a story shows what each breaks, and the correct part.

They have no campaign, because none meets them often enough: the moment at which they show lasts for milliseconds.
X-M14 was a mistake of the system itself, and the campaign `coordinated-slow-news` found it once in some ninety runs.
"""

from __future__ import annotations

import pytest
from coordinated_driver import TTL_MS, CoordinatedCluster, key_in, with_part

from faultline.systems_under_test.reference.coordinated_kv.controller import Controller
from faultline.systems_under_test.reference.coordinated_kv.messages import AlterInSync, InstallReplica
from faultline.systems_under_test.reference.coordinated_kv.node import DataNode
from faultline.systems_under_test.reference.coordinated_kv.table import Entry
from faultline.systems_under_test.reference.leases_and_watches.messages import WatchBatch
from faultline.systems_under_test.reference.shared.key_commands import GetValue, SetValue

KEY = key_in(0, 3)


class LeadsUnderAnotherLease(DataNode):
    """X-M4: a node that lost its lease and has a new one takes what the old one was appointed to for its own."""

    def _is_appointed(self, entry: Entry) -> bool:
        return entry.leader == self.ports.node_id


class LateWishGranted(Controller):
    """X-M15: a wish is granted although the entry has changed since it was made."""

    def _is_up_to_date(self, wish: AlterInSync, entry: Entry) -> bool:
        return True


class LeadsBesideItsSuccessor(DataNode):
    """X-M14: a leader that takes its successor's copy, before it hears of it from the core, goes on leading."""

    def _give_way(self, partition: int, generation: int) -> None:
        pass


def answer_after_a_new_lease(node_type: type[DataNode]) -> object:
    """Return the answer of a former leader that has a lease again and no news of the table."""
    cluster = CoordinatedCluster(node_type=node_type).settled()
    old = cluster.entry(0)
    cluster.write(1, KEY, "old")
    cluster.cut(old.leader)
    cluster.wait(2 * TTL_MS)
    assert cluster.entry(0).leader not in ("", old.leader)
    cluster.write(2, KEY, "new")
    cluster.heal()
    cluster.lost = lambda _, target, message: target == old.leader and isinstance(message, WatchBatch | InstallReplica)
    cluster.wait(400)
    assert cluster.nodes[old.leader].membership.is_valid()
    cluster.request(old.leader, 3, GetValue(KEY), generation=old.generation)
    cluster.deliver()
    answer = cluster.answers().get(3)
    return None if answer is None else answer.value


@pytest.mark.rows("X-M4")
def test_leading_on_under_another_lease_shows_old_values_and_the_correct_node_refuses() -> None:
    assert answer_after_a_new_lease(LeadsUnderAnotherLease) == "old"
    assert answer_after_a_new_lease(DataNode) is None


def acknowledged_beside_the_successor(node_type: type[DataNode]) -> bool:
    """Return whether a leader acknowledges a write for its successor's copy. It may not: the write will be lost."""
    cluster = CoordinatedCluster(node_type=node_type).settled()
    old = cluster.entry(0)
    cluster.write(1, KEY, "before")
    (successor,) = (name for name in old.in_sync if name != old.leader)
    copy = cluster.nodes[successor].store.replica(0)
    cluster.hand(successor, old.leader, InstallReplica(0, old.generation + 1, copy.number, copy.content()))
    cluster.request(old.leader, 2, SetValue(KEY, "beside"), generation=old.generation)
    cluster.deliver()
    return 2 in cluster.answers()


@pytest.mark.rows("X-I6", "X-M14")
def test_leading_on_beside_a_successor_acknowledges_a_lost_write_and_the_correct_node_stops() -> None:
    assert acknowledged_beside_the_successor(LeadsBesideItsSuccessor)
    assert not acknowledged_beside_the_successor(DataNode)


def in_sync_after_a_late_wish(controller_type: type[Controller]) -> tuple[tuple[str, ...], str]:
    """Return the replicas in sync after a late wish from before one fell behind, and the one that fell behind."""
    cluster = CoordinatedCluster(with_part(controller=controller_type)).settled()
    entry = cluster.entry(0)
    (follower,) = (name for name in entry.in_sync if name != entry.leader)
    late = AlterInSync(0, entry.generation, entry.revision, entry.in_sync)
    cluster.lost = lambda source, target, _: {source, target} == {entry.leader, follower}
    controller = cluster.nodes[cluster.controller()].controller
    controller.wish(entry.leader, AlterInSync(0, entry.generation, entry.revision, (entry.leader,)))
    cluster.deliver()
    cluster.write(1, KEY, "without the follower")
    assert cluster.entry(0).in_sync == (entry.leader,)
    controller.wish(entry.leader, late)
    cluster.deliver()
    return controller.table.entries[0].in_sync, follower


@pytest.mark.rows("X-M15")
def test_a_late_wish_that_is_granted_puts_a_replica_in_sync_that_lacks_a_write_and_the_correct_one_is_void() -> None:
    in_sync, lacking = in_sync_after_a_late_wish(LateWishGranted)
    assert lacking in in_sync
    in_sync, lacking = in_sync_after_a_late_wish(Controller)
    assert lacking not in in_sync
