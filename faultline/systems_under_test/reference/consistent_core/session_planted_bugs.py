"""The planted bugs of `consistent-core` that break the idempotent receiver.

They break consistent-core for good: never use them outside the harness.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions, Session
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ServerRole
from faultline.systems_under_test.patterns.data_replication.session_expiry import SessionExpiry
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import LogEntry
from faultline.systems_under_test.reference.consistent_core.parts import CoreParts
from faultline.systems_under_test.reference.raft.client import KeyValueClient
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.raft.key_value_store import Applied, KeyValueStore
from faultline.systems_under_test.reference.raft.parts import discard_policy
from faultline.systems_under_test.reference.shared.client_messages import ClientRequest, ClientResponse
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

BUGS = PlantedBugs("consistent-core", CoreParts, pattern="idempotent-receiver")
_SHORT_SESSIONS = BUGS.group(campaign="session-expiry", options={"session_timeout_ms": "150", "session_check_ms": "50"})


@BUGS.plant(
    "no-duplicate-detection",
    "IDR-M1, CC-M6",
    part="sessions",
    campaign="retries",
    caught_by=("IDR-I1", "linearizability"),
)
class _NoDuplicateDetection(ClientSessions[ClientResponse]):
    """A retried request is executed again.

    Shows as: a compare-and-set fails that took effect; an old value comes back after a newer one.
    """

    def saved_response(self, session: Session[ClientResponse], request_number: int) -> ClientResponse | None:
        return None


@BUGS.plant(
    "duplicates-known-to-the-leader",
    "IDR-M2",
    part="node",
    campaign="leadership",
    caught_by=("IDR-I1", "linearizability"),
)
class _KnowsDuplicatesOnReceipt(KeyValueServer):
    """The leader recognises retries when it receives them, by a table in its own memory.

    Shows as: after a leader change a retry is executed again.
    """

    def __init__(self, ports: Any, members: Any, settings: Any, parts: Any) -> None:
        store = KeyValueStore(_NoDuplicateDetection(discard_policy(settings)))
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


@BUGS.plant(
    "new-number-per-retry",
    "IDR-M3",
    part="client",
    campaign="objects",
    caught_by=("counter", "transfers", "linearizability"),
)
class _NewNumberPerRetry(KeyValueClient):
    """A client gives each attempt of an operation a number of its own.

    Shows as: increments and transfers count twice, though no request is executed twice.
    """

    def _try_again(self) -> None:
        if self._client_id is not None and self._done is not None:
            self._request_number += 1
        super()._try_again()


@_SHORT_SESSIONS.plant("local-session-expiry", "IDR-M5", part="node", caught_by=("IDR-I3", "IDR-I1"))
class _EndsSessionsAlone(KeyValueServer):
    """A leader ends idle sessions by its own clock, without the log.

    Shows as: servers that have applied the same entries hold different sessions.
    """

    def _end_idle_sessions(self) -> None:
        self.store.sessions.expire(self.sessions.idle())


@_SHORT_SESSIONS.plant("sessions-never-refreshed", "IDR-M6", part="session_expiry", caught_by=("IDR-R14",))
class _NeverRefreshed(SessionExpiry):
    """Requests and heartbeats do not count as signs of life.

    Shows as: the session of a client ends in the middle of its work.
    """

    def refresh(self, client_id: int) -> None:
        """Take no notice of the client."""


@BUGS.plant(
    "sessions-not-in-snapshot",
    "IDR-M7",
    part="sessions",
    campaign="compaction",
    caught_by=("IDR-I3", "IDR-I1", "linearizability"),
)
class _NotInSnapshot(ClientSessions[ClientResponse]):
    """Snapshots hold the values without the sessions.

    Shows as: a server that was restored from a snapshot refuses the clients that the others serve.
    """

    def restore(self, content: Any) -> None:
        super().restore({})


@BUGS.plant("answers-by-number-only", "IDR-M8", part="sessions", campaign="retries", caught_by=("linearizability",))
class _AnswersByNumberOnly(ClientSessions[ClientResponse]):
    """Answers are kept by request number, for all clients together.

    Shows as: a client is told the answer to another client's request, and its own write never happens.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._shared: Session[ClientResponse] = Session()

    def register(self, client_id: int) -> None:
        self._sessions[client_id] = self._shared


@_SHORT_SESSIONS.plant("executes-without-session", "IDR-M9", part="sessions", caught_by=("IDR-R16", "IDR-I1"))
class _ExecutesWithoutSession(ClientSessions[ClientResponse]):
    """A client whose session has ended is given an empty one, and served.

    Shows as: commands are executed of which it cannot be told whether they were executed before.
    """

    def session_for_unknown(self, client_id: int) -> Session[ClientResponse]:
        self.register(client_id)
        return self._sessions[client_id]
