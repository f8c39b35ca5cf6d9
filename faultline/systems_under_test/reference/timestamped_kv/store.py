"""The versions of the keys of one `timestamped-kv` node, in a write-ahead log.

Versions come with their stamps and are logged with them, so a restart finds the same versions under the same stamps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_replication.versioned_value import IndexedVersions, VersionedValue
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp

__all__ = ["StampedVersions"]


class _Version(msgspec.Struct, frozen=True, array_like=True):
    key: str
    stamp: HybridTimestamp
    value: Any
    client: str = ""
    number: int = 0


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Version)


class StampedVersions:
    """All versions of the keys of one node, by stamp; `last_number` is the number of each client's last request."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._log = WriteAheadLog(ports.storage)
        self.last_number: dict[str, int] = {}
        self._versions: IndexedVersions[HybridTimestamp] = IndexedVersions()

    def recover(self) -> Iterator[HybridTimestamp]:
        """Read the log and yield the stamps in it. Raise `CorruptLog`."""
        self._log.recover()
        for entry in self._log.entries(1, self._log.last_index):
            version = _DECODER.decode(entry.data)
            self._versions.put(version.key, version.stamp, version.value)
            self.last_number[version.client] = max(version.number, self.last_number.get(version.client, 0))
            yield version.stamp

    def put(self, key: str, stamp: HybridTimestamp, value: Any, client: str = "", number: int = 0) -> None:
        """Show `value` to reads at `stamp` or later; it is durable before any message that is sent from now on.

        `client` asked for it in its request `number`.
        """
        data = _ENCODER.encode(_Version(key, stamp, value, client, number))
        self._log.append_data(data)
        self._log.flush()
        self._versions.put(key, stamp, value)

    def get(self, key: str, at: HybridTimestamp) -> VersionedValue[HybridTimestamp] | None:
        """Return the version of `key` at the time `at`."""
        return self._versions.get(key, at)

    def stamps(self, key: str) -> list[HybridTimestamp]:
        """Return the stamps of the versions of `key`, ascending."""
        return self._versions.versions(key)
