"""The options of `quorum-kv`: how many replicas, how many of them must answer, and what tells versions apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.reference.shared.option_values import OptionValues

__all__ = ["OPTIONS", "VERSIONS", "KeyValueSettings", "replicas_of"]

VERSIONS = ("dotted", "server-id", "client-id", "last-write-wins")
"""Dots, a counter per node, a counter per client; or, losing updates by design, the wall clock."""

OPTIONS: dict[str, OptionDescription] = {
    "versions": OptionDescription(
        default="dotted", choices=VERSIONS, summary="what tells versions apart; `last-write-wins` loses updates"
    ),
    "coordinator": OptionDescription(
        default="any",
        choices=("any", "primary"),
        summary="which replica takes a write first: the client's own (any), or the first of the key (primary)",
    ),
    "read_repair": OptionDescription(
        default="on", choices=("on", "off"), summary="a read sends what it found to replicas that lack it (on), or not"
    ),
    "conflicts": OptionDescription(
        default="show",
        choices=("show", "union", "largest"),
        summary="what clients make of siblings: a list of them (show); of sets, the union, or only the largest, which"
        " loses updates",
    ),
    "replicas": OptionDescription(default="3", summary="on how many nodes each key is (N)"),
    "write_quorum": OptionDescription(default="2", summary="replicas that must have a write before it counts (W)"),
    "read_quorum": OptionDescription(default="2", summary="replicas that must answer a read (R)"),
    "expiration_ms": OptionDescription(default="200", summary="after how long a replica that is silent counts as lost"),
    "request_timeout_ms": OptionDescription(default="200", summary="after how long a client asks another replica"),
    "client_timeout_ms": OptionDescription(default="1000", summary="after how long a client gives up: outcome unknown"),
}
"""Every option with its default; N, W and R are Dynamo's usual figures."""


class KeyValueSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds."""

    versions: str
    coordinator: str
    read_repair: bool
    conflicts: str
    replicas: int
    write_quorum: int
    read_quorum: int
    expiration_us: int
    request_timeout_us: int
    client_timeout_us: int

    @property
    def resolves(self) -> bool:
        """Does the application make one value of several?"""
        return self.conflicts != "show"

    @property
    def resolver(self) -> Callable[[Sequence[Any]], list[Any]]:
        """What clients make of the siblings they read."""
        return _RESOLVERS[self.conflicts]

    @classmethod
    def read(cls, options: Mapping[str, str], nodes: int) -> KeyValueSettings:
        """The settings of `options` for a cluster of `nodes`. Raises UsageError."""
        values = OptionValues("quorum-kv", OPTIONS, options)
        settings = cls(
            versions=values.choice("versions"),
            coordinator=values.choice("coordinator"),
            read_repair=values.choice("read_repair") == "on",
            conflicts=values.choice("conflicts"),
            replicas=values.number("replicas"),
            write_quorum=values.number("write_quorum"),
            read_quorum=values.number("read_quorum"),
            expiration_us=values.microseconds("expiration_ms"),
            request_timeout_us=values.microseconds("request_timeout_ms"),
            client_timeout_us=values.microseconds("client_timeout_ms"),
        )
        _refuse_more("replicas", settings.replicas, nodes, "nodes")
        _refuse_more("write_quorum", settings.write_quorum, settings.replicas, "replicas")
        _refuse_more("read_quorum", settings.read_quorum, settings.replicas, "replicas")
        return settings


def _shown(siblings: Sequence[Any]) -> list[Any]:
    """All of them, as a list."""
    return list(siblings)


def _union(siblings: Sequence[Sequence[Any]]) -> list[Any]:
    """The elements of all sets: what a shopping cart wants, since nothing is ever removed from it."""
    return sorted({element for sibling in siblings for element in sibling})


def _largest(siblings: Sequence[Sequence[Any]]) -> list[Any]:
    """The set with the most elements; what only the others have is lost."""
    return max(map(list, siblings), key=lambda sibling: (len(sibling), sibling), default=[])


_RESOLVERS: dict[str, Callable[[Sequence[Any]], list[Any]]] = {"show": _shown, "union": _union, "largest": _largest}


def _refuse_more(name: str, value: int, limit: int, of: str) -> None:
    if value > limit:
        raise UsageError(f"{name} is {value}, and there are only {limit} {of}.", f"Set it to {limit} at most.")


def replicas_of(key: str, members: tuple[NodeId, ...], count: int) -> tuple[NodeId, ...]:
    """The replicas of `key`, its primary first: the same everywhere, and different keys start elsewhere."""
    first = crc32(key.encode()) % len(members)
    return tuple(members[(first + step) % len(members)] for step in range(count))
