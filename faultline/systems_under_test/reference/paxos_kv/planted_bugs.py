"""The planted bugs of `paxos-kv`: each a record, and a subclass that overrides the one step the bug is about.

They are put into the `PaxosKvParts` a node is built from; the correct code does not know that any of them exists. They
break paxos-kv for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from faultline.harness.system import PlantedBug
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
from faultline.systems_under_test.reference.paxos_kv.node import ClientChange, PaxosKvParts
from faultline.systems_under_test.reference.paxos_kv.options import PaxosKvSettings
from faultline.systems_under_test.reference.shared.planted_bugs import layered, planted, with_bugs

__all__ = ["PAXOS_KV_PLANTED_BUGS", "paxos_kv_parts"]


_planted = partial(planted, pattern="paxos", campaign="paxos-duels")

_RECORDS = (
    _planted(
        "ignore-accepted",
        "PAX-M1",
        "a proposer proposes its own value whatever acceptors have accepted",
        "two values are chosen for one version, and an acknowledged write is lost",
        "PAX-I1",
        "PAX-I3",
        "linearizability",
    ),
    _planted(
        "adopt-oldest-accepted",
        "PAX-M2",
        "a proposer adopts the accepted value of the lowest generation, not that of the highest",
        "a chosen value is replaced by one that was abandoned",
        "PAX-I1",
        "PAX-I3",
        "linearizability",
    ),
    _planted(
        "adopt-under-old-generation",
        "PAX-M3",
        "a proposer proposes the value it adopts under the generation in which that was accepted",
        "the acceptors have promised a higher one and refuse, so nobody ever finishes that value and its key is stuck",
        "PAX-R8",
    ),
    _planted(
        "rounds-not-learned",
        "PAX-M13",
        "a node does not learn the rounds of others, and tries again at once",
        "it proposes below what it has promised itself; after a duel it needs many attempts, or starves",
        "PAX-R4",
    ),
    _planted(
        "accept-below-promise",
        "PAX-M4",
        "an acceptor accepts proposals of a lower generation than it promised",
        "a proposer that was superseded gets a second value chosen",
        "PAX-I4",
        "PAX-I1",
        "PAX-I3",
        "linearizability",
    ),
    _planted(
        "late-answers-count",
        "PAX-M5",
        "a proposer counts answers to its earlier generations for the present one",
        "a value is called chosen that no quorum accepted in one generation",
        "PAX-I1",
        "PAX-I3",
        "PAX-R8",
        "linearizability",
        phase_timeout_ms="25",
        backoff_ms="2",
    ),
    _planted(
        "strict-accept",
        "PAX-M12",
        "an acceptor accepts only what is above its promise, as the table of the text has it",
        "no value is ever chosen, so no operation is answered after the heal either",
        "availability",
    ),
    _planted(
        "promise-not-durable",
        "PAX-M6",
        "an acceptor answers before its promise or acceptance is on disk, and does not flush it",
        "after a restart it breaks promises and has forgotten chosen values",
        "PAX-I4",
        "PAX-I1",
        "PAX-I3",
        "PAX-R3",
        "linearizability",
        campaign="paxos-durability",
    ),
    _planted(
        "ids-not-unique",
        "PAX-M7",
        "generations are bare rounds, without the node's name to break ties",
        "two proposers propose different values in one generation",
        "PAX-R3",
        "PAX-I1",
        "PAX-I3",
        "linearizability",
    ),
    _planted(
        "naive-reset",
        "PAX-M8",
        "as printed, an acceptor starts over after each commit and neither tells nor learns what was committed",
        "a node that missed a commit reads nothing, or brings the value before it back",
        "PAX-I2",
        "PAX-I1",
        "PAX-I3",
        "PAX-I4",
        "linearizability",
    ),
    _planted(
        "local-read",
        "PAX-M9",
        "a read is answered from what the asked node knows to be committed",
        "a read returns a value that was overwritten before it began",
        "linearizability",
    ),
    _planted(
        "success-without-accepts",
        "PAX-M10",
        "as printed, a proposer reports success when its own value was refused in the accept phase",
        "an acknowledged write is lost",
        "linearizability",
    ),
    _planted(
        "success-with-other-value",
        "PAX-M11",
        "a proposer that had to finish somebody else's value reports success for its own",
        "an acknowledged write never happened",
        "linearizability",
    ),
    _planted(
        "half-quorums",
        "PAX-M14",
        "half of the members are a quorum of both phases, so two quorums need not meet",
        "two values are chosen for one version",
        "PAX-I1",
        "PAX-I3",
        "linearizability",
        pattern="quorum",
    ),
    _planted(
        "no-duplicate-detection",
        "IDR-M1",
        "a request that stands in the register already is executed again",
        "a compare-and-set fails that took effect; an old value comes back after a newer one",
        "linearizability",
        pattern="idempotent-receiver",
    ),
)

PAXOS_KV_PLANTED_BUGS: dict[str, PlantedBug] = {record.name: record for record in _RECORDS}
"""Every planted bug by name."""


class _NothingAdopted(Attempt):
    def adopted(self) -> bytes | None:
        return None


class _OldestAdopted(Attempt):
    def _most_recent(self, accepted: list[Proposal]) -> Proposal | None:
        return min(accepted, key=lambda proposal: proposal.generation, default=None)


class _AdoptedUnderOldGeneration(Attempt):
    def proposes_under(self) -> MonotonicId:
        adopted = self._most_recent(self._accepted)
        return self.generation if adopted is None else adopted.generation


class _RoundsNotLearned(MonotonicIds):
    def observe(self, generation: MonotonicId) -> None:
        # Its own are kept over a restart: a node that uses a generation twice has another bug (PAX-R3).
        if generation.node == self._node:
            super().observe(generation)


class _AcceptBelowPromise(Acceptor):
    def _may_accept(self, generation: MonotonicId) -> bool:
        return True


class _StrictAccept(Acceptor):
    def _may_accept(self, generation: MonotonicId) -> bool:
        return generation > self.promised


class _PromiseNotDurable(PaxosStore):
    def _flush(self) -> None:
        """Leave it to chance."""


class _IdsNotUnique(MonotonicIds):
    def _name(self) -> str:
        return ""


class _NaiveReset(PaxosStore):
    def _is_open(self, chain: object, version: int) -> bool:
        return True

    def _catch_up(self, key: str, commit: Commit) -> None:
        """What the proposer builds on is ignored."""


class _IgnoreAccepted(Proposer):
    attempt_class = _NothingAdopted


class _AdoptOldestAccepted(Proposer):
    attempt_class = _OldestAdopted


class _AdoptUnderOldGeneration(Proposer):
    attempt_class = _AdoptedUnderOldGeneration

    def _is_answer_to(self, attempt: Attempt, generation: MonotonicId) -> bool:
        return generation in (attempt.generation, attempt.proposes_under())


class _NoBackoff(Proposer):
    def _backoff_us(self, attempts: int) -> int:
        return 0


class _LateAnswersCount(Proposer):
    def _is_answer_to(self, attempt: Attempt, generation: MonotonicId) -> bool:
        return True


class _SuccessWithoutAccepts(Proposer):
    def _failed(self, work: Work) -> None:
        if work.proposed is not None and self._is_own(work):
            self._finish(work, self._store.committed(work.key))
        else:
            super()._failed(work)


class _SuccessWithOtherValue(Proposer):
    def _is_own(self, work: Work) -> bool:
        return True


class _NoDuplicateDetection(ClientChange):
    def stands_in(self, last_request: int) -> bool:
        return False


def _half_quorums(_: PaxosKvSettings, members: int) -> PaxosQuorums:
    return PaxosQuorums(members // 2, members // 2)


_CHANGES: dict[str, Callable[[PaxosKvParts], PaxosKvParts]] = {
    "ignore-accepted": layered("proposer", _IgnoreAccepted),
    "adopt-oldest-accepted": layered("proposer", _AdoptOldestAccepted),
    "adopt-under-old-generation": layered("proposer", _AdoptUnderOldGeneration),
    "rounds-not-learned": lambda parts: replace(layered("proposer", _NoBackoff)(parts), ids=_RoundsNotLearned),
    "accept-below-promise": lambda parts: replace(parts, acceptor=_AcceptBelowPromise),
    "late-answers-count": layered("proposer", _LateAnswersCount),
    "strict-accept": lambda parts: replace(parts, acceptor=_StrictAccept),
    "promise-not-durable": layered("store", _PromiseNotDurable),
    "ids-not-unique": lambda parts: replace(parts, ids=_IdsNotUnique),
    "naive-reset": layered("store", _NaiveReset),
    "local-read": lambda parts: replace(parts, local_reads=True),
    "success-without-accepts": layered("proposer", _SuccessWithoutAccepts),
    "success-with-other-value": layered("proposer", _SuccessWithOtherValue),
    "half-quorums": lambda parts: replace(parts, quorums=_half_quorums),
    "no-duplicate-detection": lambda parts: replace(parts, change=_NoDuplicateDetection),
}


def paxos_kv_parts(names: Iterable[str]) -> PaxosKvParts:
    """The parts of a node with the planted bugs `names`; with none, the correct ones. Raises UsageError."""
    return with_bugs("paxos-kv", names, PaxosKvParts(), _CHANGES)
