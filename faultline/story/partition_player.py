"""The player of stories about partitions, on `partitioned-kv`, with the core that assigns them and a client library."""

from __future__ import annotations

from collections import Counter

from faultline.story.partition_cluster import PartitionCluster
from faultline.story.story_player import PLACES, StockPlayer
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_of

__all__ = ["PartitionPlayer"]

_KEYS = 1_000


class PartitionPlayer(StockPlayer):
    """One scene being played."""

    cluster_type = PartitionCluster

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
            places = ", ".join(f"{place} {partition_of(place, int(text))}" for place in PLACES)
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
            for place in PLACES:
                number = partition_of(place, len(entries))
                self.lines.append(f"{place}: partition {number}, on {entries[number].owner}")
        else:
            super().do_show(words)
