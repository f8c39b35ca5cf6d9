"""Zab's election: all servers compute which of them is best, and that server brings a new generation to a majority.

*Problem.* When every server may stand for election, they can obstruct each other, and a server that only lost its
connection can raise the generation and depose a healthy leader.

*Idea.* (ZooKeeper's fast leader election.) A server without a leader is *looking*. It sends its vote to all others: at
first a vote for itself. A vote is (generation of the last entry, index of the last entry, id), and the highest vote is
best: the most recent log, and among equals the highest id, so that no vote is split. A server that hears of a better
vote changes over to it and tells all others. Votes belong to a *round*, a counter of each server's attempts: a higher
round makes the receiver start again in it, a lower one is answered with the receiver's own vote and not counted. When a
majority votes for the same server, and no better vote comes for one interval, the choice is made. Servers that are not
looking answer with the leader they follow, so that a newcomer joins instead of disturbing.

Choosing is not leading. The chosen server *gathers* the generations of a majority, takes the next one above all of
them, and has a majority promise it (`generation_agreement`); only then does it lead. So only the elected leader raises
the generation (LDR-R12), once, and a server that is cut off does not raise it.

    looking ──► chosen: gathering ──► asking for the generation ──► leading
       ▲  └──► others: joining ──────► promising it ──────────────► following
       └────── whenever no message comes for an election timeout

*Invariants.* LDR-I1, LDR-I2, LDR-I3, GEN-I1, GEN-I5: all of them rest on the agreement alone. Any mistake in choosing
costs time only.

*Tolerates.* Lost, late, repeated, reordered notifications: they are repeated at each interval, a vote within a round
only gets better, and rounds tell old from new. Crash and restart at any moment: only the promise is kept on disk, and
not the choice. A minority of servers down.

*Does not tolerate.* A best server that the others hear but which cannot hear them: they choose it again and again until
the link heals (ZooKeeper has the same weakness). A round is one choice among the servers that take part, so an
election that begins while some are still in the round before takes longer.

*Workloads.* `register` with partitions, kills, pauses.

*Checkers.* The invariants above on every run; linearizability.

*Planted bugs.* `zab-ignores-longer-logs` (LDR-M3): the winner counts promises of servers whose logs reach further, and
votes go by id alone.

After the agreement the replicated log brings the followers' logs into line, as in Raft: conflicting suffixes are cut
off, and a no-op shows which entries are committed. Zab's own synchronisation phase (NEWLEADER, a copy of the whole
history) does the same in one step and is not shown.

Sources: Patterns of Distributed Systems ch. 6 (the paragraph on Zab and Raft); Junqueira, Reed and Serafini, "Zab"
(DSN 2011) IV; Medeiros, "ZooKeeper's atomic broadcast protocol: theory and practice" (2012) 4, for rounds and
notifications.
"""

from __future__ import annotations

import enum

import msgspec

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.generation_agreement import (
    GenerationAgreement,
    GenerationPromised,
    NewGeneration,
)
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import (
    ElectionContext,
    Handlers,
    LeaderElection,
    ServerRole,
)
from faultline.systems_under_test.patterns.data_replication.quorum import majority

__all__ = ["ElectionNotification", "FollowerInformation", "Vote", "ZabElection"]


class Vote(msgspec.Struct, frozen=True, order=True, array_like=True):
    """A vote for a server, with the end of its log; votes are compared field by field, and the highest is best."""

    last_log_entry_generation: int
    last_log_entry_index: int
    server_id: str


class ElectionNotification(msgspec.Struct, frozen=True, tag="election-notification"):
    """The vote of `server_id` in `round`; or, when it is not looking, the server that it has chosen or follows."""

    server_id: str
    round: int
    looking: bool
    vote: Vote


class FollowerInformation(msgspec.Struct, frozen=True, tag="follower-information"):
    """To the chosen server: `server_id` follows it, and has promised or seen no higher `generation` than this."""

    server_id: str
    generation: int


class _Phase(enum.Enum):
    LOOKING = "looking"
    GATHERING = "gathering"
    ASKING = "asking"
    JOINING = "joining"
    SETTLED = "settled"


class ZabElection(LeaderElection):
    """One server's part in Zab's election."""

    def __init__(self, context: ElectionContext) -> None:
        super().__init__(context)
        self._agreement = self._new_agreement(context)
        self._quorum = majority(len(context.members))
        self._phase = _Phase.SETTLED
        self._round = 0
        self._vote = Vote(0, 0, self._me)
        self._chosen = self._me
        self._votes: dict[NodeId, Vote] = {}
        self._settled: dict[NodeId, str] = {}
        self._generations: dict[NodeId, int] = {}
        self._decide_us: int | None = None
        self._deadline_us = 0

    def handlers(self) -> Handlers:
        """Return the handlers of notifications, and of the messages that agree on the generation."""
        return {
            ElectionNotification: self.handle_notification,
            FollowerInformation: self.handle_follower_information,
            NewGeneration: self.handle_new_generation,
            GenerationPromised: self.handle_generation_promised,
        }

    def start(self) -> None:
        """Begin by looking for a leader (LDR-R12), not by waiting for one."""
        super().start()
        self._look()

    def election_timeout(self) -> None:
        """Repeat messages that may be lost, decide when the time has come, and look anew when an attempt fails."""
        if self._phase is _Phase.SETTLED:
            super().election_timeout()
            return
        self._timer = None
        if self._phase is _Phase.LOOKING:
            self._look_on()
        elif self._now_us() >= self._deadline_us:
            self._look()
        else:
            self._say_again()
            self._arm(self._interval_us)

    def _leader_is_silent(self) -> None:
        self._look()

    def _say_again(self) -> None:
        if self._phase is _Phase.JOINING:
            self._inform_leader()
        elif self._phase is _Phase.ASKING:
            self._agreement.ask_again()

    def _enter(self, phase: _Phase) -> None:
        self._phase = phase
        self._deadline_us = self._now_us() + self._timeout_us
        self._arm(self._interval_us)

    def _now_us(self) -> int:
        return self._ports.clock.monotonic_us()

    def _look(self) -> None:
        """Begin a round of this server's own, with a vote for itself."""
        self.role = ServerRole.LOOKING_FOR_LEADER
        self.leader_id = None
        self._settled = {}
        self._enter(_Phase.LOOKING)
        self._begin_round(self._round + 1, self._own_vote())

    def _look_on(self) -> None:
        if self._decide_us is not None and self._now_us() >= self._decide_us:
            self._decide()
        else:
            self._notify_all()
            self._arm(self._interval_us)

    def _begin_round(self, number: int, vote: Vote) -> None:
        self._round = number
        self._votes = {}
        self._change_vote(vote)

    def _change_vote(self, vote: Vote) -> None:
        self._vote = vote
        self._votes[self._me] = vote
        self._decide_us = None
        self._notify_all()

    def _notify_all(self) -> None:
        notification = self._notification()
        for peer in self._peers:
            self._ports.network.send(peer, notification)

    def _notification(self) -> ElectionNotification:
        return ElectionNotification(self._me, self._round, self._phase is _Phase.LOOKING, self._vote)

    def handle_notification(self, source: NodeId, notification: ElectionNotification) -> None:
        """Weigh a vote while looking; answer a server that looks with the leader that this one follows."""
        if self._phase is not _Phase.LOOKING:
            if notification.looking:
                self._ports.network.send(source, self._notification())
        elif not notification.looking:
            self._settled[source] = notification.vote.server_id
            self._join_those_settled(notification.vote.server_id)
        elif notification.round < self._round:
            self._ports.trace.sometimes("old-round-vote-answered")
            self._ports.network.send(source, self._notification())
        else:
            self._take_vote(source, notification)

    def _take_vote(self, source: NodeId, notification: ElectionNotification) -> None:
        vote = notification.vote
        if notification.round > self._round:
            self._begin_round(notification.round, max(self._own_vote(), vote))
        elif vote > self._vote:
            self._change_vote(vote)
        # Within a round a vote only gets better, so an older notification that comes late changes nothing.
        self._votes[source] = max(vote, self._votes.get(source, vote))
        supporters = sum(1 for each in self._votes.values() if each == self._vote)
        if supporters >= self._quorum and self._decide_us is None:
            # A moment longer: the notification of a server with a better log may still be under way.
            self._decide_us = self._now_us() + self._interval_us
            self._arm(self._interval_us)

    def _join_those_settled(self, leader_id: str) -> None:
        """Follow the leader that a majority follows, if that server says itself that it leads."""
        leader = NodeId(leader_id)
        followers = sum(1 for each in self._settled.values() if each == leader_id)
        # A majority may still name a leader that has died; only the leader itself can say that it leads.
        if leader != self._me and self._settled.get(leader) == leader_id and followers >= self._quorum:
            self._ports.trace.sometimes("settled-leader-joined")
            self._join(leader)

    def _decide(self) -> None:
        if self._vote.server_id == self._me:
            self._generations = {self._me: self._clock.generation}
            self._enter(_Phase.GATHERING)
        else:
            self._join(NodeId(self._vote.server_id))

    def handle_follower_information(self, source: NodeId, information: FollowerInformation) -> None:
        """Count a follower; with a majority, ask for a generation above all that they know."""
        if self._phase is _Phase.ASKING:
            self._agreement.ask(source)
        elif self._phase is _Phase.GATHERING:
            self._generations[source] = information.generation
            if len(self._generations) >= self._quorum:
                self._enter(_Phase.ASKING)
                # Above the generations of a majority, and so above every generation that was ever agreed on.
                self._agreement.propose(1 + max(self._clock.generation, *self._generations.values()))

    def handle_generation_promised(self, source: NodeId, answer: GenerationPromised) -> None:
        """Count a promise; with a majority this server leads, and a higher generation ends the attempt."""
        if answer.generation > self._clock.generation:
            self.become_follower(answer.generation, None)
        elif self._phase is _Phase.ASKING and self._agreement.count(source, answer):
            self._settle(self._me)
            self._become_leader()

    def _join(self, leader: NodeId) -> None:
        self._chosen = leader
        self._vote = Vote(self._log.last_generation, self._log.last_index, leader)
        self._enter(_Phase.JOINING)
        self._inform_leader()

    def _inform_leader(self) -> None:
        self._ports.network.send(self._chosen, FollowerInformation(self._me, self._clock.generation))

    def handle_new_generation(self, source: NodeId, request: NewGeneration) -> None:
        """Promise the generation to the server that this one has chosen, and to no other."""
        if self._phase is not _Phase.JOINING or source != self._chosen:
            self._agreement.refuse(source, request)
        elif self._must_stick():
            self._ports.trace.sometimes("vote-refused-leader-known")
            self._agreement.refuse(source, request)
        elif self._agreement.promise(source, request):
            self._deadline_us = self._now_us() + self._timeout_us

    def become_follower(self, generation: int, leader_id: NodeId | None) -> None:
        """Adopt `generation` when it is higher, and follow `leader_id`; look for a leader when there is none."""
        super().become_follower(generation, leader_id)
        if leader_id is None:
            self._look()

    def _forget_candidacy(self) -> None:
        if self.leader_id is not None:
            self._settle(self.leader_id)

    def _settle(self, leader: NodeId) -> None:
        self._phase = _Phase.SETTLED
        self._vote = Vote(self._log.last_generation, self._log.last_index, leader)

    # Each step below is a method of its own, so that a planted bug can override it.

    def _own_vote(self) -> Vote:
        """Return the vote for this server itself."""
        return Vote(self._log.last_generation, self._log.last_index, self._me)

    def _new_agreement(self, context: ElectionContext) -> GenerationAgreement:
        """Return the way a generation is agreed on."""
        return GenerationAgreement(context)
