"""SWIM with suspicion and Lifeguard: probe one member at a time, and let an accused member answer before it counts as
dead.

*Problem.* Heartbeats cost messages even when nothing happens, and a single lost one, or a busy receiver, makes a
healthy server look dead.

*Idea.* In each period a member *pings* another. It goes round all members, in a new random order for each round. When
no answer comes in time, it asks `helpers` others to ping in its place, because only the direct link may be bad. When no
answer has come by the end of the period, it spreads the rumour that the member is *suspected*. Rumours travel on pings
and answers, so they cost no messages of their own. Those that were sent least often go first, and each is sent some
multiple of log n times.

A suspected member that hears of the suspicion answers with a rumour that it is alive, under a higher *incarnation*, a
number that only the member itself may raise. Rumours are compared by incarnation first, and then by severity. A member
that is suspected for a whole suspicion time without an answer is *dead*. Dead members are still pinged in their turn,
and the answer to a ping contains the accusation against its sender. So halves that were cut apart find each other
again.

A member that is slow itself accuses others wrongly. So each member keeps a score of its own health (Lifeguard). Probes
that fail and rumours that it has to refute make the score worse, and answered probes make it better. All timeouts of
the member are multiplied by the score.

*Invariants.* HB-I1 a member that died is marked dead by all others. HB-I2 a member that lives refutes, and ends up
alive. HB-I4 in each period a member sends one ping, `helpers` requests at most, and answers what it is asked.

*Tolerates.* Lost, late, repeated and reordered messages; a bad link between two members; members that are slow for a
while; restarts, if the incarnation does not go back.

*Does not tolerate.* Unreachable members: a member that no other can reach counts as dead, even if it is well. An
incarnation that a restart forgets.

*Workloads.* `metadata` with `detector=lifeguard`; the tests drive larger clusters of members by hand.

*Checkers.* `convergence` (the views after the heal); the invariants HB-I1 and HB-I3; the tests of HB-R16 and HB-I4.

*Planted bugs.* `no-refutation`, `suspicion-never-ends` and `condemned-by-old-suspicion` of `gossip`; in the tests,
probes without helpers.

Sources: Patterns of Distributed Systems ch. 7 (large clusters); Das, Gupta and Motivala, "SWIM: Scalable
Weakly-consistent Infection-style Process Group Membership Protocol" (DSN 2002) 3 and 4; Dadgar, Phillips and Currey,
"Lifeguard: local health awareness for more accurate failure detection" (DSN-W 2018) IV. As in memberlist, and unlike in
the paper, a member marked dead that shows a higher incarnation is alive again. memberlist exchanges whole states now
and then, and so informs members that were declared dead; here the pings do this. Lifeguard shortens a suspicion when
further members accuse; this is left out. SWIM without suspicion is `cluster_management.swim_probing`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from math import ceil, log

import msgspec

from faultline.harness.world.ports import NodeId, RandomSource, Timers

__all__ = ["HEALTH_MAX", "Ping", "PingAnswer", "PingRequest", "Rumour", "Standing", "SwimMember", "SwimTiming"]

HEALTH_MAX = 8
"""The worst score of a member's own health: its times are at most nine times as long."""

_RUMOURS_MAX = 6
_TELLINGS = 4


class Standing(enum.IntEnum):
    """The states that are reported of a member, from good to bad."""

    ALIVE = 0
    SUSPECTED = 1
    DEAD = 2


class Rumour(msgspec.Struct, frozen=True, array_like=True):
    """A report: in this incarnation, `server` is of this standing."""

    server: str
    incarnation: int
    standing: Standing

    def beats(self, known: Rumour) -> bool:
        """Return whether it is newer, or of the same incarnation and worse."""
        return (self.incarnation, self.standing) > (known.incarnation, known.standing)


class Ping(msgspec.Struct, frozen=True, tag="lifeguard-ping"):
    """The question whether the receiver is alive."""

    number: int
    rumours: list[Rumour]


class PingAnswer(msgspec.Struct, frozen=True, tag="lifeguard-ping-answer"):
    """The answer that the sender is alive or, from a helper, that the requested member is."""

    number: int
    rumours: list[Rumour]


class PingRequest(msgspec.Struct, frozen=True, tag="lifeguard-ping-request"):
    """The request to ping `target` in place of the sender."""

    number: int
    target: str
    rumours: list[Rumour]


class SwimTiming(msgspec.Struct, frozen=True, kw_only=True):
    """The times of probing: a period of a second, half of it for the direct answer, and ten periods of suspicion.

    memberlist's suspicion lasts from five to thirty periods, the shorter the more members accuse; here it has one
    length.
    """

    period_us: int = 1_000_000
    answer_us: int = 500_000
    suspicion_us: int = 10_000_000
    helpers: int = 3


class SwimMember:
    """One member, to be started with `start` and given each message that arrives.

    `on_news` gets each rumour that this member comes to believe.
    """

    def __init__(
        self,
        me: NodeId,
        members: Iterable[NodeId],
        timers: Timers,
        random: RandomSource,
        send: Callable[[NodeId, msgspec.Struct], None],
        on_news: Callable[[Rumour], None],
        timing: SwimTiming,
        incarnation: int = 0,
    ) -> None:
        self.health = 0
        self.incarnation = incarnation
        self._me = me
        self._known: dict[str, Rumour] = {
            server: Rumour(server, 0, Standing.ALIVE) for server in sorted(set(members) - {me})
        }
        self._timers = timers
        self._random = random
        self._send = send
        self._on_news = on_news
        self._timing = timing
        self._round: list[str] = []
        self._number = 0
        self._probe_number = 0
        self._target: str | None = None
        self._relayed: dict[int, tuple[NodeId, int]] = {}
        self._told: dict[str, tuple[Rumour, int]] = {}
        self._tellings = _TELLINGS * ceil(log(len(self._known) + 2))

    def start(self) -> None:
        """Say that this incarnation is alive, and begin to probe."""
        self._spread(Rumour(self._me, self.incarnation, Standing.ALIVE))
        self._probe()

    def standing(self, server: str) -> Standing:
        """Return the standing of `server`, as this member believes."""
        return self._known[server].standing

    @property
    def suspicion_us(self) -> int:
        """The time that this member gives a suspected one to refute the suspicion, longer where it is slow itself."""
        return (self.health + 1) * self._timing.suspicion_us

    def _probe(self) -> None:
        self._number += 1
        self._probe_number = self._number
        self._target = self._next_target()
        if self._target is not None:
            self._send(NodeId(self._target), Ping(self._probe_number, self._rumours_for(self._target)))
        # A member that is slow itself waits longer before it accuses another.
        slower = self.health + 1
        self._timers.after(slower * self._timing.answer_us, self._ask_helpers)
        self._timers.after(slower * self._timing.period_us, self._end_period)

    def _next_target(self) -> str | None:
        """Return the next member of this round; a new round begins in a new order."""
        # The dead stay in the round: two halves that were cut apart took each other for dead, and meet no other way.
        if not self._round:
            self._round = self._drawn(list(self._known))
        return self._round.pop() if self._round else None

    def _ask_helpers(self) -> None:
        if self._target is not None and self.standing(self._target) is not Standing.DEAD:
            for helper in self._helpers(self._target):
                self._send(NodeId(helper), PingRequest(self._probe_number, self._target, self._rumours()))

    def _end_period(self) -> None:
        # A member that is known to be dead says nothing about the health of the one that probes it.
        if self._target is not None and (known := self._known[self._target]).standing is not Standing.DEAD:
            self.health = min(HEALTH_MAX, self.health + 1)
            if known.standing is Standing.ALIVE:
                self._learn(Rumour(known.server, known.incarnation, Standing.SUSPECTED))
        self._relayed = {number: origin for number, origin in self._relayed.items() if number > self._probe_number}
        self._probe()

    def _drawn(self, names: list[str]) -> list[str]:
        left = list(names)
        return [left.pop(self._random.uniform_us(f"swim-{len(left)}", 0, len(left))) for _ in names]

    def handle_ping(self, source: NodeId, ping: Ping) -> None:
        """Learn the rumours of the ping, and answer it."""
        self._learn_all(ping.rumours)
        self._send(source, PingAnswer(ping.number, self._rumours_for(source)))

    def handle_ping_request(self, source: NodeId, request: PingRequest) -> None:
        """Ping for another member, under a number of this member's own."""
        self._learn_all(request.rumours)
        self._number += 1
        self._relayed[self._number] = (source, request.number)
        self._send(NodeId(request.target), Ping(self._number, self._rumours_for(request.target)))

    def handle_ping_answer(self, source: NodeId, answer: PingAnswer) -> None:
        """End this member's own probe, or pass the answer on to the member that asked for the ping."""
        self._learn_all(answer.rumours)
        origin = self._relayed.pop(answer.number, None)
        if origin is not None:
            self._send(origin[0], PingAnswer(origin[1], self._rumours()))
        elif answer.number == self._probe_number and self._target is not None:
            self._target = None
            self.health = max(0, self.health - 1)

    def _learn_all(self, rumours: list[Rumour]) -> None:
        for rumour in rumours:
            self._learn(rumour)

    def _learn(self, rumour: Rumour) -> None:
        if rumour.server == self._me:
            self._hear_of_oneself(rumour)
            return
        known = self._known.get(rumour.server)
        if known is None or not rumour.beats(known):
            return
        self._known[rumour.server] = rumour
        self._spread(rumour)
        self._on_news(rumour)
        if rumour.standing is Standing.SUSPECTED:
            self._timers.after(self.suspicion_us, lambda: self._condemn(rumour))

    def _condemn(self, suspicion: Rumour) -> None:
        """Declare the member dead after the suspicion time, unless it has refuted the suspicion."""
        # A refutation, or news of the death, has replaced the suspicion that this timer belongs to.
        if self._known[suspicion.server] == suspicion:
            self._learn(Rumour(suspicion.server, suspicion.incarnation, Standing.DEAD))

    def _spread(self, rumour: Rumour) -> None:
        self._told[rumour.server] = (rumour, 0)

    def _rumours(self) -> list[Rumour]:
        """Return the rumours that were sent least often; one that was sent often enough is dropped."""
        chosen = sorted(self._told.items(), key=lambda item: (item[1][1], item[0]))[:_RUMOURS_MAX]
        for server, (rumour, told) in chosen:
            if told + 1 >= self._tellings:
                del self._told[server]
            else:
                self._told[server] = (rumour, told + 1)
        return [rumour for _, (rumour, _) in chosen]

    def _rumours_for(self, server: str) -> list[Rumour]:
        """Return rumours for `server`, with the accusation against it if there is one.

        An accused member must learn of the accusation to answer it (Lifeguard's buddy system).
        """
        known = self._known.get(server)
        accusation = [known] if known is not None and known.standing is not Standing.ALIVE else []
        return accusation + [rumour for rumour in self._rumours() if rumour.server != server][: _RUMOURS_MAX - 1]

    # Each step below is a method of its own, so that a planted bug can override it.

    def _helpers(self, target: str) -> list[str]:
        """Return the members to ask for a ping of `target`: some others, drawn at random."""
        alive = [name for name, known in self._known.items() if name != target and known.standing is Standing.ALIVE]
        return self._drawn(alive)[: self._timing.helpers]

    def _hear_of_oneself(self, rumour: Rumour) -> None:
        """Refute a rumour that is worse than alive, under a higher incarnation.

        Repeat a refutation that was not heard.
        """
        if rumour.standing is Standing.ALIVE:
            return
        if rumour.incarnation >= self.incarnation:
            self.incarnation = rumour.incarnation + 1
            self.health = min(HEALTH_MAX, self.health + 1)
        self._spread(Rumour(self._me, self.incarnation, Standing.ALIVE))
