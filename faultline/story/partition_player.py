"""The player of stories about partitions, on `partitioned-kv`, with the core that assigns them and a client library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from faultline.story.log_words import stock_words
from faultline.story.partition_cluster import PartitionCluster
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_of
from faultline.testing.hand_cranked import HandCrankedCluster
from faultline.testing.transcript_commands import TranscriptPlayer
from faultline.workloads.transfer import OPENING

__all__ = ["PartitionPlayer"]

_PLACES = tuple(map(str.capitalize, OPENING))
_KEYS = 1_000


class PartitionPlayer(TranscriptPlayer):
    """One scene being played."""

    def new_cluster(
        self, size: int | Sequence[str], planted_bugs: tuple[str, ...], options: dict[str, str]
    ) -> HandCrankedCluster:
        options.pop("system", None)
        cluster: PartitionCluster = self.placed(PartitionCluster)(size, planted_bugs, **options)
        return cluster

    def event_words(self, node: str, event: Any, *, in_brief: bool) -> str | None:
        return None

    def do_wait(self, words: list[str]) -> None:
        """wait MILLISECONDS

        Let time pass for all alike; nodes and the core talk.
        """
        (text,) = self.exactly(1, words, "wait")
        self.cluster.wait(int(text))

    def do_stock(self, words: list[str]) -> None:
        """stock CLIENT

        Let the client library write the 183 widgets, each location to its partition.
        """
        (client,) = self.exactly(1, words, "stock")
        for place, count in zip(_PLACES, OPENING.values(), strict=True):
            self.lines.append(f"{client}: {place} {self.cluster.ask('write', place, count, client).kind}")

    def do_count(self, words: list[str]) -> None:
        """count CLIENT

        Let the client library read each location.
        """
        (client,) = self.exactly(1, words, "count")
        counts = {place: self.cluster.ask("read", place, client=client).value for place in _PLACES}
        total = sum(count or 0 for count in counts.values())
        self.lines.append(f"{client}: {stock_words(counts)}; {total} in all")

    def do_reassign(self, words: list[str]) -> None:
        """reassign

        Ask the core to even the partitions out, and let them move.
        """
        self.exactly(0, words, "reassign")
        self.cluster.reassign()
        self.cluster.wait(3_000)

    def do_modulo(self, words: list[str]) -> None:
        """modulo NODES …

        Print the number of each location under hash modulo that many nodes: no node is asked.
        """
        for text in words:
            places = ", ".join(f"{place} {partition_of(place, int(text))}" for place in _PLACES)
            self.lines.append(f"hash modulo {text}: {places}")

    def do_moving(self, words: list[str]) -> None:
        """moving NODES NODES

        Print how many of 1000 keys change their number when hash modulo one number of nodes becomes hash modulo
        another: no node is asked.
        """
        before, after = map(int, self.exactly(2, words, "moving"))
        keys = [f"key-{number}" for number in range(_KEYS)]
        moving = sum(partition_of(key, before) != partition_of(key, after) for key in keys)
        self.lines.append(f"{moving} of {_KEYS} keys change their number from modulo {before} to modulo {after}")

    def do_show(self, words: list[str]) -> None:
        """show table|load|places|messages|breaches [NODE …]

        Print the owner of each partition, the number of partitions of each node, the partition and the node of each
        location, or what every player shows.
        """
        entries = self.cluster.table().entries
        if words[:1] == ["table"]:
            self.lines.append(", ".join(f"{number} {entry.owner}" for number, entry in enumerate(entries)))
        elif words[:1] == ["load"]:
            load = Counter(entry.owner for entry in entries)
            self.lines.append(", ".join(f"{name} {load[name]}" for name in self.cluster.members))
        elif words[:1] == ["places"]:
            for place in _PLACES:
                number = partition_of(place, len(entries))
                self.lines.append(f"{place}: partition {number}, on {entries[number].owner}")
        else:
            super().do_show(words)
