"""Idempotent Receiver: recognise a client's retry and answer it with the first answer, instead of executing it again.

*Problem.* A client that got no answer cannot know whether its request was executed, and has to ask again. Executing
twice is wrong: an increment counts double, and even a plain write can undo what another client wrote in between.

*Idea.* A client registers first; the registration is an entry of the replicated log, and the index of that entry is the
client's id, unique for ever. The client numbers its requests 1, 2, 3 … and repeats a request under the *same* number.
Every server keeps, per client, the answers it gave, and looks there when it *applies* an entry, not only when it
receives it: so two entries for one request are executed once on every server, whoever leads.

Answers cannot be kept for ever. The last five are kept, because a client has at most five requests in flight. A number
that was discarded is refused by name and never executed again: nobody can tell any more whether it was.

*Invariants.* IDR-I1 each (client, number) takes effect at most once. IDR-I2 client ids are unique. IDR-I3 sessions are
equal on all servers at the same applied index. IDR-I4 at most five answers are kept per client.

*Tolerates.* Lost answers, repeated and late requests, leader changes and restarts between execution and retry (sessions
are rebuilt by replaying the log). A repeated registration only leaves an unused session behind.

*Does not tolerate.* A client that restarts and asks again under a new id, or one with more than five requests in
flight. Sessions never expire in this first cut; their number grows with the number of clients.

*Workloads.* `register` with lost and duplicated packets and partitions (campaign `retries`).

*Checkers.* Linearizability; IDR-I1.

*Planted bugs.* `no-duplicate-detection` (IDR-M1).

Deviations from the printed code: errors are saved like any answer (IDR-R7), plain writes are not exempt (IDR-R8), and
an unknown session is refused rather than crashing every server (IDR-R16).

Sources: Patterns of Distributed Systems ch. 15; Ongaro's thesis 6.3; the bound of five is Kafka's idempotent producer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

__all__ = ["SAVED_RESPONSES_MAX", "ClientSessions", "RequestDiscarded", "Session", "UnknownSession"]

SAVED_RESPONSES_MAX = 5
"""How many answers are kept per client: at least as many as a client may have in flight."""

Response = TypeVar("Response")


class UnknownSession(Exception):
    """The request names a client that never registered (or whose session is gone); it was not executed."""


class RequestDiscarded(Exception):
    """The answer to this number was discarded: nobody knows whether the request was executed, so it is refused."""


class Session(Generic[Response]):
    """One client's last answers, oldest first, and the highest number that was discarded."""

    __slots__ = ("discarded_number", "responses")

    def __init__(self) -> None:
        self.responses: dict[int, Response] = {}
        self.discarded_number = 0

    def save(self, request_number: int, response: Response, saved_max: int) -> None:
        """Keep `response`, and discard the oldest answer when there are more than `saved_max`."""
        self.responses[request_number] = response
        if len(self.responses) > saved_max:
            oldest = min(self.responses)
            del self.responses[oldest]
            if oldest > self.discarded_number:
                self.discarded_number = oldest


class ClientSessions(Generic[Response]):
    """The sessions of all clients: a part of the replicated state, changed only while entries are applied."""

    __slots__ = ("_saved_max", "_sessions")

    def __init__(self, saved_responses_max: int = SAVED_RESPONSES_MAX) -> None:
        self._saved_max = saved_responses_max
        self._sessions: dict[int, Session[Response]] = {}

    def register(self, client_id: int) -> None:
        """Open a session; `client_id` is the index of the log entry that registers the client."""
        self._sessions[client_id] = Session()

    def session(self, client_id: int) -> Session[Response] | None:
        """The session of `client_id`, if there is one."""
        return self._sessions.get(client_id)

    def content(self) -> dict[int, tuple[int, dict[int, Response]]]:
        """All sessions as plain data, for a snapshot: the highest discarded number and the kept answers of each."""
        return {
            client_id: (session.discarded_number, dict(session.responses))
            for client_id, session in self._sessions.items()
        }

    def restore(self, content: Mapping[int, tuple[int, Mapping[int, Response]]]) -> None:
        """Put the sessions of a snapshot in the place of these."""
        self._sessions.clear()
        for client_id, (discarded_number, responses) in content.items():
            session = self._sessions[client_id] = Session[Response]()
            session.discarded_number = discarded_number
            session.responses.update(responses)

    def execute(self, client_id: int, request_number: int, action: Callable[[], Response]) -> tuple[Response, bool]:
        """The answer to this request, and whether `action` was run for it now.

        Raises `UnknownSession` or `RequestDiscarded`, in which case it was not.
        """
        session = self._sessions.get(client_id)
        if session is None:
            raise UnknownSession(f"client {client_id} has no session")
        saved = self.saved_response(session, request_number)
        if saved is not None:
            return saved, False
        if request_number <= session.discarded_number:
            raise RequestDiscarded(f"client {client_id}: the answer to request {request_number} was discarded")
        response = action()
        session.save(request_number, response, self._saved_max)
        return response, True

    def saved_response(self, session: Session[Response], request_number: int) -> Response | None:
        """The answer kept for `request_number`: the duplicate detection itself."""
        return session.responses.get(request_number)
