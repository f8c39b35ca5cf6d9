"""The ports of a node: everything it may touch, and nothing else.

A node is a plain object that receives events and acts through these ports. It has no sockets, files, clocks, threads
or random numbers of its own, so one class runs in the simulated world and as a real process.

**The outbox.** Ports record effects in order. A message sent after `Storage.fsync` leaves only once that fsync is
done; if the node crashes first it never leaves. So "write, fsync, reply" in a handler means what it says, a slow disk
delays replies without blocking the handler, and a crash can fall between any two effects. Appends that queue up while
an fsync is in flight share the next one (group commit).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NewType, Protocol

import msgspec

__all__ = [
    "READY",
    "Clock",
    "Files",
    "Link",
    "Network",
    "Node",
    "NodeId",
    "NodeStatus",
    "Ports",
    "RandomSource",
    "Storage",
    "Timer",
    "Timers",
    "Trace",
    "UnexpectedMessage",
]

NodeId = NewType("NodeId", str)
"""The name of a node or client on the network: `athens`, `client-3`."""

Link = tuple[NodeId, NodeId]
"""A directed link: messages from the first to the second."""


class Clock(Protocol):
    """A node's two clocks. Faults may step the wall clock and let both drift; the monotonic one never goes back."""

    def monotonic_us(self) -> int:
        """Return microseconds since an arbitrary origin, never decreasing while the process lives."""

    def wall_us(self) -> int:
        """Return microseconds since the epoch as this node believes it: may be offset, drift and step both ways."""


class Network(Protocol):
    """One single-socket channel per peer and direction: in order while the channel lives, but messages may be lost."""

    def send(self, to: NodeId, message: msgspec.Struct) -> None:
        """Send `message` to `to` after every earlier effect of this node is durable. Never blocks, never raises."""

    def send_ahead(self, to: NodeId, message: msgspec.Struct) -> None:
        """Send at once, ahead of writes still being flushed: only for messages that promise nothing about them."""


class Timer(Protocol):
    """A timer that has been set."""

    def cancel(self) -> None:
        """Make sure the callback is not called any more; harmless when it was called already."""


class Timers(Protocol):
    """Timers run by this node's monotonic clock; a paused node's timers fire when it resumes, a crashed one's never."""

    def after(self, delay_us: int, callback: Callable[[], None]) -> Timer:
        """Call `callback` once, `delay_us` from now."""

    def every(self, interval_us: int, callback: Callable[[], None]) -> Timer:
        """Call `callback` again and again, `interval_us` after the end of each call (fixed delay)."""


class Files(Protocol):
    """Named files of one node, in one folder."""

    def files(self) -> list[str]:
        """Return the names of all files, sorted."""

    def read(self, file: str) -> bytes:
        """Return the whole content as this process sees it; empty when there is no such file."""

    def append(self, file: str, data: bytes) -> None:
        """Add `data` to the end of `file`, which is created when it does not exist."""

    def write(self, file: str, data: bytes) -> None:
        """Replace the content of `file`. Not atomic: write another name, `fsync` it and `rename`."""

    def truncate(self, file: str, size: int) -> None:
        """Cut `file` to `size` bytes."""

    def rename(self, old: str, new: str) -> None:
        """Rename `old` atomically, replacing `new`."""

    def delete(self, file: str) -> None:
        """Remove `file` from the folder."""


class Storage(Files, Protocol):
    """The files as a node uses them. Data that are not synced can be lost in a crash.

    A journaled disk loses a suffix at a time, torn anywhere, and syncs names with each file. A disk behind a page cache
    keeps any part, and syncs names only with the folder: a creation, a rename and a deletion are durable after the next
    `fsync_folder`. Code that is right on both syncs the folder after each.

    In the simulated world a disk under a fault raises OSError: a write may then have been carried out in part, and what
    an fsync failed to make durable no later one need do. A process that lets the error pass ends.
    """

    def fsync(self, file: str) -> None:
        """Make the bytes of `file` durable before anything sent, and any name changed, from now on."""

    def fsync_folder(self) -> None:
        """Make every creation, rename and deletion so far durable before anything sent from now on.

        It costs nothing when all of them are durable, or will be with an `fsync` that was asked for.
        """


class RandomSource(Protocol):
    """Randomness as weather: a pure function of the seed, this node, a named stream and the time of asking."""

    def uniform_us(self, stream: str, low_us: int, high_us: int) -> int:
        """Return an integer in [low_us, high_us)."""


class Trace(Protocol):
    """The reports of a node to the harness: typed events for invariants and diagrams, and marks."""

    def emit(self, event: msgspec.Struct) -> None:
        """Report a typed event; invariants of the system are checked on these."""

    def sometimes(self, mark: str) -> None:
        """Mark a rare situation that a campaign must have reached to prove anything."""

    def always(self, mark: str, condition: bool, detail: str = "") -> None:
        """Assert `condition`; a breach becomes a finding of the run, it does not stop the node."""


class Ports(Protocol):
    """All the ports of one node."""

    @property
    def node_id(self) -> NodeId:
        """The node's own name."""

    @property
    def clock(self) -> Clock:
        """Monotonic and wall time."""

    @property
    def network(self) -> Network:
        """Messages to other nodes and clients."""

    @property
    def timers(self) -> Timers:
        """Calls at a later time."""

    @property
    def storage(self) -> Storage:
        """Files that can outlive a crash."""

    @property
    def random(self) -> RandomSource:
        """The source of seeded randomness."""

    @property
    def trace(self) -> Trace:
        """The reports of the node to the harness."""


READY = "ready"
"""The role of a node that serves clients in a system without a leader."""


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a node to the harness: the leader, as this node believes; used to aim faults at roles.

    `role` is `leader` for a node that leads, and `READY` where no node ever does: a real run begins once one node
    leads, or all are ready.
    """

    role: str
    generation: int = 0
    leader: str | None = None
    detail: dict[str, Any] = {}


class UnexpectedMessage(Exception):
    """A message of a kind, or about something, that its receiver is never sent; to be raised before it changes.

    In the real worlds the connection that brought it ends, and the node goes on: what comes through a port must not end
    a server. Among the simulated nodes there are no strangers, so there it counts as any other exception of a node.
    """

    def __init__(self, message: Any) -> None:
        super().__init__(f"{type(message).__name__} is no message for this node")


class Node(Protocol):
    """One node of a system: a plain object, built anew from its storage at every start."""

    def start(self) -> None:
        """Recover from storage and set the first timers."""

    def receive(self, source: NodeId, message: Any) -> None:
        """Handle one message from `source` (a node or a client). Raises UnexpectedMessage for what it is never sent."""

    def status(self) -> NodeStatus:
        """Return a read-only view of the node's role."""
