"""The promise and the table of one node, on its disk: data may be lost with the memory, the places of data may not.

A node takes part in a round for a table by a *promise*: it follows no earlier table from then on, and tells which one
it followed last. A coordinator that hears a majority so hears of every table under which a client was ever answered.
That holds only if no restart forgets a table: a member that had forgotten it would let a later coordinator take old
copies for good.

The file has one record for each change and is replaced by its last record when it has grown.
"""

from __future__ import annotations

import msgspec

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_replication.file_format import (
    CorruptLog,
    encode_record,
    read_record,
    record_positions,
    was_torn,
)
from faultline.systems_under_test.reference.data_grid.table import NO_TABLE_YET, GridTable

__all__ = ["TableLog"]

_FILE = "table.log"
_REPLACEMENT = "table.log.new"
_SALT = 0
_SIZE_BYTES_MAX = 65_536


class _State(msgspec.Struct, frozen=True, array_like=True):
    promised: int
    table: GridTable


class TableLog:
    """The highest round that this node has taken part in, and the newest table that it followed."""

    def __init__(self, ports: Ports) -> None:
        self.promised = 0
        self.table = NO_TABLE_YET
        self._storage = ports.storage
        self._size = 0

    def recover(self) -> None:
        """Read both from the disk. Raise `CorruptLog` for a file that changed after it was written."""
        data = self._storage.read(_FILE)
        positions, self._size = record_positions(data, _SALT)
        if self._size < len(data):
            if not was_torn(data, _SALT, self._size):
                raise CorruptLog(f"{_FILE}: the record at byte {self._size} changed after it was written.")
            self._storage.truncate(_FILE, self._size)
        if data:
            # Bytes that a killed process had written but not flushed count from now on, so they are flushed.
            self._storage.fsync(_FILE)
            self._storage.fsync_folder()
        if positions:
            state = msgspec.msgpack.decode(read_record(data, _SALT, positions[-1]) or b"", type=_State)
            self.promised, self.table = state.promised, state.table

    @property
    def is_frozen(self) -> bool:
        """True while this node has taken part in a round whose table it does not have."""
        return self.promised > self.table.version

    def promise(self, version: int) -> bool:
        """Take part in the round `version`; return False when this node has taken part in a later one."""
        if version < self.promised or version <= self.table.version:
            return False
        if version > self.promised:
            self._write(_State(version, self.table))
        return True

    def follow(self, table: GridTable) -> bool:
        """Follow `table`; return False when this node does already, or has promised not to."""
        if table.version < self.promised or table.version <= self.table.version:
            return False
        self._write(_State(table.version, table))
        return True

    def forget(self) -> None:
        """Follow no table: the group that had it is gone. The promise stays."""
        self._write(_State(self.promised, NO_TABLE_YET))

    def _write(self, state: _State) -> None:
        payload = msgspec.msgpack.encode(state)
        if self._size > _SIZE_BYTES_MAX:
            self._replace(payload)
        else:
            record = encode_record(payload, _SALT, self._size)
            self._storage.append(_FILE, record)
            self._size += len(record)
            self._storage.fsync(_FILE)
            self._storage.fsync_folder()
        self.promised, self.table = state.promised, state.table

    def _replace(self, payload: bytes) -> None:
        """Replace the file by one record; a crash leaves either the old file or the new one."""
        record = encode_record(payload, _SALT, 0)
        self._storage.write(_REPLACEMENT, record)
        self._storage.fsync(_REPLACEMENT)
        self._storage.rename(_REPLACEMENT, _FILE)
        self._storage.fsync(_FILE)
        self._storage.fsync_folder()
        self._size = len(record)
