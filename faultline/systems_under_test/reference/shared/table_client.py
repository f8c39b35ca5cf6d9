"""A client that keeps a copy of the partition table, asks the node that it names, and looks again when that was wrong.

It asks an informant for the table: one node after the other, until one answers. All attempts of one operation carry the
same number, so a write is executed once however often it is sent, also when its partition moves in between. A refusal
says that *this* attempt was not executed; an earlier one may have been. So only an operation that was never sent is
definitely over without effect; all others without an answer in time are unknown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from faultline.harness.operation import Operation
from faultline.harness.outcome import UNSUPPORTED, Outcome, OutcomeRegistry, ok
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.shared.key_commands import Command
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT, OpenOperation

__all__ = ["NO_TABLE", "TableClient", "TableSettings"]

NO_TABLE = "no-partition-table"
"""The error when no owner of the key's partition was known in time, so that the request was never sent."""

_PAUSE_US = 20_000


class _Table(Protocol):
    @property
    def version(self) -> int: ...


Table = TypeVar("Table", bound=_Table)
KeyCommand = TypeVar("KeyCommand", bound=Command)


class TableSettings(Protocol):
    """The times that such a client waits, in microseconds."""

    @property
    def client_timeout_us(self) -> int:
        """The time after which it gives up."""

    @property
    def request_timeout_us(self) -> int:
        """The time after which it asks again."""

    @property
    def table_refresh_us(self) -> int:
        """The time after which it asks for the table again, unless a refusal comes first."""


class TableClient(ABC, Generic[Table, KeyCommand]):
    """One logical client: implements `PortClient` but for its messages. `informant` is one of `members`."""

    def __init__(
        self, ports: Ports, members: tuple[NodeId, ...], informant: NodeId, settings: TableSettings, table: Table
    ) -> None:
        self._ports = ports
        self._members = members
        self._informant = informant
        self._times = settings
        self._table = table
        self._table_us = 0
        self._number = 0
        self._was_sent = False
        self._command: KeyCommand | None = None
        self._open = OpenOperation(ports)

    _registry: OutcomeRegistry

    @abstractmethod
    def _command_of(self, operation: Operation) -> KeyCommand | None:
        """Return the command to send for `operation`; None when there is none."""

    @abstractmethod
    def _ask_for_table(self) -> None:
        """Ask the informant for the table."""

    @abstractmethod
    def _request(self, command: KeyCommand) -> tuple[NodeId, Any] | None:
        """Return the node to ask, and the request; None while the table names no node."""

    def start(self) -> None:
        """Ask for the table."""
        self._ask_for_table()

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`, and call `done` once."""
        command = self._command_of(operation)
        if command is None:
            done(self._registry.outcome(UNSUPPORTED))
            return
        self._number += 1
        self._was_sent = False
        self._command = command
        self._open.begin(done, self._times.client_timeout_us)
        if self._ports.clock.monotonic_us() - self._table_us > self._times.table_refresh_us:
            self._ask_for_table()
        self._transmit()

    def _is_awaited(self, message: Any) -> bool:
        """Return whether a message belongs to the open operation; one to an earlier request is late, and ignored."""
        return bool(self._open) and message.request_number == self._number

    def _take_answer(self, source: NodeId, value: Any, error: str | None) -> None:
        self._open.end(ok(value, source) if error is None else self._registry.outcome(error, source))

    def _take_table(self, table: Table) -> None:
        self._table_us = self._ports.clock.monotonic_us()
        if table.version > self._table.version:
            self._table = table
            if self._open and not self._was_sent:
                self._transmit()

    def _transmit(self) -> None:
        assert self._command is not None
        request = self._request(self._command)
        if request is None:
            self._pause()
            return
        self._was_sent = True
        self._ports.network.send(*request)
        self._open.expect(self._times.request_timeout_us, self._handle_silence)

    def _pause(self) -> None:
        """Wait for a moment: the owner may be known soon."""
        self._open.expect(_PAUSE_US, self._try_again)

    def _handle_silence(self) -> None:
        """Ask another node for the table, because the owner is silent and the informant may be, too."""
        self._ports.trace.sometimes("client-retried")
        members = self._members
        self._informant = members[(members.index(self._informant) + 1) % len(members)]
        self._try_again()

    def _try_again(self) -> None:
        if self._open.is_overdue:
            self._open.end(self._registry.outcome(TIMEOUT if self._was_sent else NO_TABLE))
            return
        self._ask_for_table()
        self._transmit()
