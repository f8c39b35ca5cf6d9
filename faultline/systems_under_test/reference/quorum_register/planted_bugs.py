"""The planted bugs of `quorum-register`: each a class that changes one of the `Parts` of a node, or the client.

They break the register for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.systems_under_test.patterns.data_replication.quorum import majority
from faultline.systems_under_test.patterns.data_replication.request_waiting_list import (
    CorrelationIds,
    RequestCallback,
    RequestWaitingList,
    WriteQuorumCallback,
    WriteResult,
)
from faultline.systems_under_test.reference.quorum_register.client import QuorumRegisterClient
from faultline.systems_under_test.reference.quorum_register.coordinator import NO_QUORUM_TO_STORE, Coordinator
from faultline.systems_under_test.reference.quorum_register.messages import NEVER_WRITTEN, QueryResponse, Stamp
from faultline.systems_under_test.reference.quorum_register.node import Parts
from faultline.systems_under_test.reference.quorum_register.stamped_copies import StampedCopies
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT
from faultline.systems_under_test.reference.shared.planted_bugs import LazyFlush, PlantedBugs
from faultline.systems_under_test.reference.shared.replica_requests import QuorumAnswers

__all__ = ["BUGS"]

BUGS = PlantedBugs(
    "quorum-register",
    Parts,
    pattern="quorum",
    campaign="quorums",
    caught_by=("linearizability", "QRM-I1", "QRM-I2", "QRM-I3"),
)
_WAITING = BUGS.group(pattern="request-waiting-list")


@_WAITING.plant("ack-before-quorum", "RWL-M1", part="coordinator")
class _AckBeforeQuorum(Coordinator):
    """A store counts as done when the first replica, usually the coordinator itself, has taken it.

    Shows as: an acknowledged write is missing from later reads, for good if its one replica dies.
    """

    def _stores_needed(self) -> int:
        return 1


@_WAITING.plant(
    "count-duplicate-answers",
    "RWL-M2, QRM-M3",
    part="waiting",
    campaign="quorum-retries",
    caught_by=("linearizability", "QRM-I2", "QRM-I3"),
    options={"write_quorum": "3", "read_quorum": "1"},
)
class _CountDuplicates(RequestWaitingList[int, Any]):
    """An answer does not remove what waits for it, so its repetition is counted again.

    Shows as: a write is acknowledged that fewer replicas have than its quorum needs.
    """

    __slots__ = ()

    def handle_response(self, key: int, response: Any) -> None:
        waiting = self._pending.get(key)
        if waiting is not None:
            waiting[0].on_response(response)


@_WAITING.plant("timeout-as-failure", "RWL-M5", part="client", caught_by=("linearizability",))
class _TimeoutAsFailure(QuorumRegisterClient):
    """The client calls a write failed when no quorum, or no node at all, answered in time.

    Shows as: a value is read whose write had definitely failed.
    """

    definite = QuorumRegisterClient.definite | {TIMEOUT, NO_QUORUM_TO_STORE}


@_WAITING.plant("waits-for-ever", "RWL-M3", part="waiting", caught_by=("RWL-I1", "RWL-I4"))
class _WaitsForEver(RequestWaitingList[int, Any]):
    """A request to a silent replica is never given up.

    Shows as: the list grows, and a client whose quorum was lost is not answered at all.
    """

    __slots__ = ()

    def expire(self) -> int:
        """Expire no request; return the time."""
        return self._clock.monotonic_us()


class _DecidesAgain(WriteQuorumCallback):
    __slots__ = ()

    def _reply(self, result: WriteResult) -> None:
        self._respond(self._correlation_id, result)


@_WAITING.plant("answers-twice", "RWL-M6", part="coordinator", caught_by=("RWL-I1",))
class _AnswersTwice(Coordinator):
    """A store that is decided does not remember it, so each further answer or error decides again.

    Shows as: a client gets two answers to one request.
    """

    def _counting(
        self, number: int, conclude: Callable[[int, WriteResult], None], needed: int
    ) -> RequestCallback[object]:
        return _DecidesAgain(len(self._members), number, conclude, needed)


@_WAITING.plant(
    "restarted-correlation-ids",
    "RWL-M7",
    part="correlation_ids",
    campaign="incarnations",
    caught_by=("linearizability", "QRM-I2", "unique-stamps", "node-crash"),
    worlds=("simulated",),
    why_not="real connections end with the process, and late answers with them",
)
def _from_the_beginning(_: int) -> CorrelationIds:
    """Correlation ids begin anew after a crash, so answers to the dead incarnation satisfy the new one.

    Shows as: a write is acknowledged on the strength of an answer to another; two values share a stamp.
    """
    return CorrelationIds(0)


@BUGS.plant("half-is-a-majority", "QRM-M1", part="coordinator", campaign="even-quorums")
class _HalfIsAMajority(Coordinator):
    """Half of the replicas are taken for a majority, in clusters of any size.

    Shows as: of four replicas cut into halves both sides go on, and a read misses an acknowledged write.
    """

    def _stores_needed(self) -> int:
        return len(self._members) // 2

    def _answers_needed(self) -> int:
        return len(self._members) // 2


def _of_the_living(alive: int) -> tuple[int, int]:
    """Return the number of replicas that decide, and the number of those left over."""
    needed = majority(max(1, alive))
    return needed, alive - needed


class _AnswersOfTheLiving(QuorumAnswers[QueryResponse]):
    __slots__ = ()

    def on_error(self, error: Exception) -> None:
        # One fewer is alive, and a majority of the others decides.
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


@BUGS.plant("majority-of-the-living", "QRM-M2", part="coordinator")
class _MajorityOfTheLiving(Coordinator):
    """A replica that does not answer is left out, and a majority of the others decides.

    Shows as: both sides of a split go on, down to a node that is alone.
    """

    def _collecting(
        self, go_on: Callable[[list[QueryResponse]], None], give_up: Callable[[], None]
    ) -> RequestCallback[QueryResponse]:
        return _AnswersOfTheLiving(len(self._members), self._answers_needed(), go_on, give_up)

    def _counting(
        self, number: int, conclude: Callable[[int, WriteResult], None], needed: int
    ) -> RequestCallback[object]:
        return _StoresOfTheLiving(len(self._members), number, conclude, needed)


@BUGS.plant("coordinator-counts-twice", "QRM-M5", part="coordinator", caught_by=("linearizability", "QRM-I2", "QRM-I3"))
class _CoordinatorCountsTwice(Coordinator):
    """A store counts its coordinator beforehand, and then the coordinator's own answer again.

    Shows as: a write is acknowledged that one replica less than a majority has.
    """

    def _counting(
        self, number: int, conclude: Callable[[int, WriteResult], None], needed: int
    ) -> RequestCallback[object]:
        callback = super()._counting(number, conclude, needed)
        callback.on_response(None)
        return callback


@BUGS.plant("first-answer-decides", "QRM-M6", part="coordinator", caught_by=("linearizability", "QRM-I1", "QRM-I3"))
class _FirstAnswerDecides(Coordinator):
    """A quorum must store, but the first answer alone tells which copy is the newest.

    Shows as: an operation begins from an older copy than the last one ended with: reads are stale, writes sink.
    """

    def _answers_needed(self) -> int:
        return 1


class _ErrorsAreAnswers(WriteQuorumCallback):
    __slots__ = ()

    def on_error(self, error: Exception) -> None:
        self.on_response(error)


class _ErrorsAreOldCopies(QuorumAnswers[QueryResponse]):
    __slots__ = ()

    def on_error(self, error: Exception) -> None:
        self.on_response(QueryResponse(0, NEVER_WRITTEN, None))


@BUGS.plant("count-errors", "QRM-M4", part="coordinator")
class _CountErrors(Coordinator):
    """A replica that did not answer in time is counted as if it had.

    Shows as: a coordinator that is cut off goes on alone and acknowledges writes that only it has.
    """

    def _collecting(
        self, go_on: Callable[[list[QueryResponse]], None], give_up: Callable[[], None]
    ) -> RequestCallback[QueryResponse]:
        return _ErrorsAreOldCopies(len(self._members), self._settings.read_quorum, go_on, give_up)

    def _counting(
        self, number: int, conclude: Callable[[int, WriteResult], None], needed: int
    ) -> RequestCallback[object]:
        return _ErrorsAreAnswers(len(self._members), number, conclude, needed)


@BUGS.plant(
    "ack-before-fsync",
    "WAL-M2",
    part="copies",
    pattern="write-ahead-log",
    campaign="quorum-durability",
    caught_by=("linearizability",),
)
class _AckBeforeFsync(LazyFlush, StampedCopies):
    """A replica acknowledges a value and flushes it up to 200 ms later.

    Shows as: acknowledged writes vanish when most replicas are killed at once.
    """


@BUGS.plant("stamp-without-asking", "QRM-R6", part="coordinator", caught_by=("linearizability",))
class _StampWithoutAsking(Coordinator):
    """A writer takes the stamp after its own copy's, not after the newest a quorum knows.

    Shows as: an acknowledged write has no effect, because an older one has the higher stamp.
    """

    def _next_stamp(self, key: str, answers: list[QueryResponse]) -> Stamp:
        return Stamp(self._copies.get(key).stamp.counter + 1, self._node_id, self._ids.next())
