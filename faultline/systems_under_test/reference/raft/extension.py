"""Something that a Raft server does beside its log, and the server as such an extension sees it.

An extension knows the server by `ExtendedServer` alone. Elections, replication and files may change without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.leader_reads import LeaderReads, LedLog
from faultline.systems_under_test.patterns.data_replication.log_entry import LogEntry
from faultline.systems_under_test.reference.shared.handler_table import Handlers

__all__ = ["ExtendedServer", "ReplicatedEntries", "ServerExtension", "StoredEntries"]


class ReplicatedEntries(LedLog, Protocol):
    """The replicated log, as an extension sees it."""

    def append_and_replicate(self, kind: int, data: bytes) -> int:
        """Append a command, on a leader, and return its index; it is applied once it is committed."""


class StoredEntries(Protocol):
    """The log on the disk of a server, as an extension sees it: its last entries may not be committed."""

    @property
    def last_index(self) -> int:
        """The index of the newest entry."""

    def entry(self, index: int) -> LogEntry:
        """Return the entry at `index`."""


class _Times(Protocol):
    @property
    def heartbeat_interval_us(self) -> int:
        """The interval at which a leader shows that it lives."""

    @property
    def client_timeout_us(self) -> int:
        """The time after which a client gives up."""


class _SignsOfLife(Protocol):
    def refresh(self, client_id: int) -> None:
        """Note a sign of life of a client with a session."""


class ExtendedServer(Protocol):
    """A Raft server, as its extensions see it."""

    @property
    def ports(self) -> Ports:
        """The ports of the node."""

    @property
    def settings(self) -> _Times:
        """The times that an extension keeps to as well."""

    @property
    def log(self) -> ReplicatedEntries:
        """The replicated log."""

    @property
    def wal(self) -> StoredEntries:
        """The same log on the disk."""

    @property
    def reads(self) -> LeaderReads:
        """The reads that a leader answers beside the log."""

    @property
    def sessions(self) -> _SignsOfLife:
        """The sessions of clients."""

    @property
    def leads(self) -> bool:
        """True on a server that leads, as far as it knows."""

    @property
    def leader_id(self) -> NodeId | None:
        """The leader, as far as this server knows it."""

    def enter(self, run: Callable[[], None]) -> None:
        """Run it on the update queue, when nothing else runs."""

    def handle(self, source: NodeId, message: Any) -> None:
        """Handle a message that came inside another one, as part of the same event."""

    def propose(self, reply: Any, data: bytes) -> None:
        """Append a command, on a leader; `reply` gets the answer once it is applied."""


class ServerExtension:
    """Something that a server does beside its log. A method that an extension does not override does nothing.

    At the beginning of a leadership, and with requests of clients, the first extension is asked first; everywhere else
    the last one is, so that extensions are nested like brackets.
    """

    def handlers(self) -> Handlers:
        """Return the handlers of the messages that only this extension takes."""
        return {}

    def start(self) -> None:
        """Begin; the log has been recovered."""

    def arrived(self, message: Any) -> None:
        """Take note of a message before the server handles it."""

    def handled(self) -> None:
        """Look at what the message has changed."""

    def takes(self, source: NodeId, request: Any) -> bool:
        """Handle a request of a client in place of the server; return False to leave it to others."""
        return False

    def logged(self, data: bytes) -> bytes:
        """Return the bytes to log for the command `data` of a client, on a leader."""
        return data

    def start_leading(self, no_op_index: int) -> None:
        """Begin the work of a leader; the server's own first entry will stand at `no_op_index`."""

    def stop_leading(self) -> None:
        """End the work of a leader: the server leads no longer."""

    def beat(self) -> None:
        """Do what is due at the interval of heartbeats, on a leader."""

    def applied(self, entry: LogEntry) -> None:
        """Look at what a committed entry has changed. A command was just executed; a leader's no-op changes nothing."""
