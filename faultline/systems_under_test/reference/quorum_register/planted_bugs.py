"""The planted bugs of `quorum-register`: each is a record, and a subclass put into the `Parts` of a node.

They break the register for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from faultline.harness.system import PlantedBug
from faultline.systems_under_test.patterns.data_replication.quorum import majority
from faultline.systems_under_test.patterns.data_replication.request_waiting_list import (
    CorrelationIds,
    RequestCallback,
    RequestWaitingList,
    WriteQuorumCallback,
    WriteResult,
)
from faultline.systems_under_test.reference.quorum_register.client import DEFINITE
from faultline.systems_under_test.reference.quorum_register.coordinator import NO_QUORUM_TO_STORE, Coordinator
from faultline.systems_under_test.reference.quorum_register.messages import NEVER_WRITTEN, QueryResponse, Stamp
from faultline.systems_under_test.reference.quorum_register.node import Parts
from faultline.systems_under_test.reference.quorum_register.stamped_copies import StampedCopies
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT
from faultline.systems_under_test.reference.shared.planted_bugs import LazyFlush, layered, with_bugs
from faultline.systems_under_test.reference.shared.replica_requests import QuorumAnswers

__all__ = ["PLANTED_BUGS", "definite_errors", "mutated_parts"]

_TIMEOUT_AS_FAILURE = "timeout-as-failure"

_RECORDS = (
    PlantedBug(
        name="ack-before-quorum",
        pattern="request-waiting-list",
        id="RWL-M1",
        summary="a store counts as done when the first replica, usually the coordinator itself, has taken it",
        shows_as="an acknowledged write is missing from later reads, for good if its one replica dies",
        campaign="quorums",
        caught_by=("linearizability", "QRM-I1", "QRM-I2", "QRM-I3"),
    ),
    PlantedBug(
        name="count-duplicate-answers",
        pattern="request-waiting-list",
        id="RWL-M2, QRM-M3",
        summary="an answer does not remove what waits for it, so its repetition is counted again",
        shows_as="a write is acknowledged that fewer replicas have than were asked for",
        campaign="quorum-retries",
        caught_by=("linearizability", "QRM-I2", "QRM-I3"),
        options={"write_quorum": "3", "read_quorum": "1"},
    ),
    PlantedBug(
        name="timeout-as-failure",
        pattern="request-waiting-list",
        id="RWL-M5",
        summary="the client calls a write failed when no quorum, or nobody, answered in time",
        shows_as="a value is read whose write had definitely failed",
        campaign="quorums",
        caught_by=("linearizability",),
    ),
    PlantedBug(
        name="waits-for-ever",
        pattern="request-waiting-list",
        id="RWL-M3",
        summary="what a silent replica was asked is never given up",
        shows_as="the list grows, and a client whose quorum was lost is not answered at all",
        campaign="quorums",
        caught_by=("RWL-I1", "RWL-I4"),
    ),
    PlantedBug(
        name="answers-twice",
        pattern="request-waiting-list",
        id="RWL-M6",
        summary="a store that is decided does not remember it, so each further answer or error decides again",
        shows_as="a client hears twice of one request",
        campaign="quorums",
        caught_by=("RWL-I1",),
    ),
    PlantedBug(
        name="restarted-correlation-ids",
        pattern="request-waiting-list",
        id="RWL-M7",
        summary="correlation ids begin anew after a crash, so answers to the dead incarnation satisfy the new one",
        shows_as="a write is acknowledged on the strength of an answer to another; two values share a stamp",
        campaign="incarnations",
        caught_by=("linearizability", "QRM-I2", "unique-stamps", "node-crash"),
        worlds=("simulated",),
        why_not="real connections end with the process, and late answers with them",
    ),
    PlantedBug(
        name="half-is-a-majority",
        pattern="quorum",
        id="QRM-M1",
        summary="half of the replicas are taken for a majority, in clusters of any size",
        shows_as="of four replicas cut into halves both sides go on, and a read misses an acknowledged write",
        campaign="even-quorums",
        caught_by=("linearizability", "QRM-I1", "QRM-I2", "QRM-I3"),
    ),
    PlantedBug(
        name="majority-of-the-living",
        pattern="quorum",
        id="QRM-M2",
        summary="a replica that does not answer is left out, and a majority of the others decides",
        shows_as="both sides of a split go on, down to a node that is alone",
        campaign="quorums",
        caught_by=("linearizability", "QRM-I1", "QRM-I2", "QRM-I3"),
    ),
    PlantedBug(
        name="coordinator-counts-twice",
        pattern="quorum",
        id="QRM-M5",
        summary="a store counts its coordinator beforehand, and then the coordinator's own answer again",
        shows_as="a write is acknowledged that one replica less than a majority has",
        campaign="quorums",
        caught_by=("linearizability", "QRM-I2", "QRM-I3"),
    ),
    PlantedBug(
        name="first-answer-decides",
        pattern="quorum",
        id="QRM-M6",
        summary="a quorum must store, but one answer is enough to know what is newest: the first that comes",
        shows_as="what an operation begins from is not what the last one ended with: reads are stale, writes sink",
        campaign="quorums",
        caught_by=("linearizability", "QRM-I1", "QRM-I3"),
    ),
    PlantedBug(
        name="count-errors",
        pattern="quorum",
        id="QRM-M4",
        summary="a replica that did not answer in time is counted as if it had",
        shows_as="a coordinator that is cut off goes on alone: it acknowledges writes that only it has",
        campaign="quorums",
        caught_by=("linearizability", "QRM-I1", "QRM-I2", "QRM-I3"),
    ),
    PlantedBug(
        name="ack-before-fsync",
        pattern="write-ahead-log",
        id="WAL-M2",
        summary="a replica acknowledges a value and flushes it up to 200 ms later",
        shows_as="acknowledged writes vanish when most replicas are killed at once",
        campaign="quorum-durability",
        caught_by=("linearizability",),
    ),
    PlantedBug(
        name="stamp-without-asking",
        pattern="quorum",
        id="QRM-R6",
        summary="a writer takes the stamp after its own copy's, not after the newest a quorum knows",
        shows_as="an acknowledged write has no effect, because an older one has the higher stamp",
        campaign="quorums",
        caught_by=("linearizability",),
    ),
)

PLANTED_BUGS: dict[str, PlantedBug] = {record.name: record for record in _RECORDS}
"""Every planted bug by name."""

Key = TypeVar("Key", bound=Hashable)


class _AckBeforeQuorum(Coordinator):
    def _stores_needed(self) -> int:
        return 1


class _HalfIsAMajority(Coordinator):
    def _stores_needed(self) -> int:
        return len(self._members) // 2

    def _answers_needed(self) -> int:
        return len(self._members) // 2


class _FirstAnswerDecides(Coordinator):
    def _answers_needed(self) -> int:
        return 1


class _CoordinatorCountsTwice(Coordinator):
    def _counting(
        self, number: int, conclude: Callable[[int, WriteResult], None], needed: int
    ) -> RequestCallback[object]:
        callback = super()._counting(number, conclude, needed)
        callback.on_response(None)
        return callback


class _AnswersOfTheLiving(QuorumAnswers[QueryResponse]):
    __slots__ = ()

    def on_error(self, error: Exception) -> None:
        # One fewer is alive, and who is left decides.
        self._needed, self._spare = _of_the_living(self._needed + self._spare - 1)
        if not self._done and len(self._answers) >= self._needed:
            self._done = True
            self._enough(self._answers)


class _StoresOfTheLiving(WriteQuorumCallback):
    __slots__ = ()

    def on_error(self, error: Exception) -> None:
        self._replicas -= 1
        self._quorum, _ = _of_the_living(self._replicas)
        if self._responses >= self._quorum:
            self._reply(WriteResult.SUCCESS)


def _of_the_living(alive: int) -> tuple[int, int]:
    """How many of them decide, and how many are left over."""
    needed = majority(max(1, alive))
    return needed, alive - needed


class _MajorityOfTheLiving(Coordinator):
    def _collecting(
        self, go_on: Callable[[list[QueryResponse]], None], give_up: Callable[[], None]
    ) -> RequestCallback[QueryResponse]:
        return _AnswersOfTheLiving(len(self._members), self._answers_needed(), go_on, give_up)

    def _counting(
        self, number: int, conclude: Callable[[int, WriteResult], None], needed: int
    ) -> RequestCallback[object]:
        return _StoresOfTheLiving(len(self._members), number, conclude, needed)


class _StampWithoutAsking(Coordinator):
    def _next_stamp(self, key: str, answers: list[QueryResponse]) -> Stamp:
        return Stamp(self._copies.get(key).stamp.counter + 1, self._node_id, self._ids.next())


class _ErrorsAreAnswers(WriteQuorumCallback):
    __slots__ = ()

    def on_error(self, error: Exception) -> None:
        self.on_response(error)


class _ErrorsAreOldCopies(QuorumAnswers[QueryResponse]):
    __slots__ = ()

    def on_error(self, error: Exception) -> None:
        self.on_response(QueryResponse(0, NEVER_WRITTEN, None))


class _CountErrors(Coordinator):
    def _collecting(
        self, go_on: Callable[[list[QueryResponse]], None], give_up: Callable[[], None]
    ) -> RequestCallback[QueryResponse]:
        return _ErrorsAreOldCopies(len(self._members), self._settings.read_quorum, go_on, give_up)

    def _counting(
        self, number: int, conclude: Callable[[int, WriteResult], None], needed: int
    ) -> RequestCallback[object]:
        return _ErrorsAreAnswers(len(self._members), number, conclude, needed)


class _CountDuplicates(RequestWaitingList[int, Any]):
    __slots__ = ()

    def handle_response(self, key: int, response: Any) -> None:
        waiting = self._pending.get(key)
        if waiting is not None:
            waiting[0].on_response(response)


class _WaitsForEver(RequestWaitingList[int, Any]):
    __slots__ = ()

    def expire(self) -> int:
        """Nothing waits too long."""
        return self._clock.monotonic_us()


class _DecidesAgain(WriteQuorumCallback):
    __slots__ = ()

    def _reply(self, result: WriteResult) -> None:
        self._respond(self._correlation_id, result)


class _AnswersTwice(Coordinator):
    def _counting(
        self, number: int, conclude: Callable[[int, WriteResult], None], needed: int
    ) -> RequestCallback[object]:
        return _DecidesAgain(len(self._members), number, conclude, needed)


class _AckBeforeFsync(LazyFlush, StampedCopies):
    pass


def _from_the_beginning(_: int) -> CorrelationIds:
    return CorrelationIds(0)


_CHANGES: dict[str, Callable[[Parts], Parts]] = {
    "ack-before-quorum": layered("coordinator", _AckBeforeQuorum),
    "count-duplicate-answers": lambda parts: replace(parts, waiting=_CountDuplicates),
    "waits-for-ever": lambda parts: replace(parts, waiting=_WaitsForEver),
    "answers-twice": layered("coordinator", _AnswersTwice),
    "restarted-correlation-ids": lambda parts: replace(parts, correlation_ids=_from_the_beginning),
    "half-is-a-majority": layered("coordinator", _HalfIsAMajority),
    "majority-of-the-living": layered("coordinator", _MajorityOfTheLiving),
    "coordinator-counts-twice": layered("coordinator", _CoordinatorCountsTwice),
    "first-answer-decides": layered("coordinator", _FirstAnswerDecides),
    "count-errors": layered("coordinator", _CountErrors),
    "ack-before-fsync": lambda parts: replace(parts, copies=_AckBeforeFsync),
    "stamp-without-asking": layered("coordinator", _StampWithoutAsking),
}


def mutated_parts(names: Iterable[str]) -> Parts:
    """The parts of a node with the planted bugs `names`; with none, the correct ones. Raises UsageError."""
    return with_bugs("quorum-register", names, Parts(), _CHANGES, elsewhere=[_TIMEOUT_AS_FAILURE])


def definite_errors(names: Iterable[str]) -> frozenset[str]:
    """The errors that clients call definite, with the planted bugs `names`."""
    return DEFINITE | {TIMEOUT, NO_QUORUM_TO_STORE} if _TIMEOUT_AS_FAILURE in names else DEFINITE
