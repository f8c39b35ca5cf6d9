"""The messages that leave a group's leader and their time, the files of each group, and the search for its leader."""

from __future__ import annotations

from typing import Any, cast

from faultline.harness.world.ports import Clock, NodeId
from faultline.systems_under_test.reference.transactional_kv.group_ports import GroupStorage, Outbox
from faultline.systems_under_test.reference.transactional_kv.groups import GroupLocations, groups_of
from faultline.systems_under_test.reference.transactions.messages import Reply
from faultline.testing.fake_ports import FakePorts
from faultline.testing.memory_storage import MemoryStorage

NODES = tuple(map(NodeId, ("athens", "byzantium", "cyrene", "delphi", "ephesus")))
GROUP = NodeId("group-4")


class Leader:
    """The answers of a leader to its outbox."""

    generation = 1

    def __init__(self) -> None:
        self.written, self.replicated, self.lease = 0, 0, True

    def written_index(self) -> int:
        return self.written

    def replicated_index(self) -> int:
        return self.replicated

    def holds_lease(self) -> bool:
        return self.lease


class Sent:
    """An outbox, and what has left it."""

    def __init__(self) -> None:
        self.leader = Leader()
        self.outbox = Outbox(self.leader)
        self.left: list[int] = []

    def send(self, number: int) -> None:
        self.outbox.add(Reply(number), lambda: self.left.append(number))


def test_a_message_leaves_with_the_last_record_before_it_and_never_before_an_earlier_message() -> None:
    sent = Sent()
    sent.send(1)
    sent.leader.written = 2
    sent.send(2)
    sent.leader.written = 3
    sent.send(3)
    sent.leader.replicated = 1
    sent.outbox.release()
    assert sent.left == [1]
    sent.leader.replicated = 2
    sent.outbox.release()
    assert sent.left == [1, 2]
    sent.leader.replicated = 3
    sent.send(4)
    assert sent.left == [1, 2]
    sent.outbox.release()
    assert sent.left == [1, 2, 3, 4] and not sent.outbox


def test_without_a_lease_nothing_leaves_and_what_a_deposed_leader_holds_is_lost() -> None:
    sent = Sent()
    sent.leader.lease = False
    sent.send(1)
    sent.outbox.release()
    assert sent.left == []
    sent.leader.lease = True
    sent.outbox.release()
    sent.leader.lease = False
    sent.send(2)
    sent.outbox.close()
    sent.leader.lease = True
    sent.outbox.release()
    assert sent.left == [1]


def test_groups_on_one_node_share_a_disk_and_no_file() -> None:
    disk = MemoryStorage()
    one, ten = GroupStorage(disk, "group-1"), GroupStorage(disk, "group-10")
    one.append("wal", b"one")
    ten.append("wal", b"ten")
    ten.write("draft", b"new")
    ten.fsync("draft")
    ten.rename("draft", "snapshot")
    assert (one.files(), ten.files()) == (["wal"], ["snapshot", "wal"])
    one.truncate("wal", 1)
    ten.delete("snapshot")
    assert (one.read("wal"), ten.read("wal"), ten.read("snapshot")) == (b"o", b"ten", b"")


def test_each_group_lies_on_a_node_and_those_after_it() -> None:
    groups = groups_of(NODES, 3)
    assert list(groups) == [f"group-{number}" for number in range(1, 6)]
    assert groups[GROUP] == (NODES[3], NODES[4], NODES[0])


def test_a_silent_leader_is_looked_for_elsewhere_after_a_while_and_one_that_speaks_is_kept() -> None:
    clock: Any = FakePorts()
    locations = GroupLocations(groups_of(NODES, 3), cast("Clock", clock), patience_us=100)
    asked = []
    for clock.now_us in (0, 60, 120, 180, 240):
        asked.append(locations.leader_of(GROUP))
    assert asked == [NODES[3], NODES[3], NODES[4], NODES[4], NODES[0]]
    locations.heard(GROUP, NODES[4])
    for clock.now_us in (1_000, 1_050):
        assert locations.leader_of(GROUP) == NODES[4]
    locations.try_next(GROUP)
    assert locations.leader_of(GROUP) == NODES[0]
