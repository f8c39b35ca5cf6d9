"""The client of `range-kv`: keeps a copy of the table, asks the host of each partition, and is corrected by it.

A request names the partition and the generation that the client knows. After a refusal the client fetches the table
and asks again. A read without an answer is asked again as well; a write is not, since it may have been executed.

A scan goes through the partitions that overlap its range, in the order of their keys, and asks each for its piece. When
the table changes meanwhile, the missing pieces are looked up anew, and the others stay. So a scan is no snapshot: each
piece is as of the moment when its host answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, UNSUPPORTED, Outcome, OutcomeRegistry, ok
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import (
    KeyRange,
    Partition,
    PartitionMap,
)
from faultline.systems_under_test.patterns.data_partitioning.range_partition import Entries
from faultline.systems_under_test.reference.range_kv.messages import (
    CompareAndSetKey,
    DeleteKey,
    KeyResponse,
    ReadKey,
    ScanKeys,
    WriteKey,
)
from faultline.systems_under_test.reference.range_kv.options import RangeSettings
from faultline.systems_under_test.reference.ranges.messages import ASK_AGAIN, TableRequest, TableResponse
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT, OpenOperation

__all__ = ["DEFINITE_ERRORS", "FUNCTIONS", "NO_HOST_FOUND", "RangeClient"]

FUNCTIONS = ("read", "write", "cas", "delete", "scan")
"""The functions that clients can be asked for; the value of a scan is `[start, end]`, with null for no end."""

NO_HOST_FOUND = "no-host-found"
"""The error when no host served the request in time; each host that was asked refused it."""

DEFINITE_ERRORS = OutcomeRegistry((UNSUPPORTED, NO_HOST_FOUND, CAS_MISMATCH))
"""The errors after which the operation certainly did not and will not happen."""

_PATIENCE_US = 20_000
"""The time that a refused client waits with a table that is no newer than before."""

Change = WriteKey | CompareAndSetKey | DeleteKey
Request = ReadKey | ScanKeys | Change


class RangeClient:
    """One logical client: implements `PortClient` over its ports."""

    def __init__(
        self,
        ports: Ports,
        coordinator: NodeId,
        settings: RangeSettings,
        new_map: Callable[..., PartitionMap] = PartitionMap,
    ) -> None:
        self._ports = ports
        self._coordinator = coordinator
        self._settings = settings
        self._new_map = new_map
        self._map = new_map()
        self._number = 0
        self._operation: Operation | None = None
        self._missing: list[KeyRange] = []
        self._found: Entries = []
        self._is_change_open = False
        self._open = OpenOperation(ports)

    def start(self) -> None:
        """Do nothing: the table is fetched when it is needed."""

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`: read, write, compare and set or delete a key, or scan a range."""
        if operation.f not in FUNCTIONS:
            done(DEFINITE_ERRORS.outcome(UNSUPPORTED))
            return
        self._operation, self._is_change_open = operation, False
        self._missing = self._pieces([KeyRange(*operation.value)]) if operation.f == "scan" else []
        self._found = []
        self._open.begin(done, self._settings.client_timeout_us)
        self._ask_host()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer; one to an earlier request is late, and ignored."""
        if not self._open or message.request_number != self._number:
            return
        if isinstance(message, TableResponse):
            self._handle_table(message)
        elif isinstance(message, KeyResponse):
            self._handle_answer(source, message)

    def _fetch_table(self) -> None:
        if self._open.is_overdue:
            self._give_up()
            return
        self._number += 1
        self._open.expect(self._settings.request_timeout_us, self._fetch_table)
        self._ports.network.send(self._coordinator, TableRequest(self._number))

    def _handle_table(self, message: TableResponse) -> None:
        before, self._map = self._map, self._new_map(message.partitions)
        self._missing = self._pieces(self._missing)
        if self._map.partitions and self._map.partitions != before.partitions:
            self._ask_host()
        else:
            # The host refused under a table that is still the newest: it has yet to do its part of a split or a move.
            self._open.expect(_PATIENCE_US, self._ask_host)

    def _ask_host(self) -> None:
        partition = self._next_partition()
        if self._open.is_overdue:
            self._give_up()
        elif partition is None:
            self._fetch_table()
        else:
            self._send(partition)

    def _next_partition(self) -> Partition | None:
        assert self._operation is not None
        if self._operation.f != "scan":
            return self._map.partition_for(self._operation.key or "")
        return self._map.partition_for(self._missing[0].start) if self._missing else None

    def _pieces(self, ranges: list[KeyRange]) -> list[KeyRange]:
        """Return the ranges, cut at the bounds of the partitions; uncut while there is no table."""
        return [
            partition.range.intersection(each) for each in ranges for partition in self._map.partitions_in(each)
        ] or ranges

    def _send(self, partition: Partition) -> None:
        self._number += 1
        request = self._request_to(partition)
        self._is_change_open = isinstance(request, Change)
        wait_us = self._settings.client_timeout_us if self._is_change_open else self._settings.request_timeout_us
        self._open.expect(wait_us, self._handle_silence)
        self._ports.network.send(NodeId(partition.address), request)

    def _request_to(self, partition: Partition) -> Request:
        operation, number = self._operation, self._number
        assert operation is not None
        key = operation.key or ""
        match operation.f:
            case "read":
                return ReadKey(number, partition.id, partition.generation, key)
            case "write":
                return WriteKey(number, partition.id, partition.generation, key, operation.value)
            case "cas":
                expected, new = operation.value
                return CompareAndSetKey(number, partition.id, partition.generation, key, expected, new)
            case "delete":
                return DeleteKey(number, partition.id, partition.generation, key)
            case _:
                return ScanKeys(number, partition.id, partition.generation, self._missing[0])

    def _handle_silence(self) -> None:
        """Fetch the table again, as the silent host may have let its partition go; give up an open change."""
        if self._is_change_open or self._open.is_overdue:
            self._give_up()
        else:
            self._fetch_table()

    def _give_up(self) -> None:
        self._open.end(DEFINITE_ERRORS.outcome(TIMEOUT if self._is_change_open else NO_HOST_FOUND))

    def _handle_answer(self, source: NodeId, response: KeyResponse) -> None:
        assert self._operation is not None
        if response.error in ASK_AGAIN:
            # Refused before it was executed: the change may be sent again, and a timeout is definite until then.
            self._is_change_open = False
            if self._found:
                self._ports.trace.sometimes("scan-continued")
            self._fetch_table()
        elif response.error is not None:
            self._open.end(DEFINITE_ERRORS.outcome(response.error, source))
        elif self._operation.f == "scan":
            self._handle_piece(source, response.value)
        else:
            self._open.end(ok(response.value, source))

    def _handle_piece(self, source: NodeId, entries: Entries) -> None:
        self._found += entries
        del self._missing[0]
        if self._missing:
            self._ask_host()
        else:
            self._open.end(ok([[key, value] for key, value in self._found], source))
