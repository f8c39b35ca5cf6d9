"""A server of `logged-store`: it alone keeps the keys that fall to it, so nothing of them is elsewhere.

    write ──► queue ──► log ── flushed, as the policy has it ──► map of versions ──► answer
                         │                                            │
    restart: ◄── replay ─┴── what the file lacks ◄── every n entries ─┘── file of versions

Writes pass through the consumer that owns the log, and are applied and answered once they are as safe as the flush
policy makes them. Reads are answered from memory. A disk that refuses ends the process, and the next one recovers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from faultline.harness.world.ports import READY, NodeId, NodeStatus, Ports, Storage
from faultline.systems_under_test.patterns.data_replication.flush_policy import (
    FlushEachAppend,
    FlushInGroups,
    FlushInIntervals,
    FlushPolicy,
    NeverFlush,
)
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions
from faultline.systems_under_test.patterns.data_replication.logged_store import (
    AddCommand,
    Command,
    SetOnceCommand,
    serialize,
)
from faultline.systems_under_test.patterns.data_replication.low_water_mark import LogCleaned, LogCleaner, SnapshotMark
from faultline.systems_under_test.patterns.data_replication.singular_update_queue import QueueFull
from faultline.systems_under_test.patterns.data_replication.snapshot_store import SnapshotStore
from faultline.systems_under_test.patterns.data_replication.versioned_value import VersionCompacted
from faultline.systems_under_test.patterns.data_replication.versioned_value_on_disk import OnDiskVersions
from faultline.systems_under_test.patterns.data_replication.wal_request_consumer import WalRequestConsumer
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog
from faultline.systems_under_test.reference.logged_store.messages import (
    FULL_QUEUE,
    AddToValue,
    CommandApplied,
    ReadValue,
    StoreAnswer,
    StoreOpened,
    WriteValue,
)
from faultline.systems_under_test.reference.logged_store.options import LoggedStoreSettings
from faultline.systems_under_test.reference.logged_store.store import VersionedLoggedStore
from faultline.systems_under_test.reference.shared.handler_table import HandlerTable
from faultline.systems_under_test.reference.shared.key_commands import VERSION_COMPACTED, WRONG_KIND_OF_VALUE

__all__ = ["LoggedStoreNode", "Parts"]


def _each_append(log: WriteAheadLog, _: Ports) -> FlushPolicy:
    return FlushEachAppend(log)


@dataclass(frozen=True, slots=True)
class Parts:
    """The classes that a server is made of."""

    store: type[VersionedLoggedStore] = VersionedLoggedStore
    sessions: type[ClientSessions[str]] = ClientSessions
    versions: type[OnDiskVersions] = OnDiskVersions
    files: type[SnapshotStore] = SnapshotStore
    each_append: Callable[[WriteAheadLog, Ports], FlushPolicy] = _each_append

    def flush_policy(self, settings: LoggedStoreSettings, log: WriteAheadLog, ports: Ports) -> FlushPolicy:
        """Return the policy that the options ask for."""
        if settings.flush_policy == "groups":
            limits = {"group_max": settings.group_max, "linger_us": settings.group_linger_us}
            return FlushInGroups(log, ports.timers, **limits)
        if settings.flush_policy == "interval":
            return FlushInIntervals(log, ports.timers, interval_us=settings.flush_interval_us)
        return NeverFlush(log) if settings.flush_policy == "never" else self.each_append(log, ports)


class LoggedStoreNode:
    """One server: implements `Node` over its ports."""

    def __init__(self, ports: Ports, settings: LoggedStoreSettings, parts: Parts) -> None:
        self.ports = ports
        self.store = parts.store(
            ports.storage,
            segment_size_bytes_max=settings.segment_size_bytes,
            sessions=parts.sessions(),
            versions=parts.versions(),
            versions_kept=settings.versions_kept,
        )
        self._settings = settings
        self._files = parts.files(ports.storage, name="versions", retained=settings.files_retained)
        self._stored_index = 0
        self._waiting = 0
        self._writer = WalRequestConsumer(
            self.store.log,
            capacity=settings.queue_max,
            schedule=self._gather if settings.batch_linger_us else None,
            policy=parts.flush_policy(settings, self.store.log, ports),
        )
        self._handlers = HandlerTable(
            {ReadValue: self._handle_read, WriteValue: self._handle_write, AddToValue: self._handle_add}
        )

    def start(self) -> None:
        """Read the newest file and the log after it; then store and clean as time goes on."""
        log, trace = self.store.log, self.ports.trace
        bytes_found = _stored_bytes(self.ports.storage)
        newest = self._files.recover()
        self.store.open(newest)
        self._files.require_reach(log.last_index)
        if _stored_bytes(self.ports.storage) < bytes_found:
            trace.sometimes("torn-tail-dropped")
        if newest is not None:
            self._stored_index = newest.index
            trace.sometimes("versions-read-from-file")
        if log.last_index > self._stored_index:
            trace.sometimes("entries-replayed")
        trace.emit(
            StoreOpened(
                found=self.store.found_index,
                last=log.last_index,
                applied=self.store.last_applied,
                checksum=self.store.checksum(),
            )
        )
        mark = SnapshotMark(lambda: self._files.low_water_mark)
        LogCleaner(
            self.ports.timers, self._settings.log_cleaning_interval_us, log, mark, self._report_cleaned
        ).startup()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take a request of a client."""
        self._handlers[type(message)](source, message)

    def status(self) -> NodeStatus:
        """Return how far the log reaches; no server leads another."""
        detail = {"last_index": self.store.log.last_index, "applied": self.store.last_applied}
        return NodeStatus(role=READY, generation=0, detail=detail)

    def _handle_read(self, source: NodeId, request: ReadValue) -> None:
        version = request.version or self.store.last_applied
        try:
            value = self.store.at(request.key, version)
        except VersionCompacted:
            self.ports.trace.sometimes("version-compacted-refused")
            self._answer(source, StoreAnswer(request.request_number, VERSION_COMPACTED))
            return
        self._answer(source, StoreAnswer(request.request_number, None, value, version))

    def _handle_write(self, source: NodeId, request: WriteValue) -> None:
        command = SetOnceCommand(request.client, request.request_number, request.key, request.value)
        self._change(source, request.request_number, command)

    def _handle_add(self, source: NodeId, request: AddToValue) -> None:
        command = AddCommand(request.client, request.request_number, {request.key: request.amount})
        self._change(source, request.request_number, command)

    def _change(self, source: NodeId, number: int, command: Command) -> None:
        """Queue a command for the log; it is applied and answered when it is safe."""
        try:
            self._writer.accept(serialize(command), lambda index: self._logged(index, source, number, command), _end)
        except QueueFull:
            self.ports.trace.sometimes("full-queue-refused")
            self._answer(source, StoreAnswer(number, FULL_QUEUE))

    def _logged(self, index: int, source: NodeId, number: int, command: Command) -> None:
        answer, executed = self.store.apply(self.store.log.entry(index))
        self.ports.trace.emit(CommandApplied(index, self.store.checksum()))
        if answer is not None and not executed:
            self.ports.trace.sometimes("repeated-request-answered")
        if answer is not None:
            self._answer(source, _answer_to(command, number, index, answer))
        if index >= self._stored_index + self._settings.store_every_entries:
            self._store_versions()

    def _store_versions(self) -> None:
        stored = self.store.take_snapshot()
        self._files.publish(stored)
        self._stored_index = stored.index
        self.ports.trace.sometimes("versions-stored")

    def _answer(self, client: NodeId, answer: StoreAnswer) -> None:
        self.ports.network.send(client, answer)

    def _gather(self, drain: Callable[[], None]) -> None:
        """Let the consumer run a little later, for all that has come by then."""

        def run() -> None:
            before = self.store.log.last_index
            drain()
            if self.store.log.last_index > before + 1:
                self.ports.trace.sometimes("writes-gathered")

        self.ports.timers.after(self._settings.batch_linger_us, run)

    def _report_cleaned(self, cleaned: LogCleaned) -> None:
        if cleaned.deleted:
            self.ports.trace.sometimes("log-cleaned")


def _answer_to(command: Command, number: int, index: int, answer: str) -> StoreAnswer:
    if not answer:
        return StoreAnswer(number, WRONG_KIND_OF_VALUE)
    if isinstance(command, AddCommand):
        return StoreAnswer(number, None, answer, index)
    return StoreAnswer(number, None, None, int(answer))


def _end(error: Exception) -> None:
    """End the process: whether the log took a request is unknown, and only a recovery finds out."""
    raise error


def _stored_bytes(storage: Storage) -> int:
    return sum(len(storage.read(file)) for file in storage.files())
