"""The planted bugs of `paxos-kv`: each a class that overrides the one step the bug is about.

They are put into the `PaxosKvParts` a node is built from, or in front of the node. The correct code does not know that
any of them exists. They break paxos-kv for good: never use them outside the harness.
"""

from __future__ import annotations

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.paxos import (
    Acceptor,
    Attempt,
    MonotonicId,
    MonotonicIds,
    PaxosQuorums,
    Proposal,
)
from faultline.systems_under_test.patterns.data_replication.paxos_proposer import Proposer, Work
from faultline.systems_under_test.patterns.data_replication.paxos_store import Commit, PaxosStore
from faultline.systems_under_test.reference.paxos_kv.messages import PaxosClientRequest
from faultline.systems_under_test.reference.paxos_kv.node import ClientChange, PaxosKvNode, PaxosKvParts
from faultline.systems_under_test.reference.paxos_kv.options import PaxosKvSettings
from faultline.systems_under_test.reference.paxos_kv.register import register_in
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse, GetValue
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

BUGS = PlantedBugs(
    "paxos-kv",
    PaxosKvParts,
    pattern="paxos",
    campaign="paxos-duels",
    caught_by=("PAX-I1", "PAX-I3", "linearizability"),
)


class _NothingAdopted(Attempt):
    def adopted(self) -> bytes | None:
        return None


@BUGS.plant("ignore-accepted", "PAX-M1", part="proposer")
class _IgnoreAccepted(Proposer):
    """A proposer proposes its own value whatever acceptors have accepted.

    Shows as: two values are chosen for one version, and an acknowledged write is lost.
    """

    attempt_class = _NothingAdopted


class _OldestAdopted(Attempt):
    def _most_recent(self, accepted: list[Proposal]) -> Proposal | None:
        return min(accepted, key=lambda proposal: proposal.generation, default=None)


@BUGS.plant("adopt-oldest-accepted", "PAX-M2", part="proposer")
class _AdoptOldestAccepted(Proposer):
    """A proposer adopts the accepted value of the lowest generation, not that of the highest.

    Shows as: a chosen value is replaced by one that was abandoned.
    """

    attempt_class = _OldestAdopted


class _AdoptedUnderOldGeneration(Attempt):
    def proposes_under(self) -> MonotonicId:
        adopted = self._most_recent(self._accepted)
        return self.generation if adopted is None else adopted.generation


@BUGS.plant("adopt-under-old-generation", "PAX-M3", part="proposer", caught_by=("PAX-R8",))
class _AdoptUnderOldGeneration(Proposer):
    """A proposer proposes the value it adopts under the generation in which that was accepted.

    Shows as: the acceptors have promised a higher one and refuse, so no proposer finishes that value and its key is
    stuck.
    """

    attempt_class = _AdoptedUnderOldGeneration

    def _is_answer_to(self, attempt: Attempt, generation: MonotonicId) -> bool:
        return generation in (attempt.generation, attempt.proposes_under())


@BUGS.plant("rounds-not-learned", "PAX-M13", part="ids", caught_by=("PAX-R4",))
class _RoundsNotLearned(MonotonicIds):
    """A node does not learn the rounds of others, and tries again at once.

    Shows as: it proposes below its own promise; after a duel it needs many attempts, or starves.
    """

    def observe(self, generation: MonotonicId) -> None:
        # The node's own rounds are kept over a restart: to use a generation twice is another bug (PAX-R3).
        if generation.node == self._node:
            super().observe(generation)


@BUGS.also("rounds-not-learned", part="proposer")
class _NoBackoff(Proposer):
    def _backoff_us(self, attempts: int) -> int:
        return 0


@BUGS.plant(
    "accept-below-promise", "PAX-M4", part="acceptor", caught_by=("PAX-I4", "PAX-I1", "PAX-I3", "linearizability")
)
class _AcceptBelowPromise(Acceptor):
    """An acceptor accepts proposals of a lower generation than it promised.

    Shows as: a proposer that was superseded gets a second value chosen.
    """

    def _may_accept(self, generation: MonotonicId) -> bool:
        return True


@BUGS.plant(
    "late-answers-count",
    "PAX-M5",
    part="proposer",
    caught_by=("PAX-I1", "PAX-I3", "PAX-R8", "linearizability"),
    options={"phase_timeout_ms": "25", "backoff_ms": "2"},
)
class _LateAnswersCount(Proposer):
    """A proposer counts answers to its earlier generations for the present one.

    Shows as: a value is called chosen that no quorum accepted in one generation.
    """

    def _is_answer_to(self, attempt: Attempt, generation: MonotonicId) -> bool:
        return True


@BUGS.plant("strict-accept", "PAX-M12", part="acceptor", caught_by=("availability",))
class _StrictAccept(Acceptor):
    """An acceptor accepts only generations above its promise, as the table of the text has it.

    Shows as: no value is ever chosen, so no operation is answered after the heal either.
    """

    def _may_accept(self, generation: MonotonicId) -> bool:
        return generation > self.promised


@BUGS.plant(
    "promise-not-durable",
    "PAX-M6",
    part="store",
    campaign="paxos-durability",
    caught_by=("PAX-I4", "PAX-I1", "PAX-I3", "PAX-R3", "linearizability"),
)
class _PromiseNotDurable(PaxosStore):
    """An acceptor answers before its promise or acceptance is on disk, and does not flush it.

    Shows as: after a restart it breaks promises and has forgotten chosen values.
    """

    def _flush(self) -> None:
        """Leave the flush to chance."""


@BUGS.plant("ids-not-unique", "PAX-M7", part="ids", caught_by=("PAX-R3", "PAX-I1", "PAX-I3", "linearizability"))
class _IdsNotUnique(MonotonicIds):
    """Generations are bare rounds, without the node's name to break ties.

    Shows as: two proposers propose different values in one generation.
    """

    def _name(self) -> str:
        return ""


@BUGS.plant(
    "naive-reset", "PAX-M8", part="store", caught_by=("PAX-I2", "PAX-I1", "PAX-I3", "PAX-I4", "linearizability")
)
class _NaiveReset(PaxosStore):
    """As printed, an acceptor starts over after each commit and neither tells nor learns the committed version.

    Shows as: a node that missed a commit reads nothing, or brings the value before it back.
    """

    def _is_open(self, chain: object, version: int) -> bool:
        return True

    def _catch_up(self, key: str, commit: Commit) -> None:
        """Ignore the commit that the proposer builds on."""


@BUGS.plant("local-read", "PAX-M9", part="node", caught_by=("linearizability",))
class _LocalRead(PaxosKvNode):
    """A read is answered from the newest commit that the asked node knows.

    Shows as: a read returns a value that was overwritten before it began.
    """

    def _handle_client_request(self, source: NodeId, request: PaxosClientRequest) -> None:
        if type(request.command) is GetValue:
            value = register_in(self.store.committed(request.command.key)).value
            self.ports.network.send(source, ClientResponse(request.request_number, None, value))
        else:
            super()._handle_client_request(source, request)


@BUGS.plant("success-without-accepts", "PAX-M10", part="proposer", caught_by=("linearizability",))
class _SuccessWithoutAccepts(Proposer):
    """As printed, a proposer reports success when its own value was refused in the accept phase.

    Shows as: an acknowledged write is lost.
    """

    def _failed(self, work: Work) -> None:
        if work.proposed is not None and self._is_own(work):
            self._finish(work, self._store.committed(work.key))
        else:
            super()._failed(work)


@BUGS.plant("success-with-other-value", "PAX-M11", part="proposer", caught_by=("linearizability",))
class _SuccessWithOtherValue(Proposer):
    """A proposer that had to finish the value of another one reports success for its own.

    Shows as: an acknowledged write never happened.
    """

    def _is_own(self, work: Work) -> bool:
        return True


@BUGS.plant("half-quorums", "PAX-M14", part="quorums", pattern="quorum")
def _half_quorums(_: PaxosKvSettings, members: int) -> PaxosQuorums:
    """Half of the members are a quorum of both phases, so two quorums need not meet.

    Shows as: two values are chosen for one version.
    """
    return PaxosQuorums(members // 2, members // 2)


@BUGS.plant(
    "no-duplicate-detection", "IDR-M1", part="change", pattern="idempotent-receiver", caught_by=("linearizability",)
)
class _NoDuplicateDetection(ClientChange):
    """A request that stands in the register already is executed again.

    Shows as: a compare-and-set fails that took effect; an old value comes back after a newer one.
    """

    def stands_in(self, last_request: int) -> bool:
        return False
