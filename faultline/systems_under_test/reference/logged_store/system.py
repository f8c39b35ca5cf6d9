"""The logged store: servers without replication, each with its keys behind a write-ahead log.

*Problem.* A store that keeps its data in memory loses them with the process; one that writes them to a file at each
change can be caught in the middle of it.

*Idea.* Every change is a command that stands in a log on the disk before the memory changes, and before it is answered.
A restart replays the log. Now and then all values, each with its versions, are stored in a file as of one entry, so
that the replay begins there and the log before it can go. Nothing is replicated: each key belongs to one server, and
the disk of that server is all that remembers it.

*Invariants.* WAL-I2 entries are applied without gaps. WAL-I3 a restart has the state that it had. WAL-I6 a replay
writes nothing. Clients see a linearizable register or counter per key.

*Tolerates.* Crashes at any time and as often as one likes; requests that come twice, late or from before a crash; disks
that fill up, fail or lose their cache.

*Does not tolerate.* The loss of a disk. While a server is away, so are its keys. With `flush_policy=interval` or
`never`, the end of a process loses what was acknowledged.

*Workloads.* `read-write`, `counter`; with `reads=at-version` `read-your-writes` and `follower-reads`.

*Planted bugs.* See `planted_bugs`.

Sources: Patterns of Distributed Systems ch. 3, 5, 13 and 17.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.promises import Asked
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.logged_store.client import FUNCTIONS, LoggedStoreClient
from faultline.systems_under_test.reference.logged_store.features import FEATURES
from faultline.systems_under_test.reference.logged_store.invariants import logged_store_invariants
from faultline.systems_under_test.reference.logged_store.messages import MESSAGES
from faultline.systems_under_test.reference.logged_store.node import LoggedStoreNode
from faultline.systems_under_test.reference.logged_store.options import OPTIONS, LoggedStoreSettings
from faultline.systems_under_test.reference.logged_store.planted_bugs import BUGS

__all__ = ["LoggedStoreSystem"]

_OF_SESSIONS = frozenset({"read-your-writes", "follower-reads"})
"""Workloads for which reads at the versions of a session are enough."""


class LoggedStoreSystem:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "logged-store"
    promise = "every key is a linearizable register or counter, as long as the disk of its server lives"
    summary = "servers without replication: a store behind a write-ahead log, with its versions in a file"
    patterns = (
        "write-ahead-log",
        "segmented-log",
        "low-water-mark",
        "singular-update-queue",
        "idempotent-receiver",
        "versioned-value",
    )
    functions = FUNCTIONS
    usual_workload = "read-write"
    usual_nodes = 3
    options: Mapping[str, OptionDescription] = OPTIONS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = MESSAGES

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> LoggedStoreNode:
        """Return a server with empty memory over `ports`. Raise `UsageError` for unusable options or bugs."""
        settings = LoggedStoreSettings.read(options)
        return BUGS.node(LoggedStoreNode, planted_bugs)(ports, settings, BUGS.parts(planted_bugs))

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> LoggedStoreClient:
        """Return a client; it talks to the server of each key."""
        return BUGS.client(LoggedStoreClient, planted_bugs)(ports, members, LoggedStoreSettings.read(options))

    def not_promised(self, asked: Asked) -> str | None:
        """Return in a clause why the claim of the workload need not hold; None when it must."""
        if asked.ends_processes and asked.chose("flush_policy", "interval", "never"):
            return f"with flush_policy={asked.options['flush_policy']} a server that ends loses what it acknowledged"
        if asked.chose("reads", "at-version") and asked.workload not in _OF_SESSIONS:
            return "with reads=at-version a session reads at the version that it has seen, which may be old"
        return None

    def invariants(self) -> list[Invariant]:
        """Return fresh instances of the invariants."""
        return logged_store_invariants()
