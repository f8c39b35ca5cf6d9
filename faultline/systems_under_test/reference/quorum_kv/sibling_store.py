"""The siblings one replica of `quorum-kv` keeps, in a write-ahead log, and the versions it gives to new values.

The log holds the siblings of a key after each change, so the last entry of a key is its state, and all entries together
say how many updates this node has numbered: a counter that is durable before any version carries it (VVC-R24).

The kinds of versions differ in a `Versioning`: it gives a new value its version, and chooses the values that stay when
the siblings of two replicas are put together. Last-write-wins is one of them; it keeps a single value, by wall clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_replication.version_vector import (
    DottedVersion,
    ObsoleteVersion,
    Order,
    Version,
    VersionedValue,
    VersionVector,
    last_write_wins,
    merge,
)
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog

__all__ = [
    "VERSIONINGS",
    "ClientIds",
    "Dotted",
    "LastWriteWins",
    "ServerIds",
    "SiblingStore",
    "Siblings",
    "Update",
    "Versioning",
]

Siblings = tuple[VersionedValue, ...]


class Update(msgspec.Struct, frozen=True):
    """One write as a node takes it: the client's context, its name, and the number of its write of the key."""

    context: VersionVector
    client: str
    number: int


class Versioning(Protocol):
    """One kind of version."""

    def version(self, node: str, counter: int, update: Update) -> Version:
        """Return the version of a new value at `node`, which has numbered `counter` updates of the key so far.

        Raise `ObsoleteVersion` when the client has to read again first.
        """

    def merged(self, ours: Siblings, theirs: Siblings) -> Siblings:
        """Return the siblings that stay when `ours` and `theirs` come together."""


class _Vectors:
    """Siblings that are kept until another value descends them."""

    order: Order = staticmethod(lambda one, other: bool(one.descends(other)))

    def merged(self, ours: Siblings, theirs: Siblings) -> Siblings:
        """Return all values that no other one descends; `ours` came out of an earlier merge."""
        # Replicas agree most of the time, and comparing each pair of siblings again is half of a run.
        if all(value in ours for value in theirs):
            return ours
        return merge(ours, theirs, self.order)


class ServerIds(_Vectors):
    """A counter per node; two writes at one node with one context cannot be told apart, so the second is refused."""

    def version(self, node: str, counter: int, update: Update) -> Version:
        """Return the client's context with the node's next number. Raise `ObsoleteVersion`."""
        if self._is_obsolete(node, counter, update):
            raise ObsoleteVersion(f"{node} has taken update {counter}, which the client does not know")
        return update.context.knowing(node, counter + 1)

    def _is_obsolete(self, node: str, counter: int, update: Update) -> bool:
        return update.context.counter(node) < counter


class ClientIds(_Vectors):
    """A counter per client: nothing is refused, and vectors grow with the number of clients."""

    def version(self, node: str, counter: int, update: Update) -> Version:
        """Return the client's context with the client's next number."""
        return update.context.knowing(update.client, update.number)


class Dotted(_Vectors):
    """A dot of the node for each value, beside the context of its writer."""

    def version(self, node: str, counter: int, update: Update) -> Version:
        """Return the node's next dot, with the client's context as its past."""
        return DottedVersion(node, max(counter, update.context.counter(node)) + 1, update.context)


class LastWriteWins(Dotted):
    """The value with the latest wall clock stays, all others go: a clock that is ahead hides later writes."""

    def merged(self, ours: Siblings, theirs: Siblings) -> Siblings:
        """Return the one value that wins."""
        both = (*ours, *theirs)
        return (last_write_wins(both),) if both else ()


VERSIONINGS: dict[str, type[Versioning]] = {
    "dotted": Dotted,
    "server-id": ServerIds,
    "client-id": ClientIds,
    "last-write-wins": LastWriteWins,
}
"""The kinds of versions, as the option `versions` names them."""


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    key: str
    siblings: Siblings


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Entry)


class SiblingStore:
    """The siblings of each key at one node."""

    def __init__(self, ports: Ports, versioning: Versioning) -> None:
        self._node_id = ports.node_id
        self._versioning = versioning
        self._log = WriteAheadLog(ports.storage)
        self._siblings: dict[str, Siblings] = {}
        self._counters: dict[str, int] = {}

    def recover(self) -> None:
        """Read the log: siblings as after its last entries, and counters at or above every version in it."""
        self._log.recover()
        for entry in self._log.entries(1, self._log.last_index):
            stored = _DECODER.decode(entry.data)
            self._siblings[stored.key] = stored.siblings
            self._count(stored.key, stored.siblings)

    def get(self, key: str) -> Siblings:
        """Return the siblings of `key`, none when it was never written."""
        return self._siblings.get(key, ())

    def counters(self) -> dict[str, int]:
        """Return for each key the updates this node has numbered: as durable as the values that carry the numbers."""
        return dict(self._counters)

    def put(self, key: str, value: object, update: Update, time_us: int) -> None:
        """Take a client's write as the first replica. Raise `ObsoleteVersion`."""
        version = self._versioning.version(self._node_id, self._counters.get(key, 0), update)
        self.merge(key, (VersionedValue(value, version, time_us),))

    def merge(self, key: str, incoming: Siblings) -> bool:
        """Take the siblings of another replica, durable before any message from now on; return whether one was new."""
        merged = self._versioning.merged(self.get(key), incoming)
        # A version that loses at once still used its number up.
        self._count(key, incoming)
        if merged == self.get(key):
            return False
        self._log.append_data(_ENCODER.encode(_Entry(key, merged)))
        self._log.flush()
        self._siblings[key] = merged
        return True

    def _count(self, key: str, siblings: Iterable[VersionedValue]) -> None:
        numbered = self._counters.get(key, 0)
        for sibling in siblings:
            for writer, counter in sibling.version.known():
                if counter > numbered and writer == self._node_id:
                    numbered = counter
        self._counters[key] = numbered
