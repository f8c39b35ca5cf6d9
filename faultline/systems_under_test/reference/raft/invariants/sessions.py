"""The invariants of client sessions, checked on what servers report while a run goes on.

Ids are those of the requirements: IDR idempotent receiver. I5 is not here: it speaks of what clients were told, and the
workloads `counter` and `transfer` judge it.

`needs_order` is true for the one that compares times of different servers.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.invariant import Report, ReportingInvariant
from faultline.systems_under_test.reference.shared.trace_events import (
    DuplicateAnswered,
    EntryApplied,
    SessionsEnded,
    SessionsSeen,
)

__all__ = [
    "SESSION_INVARIANTS",
    "AnswersAreKeptWithinBounds",
    "ClientIdsAreUnique",
    "CommandsTakeEffectOnce",
    "DuplicatesGetOneAnswer",
    "LiveSessionsStay",
    "SessionsAgree",
    "UnknownClientsAreRefused",
]

_CLOCK_RATE_MAX = 2.1
"""The rate at which a leader's clock may count the time of a session.

The fault sets `fast-node` and `runaway-clocks` let it run at twice its rate, and weather adds a thousandth.
"""


class CommandsTakeEffectOnce(ReportingInvariant):
    """IDR-I1: all servers execute a request at one and the same entry."""

    id = "IDR-I1"
    statement = "A client's request takes effect at most once."
    events = (EntryApplied,)

    def __init__(self) -> None:
        self._executed: dict[tuple[int, int], int] = {}

    def observe(self, time_us: int, node: str, event: EntryApplied, report: Report) -> None:
        """Remember at which entry the request was executed."""
        if not event.executed or not event.client_id:
            return
        first = self._executed.setdefault((event.client_id, event.request_number), event.index)
        if first != event.index:
            sentence = (
                f"Request {event.request_number} of client {event.client_id} was executed at entry {first}"
                f" and again at entry {event.index}."
            )
            self._breach(report, time_us, node, sentence)


class DuplicatesGetOneAnswer(ReportingInvariant):
    """IDR-R5, the second half of IDR-I1: a retry is told the same by every leader."""

    id = "IDR-R5"
    statement = "All answers to repetitions of one request are equal."
    events = (DuplicateAnswered,)

    def __init__(self) -> None:
        self._answers: dict[tuple[int, int], int] = {}

    def observe(self, time_us: int, node: str, event: DuplicateAnswered, report: Report) -> None:
        """Compare with the answer to the first repetition."""
        if self._answers.setdefault((event.client_id, event.request_number), event.checksum) != event.checksum:
            request = f"request {event.request_number} of client {event.client_id}"
            self._breach(report, time_us, node, f"{node} answered a repetition of {request} differently.")


class ClientIdsAreUnique(ReportingInvariant):
    """IDR-I2: a registration is applied under the number 0, and the id is the index of its entry."""

    id = "IDR-I2"
    statement = "No two registrations give the same client id."
    events = (EntryApplied,)

    def __init__(self) -> None:
        self._registered: dict[int, int] = {}

    def observe(self, time_us: int, node: str, event: EntryApplied, report: Report) -> None:
        """Remember which entry gave the id."""
        if event.request_number or not event.client_id:
            return
        first = self._registered.setdefault(event.client_id, event.index)
        if first != event.index:
            sentence = f"Entries {first} and {event.index} both gave a client the id {event.client_id}."
            self._breach(report, time_us, node, sentence)


class SessionsAgree(ReportingInvariant):
    """IDR-I3, at every 32nd entry."""

    id = "IDR-I3"
    statement = "Servers that have applied the same entries hold the same sessions with the same answers."
    events = (SessionsSeen,)

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, int, str]] = {}

    def observe(self, time_us: int, node: str, event: SessionsSeen, report: Report) -> None:
        """Compare with the first server that reported this entry."""
        sessions, checksum, first = self._seen.setdefault(event.index, (event.sessions, event.checksum, node))
        if checksum != event.checksum:
            sentence = (
                f"After entry {event.index} the {event.sessions} sessions of {node} are not the {sessions} of {first}."
            )
            self._breach(report, time_us, node, sentence)


class AnswersAreKeptWithinBounds(ReportingInvariant):
    """IDR-I4, for the policies that have a bound."""

    id = "IDR-I4"
    statement = "No client has more saved answers than the discard policy allows."
    events = (SessionsSeen,)

    def observe(self, time_us: int, node: str, event: SessionsSeen, report: Report) -> None:
        """Compare the largest session with the bound."""
        if event.responses_max is not None and event.responses_most > event.responses_max:
            sentence = f"{node} keeps {event.responses_most} answers of one client, {event.responses_max} are allowed."
            self._breach(report, time_us, node, sentence)


class LiveSessionsStay(ReportingInvariant):
    """IDR-R14: between the last request that was applied and the end of its session lies the timeout.

    The leader counts it by its own clock, which may be fast.
    """

    id = "IDR-R14"
    statement = "A session that is in use does not expire."
    events = (EntryApplied, SessionsEnded)
    broken_by = (SessionsEnded,)
    needs_order = True

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int]] = {}
        self._ended: set[int] = set()

    def observe(self, time_us: int, node: str, event: EntryApplied | SessionsEnded, report: Report) -> None:
        """Remember when each client's newest entry was first applied; look back when its session ends."""
        if type(event) is EntryApplied:
            if event.client_id and event.index > self._last.get(event.client_id, (0, 0))[0]:
                self._last[event.client_id] = (event.index, time_us)
            return
        assert type(event) is SessionsEnded
        if event.index not in self._ended:
            self._ended.add(event.index)
            for client_id in event.client_ids:
                self._compare(time_us, node, client_id, event, report)

    def _compare(self, time_us: int, node: str, client_id: int, event: SessionsEnded, report: Report) -> None:
        index, last_us = self._last.get(client_id, (event.index, 0))
        idle_us = time_us - last_us
        if index < event.index and idle_us * _CLOCK_RATE_MAX < event.timeout_us:
            sentence = (
                f"The session of client {client_id} ended {idle_us // 1_000} ms after its last request was applied;"
                f" sessions live {event.timeout_us // 1_000} ms."
            )
            self._breach(report, time_us, node, sentence)


class UnknownClientsAreRefused(ReportingInvariant):
    """IDR-R16: by the log alone, so that the order of reports does not matter."""

    id = "IDR-R16"
    statement = "No command is executed for a client whose session has ended."
    events = (SessionsEnded, EntryApplied)

    def __init__(self) -> None:
        self._ended: dict[int, int] = {}

    def observe(self, time_us: int, node: str, event: SessionsEnded | EntryApplied, report: Report) -> None:
        """Remember at which entry a session ended; what is executed for its client later is wrong."""
        if type(event) is SessionsEnded:
            self._ended |= dict.fromkeys(event.client_ids, event.index)
        elif self._ended and type(event) is EntryApplied and event.executed:
            ended = self._ended.get(event.client_id)
            if ended is not None and event.index > ended:
                sentence = (
                    f"{node} executed request {event.request_number} of client {event.client_id} at entry"
                    f" {event.index}; its session had ended at entry {ended}."
                )
                self._breach(report, time_us, node, sentence)


SESSION_INVARIANTS: tuple[Any, ...] = (
    CommandsTakeEffectOnce,
    DuplicatesGetOneAnswer,
    ClientIdsAreUnique,
    SessionsAgree,
    AnswersAreKeptWithinBounds,
    LiveSessionsStay,
    UnknownClientsAreRefused,
)
"""The class of each invariant."""
