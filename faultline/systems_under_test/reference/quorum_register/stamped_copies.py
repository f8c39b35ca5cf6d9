"""The copies one replica of `quorum-register` keeps: the newest value of each key by stamp, in a write-ahead log.

A store is idempotent and commutes with every other: the newest stamp wins, in whatever order and however often copies
arrive. So replicas need no common log, and a coordinator may repeat itself.
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog
from faultline.systems_under_test.reference.quorum_register.messages import NEVER_WRITTEN, Stamp

__all__ = ["Copy", "StampedCopies"]


class Copy(msgspec.Struct, frozen=True, array_like=True):
    """A value of `key` with its stamp."""

    key: str
    stamp: Stamp
    value: Any


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Copy)


class StampedCopies:
    """The newest copy of each key."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._log = WriteAheadLog(ports.storage)
        self._copies: dict[str, Copy] = {}

    def recover(self) -> None:
        """Read the newest copies from the log. Raise `CorruptLog`."""
        self._log.recover()
        for entry in self._log.entries(1, self._log.last_index):
            self._keep(_DECODER.decode(entry.data))

    def get(self, key: str) -> Copy:
        """Return the newest copy of `key`."""
        return self._copies.get(key) or Copy(key, NEVER_WRITTEN, None)

    def store(self, copy: Copy) -> bool:
        """Keep `copy`, durable before any message from now on; return False when there is one as new already."""
        if copy.stamp <= self.get(copy.key).stamp:
            return False
        self._log.append_data(_ENCODER.encode(copy))
        self._flush()
        self._keep(copy)
        return True

    def _flush(self) -> None:
        self._log.flush()

    def _keep(self, copy: Copy) -> None:
        if copy.stamp > self.get(copy.key).stamp:
            self._copies[copy.key] = copy
