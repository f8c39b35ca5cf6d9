"""The coordinator of `quorum-register`: it carries out a client's read or write in two phases, each with a quorum.

    write   ask R replicas for their stamps ── take the next one ──► store on all, wait for W ──► answer
    read    ask R replicas for their copies ── take the newest ──► store on all, wait for W ──► answer
                                                                  └── the write-back ──┘

Without the write-back a read may return a value that only a minority has, because its writer was cut off halfway. The
next reader asks other replicas, finds the old value, and time has run backwards, although both asked a majority. With
it the value is on a quorum before the reader gets it, so every later read finds that value or a newer one.
A read may leave it out when enough of the answers agree that a quorum has the value already.

A stamp names its node and a number that this node never uses again, restarts included, so no two writes share a stamp.

Sources: Attiya, Bar-Noy and Dolev, "Sharing Memory Robustly in Message-Passing Systems" (JACM 1995); Lynch and
Shvartsman (FTCS 1997) for several writers; Patterns of Distributed Systems ch. 6 and 10 for the schedule without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.request_waiting_list import (
    CorrelationIds,
    RequestCallback,
    WriteQuorumCallback,
    WriteResult,
)
from faultline.systems_under_test.reference.quorum_register.messages import (
    NEVER_WRITTEN,
    AnswersCompleted,
    QueryRequest,
    QueryResponse,
    Stamp,
    StoreCompleted,
    StoreRequest,
    ValueResponse,
)
from faultline.systems_under_test.reference.quorum_register.options import RegisterSettings
from faultline.systems_under_test.reference.quorum_register.stamped_copies import Copy, StampedCopies
from faultline.systems_under_test.reference.shared.replica_requests import QuorumAnswers, ReplicaRequests

__all__ = ["NO_QUORUM_TO_ASK", "NO_QUORUM_TO_STORE", "Coordinator"]

NO_QUORUM_TO_ASK = "no-quorum-to-ask"
"""Too few replicas answered the first phase, so the second never began: nothing was changed."""

NO_QUORUM_TO_STORE = "no-quorum-to-store"
"""Too few replicas acknowledged the second phase. Some may have the value: the outcome is unknown."""

Respond = Callable[[ValueResponse], None]


class Coordinator:
    """The operations of the clients of one node."""

    def __init__(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        settings: RegisterSettings,
        requests: ReplicaRequests,
        ids: CorrelationIds,
        copies: StampedCopies,
    ) -> None:
        self._trace = ports.trace
        self._node_id = ports.node_id
        self._members = members
        self._settings = settings
        self._requests = requests
        self._ids = ids
        self._copies = copies

    def read(self, key: str, number: int, respond: Respond) -> None:
        """Answer with the newest copy of a read quorum, written back as the settings say."""
        self._query(key, number, respond, lambda answers: self._answer_read(key, number, answers, respond))

    def write(self, key: str, value: Any, number: int, respond: Respond) -> None:
        """Store `value` under a stamp newer than any that a read quorum knows."""

        def store(answers: list[QueryResponse]) -> None:
            self._store(Copy(key, self._next_stamp(key, answers), value), ValueResponse(number), respond)

        self._query(key, number, respond, store)

    def _query(self, key: str, number: int, respond: Respond, go_on: Callable[[list[QueryResponse]], None]) -> None:
        def give_up() -> None:
            self._trace.sometimes("no-quorum-to-ask")
            respond(ValueResponse(number, NO_QUORUM_TO_ASK))

        def enough(answers: list[QueryResponse]) -> None:
            self._trace.emit(AnswersCompleted(key, self._settings.read_quorum, tuple(heard)))
            go_on(answers)

        heard: list[NodeId] = []
        callback = self._collecting(enough, give_up)
        self._requests.ask(self._members, lambda correlation_id: QueryRequest(correlation_id, key), callback, heard)

    def _collecting(
        self, go_on: Callable[[list[QueryResponse]], None], give_up: Callable[[], None]
    ) -> RequestCallback[QueryResponse]:
        return QuorumAnswers(len(self._members), self._answers_needed(), go_on, give_up)

    def _answers_needed(self) -> int:
        return self._settings.read_quorum

    def _next_stamp(self, key: str, answers: list[QueryResponse]) -> Stamp:
        """Return a stamp newer than all in `answers`."""
        return Stamp(max(answer.stamp for answer in answers).counter + 1, self._node_id, self._ids.next())

    def _answer_read(self, key: str, number: int, answers: list[QueryResponse], respond: Respond) -> None:
        newest = max(answers, key=lambda answer: answer.stamp)
        response = ValueResponse(number, None, newest.value)
        holders = sum(answer.stamp == newest.stamp for answer in answers)
        if holders < len(answers):
            self._trace.sometimes("replicas-disagreed")
        # On a write quorum already: any later read quorum meets a replica that has it, without a write-back.
        settled = holders >= self._settings.write_quorum or newest.stamp == NEVER_WRITTEN
        if settled or self._settings.write_back == "off":
            respond(response)
            return
        self._trace.sometimes("write-back-needed")
        if self._settings.write_back == "later":
            respond(response)
            respond = _ignore
        self._store(Copy(key, newest.stamp, newest.value), response, respond)

    def _store(self, copy: Copy, response: ValueResponse, respond: Respond) -> None:
        """Have `copy` stored by a write quorum, then give `response`."""
        needed = self._stores_needed()
        heard: list[NodeId] = []

        def conclude(number: int, result: WriteResult) -> None:
            if result is WriteResult.SUCCESS:
                self._trace.emit(StoreCompleted(copy.key, copy.stamp, self._settings.write_quorum, tuple(heard)))
                respond(response)
            else:
                self._trace.sometimes("no-quorum-to-store")
                respond(ValueResponse(number, NO_QUORUM_TO_STORE))

        callback = self._counting(response.request_number, conclude, needed)
        self._requests.ask(
            self._members,
            lambda correlation_id: StoreRequest(correlation_id, copy.key, copy.stamp, copy.value),
            callback,
            heard,
        )

    def _stores_needed(self) -> int:
        return self._settings.write_quorum

    def _counting(
        self, number: int, conclude: Callable[[int, WriteResult], None], needed: int
    ) -> RequestCallback[object]:
        return WriteQuorumCallback(len(self._members), number, conclude, needed)


def _ignore(_: ValueResponse) -> None:
    """Do nothing with the response: the client has its answer already."""
