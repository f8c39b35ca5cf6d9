"""The options of `quorum-kv`: the replicas of a key, how many of them must answer, and the kind of versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self
from zlib import crc32

from faultline.harness.errors import UsageError
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.reference.shared.settings import (
    Choice,
    Milliseconds,
    Number,
    Settings,
    Switch,
    options_of,
)

__all__ = ["OPTIONS", "VERSIONS", "KeyValueSettings", "replicas_of"]

VERSIONS = ("dotted", "server-id", "client-id", "last-write-wins")
"""Dots, a counter per node, a counter per client; or, losing updates by design, the wall clock."""


class KeyValueSettings(Settings, frozen=True):
    """The options, read and checked; times in microseconds. The defaults of N, W and R are Dynamo's usual figures."""

    system: ClassVar[str] = "quorum-kv"

    versions: Annotated[str, Choice(VERSIONS), "the kind of versions; `last-write-wins` loses updates"]
    coordinator: Annotated[
        str,
        Choice(("any", "primary")),
        "the replica that takes a write first: the client's own (any), or the first of the key (primary)",
    ]
    read_repair: Annotated[bool, Switch(), "a read sends the siblings it found to replicas that lack them (on), or not"]
    conflicts: Annotated[
        str,
        Choice(("show", "union", "largest")),
        "the answer that clients make of siblings: a list of them (show); of sets, the union, or only the largest,"
        " which loses updates",
    ]
    replicas: Annotated[int, Number(3), "the nodes that have each key (N)"]
    write_quorum: Annotated[int, Number(2), "replicas that must have a write before it counts (W)"]
    read_quorum: Annotated[int, Number(2), "replicas that must answer a read (R)"]
    expiration_us: Annotated[int, Milliseconds(200), "the silence after which a replica counts as lost"]
    request_timeout_us: Annotated[int, Milliseconds(200), "the time after which a client asks another replica"]
    client_timeout_us: Annotated[int, Milliseconds(1000), "the time after which a client gives up: outcome unknown"]

    @classmethod
    def of_cluster(cls, options: Mapping[str, str], nodes: int) -> Self:
        """Return the settings of `options` for a cluster of `nodes`. Raise `UsageError`."""
        settings = cls.read(options)
        _refuse_more("replicas", settings.replicas, nodes, "nodes")
        return settings

    def check(self) -> None:
        """Raise `UsageError` for a quorum of more replicas than a key has."""
        _refuse_more("write_quorum", self.write_quorum, self.replicas, "replicas")
        _refuse_more("read_quorum", self.read_quorum, self.replicas, "replicas")

    @property
    def resolves(self) -> bool:
        """True if the application makes one value of several."""
        return self.conflicts != "show"

    @property
    def resolver(self) -> Callable[[Sequence[Any]], list[Any]]:
        """The function by which clients resolve the siblings they read."""
        return _RESOLVERS[self.conflicts]


OPTIONS = options_of(KeyValueSettings)
"""Every option with its default."""


def _shown(siblings: Sequence[Any]) -> list[Any]:
    """Return all of them, as a list."""
    return list(siblings)


def _union(siblings: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the elements of all sets: right for a shopping cart from which nothing is ever removed."""
    return sorted({element for sibling in siblings for element in sibling})


def _largest(siblings: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the set with the most elements; the elements that only the others have are lost."""
    return max(map(list, siblings), key=lambda sibling: (len(sibling), sibling), default=[])


_RESOLVERS: dict[str, Callable[[Sequence[Any]], list[Any]]] = {"show": _shown, "union": _union, "largest": _largest}


def _refuse_more(name: str, value: int, limit: int, of: str) -> None:
    if value > limit:
        raise UsageError(f"{name} is {value}, and there are only {limit} {of}.", f"Set it to {limit} at most.")


def replicas_of(key: str, members: tuple[NodeId, ...], count: int) -> tuple[NodeId, ...]:
    """Return the replicas of `key`, its primary first: the same at all nodes, and different keys start elsewhere."""
    first = crc32(key.encode()) % len(members)
    return tuple(members[(first + step) % len(members)] for step in range(count))
