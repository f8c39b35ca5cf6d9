"""Events of a simulated run out of turn: messages that wait behind later events, and faults between two events.

An event is a message that reaches a running host, a timer that rings or a flush that ends. It belongs to a *place*: its
node, or `clients` for all clients together, whose answers make one history. Events at different places do not depend on
each other's order except through messages, so that an order is told by the sequences of the places alone (Mazurkiewicz
1987, "Trace theory"). By default events happen when they are due. A message can be late: it happens just after so many
events of its place that were due later. Those numbers are the inversion table of the sequence (Knuth, TAOCP 3, 5.1.1):
each order has exactly one. A link stays in order: what follows a late message on its link becomes due when that has
arrived. A reset of the weather happens when it is due, and is an event of no place. Stale messages keep the order of
their link here.

Nothing is out of turn from the heal on. A message that is still late then arrives at the heal.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from heapq import heappop
from typing import Literal, NamedTuple

import msgspec

from faultline.harness.plan import LateMessage, Plan
from faultline.harness.world.simulated.counterfactual import WorldEvent, described, owner_of
from faultline.harness.world.simulated.network import Link
from faultline.harness.world.simulated.scheduler import ScheduledEvent, Scheduler

__all__ = ["CLIENTS", "Decision", "OrderedScheduler"]

CLIENTS = "clients"
"""The place of all clients."""

_STATES = 1 << 64


class Decision(NamedTuple):
    """A moment at which a run could go on otherwise: the message `number` of `place` could be `late`, or a `crash`
    could come before the event that is `number` among those that happened there. `step` orders the decisions of a run.
    """

    step: int
    kind: Literal["late", "crash"]
    place: str
    number: int
    time_us: int


class _Late:
    """A message that waits behind `behind` more events of its place."""

    __slots__ = ("behind", "effect", "event", "number")

    def __init__(self, number: int, behind: int, event: ScheduledEvent, effect: WorldEvent) -> None:
        self.number = number
        self.behind = behind
        self.event = event
        self.effect = effect


class _Place:
    """The events of one place: how many were due and how many happened, the late ones, and a digest of the sequence."""

    __slots__ = ("digest", "due", "happened", "late", "name", "unblocked")

    def __init__(self, name: str) -> None:
        self.name = name
        self.due = 0
        self.happened = 0
        self.late: list[_Late] = []
        self.unblocked: deque[Link] = deque()
        self.digest = _digest(name.encode())


class OrderedScheduler(Scheduler):
    """A scheduler that carries out the order of `plan`, and keeps the decisions that it passed.

    With `tells_states`, `states` has a digest of each state that was passed until the heal: the sequences of all places
    so far, without their times, on which memory, disks and messages in flight depend. `unspent` are the
    late messages of the plan that waited for more events than there were.
    """

    __slots__ = ("_blocked", "_late", "_places", "_state", "_strikes", "_tells_states", "_until_us", "decisions",
        "states", "step", "unspent")  # fmt: skip

    def __init__(self, plan: Plan, *, tells_states: bool = False) -> None:
        super().__init__()
        late = () if plan.late is msgspec.UNSET else plan.late
        self._late = {(one.place, one.number): one.behind for one in late}
        self._strikes: dict[tuple[str, int], Callable[[], None]] = {}
        self._places = {name: _Place(name) for name in (*plan.nodes, CLIENTS)}
        self._blocked: dict[Link, deque[tuple[ScheduledEvent, WorldEvent]]] = {}
        self._until_us = plan.heal_us
        self._tells_states = tells_states
        self._state = sum(place.digest for place in self._places.values()) % _STATES
        self.step = 0
        self.decisions: list[Decision] = []
        self.states: list[int] = []
        self.unspent: frozenset[LateMessage] = frozenset()

    def before(self, place: str, number: int, strike: Callable[[], None]) -> None:
        """Call `strike` just before event `number` that happens at `place`."""
        self._strikes[place, number] = strike

    def run(self, until_us: int) -> None:
        heap, count = self.heap, 0
        self._stopped = False
        while heap and not self._stopped and heap[0][0] <= until_us:
            if heap[0][0] >= self._until_us and self._blocked:
                self._let_all_arrive()
                continue
            event = heappop(heap)
            self.now_us = event[0]
            effect = described(event) if event[0] < self._until_us else None
            if effect is None or effect.kind == "reset":
                event[2](*event[3])
            else:
                self._come(event, effect)
            count += 1
        self.events += count

    def _come(self, event: ScheduledEvent, effect: WorldEvent) -> None:
        """Carry out an event that is in turn by its time, or let it wait."""
        link = owner_of(event)
        if isinstance(link, Link) and link in self._blocked:
            self._blocked[link].append((event, effect))
        elif isinstance(link, Link) and not link.is_heard:
            event[2](*event[3])
        else:
            place = self._place_of(effect)
            self._become_due(place, event, effect)
            self._let_followers_come(place)

    def _become_due(self, place: _Place, event: ScheduledEvent, effect: WorldEvent) -> None:
        number, place.due = place.due, place.due + 1
        if effect.kind == "message":
            self._decide("late", place, number)
            behind = self._late.get((place.name, number), 0)
            if behind and self.now_us < self._until_us:
                place.late.append(_Late(number, behind, event, effect))
                self._blocked[_link_of(event)] = deque()
                return
        self._happen(place, number, event, effect)

    def _happen(self, place: _Place, number: int, event: ScheduledEvent, effect: WorldEvent) -> None:
        """Carry out an event, and then each late message for which it was the last to wait for."""
        nth, place.happened = place.happened, place.happened + 1
        if place.name != CLIENTS:
            self._decide("crash", place, nth)
        strike = self._strikes.pop((place.name, nth), None)
        if strike is not None:
            strike()
        event[2](*event[3])
        if self._tells_states:
            self._note(place, f"{strike is not None} {effect.kind} {effect.name} {effect.source} {effect.summary}")
        for late in place.late:
            if late.number < number:
                late.behind -= 1
        # In order of their numbers: the earlier one was not to wait for the later one.
        while arriving := next((late for late in place.late if late.behind <= 0), None):
            self._arrive(place, arriving)

    def _arrive(self, place: _Place, late: _Late) -> None:
        place.late.remove(late)
        place.unblocked.append(_link_of(late.event))
        self._happen(place, late.number, late.event, late.effect)

    def _let_followers_come(self, place: _Place) -> None:
        """Let the messages that waited for a late one of their link become due, until another one is late."""
        while place.unblocked:
            link = place.unblocked.popleft()
            followers = self._blocked.pop(link)
            while followers and link not in self._blocked:
                self._become_due(place, *followers.popleft())
            if followers:
                self._blocked[link] = followers

    def _let_all_arrive(self) -> None:
        waiting = [(place.name, late.number) for place in self._places.values() for late in place.late]
        self.unspent = frozenset(LateMessage(*each, self._late[each]) for each in waiting)
        self.now_us = self._until_us
        for place in self._places.values():
            while place.late:
                self._arrive(place, place.late[0])
                self._let_followers_come(place)

    def _place_of(self, effect: WorldEvent) -> _Place:
        return self._places.get(effect.place) or self._places[CLIENTS]

    def _decide(self, kind: Literal["late", "crash"], place: _Place, number: int) -> None:
        self.step += 1
        if self.now_us < self._until_us:
            self.decisions.append(Decision(self.step, kind, place.name, number, self.now_us))

    def _note(self, place: _Place, text: str) -> None:
        before = place.digest
        place.digest = _digest(b"%d %s" % (before, text.encode()))
        self._state = (self._state - before + place.digest) % _STATES
        if self.now_us < self._until_us:
            self.states.append(self._state)


def _link_of(event: ScheduledEvent) -> Link:
    link = owner_of(event)
    assert isinstance(link, Link), "only messages are late"
    return link


def _digest(text: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
