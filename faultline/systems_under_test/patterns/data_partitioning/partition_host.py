"""The partitions of one node, which serves them, sends them away and takes them in; every step is durable.

A partition is at a node in one of three states:

    serving ── asked to move ──▶ migrating ── target has it ──▶ (gone)          (reads only while migrating)
       ▲                             │ cancelled
       └─────────────────────────────┘
    arriving ── told to host ──▶ serving                                         (no clients while arriving)

Every step is compared with the highest generation that the node has known of the partition. A partition that has *left*
keeps its generation too, so a late message to host, to move or to install finds a higher generation and changes
nothing. A partition is created empty only if no client was ever sent to it. Any other missing partition stays missing.

Each step and each write is one record in a write-ahead log, flushed before an answer leaves. The record of a write has
the value, the number of the request, and the answer. A repeated request is answered again and not executed, also by the
next owner, because the answers move with the partition.

After a number of records a snapshot replaces them (Low-Water Mark), so that the log and a restart stay short.

*Limits.* The last answer to each client is kept for ever. An arrived copy of a move that was cancelled stays on disk,
unserved, until the partition comes again.

Sources: Patterns of Distributed Systems ch. 19, "Moving partitions when new nodes are added", and ch. 15 for the kept
answers.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_partitioning.cluster_directory import Migration
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import PartitionContent, Written
from faultline.systems_under_test.patterns.data_replication.compacted_log import CompactedLog

__all__ = [
    "ARRIVING",
    "MIGRATING",
    "SERVING",
    "HostedPartition",
    "NotHosted",
    "PartitionHost",
    "PartitionIsMigrating",
]

SERVING = "serving"
"""Reads and writes are answered."""

MIGRATING = "migrating"
"""The partition is being sent away: reads are answered, writes are refused."""

ARRIVING = "arriving"
"""The data is here, but the table does not say so yet: no request is answered."""


class NotHosted(Exception):
    """The partition is not served here under that generation; the client needs a newer table."""


class PartitionIsMigrating(Exception):
    """The partition takes no writes at the moment."""


class HostedPartition:
    """One partition at one node."""

    __slots__ = ("answers", "generation", "migration", "state", "values")

    def __init__(self, generation: int, state: str, content: PartitionContent) -> None:
        self.generation = generation
        self.state = state
        self.values = dict(content.values)
        self.answers = dict(content.answers)
        self.migration: Migration | None = None

    def content(self) -> PartitionContent:
        """Return a copy of the values and the answers."""
        return PartitionContent(dict(self.values), dict(self.answers))


class _Arrived(msgspec.Struct, frozen=True, tag="arrived", array_like=True):
    partition: int
    generation: int
    state: str
    content: PartitionContent


class _Served(msgspec.Struct, frozen=True, tag="served", array_like=True):
    partition: int
    generation: int


class _Migrating(msgspec.Struct, frozen=True, tag="migrating", array_like=True):
    migration: Migration


class _Left(msgspec.Struct, frozen=True, tag="left", array_like=True):
    partition: int
    generation: int


Record = Written | _Arrived | _Served | _Migrating | _Left
_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)
_STATE_DECODER: msgspec.msgpack.Decoder[list[Record]] = msgspec.msgpack.Decoder(list[Record])
_NOTHING = PartitionContent({}, {})
_SNAPSHOT_EVERY_ENTRIES = 10_000


class PartitionHost:
    """The partitions of one node, in memory and in its log."""

    def __init__(self, ports: Ports, snapshot_every_entries: int = _SNAPSHOT_EVERY_ENTRIES) -> None:
        self._ports = ports
        self._log = CompactedLog(ports.storage, snapshot_every_entries, self._note_due, name="partitions")
        self._snapshot_is_due = False
        self.partitions: dict[int, HostedPartition] = {}
        self.left: dict[int, int] = {}

    def recover(self) -> None:
        """Read the newest snapshot, and the log after it. Raises `UnusableSnapshot` and `CorruptLog`."""
        state, entries = self._log.recover()
        for record in _STATE_DECODER.decode(state) if state is not None else ():
            self._take(record)
        for entry in entries:
            self._take(_DECODER.decode(entry))

    def known_generation(self, partition: int) -> int:
        """Return the highest generation this node has known of `partition`, 0 when it never had it."""
        hosted = self.partitions.get(partition)
        return max(self.left.get(partition, 0), hosted.generation if hosted else 0)

    def host(self, partition: int, generation: int, *, fresh: bool) -> bool:
        """Serve `partition` under `generation` from now on; return False when this node has no right to, or lacks the
        data.

        A `fresh` partition has no data on any node, and is begun here.
        """
        hosted = self.partitions.get(partition)
        if hosted is not None and hosted.generation == generation:
            if hosted.state == ARRIVING:
                self._write(_Served(partition, generation))
            else:
                self._ports.trace.sometimes("hosts-already")
            return True
        # Beginning an empty partition where data may exist would lose acknowledged writes, so in doubt it stays
        # missing.
        if not fresh or self.known_generation(partition) >= generation:
            self._ports.trace.sometimes("late-host-partition-ignored")
            return False
        self._begin_empty(partition, generation)
        return True

    def _begin_empty(self, partition: int, generation: int) -> None:
        self._write(_Arrived(partition, generation, SERVING, _NOTHING))

    def send_off(self, migration: Migration) -> PartitionContent | None:
        """Take no more writes, and return all the data for the target; None when this node may not send it."""
        hosted = self.partitions.get(migration.partition)
        if hosted is None or hosted.state == ARRIVING:
            return None
        if hosted.migration != migration:
            if hosted.state != SERVING or hosted.generation != migration.generation - 1:
                return None
            # Durable before the data leaves: after a crash this node must still refuse writes, which the target would
            # not see.
            self._write(_Migrating(migration))
        return hosted.content()

    def has_left(self, migration: Migration) -> bool:
        """Return whether the partition is gone, by this migration or a later one."""
        return self.left.get(migration.partition, 0) >= migration.generation

    def keep(self, migration: Migration) -> bool:
        """Give the migration up and serve on, above its generation; return False when the data is not here."""
        hosted = self.partitions.get(migration.partition)
        if hosted is None or hosted.state == ARRIVING:
            return False
        if hosted.generation < migration.generation:
            # Above the generation of the move, so that its late messages find a higher one and change nothing.
            self._write(_Served(migration.partition, migration.generation + 1))
        return True

    def install(self, migration: Migration, content: PartitionContent) -> bool:
        """Take the data in, unless this move or a later one is known already; return whether it was taken."""
        if self.known_generation(migration.partition) >= migration.generation:
            self._ports.trace.sometimes("late-move-ignored")
            return False
        self._write(_Arrived(migration.partition, migration.generation, ARRIVING, content))
        return True

    def drop(self, migration: Migration) -> None:
        """Drop the copy here, if it is of this migration: the target has the partition."""
        hosted = self.partitions.get(migration.partition)
        if hosted is not None and hosted.migration == migration:
            self._write(_Left(migration.partition, migration.generation))

    def readable(self, partition: int, generation: int) -> HostedPartition:
        """Return the partition, to read from. Raises `NotHosted`."""
        hosted = self.partitions.get(partition)
        if hosted is None or hosted.generation != generation or hosted.state == ARRIVING:
            raise NotHosted
        return hosted

    def writable(self, partition: int, generation: int) -> HostedPartition:
        """Return the partition, to write to. Raises `NotHosted` and `PartitionIsMigrating`."""
        hosted = self.readable(partition, generation)
        if hosted.state == MIGRATING:
            raise PartitionIsMigrating
        return hosted

    def write(self, written: Written) -> None:
        """Keep a value and an answer, durable before anything sent from now on."""
        self._write(written)

    def _write(self, record: Record) -> None:
        self._log.append(_ENCODER.encode(record))
        self._flush()
        self._take(record)
        if self._snapshot_is_due:
            self._snapshot_is_due = False
            self._ports.trace.sometimes("log-compacted")
            self._log.compact(_ENCODER.encode(list(self._records())))

    def _note_due(self) -> None:
        self._snapshot_is_due = True

    def _records(self) -> Iterator[Record]:
        """Return the fewest records from which the same state comes: a snapshot is a shorter log."""
        for number, generation in self.left.items():
            yield _Arrived(number, generation, SERVING, _NOTHING)
            yield _Left(number, generation)
        for number, hosted in self.partitions.items():
            yield _Arrived(number, hosted.generation, hosted.state, hosted.content())
            if hosted.migration is not None:
                yield _Migrating(hosted.migration)

    def _flush(self) -> None:
        self._log.flush()

    def _take(self, record: Record) -> None:
        match record:
            case Written():
                hosted = self.partitions[record.partition]
                if record.answer.error is None:
                    hosted.values[record.key] = record.value
                hosted.answers[record.client] = record.answer
            case _Arrived(partition, generation, state, content):
                self.partitions[partition] = HostedPartition(generation, state, content)
            case _Served(partition, generation):
                hosted = self.partitions[partition]
                hosted.generation, hosted.state, hosted.migration = generation, SERVING, None
            case _Migrating(migration):
                hosted = self.partitions[migration.partition]
                hosted.state, hosted.migration = MIGRATING, migration
            case _Left(partition, generation):
                del self.partitions[partition]
                self.left[partition] = generation
