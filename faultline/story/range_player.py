"""The player of stories about ranges of keys, on `range-kv`, with a client library that keeps the table of ranges."""

from __future__ import annotations

from typing import Any

from faultline.story.library_cluster import LibraryCluster
from faultline.story.story_player import LibraryPlayer
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_of
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import EVERYTHING
from faultline.systems_under_test.reference.range_kv.messages import ScanKeys
from faultline.systems_under_test.reference.range_kv.system import RangeKv
from faultline.testing.hand_cranked import HandCrankedCluster

__all__ = ["RangePlayer"]


class _RangeCluster(LibraryCluster):
    """Nodes of range-kv, and the nodes that were asked for a part of a range."""

    system_type = RangeKv

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.scanned: list[str] = []
        super().__init__(*arguments, **options)

    def post(self, source: str, target: str, message: Any) -> None:
        if isinstance(message, ScanKeys):
            self.scanned.append(target)
        super().post(source, target, message)


class RangePlayer(LibraryPlayer):
    """One scene being played."""

    cluster_type = _RangeCluster

    def begin(self, cluster: HandCrankedCluster) -> None:
        cluster.deliver()  # The nodes register, and the first of them makes the table.
        super().begin(cluster)

    def do_write(self, words: list[str]) -> None:
        """write CLIENT KEY=VALUE …

        Let the client library write each key to its partition.
        """
        client, *pairs = words if len(words) > 1 else self.exactly(2, words, "write")
        for pair in pairs:
            key, _, value = pair.partition("=")
            self.lines.append(f"{client}: {key} {self.cluster.ask('write', key, value, client).kind}")

    def do_read(self, words: list[str]) -> None:
        """read CLIENT KEY …

        Let the client library read each key.
        """
        client, *keys = words if len(words) > 1 else self.exactly(2, words, "read")
        values = [f"{key} {self.cluster.ask('read', key, client=client).value}" for key in keys]
        self.lines.append(f"{client}: {', '.join(values)}")

    def do_scan(self, words: list[str]) -> None:
        """scan CLIENT FROM BELOW

        Let the client library read all keys from FROM on and below BELOW; print them, and which nodes it asked.
        """
        client, start, end = self.exactly(3, words, "scan")
        self.cluster.scanned.clear()
        found = self.cluster.ask("scan", None, [start, end], client).value or ()
        asked = ", ".join(dict.fromkeys(self.cluster.scanned))
        self.lines.append(
            f"{client}: {', '.join(f'{key} {value}' for key, value in found) or 'nothing'}; asked {asked}"
        )

    def do_hash(self, words: list[str]) -> None:
        """hash PARTITIONS KEY …

        Print the partition of each key under hash modulo so many partitions: no node is asked.
        """
        count, *keys = words if len(words) > 1 else self.exactly(2, words, "hash")
        places = ", ".join(f"{key} {partition_of(key, int(count))}" for key in keys)
        self.lines.append(f"hash modulo {count}: {places}")

    def do_show(self, words: list[str]) -> None:
        """show table|messages|breaches [NODE …]

        Print the ranges, their nodes and keys, or what every player shows.
        """
        if words != ["table"]:
            super().do_show(words)
            return
        held = {name: self.cluster.look(name, _keys_by_range) for name in self.cluster.members}
        for keys, owner in self.cluster.look(self.cluster.members[0], _table):
            self.lines.append(f"{keys} on {owner}: {', '.join(held[owner].get(keys, ())) or 'no key'}")


def _table(node: Any) -> list[tuple[str, str]]:
    return [(str(each.range), each.address) for each in node.coordinator.table.partitions_in(EVERYTHING)]


def _keys_by_range(node: Any) -> dict[str, list[str]]:
    return {str(each.info.range): list(each.keys) for each in node.host.store.held.values()}
