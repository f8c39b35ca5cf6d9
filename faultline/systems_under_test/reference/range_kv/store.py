"""The partitions of one host of `range-kv`, in a write-ahead log.

Every change of them is one entry: a write, and a split just as well. So a crash leaves a split done or not begun, and
no key is ever in both halves or in neither (KRP-R17). A partition that moves away is kept until the other host has it,
but is served no more.

Every so many entries a snapshot of all partitions takes their place, so that log and start stay short.

Limits: a snapshot is written in one piece, so all partitions of a host must fit into memory twice. A partition that
moves travels in one message, and no host serves it meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import Partition
from faultline.systems_under_test.patterns.data_partitioning.range_partition import Entries, RangePartition
from faultline.systems_under_test.patterns.data_partitioning.range_table import (
    HostPartition,
    MovePartition,
    SplitPartition,
)
from faultline.systems_under_test.patterns.data_replication.compacted_log import CompactedLog
from faultline.systems_under_test.reference.range_kv.messages import InstallPartition, KeysStored

__all__ = ["SNAPSHOT_EVERY_ENTRIES", "DropPartition", "ErasedKey", "PartitionStore", "StoredKey"]

SNAPSHOT_EVERY_ENTRIES = 10_000
"""The entries that a host adds between two snapshots by default."""


class StoredKey(msgspec.Struct, frozen=True, tag="stored-key"):
    """Entry: a write, and the request that asked for it."""

    partition_id: int
    key: str
    value: Any
    client: str = ""
    number: int = 0


class ErasedKey(msgspec.Struct, frozen=True, tag="erased-key"):
    """Entry: a deletion, and the request that asked for it."""

    partition_id: int
    key: str
    client: str = ""
    number: int = 0


class DropPartition(msgspec.Struct, frozen=True, tag="drop-partition"):
    """Entry: the other host has the partition that moved away."""

    partition_id: int


class _Left(msgspec.Struct, frozen=True, array_like=True):
    """In a snapshot: a partition on its way, as it will be there, as it was here, and its data."""

    partition: Partition
    before: Partition
    entries: Entries


class _State(msgspec.Struct, frozen=True, array_like=True):
    """A snapshot: all that the entries so far lead to."""

    held: list[tuple[Partition, Entries]]
    leaving: list[_Left]
    last_generation: dict[int, int]
    last_number: dict[str, int]


_Entry = HostPartition | SplitPartition | MovePartition | InstallPartition | DropPartition | StoredKey | ErasedKey
_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[_Entry] = msgspec.msgpack.Decoder(_Entry)
_STATE_DECODER = msgspec.msgpack.Decoder(_State)


class PartitionStore:
    """The partitions held here, those on their way to another host, and the last generation of each seen here.

    `last_number` is the number of each client's last change.
    """

    def __init__(
        self,
        ports: Ports,
        new_partition: Callable[..., RangePartition] = RangePartition,
        snapshot_every_entries: int = SNAPSHOT_EVERY_ENTRIES,
    ) -> None:
        self._trace = ports.trace
        self._log = CompactedLog(ports.storage, snapshot_every_entries, self._note_due, name="partitions")
        self._snapshot_is_due = False
        self._new_partition = new_partition
        self.held: dict[int, RangePartition] = {}
        self.leaving: dict[int, tuple[Partition, RangePartition]] = {}
        self.last_generation: dict[int, int] = {}
        self.last_number: dict[str, int] = {}
        self._appliers: dict[type, Callable[[Any], None]] = {
            HostPartition: self._apply_host,
            SplitPartition: self._apply_split,
            MovePartition: self._apply_move,
            InstallPartition: self._apply_install,
            DropPartition: self._apply_drop,
            StoredKey: self._apply_write,
            ErasedKey: self._apply_erasure,
        }

    def recover(self) -> None:
        """Read the newest snapshot, and the log after it. Raise `UnusableSnapshot` or `CorruptLog`."""
        state, entries = self._log.recover()
        if state is not None:
            self._restore(_STATE_DECODER.decode(state))
        for entry in entries:
            command = _DECODER.decode(entry)
            self._appliers[type(command)](command)

    def record(self, command: _Entry) -> None:
        """Log and execute `command`; it is durable before any later message leaves."""
        self._log.append(_ENCODER.encode(command))
        self._log.flush()
        self._appliers[type(command)](command)
        if self._snapshot_is_due:
            self._snapshot_is_due = False
            self._trace.sometimes("log-compacted")
            self._log.compact(_ENCODER.encode(self._state()))

    def has_seen(self, partition: Partition) -> bool:
        """Return whether this generation of the partition, or a later one, is or was here."""
        return self.last_generation.get(partition.id, 0) >= partition.generation

    def _note_due(self) -> None:
        self._snapshot_is_due = True

    def _state(self) -> _State:
        held = [(partition.info, partition.entries()) for partition in self.held.values()]
        leaving = [_Left(partition, data.info, data.entries()) for partition, data in self.leaving.values()]
        return _State(held, leaving, self.last_generation, self.last_number)

    def _restore(self, state: _State) -> None:
        for info, entries in state.held:
            self._hold(self._new_partition(info, entries))
        for left in state.leaving:
            self.leaving[left.partition.id] = (left.partition, self._new_partition(left.before, left.entries))
        self.last_generation = state.last_generation
        self.last_number = state.last_number

    def _apply_host(self, command: HostPartition) -> None:
        self._hold(self._new_partition(command.partition))

    def _apply_split(self, command: SplitPartition) -> None:
        parent = self.held.pop(command.parent_id)
        self.last_generation[command.parent_id] = command.left.generation
        for half in parent.split(command.left, command.right):
            self._hold(half)

    def _apply_move(self, command: MovePartition) -> None:
        partition = self.held.pop(command.partition.id)
        self.leaving[command.partition.id] = (command.partition, partition)

    def _apply_install(self, command: InstallPartition) -> None:
        self._hold(self._new_partition(command.partition, command.entries))

    def _apply_drop(self, command: DropPartition) -> None:
        del self.leaving[command.partition_id]

    def _apply_write(self, command: StoredKey) -> None:
        partition = self.held[command.partition_id]
        partition.put(command.key, command.value)
        self.last_number[command.client] = command.number
        self._trace.emit(KeysStored(partition.info, command.key, command.key))

    def _apply_erasure(self, command: ErasedKey) -> None:
        self.held[command.partition_id].delete(command.key)
        self.last_number[command.client] = command.number

    def _hold(self, partition: RangePartition) -> None:
        self.held[partition.info.id] = partition
        self.last_generation[partition.info.id] = partition.info.generation
        if partition.keys:
            self._trace.emit(KeysStored(partition.info, partition.keys[0], partition.keys[-1]))
