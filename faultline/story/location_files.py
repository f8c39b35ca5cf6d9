"""A single server that keeps each location's widgets in a file of its own, with an undo or a redo log before the files.

*Problem.* A transfer changes two files. A crash between them destroys widgets, or makes some.

*Idea.* One record, which is written at once or not at all, goes to a write-ahead log before any file is touched. With
`recovery=undo` it holds the counts from before: after a crash the files are set back, so the server may answer only
when both are written. With `recovery=redo` it holds the counts to come: after a crash the files are set forward, so the
server may answer as soon as the record is durable. A second record says that a transfer is over. With `recovery=none`
there is no log.

The files are written one by one, each from a timer, so that a crash can fall between them. A file is replaced by a
rename. Requests that arrive meanwhile wait. Recovery writes whole counts, so a crash during it does no harm.

*Does not tolerate.* The loss of the disk.

The system is for the story alone: it is not in the registry, and no campaign runs it.

Sources: Patterns of Distributed Systems ch. 2, "Keeping data resilient on a single server"; Mohan et al., "ARIES" (TODS
1992), for the two kinds of record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.harness.system import OptionDescription, PlantedBug, PortClient
from faultline.harness.world.ports import NodeId, NodeStatus, Ports
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import DATA, LogEntry, WriteAheadLog
from faultline.systems_under_test.reference.shared.key_commands import INSUFFICIENT_QUANTITY
from faultline.workloads.transfer import OPENING

__all__ = ["FILES", "FilesAtRest", "LocationFiles", "LocationServer", "Move", "Moved", "WidgetsAreConserved"]

FILES = {"boston": "bos.json", "philadelphia": "phl.json", "london": "lon.json", "pune": "pnq.json"}
"""The file of each location."""

_ONE_FILE_US = 1_000
_COUNTS = msgspec.json.Decoder(int)


class Move(msgspec.Struct, frozen=True, tag="move"):
    """Request `number`: move widgets from one location to another."""

    number: int
    source: str
    target: str
    amount: int


class Moved(msgspec.Struct, frozen=True, tag="moved"):
    """The answer to request `number`: done, or the code of an error."""

    number: int
    error: str | None = None


class _Record(msgspec.Struct, frozen=True):
    """An entry of the log: the counts that recovery writes; none of them says that the transfer before is over."""

    counts: dict[str, int] = {}


class FilesAtRest(msgspec.Struct, frozen=True):
    """The counts in the files while no transfer is under way."""

    counts: dict[str, int]


class LocationServer:
    """The server: implements `Node`."""

    def __init__(self, ports: Ports, recovery: str) -> None:
        self.ports = ports
        self.log = WriteAheadLog(ports.storage, name="transfers")
        self._recovery = recovery
        self._waiting: deque[tuple[NodeId, Move]] = deque()
        self._to_write: deque[tuple[str, int]] = deque()
        self._present: tuple[NodeId, Move] | None = None

    def start(self) -> None:
        """Create the files that are missing, and finish or take back the transfer that a crash interrupted."""
        self.log.recover()
        for location, count in OPENING.items():
            if FILES[location] not in self.ports.storage.files():
                self._write(location, count)
        record = self._last_record()
        for location, count in record.counts.items():
            self._write(location, count)
        if record.counts:
            self._append(_Record())
        self.ports.trace.emit(FilesAtRest(self.counts()))

    def receive(self, source: NodeId, message: Any) -> None:
        """Begin a transfer, when the one before is over."""
        if isinstance(message, Move):
            self._waiting.append((source, message))
            self._begin_next()

    def status(self) -> NodeStatus:
        """Return the state of the server, which leads itself."""
        return NodeStatus(role="leader", generation=0, leader=self.ports.node_id)

    def counts(self) -> dict[str, int]:
        """Return the counts in the files."""
        return {location: _COUNTS.decode(self.ports.storage.read(file)) for location, file in FILES.items()}

    def _begin_next(self) -> None:
        if self._present is not None or not self._waiting:
            return
        self._present = client, move = self._waiting.popleft()
        before = self.counts()
        if before[move.source] < move.amount:
            self._present = None
            self.ports.network.send(client, Moved(move.number, INSUFFICIENT_QUANTITY))
            return
        after = {move.source: before[move.source] - move.amount, move.target: before[move.target] + move.amount}
        self._log_first({location: before[location] for location in after}, after)
        if self._may_answer_early():
            self.ports.network.send(client, Moved(move.number))
        self._to_write.extend(after.items())
        self.ports.timers.after(_ONE_FILE_US, self._write_next)

    def _write_next(self) -> None:
        self._write(*self._to_write.popleft())
        if self._to_write:
            self.ports.timers.after(_ONE_FILE_US, self._write_next)
            return
        assert self._present is not None
        client, move = self._present
        if self._recovery != "none":
            self._append(_Record())
        if not self._may_answer_early():
            self.ports.network.send(client, Moved(move.number))
        self._present = None
        self.ports.trace.emit(FilesAtRest(self.counts()))
        self._begin_next()

    def _write(self, location: str, count: int) -> None:
        storage, file = self.ports.storage, FILES[location]
        storage.write(f"{file}.new", msgspec.json.encode(count))
        storage.fsync(f"{file}.new")
        storage.rename(f"{file}.new", file)
        storage.fsync_folder()

    def _append(self, record: _Record) -> None:
        self.log.append(LogEntry(self.log.last_index + 1, 0, DATA, msgspec.msgpack.encode(record)))
        self.log.flush()

    def _last_record(self) -> _Record:
        last = self.log.last_index
        return msgspec.msgpack.decode(self.log.entry(last).data, type=_Record) if last else _Record()

    # Each step below is a method of its own, so that a planted bug can override it.

    def _log_first(self, before: dict[str, int], after: dict[str, int]) -> None:
        """Make durable what recovery needs, before any file is touched."""
        if self._recovery != "none":
            self._append(_Record(before if self._recovery == "undo" else after))

    def _may_answer_early(self) -> bool:
        """Return whether a crash from now on still ends with the transfer done."""
        return self._recovery == "redo"


class _AnswersBeforeTheFiles(LocationServer):
    """It answers once the undo record is durable; a crash then takes back a transfer that was acknowledged."""

    def _may_answer_early(self) -> bool:
        return self._recovery != "none"


class _LogsNothing(LocationServer):
    """It touches the files with no record before; a crash between them destroys widgets, or makes some."""

    def _log_first(self, before: dict[str, int], after: dict[str, int]) -> None:
        pass


class WidgetsAreConserved(ReportingInvariant):
    """No transfer, crash or recovery makes or destroys widgets."""

    id = "SYS-R9"
    statement = "The widgets of all locations always add up to the same total, and no location holds fewer than none."
    events = (FilesAtRest,)

    def observe(self, time_us: int, node: str, event: FilesAtRest, report: Report) -> None:
        """Add up the counts of a server at rest."""
        total = sum(event.counts.values())
        if total != sum(OPENING.values()) or min(event.counts.values()) < 0:
            self._breach(report, time_us, node, f"The files of {node} hold {total} widgets of {sum(OPENING.values())}.")


_BUGS: dict[str, type[LocationServer]] = {
    "answers-before-the-files": _AnswersBeforeTheFiles,
    "logs-nothing": _LogsNothing,
}


def _planted(name: str, row: str, kind: type[LocationServer]) -> PlantedBug:
    return PlantedBug(
        name=name,
        pattern="write-ahead-log",
        id=row,
        summary=str(kind.__doc__),
        shows_as="the scene two-files gives other counts",
        campaign="",
        caught_by=("SYS-R9",),
    )


class LocationFiles:
    """The system: one such server."""

    name = "location-files"
    promise = "A transfer between two files happens whole or not at all."
    summary = "one server with a file for each location and an undo or redo log; plays the story's first scene"
    patterns: tuple[str, ...] = ("write-ahead-log",)
    functions: tuple[str, ...] = ("transfer",)
    options: Mapping[str, OptionDescription] = {
        "recovery": OptionDescription(
            default="redo", choices=("redo", "undo", "none"), summary="what the log holds, by which a crash is repaired"
        )
    }
    planted_bugs: Mapping[str, PlantedBug] = {
        name: _planted(name, row, _BUGS[name])
        for name, row in (("answers-before-the-files", "WAL-M1"), ("logs-nothing", "WAL-M1"))
    }
    messages: tuple[type[msgspec.Struct], ...] = (Move, Moved)

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> LocationServer:
        """Return the server, or the one that a planted bug puts in its place."""
        kind = next((_BUGS[name] for name in planted_bugs), LocationServer)
        return kind(ports, options.get("recovery", "redo"))

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> PortClient:
        """Fail: stories play their clients themselves."""
        raise AssertionError("location-files has no clients of its own")

    def invariants(self) -> list[Invariant]:
        """Return the invariant of the total."""
        return [WidgetsAreConserved()]
