"""The owner of one partition in one generation: it brings the backups level, counts their writes, and answers.

    write ──▶ own copy ──▶ all backups ──▶ client
    read  ──▶ what all backups have ──▶ client

A write is acknowledged when every backup has it, so that each of them can be promoted. Readers are shown only writes
that all backups have, because any other could still vanish. No request is answered before all backups have this
generation's content, nor before the lease of a silent owner has run out, nor without an own lease. Answers that must
wait are kept, and leave as soon as nothing stands in their way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import Answer, Written
from faultline.systems_under_test.patterns.data_replication.high_water_mark import ValuesBelowMark
from faultline.systems_under_test.reference.data_grid.copies import GridCopies, GridCopy
from faultline.systems_under_test.reference.data_grid.lease import MajorityLease
from faultline.systems_under_test.reference.data_grid.messages import (
    CopyStored,
    DropCopy,
    GridRequest,
    GridResponse,
    InstallCopy,
    ReplicateToBackup,
    RequestServed,
    WriteAccepted,
)
from faultline.systems_under_test.reference.data_grid.options import GridSettings
from faultline.systems_under_test.reference.data_grid.table import NO_TABLE_YET, Entry, GridTable
from faultline.systems_under_test.reference.shared.key_commands import GetValue, executed

__all__ = ["PartitionOwner"]

_NOTHING_YET = -1


class _Waiting(NamedTuple):
    """An answer that waits until all backups have the first `number` writes; `key` is that of the command."""

    number: int
    client: NodeId
    answer: Answer
    key: str


class PartitionOwner:
    """One ownership: it ends when a table names another generation."""

    def __init__(
        self,
        ports: Ports,
        settings: GridSettings,
        copies: GridCopies,
        lease: MajorityLease,
        send: Callable[[str, Any], None],
        partition: int,
        entry: Entry,
    ) -> None:
        self._ports = ports
        self._settings = settings
        self._lease = lease
        self._send = send
        self.partition = partition
        self.generation = entry.generation
        self.backups = tuple(holder.address for holder in entry.holders[1:])
        self.copy: GridCopy = copies.begin(partition, entry.generation)
        self._copies = copies
        self._begun_with = self.copy.number
        self._stored: dict[str, int] = {}
        self._others_know = False
        self._seen: dict[str, int] = {}
        self._seen_number = self.copy.number
        self._shown = ValuesBelowMark(self.copy.values)
        self._reads: deque[_Waiting] = deque()
        self._writes: deque[_Waiting] = deque()
        self._table = NO_TABLE_YET
        self._is_at_risk = False
        self.is_waiting = entry.after_silence
        if entry.after_silence:
            ports.trace.sometimes("old-lease-awaited")
            ports.timers.after(settings.silence_us, self._end_waiting)
        for backup in self.backups:
            self._install(backup)

    def follow(self, table: GridTable, *, is_at_risk: bool) -> None:
        """Serve under `table`. Writes are at risk in a group without a majority, as a merge may drop them."""
        self._table = table
        self._is_at_risk = is_at_risk
        if not is_at_risk:
            self.copy.at_risk.clear()
        self.advance()

    def serve(self, client: NodeId, request: GridRequest) -> None:
        """Execute a request unless that was done before; answer as soon as the answer cannot vanish any more."""
        command = request.command
        if isinstance(command, GetValue):
            answer = Answer(request.request_number, None, self._readable(command.key))
            self._reads.append(_Waiting(max(self._mark(), self._begun_with), client, answer, command.key))
            self.advance()
            return
        known = self._known_answer(client)
        if known is not None and request.request_number <= known.request_number:
            # The known answer waits like a new one: some backup may lack the write that it belongs to.
            self._ports.trace.sometimes("duplicate-answered")
            self._await(client, known, command.key)
            return
        before = self.copy.values.get(command.key)
        result = executed(before, command)
        self._shown.wrote(self.copy.number + 1, command.key, before)
        answer = Answer(request.request_number, result.error, result.answer)
        self._write(Written(self.partition, command.key, result.value, client, answer))
        self._await(client, answer, command.key)

    def _readable(self, key: str) -> Any:
        return self._shown.value(key)

    def _known_answer(self, client: NodeId) -> Answer | None:
        return self.copy.answers.get(client)

    def _write(self, written: Written) -> None:
        number = self.copy.number + 1
        self._copies.take(self.generation, number, written, is_at_risk=self._is_at_risk)
        for backup in self.backups:
            self._send(backup, ReplicateToBackup(self.generation, number, written, self._is_at_risk))

    def _await(self, client: NodeId, answer: Answer, key: str) -> None:
        self._writes.append(_Waiting(self.copy.number, client, answer, key))
        self.advance()

    def _install(self, backup: str) -> None:
        copy = self.copy
        self._send(backup, InstallCopy(self.partition, self.generation, copy.number, copy.content(), copy.at_risk))

    def take_stored(self, backup: str, message: CopyStored) -> None:
        """Note the writes that a backup has."""
        if message.generation == self.generation:
            self._stored[backup] = max(message.number, self._stored.get(backup, _NOTHING_YET))
            self.advance()

    def look_around(self) -> None:
        """Send the content again to backups that have lagged behind since the last look and come no further."""
        for backup in self.backups:
            stored = self._stored.get(backup, _NOTHING_YET)
            if stored == self._seen.get(backup) and stored < self._seen_number:
                self._ports.trace.sometimes("copy-sent-again")
                self._install(backup)
            self._seen[backup] = stored
        self._seen_number = self.copy.number

    def advance(self) -> None:
        """Answer the clients whose answers are on all backups, if this owner may answer now."""
        mark = self._mark()
        if mark < self._begun_with:
            return
        self._shown.advance_to(mark)
        is_due = bool(self._reads) or (bool(self._writes) and self._writes[0].number <= mark)
        if not is_due and self._others_know:
            return
        if not self._lease.is_held():
            self._ports.trace.sometimes("lease-missing")
            return
        if not self._others_know:
            self._tell_the_others()
        if not self.is_waiting:
            self._answer_clients(mark)

    def _answer_clients(self, mark: int) -> None:
        while self._reads:
            self._answer(self._reads.popleft(), is_write=False)
        while self._writes and self._writes[0].number <= mark:
            self._answer(self._writes.popleft(), is_write=True)

    def _mark(self) -> int:
        """Return the number of the last write that all backups have."""
        return min((self._stored.get(backup, _NOTHING_YET) for backup in self.backups), default=self.copy.number)

    def _answer(self, waiting: _Waiting, *, is_write: bool) -> None:
        answer = waiting.answer
        self._ports.trace.emit(
            RequestServed(
                self.partition,
                self.generation,
                waiting.number,
                self.backups,
                self._table.version,
                self._lease.needed,
                self._settings.lease_us,
                self._settings.minimum_size == "majority",
            )
        )
        if is_write and answer.error is None and self._is_at_risk:
            self._ports.trace.emit(WriteAccepted(self.partition, waiting.key))
        self._ports.network.send(waiting.client, GridResponse(answer.request_number, answer.value, answer.error))

    def _tell_the_others(self) -> None:
        """Let older copies go. A lease is held, so every later coordinator learns of this generation."""
        self._others_know = True
        for address in self._table.members:
            if address not in (self._ports.node_id, *self.backups):
                self._send(address, DropCopy(self.partition, self.generation))

    def end(self) -> None:
        """Answer no client any more: another generation has begun, and clients ask again there."""
        self._reads.clear()
        self._writes.clear()
        self._others_know = True

    def _end_waiting(self) -> None:
        self.is_waiting = False
        self.advance()
