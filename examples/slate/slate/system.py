"""Slate as Faultline sees it: its promise, its options, its planted bug, and the makers of nodes and clients."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from faultline import Invariant, NodeId, OptionDescription, PlantedBug, Ports, UsageError
from slate.client import FUNCTIONS, SlateClient
from slate.messages import Answer, Copy, Request
from slate.node import SlateNode

__all__ = ["Slate"]

NO_FLUSH = PlantedBug(
    name="no-flush",
    pattern="write-ahead-log",
    id="SLATE-M1",
    summary="the primary answers before its log is on disk",
    shows_as="an acknowledged write is gone after a power cut",
    campaign=str(Path(__file__).parent / "power-cuts.toml"),
    caught_by=("linearizability",),
    worlds=("simulated",),
    why_not="a killed process loses no write: the operating system keeps its writes, and only a power cut loses them",
)


class Slate:
    """Registers on one primary with a log on disk: implements `faultline.harness.system.NodeSystem`."""

    name = "slate"
    promise = "every key is a linearizable register, as long as reads go to the primary"
    summary = "one primary with a log on disk, and copies that are updated later"
    patterns = ("write-ahead-log", "leader-and-followers")
    functions = FUNCTIONS
    options: Mapping[str, OptionDescription] = {
        "read_from": OptionDescription(
            default="primary",
            choices=("primary", "nearest"),
            summary="the node that answers reads; the nearest may lack the latest write (expected: stale reads)",
        ),
        "timeout_ms": OptionDescription(default="400", summary="the time that a client waits for an answer"),
    }
    planted_bugs: Mapping[str, PlantedBug] = {NO_FLUSH.name: NO_FLUSH}
    messages: tuple[type[msgspec.Struct], ...] = (Request, Answer, Copy)

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> SlateNode:
        """Return a node with empty memory; it restores its state from its storage."""
        return SlateNode(ports, members, flushes=NO_FLUSH.name not in planted_bugs)

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> SlateClient:
        """Return a client; `node` is the nearest to it. Raise UsageError for an invalid timeout."""
        if int(options["timeout_ms"]) < 1:
            raise UsageError("Option timeout_ms must be at least 1.", "The default is 400.")
        reads_from = node if options["read_from"] == "nearest" else members[0]
        return SlateClient(ports, members[0], reads_from, 1_000 * int(options["timeout_ms"]))

    def invariants(self) -> list[Invariant]:
        """Return no invariants: the answers to clients show enough here."""
        return []
