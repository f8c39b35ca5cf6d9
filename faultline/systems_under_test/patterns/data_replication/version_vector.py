"""Version vector: a counter per writer, carried by every value, so that concurrent updates are kept and not lost.

*Problem.* Without a leader, two servers may take an update of one key at the same time. A server that later holds both
must know whether one of them was made with knowledge of the other, and so replaces it, or whether both must stay.

*Idea.* Each value carries a vector: for every writer, the number of its updates that the value knows of. One vector
*descends* another when it knows at least as much. A value is dropped only for one that descends it; values of which
neither descends the other are *siblings*, and a reader gets all of them with one *context*, the join of their vectors.
It writes its resolution with that context, and so replaces exactly the values that it has read.

The choice of writers decides what can go wrong, so there are three kinds of version:

| kind | entry of | two clients write at one node with one context | size |
|---|---|---|---|
| server id | the node that takes the write | the second is refused (`ObsoleteVersion`): read again | nodes |
| client id | the client | two siblings | clients, without bound |
| dotted | the node, and each value has a *dot* of its own beside its past | two siblings | nodes |

A dot is one event, (node, n); the vector beside it, the *past*, is the context the client wrote with. Server-id
versions cannot tell a node's third update from its first three, so a node must refuse a client that does not know its
latest; dots can, so no write is refused and siblings do not multiply.

Contexts are vectors: a client that knows (blue, 3) is taken to know (blue, 1) and (blue, 2). That is sound only when
replicas exchange all siblings of a key together, and when a client writes with the context that it has *read*, never
with the version of its own write. Both are rules of the system that uses this module.

*Invariants.* VVC-I1 the siblings of a node are pairwise concurrent. VVC-I2 one version has one value. VVC-I3 an
acknowledged value disappears only if a value written with knowledge of it replaces it. VVC-I5 a value is never replaced
by an older one, from which it descends. VVC-I6 a node's own counter is durable before a version contains it.

*Tolerates.* Values in any order and any number of times (the union of siblings is commutative, associative and
idempotent); any number of writers at once.

*Does not tolerate.* A writer that uses a counter twice: after a crash it must know its last one, and a client needs an
id that was never used before. Clocks decide nothing, except in the variant that lets the last writer win, which loses
updates by design.

*Workloads.* `siblings`.

*Checkers.* `siblings`: no acknowledged write is lost, no replaced value comes back, replicas converge.

*Planted bugs.* In `quorum-kv`: `overwrite-siblings`, `unequal-nodes-are-older`, `every-replica-counts`,
`no-read-repair`, `one-sibling-context`, `obsolete-write-accepted`, `prune-while-walking`, `fails-over-when-obsolete`,
`counter-lost-at-restart`, `clock-decides`.

Deviations from the printed code: `prune` is independent of order (the sample removes from the list it walks through,
VVC-R15); a write is refused as obsolete when it does not know the node's latest update of that key, not only when the
vectors say so (a base from elsewhere would otherwise descend an update it never saw).

Sources: Patterns of Distributed Systems ch. 18; Parker et al., "Detection of Mutual Inconsistency" (1983); Preguiça,
Baquero, Almeida, Fonte and Gonçalves, "Dotted Version Vectors" (2010), "Brief announcement" (PODC 2012); Almeida et
al., "Scalable and Accurate Causality Tracking" (DAIS 2014); Voldemort's and Riak's stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

__all__ = [
    "EMPTY_VECTOR",
    "ConflictError",
    "ConflictResolver",
    "DottedVersion",
    "ObsoleteVersion",
    "Order",
    "Ordering",
    "Version",
    "VersionVector",
    "VersionedValue",
    "compare",
    "context_of",
    "get_one",
    "last_write_wins",
    "merge",
    "prune",
]


class ObsoleteVersion(Exception):
    """The write was made without knowledge of a newer value: read again, then write."""


class ConflictError(Exception):
    """There are several concurrent values where a single one was asked for; `siblings` has them."""

    def __init__(self, siblings: Sequence[VersionedValue]) -> None:
        super().__init__(f"{len(siblings)} concurrent values")
        self.siblings = tuple(siblings)


class Ordering(Enum):
    """The order of two vectors; equal ones are `BEFORE`, so that the same write twice is obsolete (VVC-R4)."""

    BEFORE = "before"
    AFTER = "after"
    CONCURRENT = "concurrent"


class VersionVector(msgspec.Struct, frozen=True, tag="vector"):
    """Counters by writer; an absent writer counts as 0. Vectors never change, and are equal when their counters are."""

    counters: dict[str, int] = {}

    def __hash__(self) -> int:
        raise TypeError("a version vector is compared by `descends`, not put into a set")

    def counter(self, writer: str) -> int:
        """Return the number of updates of `writer` that it knows of."""
        return self.counters.get(writer, 0)

    def increment(self, writer: str) -> VersionVector:
        """Return the vector that knows one update of `writer` more."""
        return self.knowing(writer, self.counter(writer) + 1)

    def knowing(self, writer: str, counter: int) -> VersionVector:
        """Return the vector that knows the first `counter` updates of `writer`, too."""
        counters = self.counters | {writer: max(counter, self.counter(writer))}
        return VersionVector(dict(sorted(counters.items())))

    def join(self, other: VersionVector) -> VersionVector:
        """Return the least vector that knows all that either knows: the maximum of each counter."""
        writers = sorted({*self.counters, *other.counters})
        return VersionVector({writer: max(self.counter(writer), other.counter(writer)) for writer in writers})

    def descends(self, other: VersionVector) -> bool:
        """Return whether it knows everything that `other` knows; a vector descends itself."""
        known = self.counters
        for writer, counter in other.counters.items():  # noqa: SIM110  # `all` is slower, and each pair is compared
            if known.get(writer, 0) < counter:
                return False
        return True

    def known(self) -> Iterable[tuple[str, int]]:
        """Return each writer that a reader of the value knows of, with the number of its updates."""
        return self.counters.items()

    def context(self) -> VersionVector:
        """Return the knowledge of a reader of the value."""
        return self


EMPTY_VECTOR = VersionVector()
"""The context of a client that has read nothing."""


def compare(one: VersionVector, other: VersionVector) -> Ordering:
    """Return the order of `one` to `other`."""
    if other.descends(one):
        return Ordering.BEFORE
    return Ordering.AFTER if one.descends(other) else Ordering.CONCURRENT


class DottedVersion(msgspec.Struct, frozen=True, tag="dotted"):
    """One event, the dot (`node`, `counter`), and the `past` that its writer knew of."""

    node: str
    counter: int
    past: VersionVector = EMPTY_VECTOR

    def descends(self, other: DottedVersion) -> bool:
        """Return whether `other` is the same event, or one that its writer knew of."""
        if self.past.counters.get(other.node, 0) >= other.counter:
            return True
        return self.counter == other.counter and self.node == other.node

    def known(self) -> Iterable[tuple[str, int]]:
        """Return each writer that a reader of the value knows of, with the number of its updates; its own comes last,
        and may come twice."""
        return (*self.past.counters.items(), (self.node, self.counter))

    def context(self) -> VersionVector:
        """Return the knowledge of a reader of the value: its past, and the event itself."""
        return self.past.knowing(self.node, self.counter)


Version = VersionVector | DottedVersion

Order = Callable[[Any, Any], bool]
"""A test whether the first of two versions of one kind descends the second."""


class VersionedValue(msgspec.Struct, frozen=True):
    """A value with its version, and the wall clock of the node that took it, which only last-write-wins uses."""

    value: Any
    version: Version
    time_us: int = 0


def _descends(one: Any, other: Any) -> bool:
    """Return whether `one` descends `other`: the order of versions of one kind."""
    return bool(one.descends(other))


def prune(values: Iterable[VersionedValue], order: Order = _descends) -> tuple[VersionedValue, ...]:
    """Return the values that no other one descends, each version once, in an order that depends on them alone."""
    versions: list[Version] = []
    distinct: list[VersionedValue] = []
    for value in values:
        # The same version from two replicas is one value; as two, each would descend the other, and both would go.
        if value.version not in versions:
            versions.append(value.version)
            distinct.append(value)
    if len(distinct) < 2:
        return tuple(distinct)
    newest = [
        value
        for value in distinct
        if not any(other is not value.version and order(other, value.version) for other in versions)
    ]
    return tuple(sorted(newest, key=_place))


def merge(
    ours: Iterable[VersionedValue], theirs: Iterable[VersionedValue], order: Order = _descends
) -> tuple[VersionedValue, ...]:
    """Return the siblings of two replicas together, without values of which either has a descendant.

    Each side is what an earlier merge returned, where no value descends another. So only pairs across are compared.
    """
    ours = tuple(ours)
    versions = [value.version for value in ours]
    came = [value for value in theirs if value.version not in versions]
    newest = [value for value in came if not any(order(known, value.version) for known in versions)]
    if not newest:
        return ours
    stayed = [value for value in ours if not any(order(new.version, value.version) for new in newest)]
    return tuple(sorted((*stayed, *newest), key=_place))


def context_of(siblings: Iterable[VersionedValue]) -> VersionVector:
    """Return the one context of all `siblings`: a write with it replaces each of them."""
    known: dict[str, int] = {}
    for sibling in siblings:
        for writer, counter in sibling.version.known():
            known[writer] = max(counter, known.get(writer, 0))
    return VersionVector(dict(sorted(known.items())))


ConflictResolver = Callable[[Sequence[VersionedValue]], Any]
"""The application's way to make one value out of siblings."""


def get_one(siblings: Sequence[VersionedValue], resolve: ConflictResolver | None = None) -> Any:
    """Return the only value, or the one that `resolve` makes of several, None when there is no value.

    Raises `ConflictError` for several values without `resolve`.
    """
    if not siblings:
        return None
    if len(siblings) == 1:
        return siblings[0].value
    if resolve is None:
        raise ConflictError(siblings)
    return resolve(siblings)


def last_write_wins(siblings: Sequence[VersionedValue]) -> VersionedValue:
    """Return the sibling with the latest wall clock, ties by version.

    Every replica chooses the same one, but it may be the wrong one.
    """
    return max(siblings, key=lambda sibling: (sibling.time_us, _place(sibling)))


def _place(value: VersionedValue) -> tuple[str, list[tuple[str, int]]]:
    """Return a key to sort by that is the same on every node."""
    version = value.version
    if isinstance(version, DottedVersion):
        return f"{version.node} {version.counter:020}", _items(version.past.counters)
    return "", _items(version.counters)


def _items(counters: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counters.items())
