"""The host's half of a node of `range-kv`: holds partitions, serves clients, and proposes and carries out splits.

    client ──(partition, generation, key)──► host: is that the generation I hold? ── log ──► answer
    check  ──► too big, too busy ──► trigger to the coordinator ──► its log ──► split here: one entry of this log
    move   ──► log: let go ──► data to the other host ──► its log ──► served there

The host alone decides whether it serves a request, by the partition's generation alone: the table of the coordinator
may be ahead of it, that of a client ahead or behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from faultline.harness.outcome import CAS_MISMATCH
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_partitioning.range_partition import (
    RangePartition,
    middle_key,
    middle_of_requests,
)
from faultline.systems_under_test.patterns.data_partitioning.range_table import (
    HostPartition,
    MovePartition,
    SplitPartition,
)
from faultline.systems_under_test.reference.range_kv.messages import (
    CompareAndSetKey,
    DeleteKey,
    InstallPartition,
    KeyResponse,
    ReadKey,
    RequestServed,
    ScanKeys,
    SizesChecked,
    SplitProposed,
    WriteKey,
)
from faultline.systems_under_test.reference.range_kv.options import CHECKS_BETWEEN_PROPOSALS, RangeSettings
from faultline.systems_under_test.reference.range_kv.store import (
    DropPartition,
    ErasedKey,
    PartitionStore,
    StoredKey,
)
from faultline.systems_under_test.reference.ranges.messages import (
    NOT_HERE_YET,
    STALE_TABLE,
    PartitionReady,
    RegisterMember,
    SplitTrigger,
)

__all__ = ["RangeHost"]

_REGISTER_EVERY_US = 100_000

Change = WriteKey | CompareAndSetKey | DeleteKey
Request = ReadKey | ScanKeys | Change


class RangeHost:
    """The partitions of one node."""

    def __init__(
        self,
        ports: Ports,
        coordinator: NodeId,
        settings: RangeSettings,
        new_partition: Callable[..., RangePartition] = RangePartition,
    ) -> None:
        self.ports = ports
        self.store = PartitionStore(ports, new_partition, settings.snapshot_every_entries)
        self._coordinator = coordinator
        self._settings = settings
        self._requests: dict[int, Counter[str]] = {}
        self._checks = 0
        self._triggered: dict[int, tuple[int, int]] = {}
        self.handlers: Mapping[type, Callable[[NodeId, Any], None]] = {
            HostPartition: self._handle_host,
            SplitPartition: self._handle_split,
            MovePartition: self._handle_move,
            InstallPartition: self._handle_install,
            PartitionReady: self._handle_taken_over,
            ReadKey: self._handle_read,
            ScanKeys: self._handle_scan,
            WriteKey: self._handle_write,
            CompareAndSetKey: self._handle_compare_and_set,
            DeleteKey: self._handle_delete,
        }

    def start(self) -> None:
        """Recover the partitions, and begin to register and to check."""
        self.store.recover()
        self._register()
        self.ports.timers.every(_REGISTER_EVERY_US, self._register)
        self.ports.timers.every(self._settings.task_retry_us, self._send_leaving)
        self.ports.timers.every(self._settings.split_check_us, self._check_partitions)

    def _register(self) -> None:
        self.ports.network.send(self._coordinator, RegisterMember())

    def _handle_read(self, client: NodeId, request: ReadKey) -> None:
        partition = self._partition_for(client, request)
        if partition is not None:
            self._count(partition, request.key)
            self._answer(client, request, partition.get(request.key))

    def _handle_scan(self, client: NodeId, request: ScanKeys) -> None:
        partition = self._partition_for(client, request)
        if partition is not None:
            self._answer(client, request, partition.scan(request.wanted))

    def _handle_write(self, client: NodeId, request: WriteKey) -> None:
        partition = self._partition_to_change(client, request)
        if partition is not None:
            self._count(partition, request.key)
            self._store(client, request)

    def _handle_compare_and_set(self, client: NodeId, request: CompareAndSetKey) -> None:
        partition = self._partition_to_change(client, request)
        if partition is None:
            return
        self._count(partition, request.key)
        if partition.get(request.key) == request.expected:
            self._store(client, request)
        else:
            self.ports.network.send(client, KeyResponse(request.request_number, error=CAS_MISMATCH))

    def _handle_delete(self, client: NodeId, request: DeleteKey) -> None:
        partition = self._partition_to_change(client, request)
        if partition is not None:
            self._count(partition, request.key)
            self.store.record(ErasedKey(request.partition_id, request.key, client, request.request_number))
            self._answer(client, request, None)

    def _store(self, client: NodeId, request: WriteKey | CompareAndSetKey) -> None:
        entry = StoredKey(request.partition_id, request.key, request.value, client, request.request_number)
        self.store.record(entry)
        self._answer(client, request, None)

    def _partition_to_change(self, client: NodeId, request: Change) -> RangePartition | None:
        """Return the partition to change; None for a change that the network repeats, which is not made twice.

        The log has the numbers of all changes that were made, since a network may repeat one after a restart. They do
        not move with a partition: a repeated change names its former generation. Limit: a restart forgets the number of
        a change that was refused.
        """
        if request.request_number <= self.store.last_number.get(client, 0):
            return None
        self.store.last_number[client] = request.request_number
        return self._partition_for(client, request)

    def _partition_for(self, client: NodeId, request: Request) -> RangePartition | None:
        """Return the partition of the request; refuse the request if it cannot be served under its generation."""
        error = self._refusal(request)
        if error is not None:
            is_stale = error == STALE_TABLE
            self.ports.trace.sometimes("stale-client-refused" if is_stale else "early-client-refused")
            self.ports.network.send(client, KeyResponse(request.request_number, error=error))
            return None
        partition = self.store.held[request.partition_id]
        held = partition.info.generation
        self.ports.trace.emit(RequestServed(request.partition_id, request.generation, held))
        return partition

    def _refusal(self, request: Request) -> str | None:
        """Return the reason to refuse the request here and now; None when it can be served."""
        partition = self.store.held.get(request.partition_id)
        if partition is not None and partition.info.generation == request.generation:
            return None
        is_past = self.store.last_generation.get(request.partition_id, 0) >= request.generation
        return STALE_TABLE if is_past else NOT_HERE_YET

    def _answer(self, client: NodeId, request: Request, value: Any) -> None:
        self.ports.network.send(client, KeyResponse(request.request_number, value))

    def _count(self, partition: RangePartition, key: str) -> None:
        if self._settings.splits_by_load:
            self._requests.setdefault(partition.info.id, Counter())[key] += 1

    def _handle_host(self, coordinator: NodeId, command: HostPartition) -> None:
        if not self.store.has_seen(command.partition):
            self.store.record(command)
        self._confirm(coordinator, command.partition.id, command.partition.generation)

    def _handle_split(self, coordinator: NodeId, command: SplitPartition) -> None:
        """Split once, and confirm it each time: the halves may have been written to since."""
        parent = self.store.held.get(command.parent_id)
        if parent is not None and parent.info.generation == command.left.generation - 1:
            self._split(command)
            self.ports.trace.sometimes("partition-split")
        elif self.store.has_seen(command.right):
            self.ports.trace.sometimes("split-repeated")
        else:
            return
        self._confirm(coordinator, command.right.id, command.right.generation)

    def _split(self, command: SplitPartition) -> None:
        self.store.record(command)
        self._requests.pop(command.parent_id, None)

    def _handle_move(self, coordinator: NodeId, command: MovePartition) -> None:
        """Let go and send the data, at the source; confirm that they have come, at the target."""
        partition = self.store.held.get(command.partition.id)
        if self.store.has_seen(command.partition):
            self._confirm(coordinator, command.partition.id, command.partition.generation)
        elif partition is not None and partition.info.generation == command.partition.generation - 1:
            self._let_go(command)

    def _let_go(self, command: MovePartition) -> None:
        # Let go of durably before the data leaves: a restart in between must not serve a partition that another serves.
        self.store.record(command)
        self._send_leaving()

    def _confirm(self, to: NodeId, partition_id: int, generation: int) -> None:
        self.ports.network.send(to, PartitionReady(partition_id, generation))

    def _send_leaving(self) -> None:
        """Send the partitions that move away, until the other host has them."""
        for partition, data in self.store.leaving.values():
            self.ports.network.send(NodeId(partition.address), InstallPartition(partition, data.entries()))

    def _handle_install(self, source: NodeId, message: InstallPartition) -> None:
        if self.store.has_seen(message.partition):
            self.ports.trace.sometimes("install-repeated")
        else:
            self._install(message)
        self._confirm(self._coordinator, message.partition.id, message.partition.generation)
        self._confirm(source, message.partition.id, message.partition.generation)

    def _install(self, message: InstallPartition) -> None:
        self.store.record(message)
        if message.entries:
            self.ports.trace.sometimes("partition-moved")

    def _handle_taken_over(self, _: NodeId, message: PartitionReady) -> None:
        leaving = self.store.leaving.get(message.partition_id)
        if leaving is not None and leaving[0].generation == message.generation:
            self.store.record(DropPartition(message.partition_id))

    def _check_partitions(self) -> None:
        """Examine every partition, and propose to split those that are due."""
        self._checks += 1
        due: list[tuple[int, int, int]] = []
        for partition in list(self.store.held.values()):
            if self._settings.splits_by_size and self._check_size(partition):
                due.append((partition.info.id, partition.info.generation, partition.size()))
            if self._settings.splits_by_load:
                self._check_load(partition)
        self.ports.trace.emit(SizesChecked(tuple(due)))
        self._requests.clear()

    def _check_size(self, partition: RangePartition) -> bool:
        """Return whether the partition has reached the maximum and can be split; propose it then."""
        size = partition.size()
        key = self._size_split_key(partition) if self._is_too_big(size) else None
        if key is not None:
            self._propose(partition, key, "size", size, self._settings.partition_size_max)
        return key is not None

    def _is_too_big(self, size: int) -> bool:
        return size >= self._settings.partition_size_max

    def _size_split_key(self, partition: RangePartition) -> str | None:
        return self._usable(partition, middle_key(partition.sizes()))

    def _check_load(self, partition: RangePartition) -> None:
        requests = self._requests.get(partition.info.id, Counter())
        load = requests.total()
        if load < self._settings.partition_load_max:
            return
        key = self._usable(partition, middle_of_requests(requests))
        if key is not None:
            self._propose(partition, key, "load", load, self._settings.partition_load_max)

    def _usable(self, partition: RangePartition, key: str | None) -> str | None:
        """Return the key if both sides of it would be ranges with keys in them, else None."""
        is_usable = key is not None and partition.info.range.can_split_at(key) and partition.is_divided_by(key)
        return key if is_usable else None

    def _propose(self, partition: RangePartition, key: str, reason: str, weight: int, least: int) -> None:
        """Propose a split to the coordinator, and not again for some checks while the generation stays (KRP-R15)."""
        generation, until = self._triggered.get(partition.info.id, (0, 0))
        if generation == partition.info.generation and self._checks < until:
            return
        self._triggered[partition.info.id] = (partition.info.generation, self._checks + CHECKS_BETWEEN_PROPOSALS)
        self.ports.trace.emit(SplitProposed(partition.info.id, reason, weight, least))
        trigger = SplitTrigger(partition.info.id, partition.info.generation, key, reason)
        self.ports.network.send(self._coordinator, trigger)
