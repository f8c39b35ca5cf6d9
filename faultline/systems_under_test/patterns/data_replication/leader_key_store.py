"""Leader key: a linearizable store lends the leadership to the first creator of its key, for as long as it refreshes.

*Problem.* Thousands of servers cannot hold an election among themselves: each would have to know and ask all others.

*Idea.* (ZooKeeper's ephemeral nodes and etcd's leases are used in this way.) A store outside holds one key. Creating it
is a compare-and-swap: it succeeds when the key does not exist, and so for one server only. The key names the leader and
expires when the leader does not refresh it within its time to live. Servers that watch the key are told when it is
deleted. Each creation and each deletion gives the key a new generation, higher than all before it: the generation of
the leadership, and the token by which others recognise a leader whose key has expired.

Two faults need care. A server may repeat a creation because the answer got lost: the owner is told again that it
created the key, unless the generation that it knows shows that it was told before. And a store that slept does not
expire a key while refreshes still wait in its own queue (HB-R12).

*Invariants.* GEN-I5 each creation has a higher generation than all before it, restarts of the store included. The key
has one owner at a time. A key is gone from its deletion on, restarts included.

*Tolerates.* Requests that are lost, repeated or late: each names its generation or number, and changes nothing when
that has passed. A restart of the store: key and generation are on disk before any server hears of them, and the time to
live begins anew. Watches are forgotten in a restart; a watcher must not rely on a notification.

*Does not tolerate.* The loss of the store: no server can become leader, and a leader that cannot refresh steps down.
This store is one server, linearizable because it takes one request at a time and durable because it writes before it
answers; a Consistent Core makes it available too.

*Workloads.* `register` with `election=external-store`.

*Checkers.* Invariants LDR-I1, GEN-I1 and GEN-I5 of the servers that use it; linearizability.

*Planted bugs.* Those of `external_store_election`.

Sources: Patterns of Distributed Systems ch. 6 (election with an external linearizable store) and 26; Hunt et al.,
"ZooKeeper: wait-free coordination" (2010) 2.4; Burrows, "The Chubby lock service" (2006) 2.4, for sequencers.
"""

from __future__ import annotations

import msgspec

from faultline.harness.world.ports import NodeId, Ports, Timer
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.heartbeat import (
    PauseAwareFailureDetector,
    TimeoutBasedFailureDetector,
)

__all__ = [
    "CreateLeaderKey",
    "DeleteLeaderKey",
    "LeaderKeyCreated",
    "LeaderKeyDeleted",
    "LeaderKeyRead",
    "LeaderKeyRefreshed",
    "LeaderKeyStore",
    "LeaderKeyWatched",
    "ReadLeaderKey",
    "RefreshLeaderKey",
    "WatchLeaderKey",
]


class WatchLeaderKey(msgspec.Struct, frozen=True, tag="watch-leader-key"):
    """The request to be told when the key is deleted."""

    correlation_id: int


class LeaderKeyWatched(msgspec.Struct, frozen=True, tag="leader-key-watched"):
    """The answer: the sender will be told."""

    correlation_id: int


class CreateLeaderKey(msgspec.Struct, frozen=True, tag="create-leader-key"):
    """The request to become the leader if there is none; `generation` is the highest that the sender knows."""

    correlation_id: int
    generation: int


class LeaderKeyCreated(msgspec.Struct, frozen=True, tag="leader-key-created"):
    """The answer: whether the sender owns the key now, and the generation of the key."""

    correlation_id: int
    created: bool
    generation: int


class ReadLeaderKey(msgspec.Struct, frozen=True, tag="read-leader-key"):
    """The question which server leads."""

    correlation_id: int


class LeaderKeyRead(msgspec.Struct, frozen=True, tag="leader-key-read"):
    """The answer: the owner of the key, None when there is no key."""

    correlation_id: int
    leader_id: str | None
    generation: int


class RefreshLeaderKey(msgspec.Struct, frozen=True, tag="refresh-leader-key"):
    """The refresh of a server that leads `generation`; `sent_us` is its own clock, and comes back."""

    generation: int
    sent_us: int


class LeaderKeyRefreshed(msgspec.Struct, frozen=True, tag="leader-key-refreshed"):
    """The answer: whether the key of that generation still existed, and lives on."""

    generation: int
    sent_us: int
    held: bool


class DeleteLeaderKey(msgspec.Struct, frozen=True, tag="delete-leader-key"):
    """The return of the leadership of `generation`."""

    generation: int


class LeaderKeyDeleted(msgspec.Struct, frozen=True, tag="leader-key-deleted"):
    """The notification of all watchers that the key of `generation` is gone."""

    generation: int


class LeaderKeyStore:
    """The store: one key, its owner and generation, and its watchers.

    The pair (generation, owner) is kept in a `GenerationClock` of its own: to create the key is to vote for its owner
    in the next generation, to delete it is to move to the next generation without a vote.
    """

    def __init__(self, ports: Ports, ttl_us: int) -> None:
        self._ports = ports
        self._key = GenerationClock(ports.storage, "leader-key")
        self._watchers: dict[NodeId, None] = {}
        self._ttl_us = ttl_us
        self._timer: Timer | None = None
        self._expiry = PauseAwareFailureDetector(TimeoutBasedFailureDetector(ports.clock, ttl_us), ports.clock, ttl_us)

    @property
    def owner(self) -> str | None:
        """The server that holds the key, if any."""
        return self._key.voted_for

    @property
    def generation(self) -> int:
        """The generation of the key, or of its last deletion."""
        return self._key.generation

    def start(self) -> None:
        """Read the key; an owner gets its whole time to live anew."""
        self._key.recover()
        if self.owner is not None:
            self._watch_expiry()

    def handle_watch(self, source: NodeId, request: WatchLeaderKey) -> None:
        """Remember the watcher."""
        self._watchers[source] = None
        self._ports.network.send(source, LeaderKeyWatched(request.correlation_id))

    def handle_create(self, source: NodeId, request: CreateLeaderKey) -> None:
        """Create the key if there is none: compare-and-swap."""
        created = self.owner is None
        if created:
            # Above the generations of the store and of the servers, which may have seen higher ones before the store
            # was set up.
            self._key.vote(1 + max(self.generation, request.generation), source)
            self._watch_expiry()
        elif self.owner == source and request.generation < self.generation:
            # The answer was lost: an owner that got it would know this generation, for it promises it to itself.
            created = True
        answer = LeaderKeyCreated(request.correlation_id, created, self.generation)
        self._ports.network.send(source, answer)

    def handle_read(self, source: NodeId, request: ReadLeaderKey) -> None:
        """Answer with the owner of the key and its generation."""
        self._ports.network.send(source, LeaderKeyRead(request.correlation_id, self.owner, self.generation))

    def handle_refresh(self, source: NodeId, request: RefreshLeaderKey) -> None:
        """Let the key live on, if it is still the one that the sender created."""
        held = self._is_held_by(source, request.generation)
        if held:
            self._expiry.heartbeat_received()
        self._ports.network.send(source, LeaderKeyRefreshed(request.generation, request.sent_us, held))

    def handle_delete(self, source: NodeId, request: DeleteLeaderKey) -> None:
        """Delete the key, if it is still the one that the sender created."""
        if self._is_held_by(source, request.generation):
            self._delete()

    def check_expiry(self) -> None:
        """Delete the key when it was not refreshed for its time to live; else check again when that may be the case."""
        if self.owner is None:
            return
        remaining_us = self._expiry.check()
        if remaining_us:
            self._timer = self._ports.timers.after(remaining_us, self.check_expiry)
        else:
            self._ports.trace.sometimes("leader-key-expired")
            self._delete()

    def _is_held_by(self, server: NodeId, generation: int) -> bool:
        return (self.generation, self.owner) == (generation, server)

    def _watch_expiry(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._ports.timers.after(self._expiry.restart(self._ttl_us), self.check_expiry)

    def _delete(self) -> None:
        deleted = self.generation
        self._key.adopt(deleted + 1)
        for watcher in self._watchers:
            self._ports.network.send(watcher, LeaderKeyDeleted(deleted))
