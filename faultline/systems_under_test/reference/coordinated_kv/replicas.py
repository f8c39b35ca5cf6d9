"""The copies of partitions that a data node keeps: values, answers to clients, and the generation each belongs to.

Every change is a record in a write-ahead log, flushed before anything that is sent after it leaves the node. A copy
never goes back to a lower generation, and the log keeps that promise over restarts: a leader writes down that its
generation has begun before it sends the first message in it.

In one generation a copy grows write by write, without gaps, because one leader alone numbers them. A new generation
begins with the whole content of the new leader's copy. Unacknowledged writes of a former leader vanish then.

*Limits.* The log is not compacted, and the last answer to each client is kept for ever. The whole content is sent at
the beginning of every generation, also to followers that have it: right for small partitions, wasteful for large ones.

Sources: Patterns of Distributed Systems ch. 9 and 11; PacificA §2.3, "reconciliation".
"""

from __future__ import annotations

import msgspec

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import Answer, PartitionContent, Written
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog

__all__ = ["Replica", "ReplicaStore"]


class _Installed(msgspec.Struct, frozen=True, tag="installed", array_like=True):
    partition: int
    generation: int
    number: int
    content: PartitionContent


class _Begun(msgspec.Struct, frozen=True, tag="begun", array_like=True):
    partition: int
    generation: int


Record = Written | _Installed | _Begun
_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


class Replica:
    """One copy: its generation, the number of its writes, and the values and answers they led to."""

    __slots__ = ("answers", "generation", "number", "values")

    def __init__(self, generation: int, number: int, content: PartitionContent) -> None:
        self.generation = generation
        self.number = number
        self.values = dict(content.values)
        self.answers: dict[str, Answer] = dict(content.answers)

    def content(self) -> PartitionContent:
        """Return its values and answers, copied."""
        return PartitionContent(dict(self.values), dict(self.answers))


class ReplicaStore:
    """All copies of one node, in memory and in its log."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._log = WriteAheadLog(ports.storage, name="replicas")
        self._replicas: dict[int, Replica] = {}

    def recover(self) -> None:
        """Read the log. Raise `CorruptLog` for a damaged one."""
        self._log.recover()
        for entry in self._log.entries(1, self._log.last_index):
            self._take(_DECODER.decode(entry.data))

    def replica(self, partition: int) -> Replica:
        """Return the copy of `partition`, an empty one of generation 0 where there is none yet."""
        replica = self._replicas.get(partition)
        if replica is None:
            replica = self._replicas[partition] = Replica(0, 0, PartitionContent({}, {}))
        return replica

    def all(self) -> dict[int, Replica]:
        """Return the copies by their partitions."""
        return self._replicas

    def begin(self, partition: int, generation: int) -> Replica:
        """Write down that this node leads in `generation`, to which its copy belongs from now on, as it is."""
        self._write(_Begun(partition, generation))
        return self.replica(partition)

    def write(self, written: Written) -> int:
        """Store the leader's own next write, and return its number."""
        self._write(written)
        return self.replica(written.partition).number

    def is_from_the_past(self, partition: int, generation: int) -> bool:
        """Return whether this node has heard of a later leader than that of `generation`."""
        return generation < self.replica(partition).generation

    def install(self, partition: int, generation: int, number: int, content: PartitionContent) -> None:
        """Take the leader's content, unless the copy has as much of the same generation already."""
        replica = self.replica(partition)
        if generation > replica.generation or number > replica.number:
            self._write(_Installed(partition, generation, number, content))

    def append(self, generation: int, number: int, written: Written) -> bool:
        """Take the leader's next write; return False when an earlier one is missing."""
        replica = self.replica(written.partition)
        if generation != replica.generation or number > replica.number + 1:
            return False
        if number == replica.number + 1:
            self._write(written)
        return True

    def _write(self, record: Record) -> None:
        # On disk before it is in memory: memory is what this node answers and sends.
        self._log.append_data(_ENCODER.encode(record))
        self._flush()
        self._take(record)

    def _flush(self) -> None:
        self._log.flush()

    def _take(self, record: Record) -> None:
        replica = self.replica(record.partition)
        match record:
            case Written(_, key, value, client, answer):
                if answer.error is None:
                    replica.values[key] = value
                replica.answers[client] = answer
                replica.number += 1
            case _Installed(partition, generation, number, content):
                self._replicas[partition] = Replica(generation, number, content)
            case _Begun(_, generation):
                replica.generation = generation
