"""The ranges that a node holds, each with a participant of its own; and what becomes of transactions when they change.

*Rules for a range that splits or moves while transactions are open* (TPC-S15). A prepared transaction has promised to
commit, and its coordinator may have decided already. So its pending values, its locks and its vote are a part of the
range, like the versions: they travel in the same message, are durable at the new host before that one serves anything,
and are divided by key when the range is split. A transaction that is not prepared has made no promise. Its buffers and
read locks are dropped when the range is let go: the new participant does not know it, votes no, and the client tries
again. To wait until no transaction is open would let a busy range never move; to carry read locks would keep alive,
through a copy of memory, what a crash may drop anyway.

How transactions ended travels as well, so that a decision that comes again is acknowledged; and the ceiling of the
times that were read, so that no vote of the new host lies below an answer of the old one.

Every message names a generation of the range, and is refused under another one. So no request reaches a participant
that has let go, and none of before a change reaches the one after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from faultline.harness.world.ports import Network, NodeId, Ports, Trace
from faultline.systems_under_test.patterns.data_partitioning.coordinator_records import RecordLog
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import KeyRange, Partition
from faultline.systems_under_test.patterns.data_partitioning.range_table import (
    HostPartition,
    MovePartition,
    SplitPartition,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import RollBackTransaction
from faultline.systems_under_test.patterns.data_partitioning.transaction_participant import Participant
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import (
    PendingValue,
    Prepared,
    VersionKept,
)
from faultline.systems_under_test.reference.range_transactions.messages import (
    FromRange,
    InstallRange,
    RangeCarried,
    RangeEvent,
    RangeHeld,
    RangeRecord,
)
from faultline.systems_under_test.reference.range_transactions.reads import RangeRequests
from faultline.systems_under_test.reference.range_transactions.records import (
    DropRange,
    GenerationSeen,
    InRange,
    LeavingRange,
    StoreRecord,
)
from faultline.systems_under_test.reference.transactions.messages import Reply

__all__ = ["HeldRange", "RangeStore", "name_of"]


def name_of(range_id: int) -> NodeId:
    """Return the name by which coordinators know a range, wherever it is."""
    return NodeId(f"range-{range_id}")


@dataclass
class HeldRange:
    """A range of this node, and the requests for each key since the last check."""

    info: Partition
    participant: Participant
    requests: RangeRequests
    load: Counter[str]


class _Making(Protocol):
    """The maker of participants."""

    def __call__(self, ports: Ports, log: RecordLog) -> tuple[Participant, RangeRequests]:
        """Return the participant of a range, over its own ports and records, and the door to it."""


class RangeStore:
    """The ranges held here, those on their way to another node, and the last generation of each that was here."""

    def __init__(self, ports: Ports, log: RecordLog, make: _Making) -> None:
        self._ports = ports
        self._log = log
        self._make = make
        self.held: dict[int, HeldRange] = {}
        self.leaving: dict[int, LeavingRange] = {}
        self._last_generation: dict[int, int] = {}
        self._appliers: dict[type, Callable[[Any], None]] = {
            InRange: self._apply_record,
            HostPartition: self._apply_host,
            SplitPartition: self._apply_split,
            MovePartition: self._apply_move,
            InstallRange: self._apply_install,
            DropRange: self._apply_drop,
            LeavingRange: self._apply_leaving,
            GenerationSeen: self._apply_seen,
        }

    def has_seen(self, partition: Partition) -> bool:
        """Return whether this generation of the range, or a later one, is or was here."""
        return self.last_generation(partition.id) >= partition.generation

    def last_generation(self, range_id: int) -> int:
        """Return the last generation of the range that is or was here; 0 if it never was."""
        return self._last_generation.get(range_id, 0)

    def find(self, range_id: int, generation: int) -> HeldRange | None:
        """Return the range if it is held here in this generation."""
        held = self.held.get(range_id)
        return held if held is not None and held.info.generation == generation else None

    def replay(self, record: StoreRecord) -> None:
        """Take a record of the log, or of a snapshot; they come in order."""
        self._appliers[type(record)](record)

    def finish_recovery(self) -> None:
        """Report the ranges that are held, and ask for the outcome of their prepared transactions."""
        for held in self.held.values():
            self._serve(held)

    def records(self) -> Iterator[StoreRecord]:
        """Return the fewest records from which the same durable state comes."""
        for held in self.held.values():
            yield InstallRange(held.info, list(held.participant.records()))
        yield from self.leaving.values()
        yield from (GenerationSeen(*seen) for seen in self._last_generation.items() if seen[0] not in self.held)

    def forget_what_is_over(self, remembered: int) -> None:
        """Drop the memory of all but the latest transactions that ended on each range."""
        for held in self.held.values():
            held.participant.forget_what_is_over(remembered)

    def host(self, command: HostPartition) -> None:
        """Hold an empty range."""
        self._record(command)
        self._serve(self.held[command.partition.id])

    def split(self, command: SplitPartition) -> None:
        """Divide a range, with its prepared transactions; those that are not prepared are dropped."""
        self._drop_open(self.held[command.parent_id], "split")
        self._record(command)
        for half in (command.left, command.right):
            self._carry_on(name_of(command.parent_id), self.held[half.id])

    def let_go(self, command: MovePartition) -> None:
        """Serve the range no longer; transactions that are not prepared are dropped."""
        self._drop_open(self.held[command.partition.id], "moved")
        # Durable before it leaves: a restart in between must not serve a range that another node serves.
        self._record(command)

    def install(self, message: InstallRange) -> None:
        """Take a range over, with its prepared transactions, and serve it from now on."""
        self._record(message)
        held = self.held[message.partition.id]
        if any(isinstance(record, Prepared) for record in message.records):
            self._ports.trace.sometimes("range-moved-with-prepared-transaction")
        self._carry_on(name_of(message.partition.id), held)

    def drop(self, range_id: int) -> None:
        """Forget a range that the other node has."""
        self._record(DropRange(range_id))

    def _record(self, record: StoreRecord) -> None:
        self._log.append(record)
        self._log.flush()
        self.replay(record)

    def _carry_on(self, origin: NodeId, held: HeldRange) -> None:
        self._ports.trace.emit(RangeCarried(origin, held.info, held.participant.promises()))
        self._serve(held)

    def _serve(self, held: HeldRange) -> None:
        self._ports.trace.emit(RangeHeld(held.info))
        held.participant.finish_recovery()

    def _drop_open(self, held: HeldRange, change: str) -> None:
        """Abort the transactions that are not prepared: none of them can commit."""
        participant = held.participant
        if participant.promises() and change == "split":
            self._ports.trace.sometimes("range-split-with-prepared-transaction")
        # A lock that one gives back may let another one promise, which then is carried.
        while opened := [each for each, state in participant.open.items() if state.prepared_at is None]:
            self._ports.trace.sometimes(f"range-{change}-with-open-transaction")
            participant.roll_back(RollBackTransaction(opened[0]))

    def _apply_record(self, record: InRange) -> None:
        self.held[record.range_id].participant.replay(record.record)

    def _apply_host(self, command: HostPartition) -> None:
        self._hold(command.partition, ())

    def _apply_split(self, command: SplitPartition) -> None:
        records = list(self.held.pop(command.parent_id).participant.records())
        self._last_generation[command.parent_id] = command.left.generation
        for half in (command.left, command.right):
            self._hold(half, self._divided(records, half.range))

    def _apply_move(self, command: MovePartition) -> None:
        held = self.held.pop(command.partition.id)
        records = self._travelling(list(held.participant.records()))
        self.leaving[command.partition.id] = LeavingRange(command.partition, records)

    def _apply_install(self, record: InstallRange) -> None:
        self._hold(record.partition, record.records)

    def _apply_drop(self, record: DropRange) -> None:
        del self.leaving[record.range_id]

    def _apply_leaving(self, record: LeavingRange) -> None:
        self.leaving[record.partition.id] = record

    def _apply_seen(self, record: GenerationSeen) -> None:
        self._last_generation[record.range_id] = record.generation

    def _travelling(self, records: list[RangeRecord]) -> list[RangeRecord]:
        """Return the records that go along with a range: all, its promises among them."""
        return records

    def _divided(self, records: Iterable[RangeRecord], part: KeyRange) -> Iterator[RangeRecord]:
        """Return the records for one half: versions and promises by key, ends and the ceiling of reads in full."""
        for record in records:
            if isinstance(record, Prepared):
                if locks := self._locks_in(part, record):
                    yield msgspec.structs.replace(record, locks=locks)
            elif not isinstance(record, PendingValue | VersionKept) or part.contains(record.key):
                yield record

    def _locks_in(self, part: KeyRange, promise: Prepared) -> dict[str, Any]:
        return {key: mode for key, mode in promise.locks.items() if part.contains(key)}

    def _hold(self, info: Partition, records: Iterable[RangeRecord]) -> None:
        participant, requests = self._make(_RangePorts(self._ports, name_of(info.id)), _RangeLog(self._log, info.id))
        for record in records:
            participant.replay(record)
        self.held[info.id] = HeldRange(info, participant, requests, Counter())
        self._last_generation[info.id] = info.generation


class _RangeLog:
    """The records of one range in the log of its node: implements `RecordLog`."""

    def __init__(self, log: RecordLog, range_id: int) -> None:
        self._log = log
        self._range_id = range_id
        self.flush = log.flush

    def append(self, record: RangeRecord) -> None:
        self._log.append(InRange(self._range_id, record))


class _RangePorts:
    """The ports of a node for one of its ranges, which speaks to coordinators and reports under its own name."""

    def __init__(self, ports: Ports, name: NodeId) -> None:
        self.node_id = ports.node_id
        self.clock = ports.clock
        self.timers = ports.timers
        self.storage = ports.storage
        self.random = ports.random
        self.network: Network = _RangeNetwork(ports.network, name)
        self.trace: Trace = _RangeTrace(ports.trace, name)


class _RangeNetwork:
    def __init__(self, network: Network, name: NodeId) -> None:
        self._network = network
        self._name = name

    def send(self, to: NodeId, message: Any) -> None:
        self._network.send(to, self._signed(message))

    def send_ahead(self, to: NodeId, message: Any) -> None:
        self._network.send_ahead(to, self._signed(message))

    def _signed(self, message: Any) -> Any:
        """Return an answer to a client as it is; a coordinator must know which range speaks."""
        return message if isinstance(message, Reply) else FromRange(self._name, message)


class _RangeTrace:
    def __init__(self, trace: Trace, name: NodeId) -> None:
        self._trace = trace
        self._name = name
        self.sometimes = trace.sometimes
        self.always = trace.always

    def emit(self, event: msgspec.Struct) -> None:
        self._trace.emit(RangeEvent(self._name, type(event).__name__, event))
