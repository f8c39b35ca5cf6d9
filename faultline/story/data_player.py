"""The player of stories about a core and its data cluster, on `coordinated-kv`: members, controller and partitions."""

from __future__ import annotations

from typing import Any

from faultline.harness.outcome import Outcome
from faultline.story.library_cluster import LibraryCluster
from faultline.story.story_player import PLACES, StockPlayer
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_of
from faultline.systems_under_test.reference.coordinated_kv.options import CoordinatedSettings
from faultline.systems_under_test.reference.coordinated_kv.system import CoordinatedKv
from faultline.systems_under_test.reference.leases_and_watches.messages import WatchBatch
from faultline.systems_under_test.reference.leases_and_watches.trace_events import LeaseEnded, LeaseGranted
from faultline.testing.hand_cranked import HandCrankedCluster

__all__ = ["DataPlayer"]


class _DataCluster(LibraryCluster):
    """Three servers of the core, and data nodes that were told by it what happened."""

    system_type = CoordinatedKv

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.told: list[tuple[str, str]] = []
        super().__init__(*arguments, **options)

    @property
    def data_nodes(self) -> tuple[str, ...]:
        return CoordinatedSettings.for_members(self.options, self.members).data_members

    def hand(self, source: str, target: str, message: Any) -> None:
        if isinstance(message, WatchBatch) and target in self.nodes:
            self.told += [(target, event.key) for event in message.events if event.is_deleted]
        super().hand(source, target, message)


class DataPlayer(StockPlayer):
    """One scene being played."""

    cluster_type = _DataCluster

    def begin(self, cluster: HandCrankedCluster) -> None:
        super().begin(cluster)
        self._begun: dict[str, list[Outcome]] = {}

    def event_words(self, node: str, event: Any, *, in_brief: bool) -> str | None:
        if isinstance(event, LeaseGranted) and event.leading:
            return f"{node} grants the lease {event.name}"
        if isinstance(event, LeaseEnded) and self.cluster.leads(node):
            return f"{node} ends the lease {event.name}, {event.reason}"
        return None

    def do_elect(self, words: list[str]) -> None:
        """elect NODE

        Make NODE the leader of the core.
        """
        (name,) = self.exactly(1, words, "elect")
        self.quietly(lambda: self.cluster.elect(self.running(name)))

    def do_wait(self, words: list[str]) -> None:
        """wait MILLISECONDS

        Let time pass for all alike; the core and the data nodes talk. Print who was told that a key is gone.
        """
        self.cluster.told.clear()
        super().do_wait(words)
        self.tell_events()
        self.lines += [f"{node} is told: {key} is deleted" for node, key in self.cluster.told]

    def do_write(self, words: list[str]) -> None:
        """write CLIENT LOCATION COUNT

        Let the client library begin to write the count of one location, and deliver; print whether it was acknowledged.
        """
        client, place, count = self.exactly(3, words, "write")
        self._begun[client] = self.cluster.begin("write", place, int(count), client)
        self.cluster.deliver()
        self.do_answers([client])

    def do_answers(self, words: list[str]) -> None:
        """answers CLIENT

        Print whether the client's latest write was acknowledged.
        """
        (client,) = self.exactly(1, words, "answers")
        outcomes = self._begun.get(client)
        self.lines.append(f"{client}: {outcomes[0].kind if outcomes else 'no answer yet'}")

    def do_show(self, words: list[str]) -> None:
        """show table|places|controller|messages|breaches [NODE …]

        Print the nodes of each partition, the partition of each location, the controller as data nodes know it, or what
        every player shows.
        """
        alive = [name for name in self.cluster.data_nodes if name in self.cluster.nodes]
        if words == ["table"]:
            entries = max(self.cluster.look(name, _table) for name in alive)[1]
            self.lines += [f"partition {number}: {entry}" for number, entry in enumerate(entries)] or ["no table yet"]
        elif words == ["places"]:
            count = int(self.cluster.options["partitions"])
            self.lines.append(", ".join(f"{place} in partition {partition_of(place, count)}" for place in PLACES))
        elif words == ["controller"]:
            self.lines += [f"{name}: {self.cluster.look(name, _controller)}" for name in alive]
        else:
            super().do_show(words)


def _table(node: Any) -> tuple[int, list[str]]:
    entries = [
        f"led by {entry.leader or 'no node'} in generation {entry.generation}, in sync {', '.join(entry.in_sync)}"
        for entry in node.table.entries
    ]
    return node.table.version, entries


def _controller(node: Any) -> str:
    return f"the controller is {node.controller.elected or 'not known'}"
