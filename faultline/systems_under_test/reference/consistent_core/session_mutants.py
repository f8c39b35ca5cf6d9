"""The planted bugs of `consistent-core` that break the idempotent receiver; see `mutants`.

They break consistent-core for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from faultline.harness.system import Mutant
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions, Session
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ServerRole
from faultline.systems_under_test.patterns.data_replication.session_expiry import SessionExpiry
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import LogEntry
from faultline.systems_under_test.reference.consistent_core.parts import CoreParts
from faultline.systems_under_test.reference.raft.client import KeyValueClient
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.raft.key_value_store import Applied, KeyValueStore
from faultline.systems_under_test.reference.raft.sessions import discard_policy
from faultline.systems_under_test.reference.shared.client_messages import ClientRequest, ClientResponse

__all__ = ["SESSION_CHANGES", "SESSION_MUTANTS"]

_SHORT_SESSIONS = {"session_timeout_ms": "150", "session_check_ms": "50"}

SESSION_MUTANTS = (
    Mutant(
        name="no-duplicate-detection",
        pattern="idempotent-receiver",
        id="IDR-M1, CC-M6",
        summary="a retried request is executed again",
        shows_as="a compare-and-set fails that took effect; an old value comes back after a newer one",
        campaign="retries",
        caught_by=("IDR-I1", "linearizability"),
    ),
    Mutant(
        name="duplicates-known-to-the-leader",
        pattern="idempotent-receiver",
        id="IDR-M2",
        summary="the leader recognises retries when it receives them, by a table in its own memory",
        shows_as="after a leader change a retry is executed again",
        campaign="leadership",
        caught_by=("IDR-I1", "linearizability"),
    ),
    Mutant(
        name="new-number-per-retry",
        pattern="idempotent-receiver",
        id="IDR-M3",
        summary="a client gives each attempt of an operation a number of its own",
        shows_as="increments and transfers count twice, though no request is executed twice",
        campaign="objects",
        caught_by=("counter", "transfers", "linearizability"),
    ),
    Mutant(
        name="local-session-expiry",
        pattern="idempotent-receiver",
        id="IDR-M5",
        summary="a leader ends idle sessions by its own clock, without the log",
        shows_as="servers that have applied the same entries hold different sessions",
        campaign="session-expiry",
        caught_by=("IDR-I3", "IDR-I1"),
        options=_SHORT_SESSIONS,
    ),
    Mutant(
        name="sessions-never-refreshed",
        pattern="idempotent-receiver",
        id="IDR-M6",
        summary="requests and heartbeats do not count as signs of life",
        shows_as="the session of a client ends in the middle of its work",
        campaign="session-expiry",
        caught_by=("IDR-R14",),
        options=_SHORT_SESSIONS,
    ),
    Mutant(
        name="sessions-not-in-snapshot",
        pattern="idempotent-receiver",
        id="IDR-M7",
        summary="snapshots hold the values without the sessions",
        shows_as="a server that was restored from a snapshot refuses the clients that the others serve",
        campaign="compaction",
        caught_by=("IDR-I3", "IDR-I1", "linearizability"),
    ),
    Mutant(
        name="answers-by-number-only",
        pattern="idempotent-receiver",
        id="IDR-M8",
        summary="answers are kept by request number, whoever the client is",
        shows_as="a client is told the answer to another client's request, and its own write never happens",
        campaign="retries",
        caught_by=("linearizability",),
    ),
    Mutant(
        name="executes-without-session",
        pattern="idempotent-receiver",
        id="IDR-M9",
        summary="a client whose session has ended is given an empty one, and served",
        shows_as="commands are executed of which it cannot be told whether they were executed before",
        campaign="session-expiry",
        caught_by=("IDR-R16", "IDR-I1"),
        options=_SHORT_SESSIONS,
    ),
)
"""The record of each bug."""


class _NoDuplicateDetection(ClientSessions[ClientResponse]):
    def saved_response(self, session: Session[ClientResponse], request_number: int) -> ClientResponse | None:
        return None


class _AnswersByNumberOnly(ClientSessions[ClientResponse]):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._everybody: Session[ClientResponse] = Session()

    def register(self, client_id: int) -> None:
        self._sessions[client_id] = self._everybody


class _ExecutesWithoutSession(ClientSessions[ClientResponse]):
    def session_for_unknown(self, client_id: int) -> Session[ClientResponse]:
        self.register(client_id)
        return self._sessions[client_id]


class _NotInSnapshot(ClientSessions[ClientResponse]):
    def restore(self, content: Any) -> None:
        super().restore({})


class _NeverRefreshed(SessionExpiry):
    def refresh(self, client_id: int) -> None:
        """Nobody is noticed."""


class _NewNumberPerRetry(KeyValueClient):
    def _try_again(self) -> None:
        if self._client_id is not None and self._done is not None:
            self._request_number += 1
        super()._try_again()


class _EndsSessionsAlone(KeyValueServer):
    def _end_idle_sessions(self) -> None:
        self.store.sessions.expire(self.sessions.idle())


class _KnowsDuplicatesOnReceipt(KeyValueServer):
    def __init__(self, ports: Any, members: Any, settings: Any, parts: Any, store: KeyValueStore) -> None:
        store.sessions = _NoDuplicateDetection(discard_policy(settings))
        super().__init__(ports, members, settings, parts, store)
        self._received: dict[tuple[int, int], ClientResponse | None] = {}

    def _handle_client_request(self, source: NodeId, request: ClientRequest) -> None:
        key = (request.client_id, request.request_number)
        if self.election.role is ServerRole.LEADING and key in self._received:
            answer = self._received[key]
            if answer is not None:
                self.ports.network.send(source, answer)
            return
        if self.election.role is ServerRole.LEADING:
            self._received[key] = None
        super()._handle_client_request(source, request)

    def _answer(self, entry: LogEntry, applied: Applied) -> None:
        key = (applied.client_id, applied.request_number)
        if key in self._received:
            self._received[key] = applied.response
        super()._answer(entry, applied)


SESSION_CHANGES: dict[str, Callable[[CoreParts], CoreParts]] = {
    "no-duplicate-detection": lambda parts: replace(parts, sessions=_NoDuplicateDetection),
    "duplicates-known-to-the-leader": lambda parts: replace(parts, node=_KnowsDuplicatesOnReceipt),
    "new-number-per-retry": lambda parts: replace(parts, client=_NewNumberPerRetry),
    "local-session-expiry": lambda parts: replace(parts, node=_EndsSessionsAlone),
    "sessions-never-refreshed": lambda parts: replace(parts, session_expiry=_NeverRefreshed),
    "sessions-not-in-snapshot": lambda parts: replace(parts, sessions=_NotInSnapshot),
    "answers-by-number-only": lambda parts: replace(parts, sessions=_AnswersByNumberOnly),
    "executes-without-session": lambda parts: replace(parts, sessions=_ExecutesWithoutSession),
}
"""What each bug changes in the parts of a node."""
