"""The invariants of `paxos-kv`, checked on what its nodes report while a run goes on.

As with `consistent-core`, nothing is concluded from a step of a node that may die in the same instant. An
acceptor's promise counts as durable once a proposer has counted it; before that, it binds the living process only.
A value counts as chosen when a proposer has counted a quorum, or a node was told so. A quorum of one may be the
proposer's own answer, which is still being flushed: what no peer knows of binds the living process only, too.

`needs_order` is true where reports of different nodes must come in the order in which they were made.
"""

from __future__ import annotations

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.patterns.data_replication.paxos import NEVER, MonotonicId
from faultline.systems_under_test.patterns.data_replication.paxos_proposer import (
    AcceptanceCounted,
    PromiseCounted,
    ValueChosen,
    ValueProposed,
)
from faultline.systems_under_test.patterns.data_replication.paxos_store import Accepted, Learned, Promised, StoreStarted

__all__ = [
    "ChosenValuesWereProposed",
    "CommitsMoveForward",
    "LaterProposalsAgree",
    "OneProposalPerGeneration",
    "OneValuePerVersion",
    "PromisesAreKept",
    "ProposalsStandOnPromises",
    "RoundsAreLearned",
    "paxos_kv_invariants",
]

_Instance = tuple[str, int]


class _KnownToPeers:
    """The generations in which a peer of the proposer accepted or learned a value.

    The proposer's own answer was durable by then, because its request to the peer left after the flush.
    """

    def __init__(self) -> None:
        self._known: set[tuple[_Instance, MonotonicId]] = set()

    def note(self, node: str, event: Accepted | Learned) -> None:
        """Remember what `node` accepted or learned, unless it is the proposer."""
        generation = event.proposal.generation if isinstance(event, Accepted) else event.generation
        if node != generation.node:
            self._known.add(((event.key, event.version), generation))

    def binds(self, instance: _Instance, generation: MonotonicId, restarted: str) -> bool:
        """Return whether a word of `generation` binds still, now that the node `restarted` is a new process."""
        return generation.node != restarted or (instance, generation) in self._known


class OneValuePerVersion(ReportingInvariant):
    """PAX-I1, of the values that proposers saw chosen and those that nodes were told."""

    id = "PAX-I1"
    statement = "At most one value is chosen for each version of a key."
    needs_order = True
    events = (ValueChosen, Learned, StoreStarted)

    def __init__(self) -> None:
        self._chosen: dict[_Instance, tuple[str, MonotonicId, int]] = {}
        self._peers = _KnownToPeers()

    def observe(self, time_us: int, node: str, event: ValueChosen | Learned | StoreStarted, report: Report) -> None:
        """Compare with the first value that was chosen for this version; forget what died with its process."""
        if isinstance(event, StoreStarted):
            words = self._chosen.items()
            self._chosen = {each: word for each, word in words if self._peers.binds(each, word[1], node)}
            return
        if isinstance(event, Learned):
            self._peers.note(node, event)
        first, generation, checksum = self._chosen.setdefault(
            (event.key, event.version), (node, event.generation, event.checksum)
        )
        if checksum != event.checksum:
            sentence = (
                f"For version {event.version} of {event.key}, {first} holds a value chosen in generation"
                f" {generation}, and {node} another one, chosen in generation {event.generation}."
            )
            self._breach(report, time_us, node, sentence)


class ChosenValuesWereProposed(ReportingInvariant):
    """PAX-I2: an adopted value is no proof, some proposer must have proposed it as its own."""

    id = "PAX-I2"
    statement = "A chosen value was proposed for that version, by a proposer that was free to choose."
    needs_order = True
    events = (ValueProposed, ValueChosen)

    def __init__(self) -> None:
        self._proposed: dict[_Instance, list[int]] = {}

    def observe(self, time_us: int, node: str, event: ValueProposed | ValueChosen, report: Report) -> None:
        """Remember the own values of proposers; look up the chosen ones among them."""
        wanted = self._proposed.setdefault((event.key, event.version), [])
        if type(event) is ValueProposed:
            if event.own:
                wanted.append(event.checksum)
        elif event.checksum not in wanted:
            sentence = f"{node} saw a value chosen for version {event.version} of {event.key} that no node proposed."
            self._breach(report, time_us, node, sentence)


class LaterProposalsAgree(ReportingInvariant):
    """PAX-I3, in both directions: a value may be seen chosen after a higher generation has proposed."""

    id = "PAX-I3"
    statement = "Once a value is chosen in a generation, every higher generation proposes the same value."
    needs_order = True
    events = (ValueProposed, ValueChosen, Accepted, Learned, StoreStarted)

    def __init__(self) -> None:
        self._chosen: dict[_Instance, list[tuple[MonotonicId, int]]] = {}
        self._proposed: dict[_Instance, list[tuple[MonotonicId, int]]] = {}
        self._peers = _KnownToPeers()

    def observe(
        self,
        time_us: int,
        node: str,
        event: ValueProposed | ValueChosen | Accepted | Learned | StoreStarted,
        report: Report,
    ) -> None:
        """Compare a proposal with the chosen value, and a chosen value with all proposals."""
        if isinstance(event, StoreStarted):
            self._forget(node)
            return
        if isinstance(event, Accepted | Learned):
            self._peers.note(node, event)
            return
        instance, now = (event.key, event.version), (event.generation, event.checksum)
        if isinstance(event, ValueProposed):
            self._proposed.setdefault(instance, []).append(now)
            # The lowest generation that chose a value binds the most proposals.
            if chosen := self._chosen.get(instance):
                self._compare(time_us, node, instance, min(chosen), now, report)
            return
        self._chosen.setdefault(instance, []).append(now)
        for proposed in self._proposed.get(instance, ()):
            self._compare(time_us, node, instance, now, proposed, report)

    def _forget(self, restarted: str) -> None:
        """Drop the words of the former process of `restarted` that no peer knows of."""
        for words in (self._chosen, self._proposed):
            for instance, said in words.items():
                said[:] = [each for each in said if self._peers.binds(instance, each[0], restarted)]

    def _compare(
        self,
        time_us: int,
        node: str,
        instance: _Instance,
        chosen: tuple[MonotonicId, int],
        proposed: tuple[MonotonicId, int],
        report: Report,
    ) -> None:
        if proposed[0] > chosen[0] and proposed[1] != chosen[1]:
            key, version = instance
            sentence = (
                f"A value was chosen for version {version} of {key} in generation {chosen[0]}, and generation"
                f" {proposed[0]} proposed another one."
            )
            self._breach(report, time_us, node, sentence)


class PromisesAreKept(ReportingInvariant):
    """PAX-I4, over restarts too: a process starts from the promises that proposers had counted by then.

    A proposer counts its own promise while that is still being flushed. The promise is durable once a peer answers the
    same generation, because the request to the peer left after the flush.
    """

    id = "PAX-I4"
    statement = "The promise of an acceptor never decreases, and it accepts nothing below; restarts included."
    needs_order = True
    events = (Promised, Accepted, PromiseCounted, AcceptanceCounted, StoreStarted)

    def __init__(self) -> None:
        self._durable: dict[str, dict[_Instance, MonotonicId]] = {}
        self._own: dict[str, dict[_Instance, MonotonicId]] = {}
        self._now: dict[str, dict[_Instance, MonotonicId]] = {}

    def observe(
        self,
        time_us: int,
        node: str,
        event: Promised | Accepted | PromiseCounted | AcceptanceCounted | StoreStarted,
        report: Report,
    ) -> None:
        """Raise the floor with each promise; compare promises and acceptances with it."""
        if type(event) is StoreStarted:
            self._now[node] = dict(self._durable.get(node, {}))
        elif type(event) is PromiseCounted or type(event) is AcceptanceCounted:
            self._count(node, event)
        elif type(event) is Promised:
            self._check(time_us, node, "promised", event.key, event.version, event.generation, report)
        elif type(event) is Accepted:
            self._check(time_us, node, "accepted", event.key, event.version, event.proposal.generation, report)

    def _count(self, node: str, event: PromiseCounted | AcceptanceCounted) -> None:
        instance, acceptor = (event.key, event.version), event.acceptor
        own = self._own.setdefault(node, {})
        if acceptor == node:
            # Not durable yet: it becomes so with the first answer of a peer (see above).
            own[instance] = event.generation
            return
        _raise(self._durable.setdefault(acceptor, {}), instance, event.generation)
        _raise(self._now.setdefault(acceptor, {}), instance, event.generation)
        if own.get(instance) == event.generation:
            _raise(self._durable.setdefault(node, {}), instance, event.generation)

    def _check(
        self, time_us: int, node: str, did: str, key: str, version: int, generation: MonotonicId, report: Report
    ) -> None:
        floors = self._now.setdefault(node, {})
        floor = floors.get((key, version), NEVER)
        if generation < floor:
            sentence = (
                f"{node} {did} generation {generation} for version {version} of {key} although it had promised {floor}."
            )
            self._breach(report, time_us, node, sentence)
        _raise(floors, (key, version), generation)


class OneProposalPerGeneration(ReportingInvariant):
    """A generation proposes one value: PAX-R3."""

    id = "PAX-R3"
    statement = "A generation proposes one value in an instance: generations are unique, restarts included."
    needs_order = True
    events = (ValueProposed, Accepted, Learned, StoreStarted)

    def __init__(self) -> None:
        self._proposed: dict[tuple[_Instance, MonotonicId], tuple[str, int]] = {}
        self._peers = _KnownToPeers()

    def observe(
        self, time_us: int, node: str, event: ValueProposed | Accepted | Learned | StoreStarted, report: Report
    ) -> None:
        """Remember the first proposal of each generation; compare later ones with it."""
        if isinstance(event, StoreStarted):
            words = self._proposed.items()
            self._proposed = {each: word for each, word in words if self._peers.binds(*each, node)}
            return
        if isinstance(event, Accepted | Learned):
            self._peers.note(node, event)
            return
        proposal = ((event.key, event.version), event.generation)
        first, checksum = self._proposed.setdefault(proposal, (node, event.checksum))
        if checksum != event.checksum:
            sentence = (
                f"{first} and {node} proposed different values for version {event.version} of {event.key} in"
                f" generation {event.generation}."
            )
            self._breach(report, time_us, node, sentence)


class CommitsMoveForward(ReportingInvariant):
    """PAX-I6, within a process: a commit is not flushed, a restart may have to learn it again."""

    id = "PAX-I6"
    statement = "The committed version of a key at a node never decreases while its process lives."
    events = (Learned, StoreStarted)

    def __init__(self) -> None:
        self._versions: dict[str, dict[str, int]] = {}

    def observe(self, time_us: int, node: str, event: Learned | StoreStarted, report: Report) -> None:
        """Compare with the commit this process learned before."""
        if type(event) is not Learned:
            self._versions[node] = {}
            return
        versions = self._versions.setdefault(node, {})
        newest = versions.get(event.key, 0)
        if event.version <= newest:
            sentence = f"{node} replaced version {newest} of {event.key} by version {event.version}."
            self._breach(report, time_us, node, sentence)
        versions[event.key] = event.version


class RoundsAreLearned(ReportingInvariant):
    """PAX-R4, of each process: it knows the rounds that it promised, accepted or learned.

    A node's own attempt shows as the promise it gives itself.
    """

    id = "PAX-R4"
    statement = "A node's new attempt has a higher round than all that it has promised, accepted or learned."
    events = (Promised, Accepted, Learned, StoreStarted)

    def __init__(self) -> None:
        self._rounds: dict[str, MonotonicId] = {}

    def observe(
        self, time_us: int, node: str, event: Promised | Accepted | Learned | StoreStarted, report: Report
    ) -> None:
        """Compare an own attempt with the highest round so far."""
        if isinstance(event, StoreStarted):
            self._rounds[node] = NEVER
            return
        generation = event.proposal.generation if isinstance(event, Accepted) else event.generation
        highest = self._rounds.get(node, NEVER)
        if type(event) is Promised and generation.node == node and generation.round <= highest.round:
            sentence = f"{node} began an attempt in generation {generation} although it knew of {highest}."
            self._breach(report, time_us, node, sentence)
        self._rounds[node] = max(highest, generation)


class ProposalsStandOnPromises(ReportingInvariant):
    """PAX-R8: also an adopted value is proposed under the proposer's own generation, for which it has the promises."""

    id = "PAX-R8"
    statement = "A value is proposed under the generation whose promises its proposer has counted last."
    events = (PromiseCounted, ValueProposed)

    def __init__(self) -> None:
        self._counted: dict[tuple[str, str, int], MonotonicId] = {}

    def observe(self, time_us: int, node: str, event: PromiseCounted | ValueProposed, report: Report) -> None:
        """Remember the generation whose promises were counted; compare each proposal with it."""
        instance = (node, event.key, event.version)
        if type(event) is PromiseCounted:
            self._counted[instance] = event.generation
        elif self._counted.get(instance) != event.generation:
            sentence = (
                f"{node} proposed a value for version {event.version} of {event.key} under generation"
                f" {event.generation}, for which it had not counted promises."
            )
            self._breach(report, time_us, node, sentence)


def _raise(floors: dict[_Instance, MonotonicId], instance: _Instance, generation: MonotonicId) -> None:
    floors[instance] = max(floors.get(instance, NEVER), generation)


def paxos_kv_invariants() -> list[Invariant]:
    """Return fresh instances of all invariants, for one run."""
    return [
        OneValuePerVersion(),
        ChosenValuesWereProposed(),
        LaterProposalsAgree(),
        PromisesAreKept(),
        OneProposalPerGeneration(),
        CommitsMoveForward(),
        RoundsAreLearned(),
        ProposalsStandOnPromises(),
    ]
