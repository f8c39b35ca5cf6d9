"""Groups of `transactional-kv`: with replication each partition is a small group of nodes that share one log.

A group is addressed like a node. `group-2` holds keys, names the transactions that begin there and is what
participants and coordinators remember, so that a new leader of it changes nothing they know (TPC-R5). Its leader is
looked up when something is sent: `GroupLocations` knows the node that answered last, and tries the next member when
that one stays silent.

    nodes   athens      byzantium   cyrene          factor 3: each node takes part in three groups,
    groups  1* 2  3     1  2* 3     1  2  3*        and about one in three leaders (*) is on it

There are as many groups as nodes, and they do not change: moving partitions are another system's business
(`range-kv`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from faultline.harness.errors import UsageError
from faultline.harness.world.ports import Clock, NodeId, Ports
from faultline.systems_under_test.reference.transactional_kv.group_messages import ToGroup

__all__ = ["GroupLocations", "GroupRoutes", "Groups", "groups_of"]

Groups = Mapping[NodeId, tuple[NodeId, ...]]
"""The members of each group, the first of which is the node that held its keys without replication."""


def groups_of(members: tuple[NodeId, ...], replication_factor: int) -> Groups:
    """Return a group for each node, on that node and those after it. Raise `UsageError` when there are too few."""
    if replication_factor > len(members):
        raise UsageError(
            f"{len(members)} nodes cannot hold {replication_factor} copies of each partition.",
            f"Use at least {replication_factor} nodes (--nodes {replication_factor}), or a smaller replication_factor.",
        )
    size = len(members)
    return {
        NodeId(f"group-{place + 1}"): tuple(members[(place + n) % size] for n in range(replication_factor))
        for place in range(size)
    }


class GroupLocations:
    """The node on which each group's leader was last heard: a guess, which costs time when wrong, and nothing else."""

    def __init__(self, groups: Groups, clock: Clock, patience_us: int) -> None:
        """Try the next member after `patience_us` without an answer."""
        self._groups = groups
        self._clock = clock
        self._patience_us = patience_us
        self._leaders = {group: members[0] for group, members in groups.items()}
        self._asked_us: dict[NodeId, int] = {}

    def leader_of(self, group: NodeId) -> NodeId:
        """Return the node to send to now."""
        now_us = self._clock.monotonic_us()
        if now_us - self._asked_us.setdefault(group, now_us) > self._patience_us:
            self._asked_us[group] = now_us
            self.try_next(group)
        return self._leaders[group]

    def heard(self, group: NodeId, node: NodeId) -> None:
        """Note that `node` spoke for `group`."""
        self._leaders[group] = node
        self._asked_us.pop(group, None)

    def try_next(self, group: NodeId) -> None:
        """Turn to the next member, because the one that was asked does not answer."""
        members = self._groups[group]
        place = members.index(self._leaders[group]) if self._leaders[group] in members else -1
        self._leaders[group] = members[(place + 1) % len(members)]


class GroupRoutes:
    """The way of a node's messages to groups; `leader_here` is the leader that its own member of a group follows."""

    def __init__(
        self, ports: Ports, groups: Groups, patience_us: int, leader_here: Callable[[NodeId], NodeId | None]
    ) -> None:
        self._network = ports.network
        self._groups = groups
        self._locations = GroupLocations(groups, ports.clock, patience_us)
        self._leader_here = leader_here

    def send(self, group: NodeId, to: NodeId, message: Any) -> None:
        """Send for `group`, to the leader of another group or to a client."""
        if to in self._groups:
            self._network.send(self.leader_of(to), ToGroup(to, group, message))
        else:
            self._network.send(to, message)

    def leader_of(self, group: NodeId) -> NodeId:
        """Return the node that leads `group` now, as far as is known here."""
        return self._leader_here(group) or self._locations.leader_of(group)

    def note(self, source: NodeId, message: ToGroup) -> None:
        """Learn the leader of a group from a message that `source` sent for it."""
        if not message.passed_on and message.source in self._groups:
            self._locations.heard(NodeId(message.source), source)

    def pass_on(self, leader: NodeId, message: ToGroup) -> None:
        """Pass a message on to `leader`."""
        # Marked, so that it is passed on once: two nodes with old news would send it in a circle.
        self._network.send(leader, ToGroup(message.group, message.source, message.message, passed_on=True))
