"""The ports of a group's member, and those of its leader, over the ports of the node that both live on.

*A replicated log is a disk, and a leadership is a process on it.* The code of coordinator and participant is that of a
single node: it writes to a log and then sends. On one node the outbox of the ports lets a message leave once what was
written before it is on the disk, and a crash loses what had not left. Here a message of the leader leaves once all
records before it are *committed in the group*, and only while this leader holds its lease; when it is deposed, what
had not left is lost, and so is its memory. The next leader starts like a process after a crash: from the log.

Replicated two-phase commit (TPC-R44) needs no more than that. A vote rests on a promise that a majority stores; an
answer to a client and a decision rest on a commit point that a majority stores. Buffers and read locks, which were only
in memory, are gone with the leader; its successor therefore votes no.

The lease makes answers safe that no record precedes: "I do not know this transaction" is true at a deposed leader, and
false in the group. It rests on monotonic clocks that drift apart by less than the margin between lease and
election timeout (LOG-R22 to LOG-R25).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from faultline.harness.world.ports import Network, NodeId, Ports, Storage, Timer, Trace
from faultline.systems_under_test.reference.transactional_kv.group_messages import (
    LeadershipEvent,
    ReplicaEvent,
    ToReplica,
)

__all__ = ["GroupStorage", "LeadershipPorts", "Outbox", "ReplicaPorts", "Standing"]


class ReplicaPorts:
    """The ports of one member of `group`: implements `Ports`; peers are nodes, and see the group's messages only."""

    def __init__(self, ports: Ports, group: NodeId) -> None:
        self.node_id = ports.node_id
        self.clock = ports.clock
        self.timers = ports.timers
        self.storage = GroupStorage(ports.storage, group)
        self.network: Network = _ReplicaNetwork(ports.network, group)
        self.trace: Trace = _ReplicaTrace(ports.trace, group)
        self._random = ports.random
        self._group = group

    @property
    def random(self) -> ReplicaPorts:
        """These ports: a stream of each group, or all of a node's groups would stand for election at once."""
        return self

    def uniform_us(self, stream: str, low_us: int, high_us: int) -> int:
        return self._random.uniform_us(f"{self._group}-{stream}", low_us, high_us)


class GroupStorage:
    """The files of one group among those of the node: implements `Storage`."""

    def __init__(self, storage: Storage, group: str) -> None:
        self._storage = storage
        self._prefix = f"{group}."

    def files(self) -> list[str]:
        prefix = self._prefix
        return [file[len(prefix) :] for file in self._storage.files() if file.startswith(prefix)]

    def read(self, file: str) -> bytes:
        return self._storage.read(self._prefix + file)

    def append(self, file: str, data: bytes) -> None:
        self._storage.append(self._prefix + file, data)

    def write(self, file: str, data: bytes) -> None:
        self._storage.write(self._prefix + file, data)

    def truncate(self, file: str, size: int) -> None:
        self._storage.truncate(self._prefix + file, size)

    def rename(self, old: str, new: str) -> None:
        self._storage.rename(self._prefix + old, self._prefix + new)

    def delete(self, file: str) -> None:
        self._storage.delete(self._prefix + file)

    def fsync(self, file: str) -> None:
        self._storage.fsync(self._prefix + file)

    def fsync_folder(self) -> None:
        self._storage.fsync_folder()


class _ReplicaNetwork:
    def __init__(self, network: Network, group: NodeId) -> None:
        self._network = network
        self._group = group

    def send(self, to: NodeId, message: Any) -> None:
        self._network.send(to, ToReplica(self._group, message))

    def send_ahead(self, to: NodeId, message: Any) -> None:
        self._network.send_ahead(to, ToReplica(self._group, message))


class _ReplicaTrace:
    def __init__(self, trace: Trace, group: NodeId) -> None:
        self._trace = trace
        self._group = group
        self.sometimes = trace.sometimes
        self.always = trace.always

    def emit(self, event: msgspec.Struct) -> None:
        self._trace.emit(ReplicaEvent(self._group, type(event).__name__, event))


class Standing(Protocol):
    """A leader's knowledge of its log and of its followers."""

    @property
    def generation(self) -> int:
        """The generation in which it leads."""

    def written_index(self) -> int:
        """Return the index of the last record, which may be on this node only."""

    def replicated_index(self) -> int:
        """Return the index of the last record that is committed in the group."""

    def holds_lease(self) -> bool:
        """Return whether it is certain that no other node leads."""


class Outbox:
    """The messages and reports of a leader that may not leave yet, in order."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        self._held: deque[tuple[int, Callable[[], None]]] = deque()

    def __len__(self) -> int:
        return len(self._held)

    def add(self, told: msgspec.Struct, effect: Callable[[], None]) -> None:
        """Call `effect`, which tells `told`, once all records so far are replicated: now, or at a later `release`."""
        # Whatever is held keeps back all that comes after it, or a later message could overtake an earlier one.
        index = self._standing.written_index()
        if self._held or not self.may_leave(index):
            self._held.append((index, effect))
        else:
            effect()

    def release(self) -> None:
        """Let go of what may leave, after more was replicated or the lease renewed."""
        held = self._held
        while held and self.may_leave(held[0][0]):
            held.popleft()[1]()

    def close(self) -> None:
        """End the leadership: what was held back never happened."""
        self._held.clear()

    def may_leave(self, index: int) -> bool:
        """Return whether the records up to `index` are committed, and this is certainly the leader."""
        return index <= self._standing.replicated_index() and self._standing.holds_lease()


class LeadershipPorts:
    """The ports of a group's leader, or of a member that stands by to become it: implements `Ports` and most of them.

    `route` reaches a group or a client. Timers ring through `enter`, the node's queue, as long as `is_open`.
    """

    def __init__(
        self,
        ports: Ports,
        group: NodeId,
        standing: Standing,
        route: Callable[[NodeId, Any], None],
        enter: Callable[[Callable[[], None]], None],
        outbox: type[Outbox] = Outbox,
    ) -> None:
        self.node_id = group
        self.clock = ports.clock
        self.storage = ports.storage
        self.random = ports.random
        self.outbox = outbox(standing)
        self.is_open = True
        self._trace = ports.trace
        self._timers = ports.timers
        self._standing = standing
        self._route = route
        self._enter = enter
        self.sometimes = ports.trace.sometimes
        self.always = ports.trace.always

    @property
    def network(self) -> LeadershipPorts:
        return self

    @property
    def timers(self) -> LeadershipPorts:
        return self

    @property
    def trace(self) -> LeadershipPorts:
        return self

    def close(self) -> None:
        """End the leadership."""
        self.is_open = False
        if self.outbox:
            self.sometimes("deposed-leader-held-answers-back")
        self.outbox.close()

    def send(self, to: NodeId, message: msgspec.Struct) -> None:
        """Send `message` after all records so far are replicated."""
        self.outbox.add(message, lambda: self._route(to, message))

    send_ahead = send

    def emit(self, event: msgspec.Struct) -> None:
        """Report `event` in order with the messages, so that no report tells of a step that never happened."""
        told = LeadershipEvent(self.node_id, self._standing.generation, type(event).__name__, event)
        self.outbox.add(event, lambda: self._trace.emit(told))

    def after(self, delay_us: int, callback: Callable[[], None]) -> Timer:
        return self._timers.after(delay_us, lambda: self._enter(lambda: self._ring(callback)))

    def every(self, interval_us: int, callback: Callable[[], None]) -> Timer:
        """Ring at intervals until the leadership is over."""
        timer = self._timers.every(interval_us, lambda: self._enter(lambda: self._ring(callback, timer)))
        return timer

    def _ring(self, callback: Callable[[], None], timer: Timer | None = None) -> None:
        if self.is_open:
            callback()
        elif timer is not None:
            timer.cancel()
