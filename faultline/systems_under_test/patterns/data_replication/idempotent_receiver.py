"""Idempotent Receiver: recognise a client's retry and answer it with the first answer, instead of executing it again.

*Problem.* A client that got no answer cannot know whether its request was executed, and has to ask again. Executing
twice is wrong: an increment counts double, and even a plain write can undo what another client wrote in between.

*Idea.* A client registers first; the registration is an entry of the replicated log, and the index of that entry is the
client's id, unique for ever. The client numbers its requests 1, 2, 3 … and repeats a request under the *same* number.
Every server keeps, per client, the answers it gave, and looks there when it *applies* an entry, not only when it
receives it. So two entries for one request are executed once on every server, under any leader.

Answers cannot be kept for ever. Three policies decide which of them are discarded, and none reads a clock:

- `LastResponses` keeps the last five, because a client has at most five requests in flight.
- `OneAtATime` discards all but the newest, because a client that sends a request has the answers to all earlier ones.
- `Acknowledged` discards those below the number that the client names in each request: the last one with an answer.

A request whose answer was discarded is refused with an explicit error and not executed, because the server can no
longer know whether it was executed before. Sessions end too (`session_expiry`).

*Invariants.* IDR-I1 each (client, number) takes effect at most once. IDR-I2 client ids are unique. IDR-I3 sessions are
equal on all servers at the same applied index. IDR-I4 no more answers are kept than the policy allows. IDR-I5 in the
end each acknowledged increment counts once, and each without an answer once or not at all.

*Tolerates.* Lost answers, repeated and late requests, leader changes and restarts between execution and retry (sessions
are rebuilt by replaying the log, or restored from a snapshot). A repeated registration only leaves an unused session
behind, which expires.

*Does not tolerate.* A client that restarts and asks again under a new id: its request is executed again. More requests
in flight than answers are kept, and `OneAtATime` with a pipeline: retries are then refused although they were executed.

*Workloads.* `counter`, `transfer` and `register` with lost and duplicated packets and partitions (campaigns `retries`
and `objects`), the same with sessions that end within a run (campaign `session-expiry`).

*Checkers.* Bounds of counters and balances, linearizability; IDR-I1 to IDR-I4.

*Planted bugs.* `no-duplicate-detection` (IDR-M1), `duplicates-known-to-the-leader` (IDR-M2), `new-number-per-retry`
(IDR-M3), `local-session-expiry` (IDR-M5), `sessions-never-refreshed` (IDR-M6), `sessions-not-in-snapshot` (IDR-M7),
`answers-by-number-only` (IDR-M8), `executes-without-session` (IDR-M9). Too few answers for a pipeline (IDR-M4) cannot
show with clients that send one request at a time; a test breaks the sessions alone.

Deviations from the printed code: errors are saved like any answer (IDR-R7), plain writes are not exempt (IDR-R8), and
an unknown session is refused rather than crashing every server (IDR-R16).

Sources: Patterns of Distributed Systems ch. 15; Ongaro's thesis 6.3; the bound of five is Kafka's idempotent producer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from faultline.harness.errors import UsageError

__all__ = [
    "NO_CLIENT",
    "SAVED_RESPONSES_MAX",
    "Acknowledged",
    "ClientSessions",
    "DiscardPolicy",
    "LastResponses",
    "OneAtATime",
    "RequestDiscarded",
    "Session",
    "UnknownSession",
]

SAVED_RESPONSES_MAX = 5
"""The number of answers kept per client: at least as many as a client may have in flight."""

NO_CLIENT = 0
"""The client id of a request without duplicate detection; no log entry has this index."""

Response = TypeVar("Response")


class UnknownSession(Exception):
    """The request names a client that never registered, or whose session expired; it was not executed."""


class RequestDiscarded(Exception):
    """The answer to this number was discarded: it is unknown whether the request was executed, so it is refused."""


class Session(Generic[Response]):
    """The saved answers of one client, and the number up to which its other answers were discarded."""

    __slots__ = ("discarded_number", "responses")

    def __init__(self) -> None:
        self.responses: dict[int, Response] = {}
        self.discarded_number = 0

    def discard_below(self, number: int) -> None:
        """Forget the answers to requests below `number`, and refuse those requests from now on."""
        for old in [old for old in self.responses if old < number]:
            del self.responses[old]
        self.discarded_number = max(self.discarded_number, number - 1)


class DiscardPolicy(Protocol):
    """A rule for discarding a client's answers, which looks at its requests alone, so that all servers agree."""

    @property
    def responses_max(self) -> int | None:
        """The largest number of answers that are kept for a client; None without a limit."""

    def discard(self, session: Session[Response], request_number: int, acknowledged: int) -> None:
        """Discard old answers after `request_number` was executed; the client has the answer to `acknowledged`."""

    def refuse_in_flight(self, in_flight: int) -> None:
        """Raise UsageError when clients with that many requests in flight could lose answers they still need."""


class LastResponses:
    """The policy that keeps the last `count` answers."""

    def __init__(self, count: int = SAVED_RESPONSES_MAX) -> None:
        self.responses_max = count

    def discard(self, session: Session[Response], request_number: int, acknowledged: int) -> None:
        """Discard the oldest answer when there is one too many."""
        while len(session.responses) > self.responses_max:
            session.discard_below(min(session.responses) + 1)

    def refuse_in_flight(self, in_flight: int) -> None:
        """Raise UsageError when more requests may be in flight than answers are kept."""
        if in_flight > self.responses_max:
            raise UsageError(
                f"With {in_flight} requests in flight and {self.responses_max} saved answers, a retry may find its own"
                " gone.",
                f"Set saved_responses_max to at least {in_flight}.",
            )


class OneAtATime:
    """The policy that keeps the newest answer alone: for clients that wait for each answer before they ask again."""

    responses_max = 1

    def discard(self, session: Session[Response], request_number: int, acknowledged: int) -> None:
        """Discard all earlier answers: a new request shows that its client has them."""
        session.discard_below(request_number)

    def refuse_in_flight(self, in_flight: int) -> None:
        """Raise UsageError for clients with a request pipeline."""
        if in_flight > 1:
            raise UsageError(
                f"The discard policy one-at-a-time cannot serve clients with {in_flight} requests in flight.",
                "Choose discard_policy=last-responses or acknowledged.",
            )


class Acknowledged:
    """The policy that keeps unacknowledged answers: with any number in flight, none is discarded too early."""

    responses_max = None

    def discard(self, session: Session[Response], request_number: int, acknowledged: int) -> None:
        """Discard the answers *below* the acknowledged number."""
        session.discard_below(acknowledged)

    def refuse_in_flight(self, in_flight: int) -> None:
        """Accept any number of requests in flight."""


class ClientSessions(Generic[Response]):
    """The sessions of all clients: a part of the replicated state, changed only while entries are applied."""

    __slots__ = ("_policy", "_sessions")

    def __init__(self, policy: DiscardPolicy | None = None) -> None:
        self._policy = policy or LastResponses()
        self._sessions: dict[int, Session[Response]] = {}

    def __len__(self) -> int:
        """Return the number of sessions."""
        return len(self._sessions)

    @property
    def responses_max(self) -> int | None:
        """The largest number of answers that are kept for a client; None without a limit."""
        return self._policy.responses_max

    def register(self, client_id: int) -> None:
        """Open a session; `client_id` is the index of the log entry that registers the client."""
        self._sessions[client_id] = Session()

    def expire(self, client_ids: Iterable[int]) -> list[int]:
        """End these sessions, as a log entry says, and return the ones that existed."""
        return [client_id for client_id in client_ids if self._sessions.pop(client_id, None) is not None]

    def client_ids(self) -> list[int]:
        """Return all clients that have a session, in the order of their registration."""
        return list(self._sessions)

    def session(self, client_id: int) -> Session[Response] | None:
        """Return the session of `client_id`, if there is one."""
        return self._sessions.get(client_id)

    def content(self) -> dict[int, tuple[int, dict[int, Response]]]:
        """Return all sessions as plain data, for a snapshot: the highest discarded number and the answers of each."""
        return {
            client_id: (session.discarded_number, dict(session.responses))
            for client_id, session in self._sessions.items()
        }

    def restore(self, content: Mapping[int, tuple[int, Mapping[int, Response]]]) -> None:
        """Replace these sessions with those of a snapshot."""
        self._sessions.clear()
        for client_id, (discarded_number, responses) in content.items():
            session = self._sessions[client_id] = Session[Response]()
            session.discarded_number = discarded_number
            session.responses.update(responses)

    def execute(
        self, client_id: int, request_number: int, action: Callable[[], Response], acknowledged: int = 0
    ) -> tuple[Response, bool]:
        """Return the answer to this request, and whether `action` was run for it now.

        Raises `UnknownSession` or `RequestDiscarded`, in which case it was not.
        """
        if client_id == NO_CLIENT:
            return action(), True
        session = self._sessions.get(client_id)
        if session is None:
            session = self.session_for_unknown(client_id)
        saved = self.saved_response(session, request_number)
        if saved is not None:
            return saved, False
        # It may have been executed; executing it now could do it twice.
        if request_number <= session.discarded_number:
            raise RequestDiscarded(f"client {client_id}: the answer to request {request_number} was discarded")
        response = action()
        # Errors are kept too: a retry must get the same answer, although the action might succeed now.
        session.responses[request_number] = response
        self._policy.discard(session, request_number, acknowledged)
        return response, True

    def session_for_unknown(self, client_id: int) -> Session[Response]:
        """Raise `UnknownSession`: an unknown client is not served, because its earlier requests may have been
        executed.
        """
        raise UnknownSession(f"client {client_id} has no session")

    def saved_response(self, session: Session[Response], request_number: int) -> Response | None:
        """Return the answer kept for `request_number`: the duplicate detection itself."""
        return session.responses.get(request_number)
