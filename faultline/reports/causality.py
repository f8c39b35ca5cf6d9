"""Causality in a traced run: Lamport's happened-before over its messages, and the heartbeats of timers.

Two steps of one process follow each other in time, and a message is received after it was sent. The moments that these
two kinds of steps reach from a moment are its *future*, and those that reach it are its *past*. In a cluster that sends
all the time, nearly every event is in the past of every other one, so there is a second, narrower relation: a message
that a process sends at the very moment of a receipt was *triggered* by that receipt. A message that waits for a flush
to the disk is sent a little later, so a receipt up to that long before also counts as its trigger.

In a real world times are those of the machine, taken between the processes: a cause never stands after its effect, but
no two steps share a moment. There the last receipt from each process may be the trigger.

A *heartbeat* is a message that a timer sends over and over: no message triggered it, its text is the same but for its
numbers, and its kind comes at even distances. A message that only answers heartbeats is one as well; a stale one is
none.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from faultline.harness.run_record import MessageRecord

__all__ = ["FLUSH_US_MAX", "HANDLING_US_MAX", "Triggers", "future_of", "heartbeats_of", "past_of"]

_LEAST_REPEATED = 8
_EVEN = 0.1
"""The deviation from the median, as a share of it, up to which distances count as even."""
FLUSH_US_MAX = 5_000
"""The time after a receipt in which a message may still be its answer: a flush takes a while."""
HANDLING_US_MAX = 50_000
"""The same where times are not exact: a process waits for its turn on a busy machine."""
_WITHOUT_DIGITS = str.maketrans("", "", "0123456789")


def past_of(messages: Sequence[MessageRecord], moments_us: Mapping[str, int]) -> set[int]:
    """Return the places of the messages that could have influenced the processes at `moments_us`.

    These are the messages that arrived, and from which a chain of messages and local steps leads there.
    """
    latest = dict(moments_us)
    past: set[int] = set()
    arrived = [place for place, message in enumerate(messages) if message.receive_us >= 0]
    for place in sorted(arrived, key=lambda place: messages[place].receive_us, reverse=True):
        message = messages[place]
        if message.receive_us <= latest.get(message.target, -1):
            past.add(place)
            if message.send_us > latest.get(message.source, -1):
                latest[message.source] = message.send_us
    return past


def future_of(messages: Sequence[MessageRecord], moments_us: Mapping[str, int]) -> set[int]:
    """Return the places of the messages, lost ones too, that the processes could have influenced at `moments_us`."""
    earliest = dict(moments_us)
    future: set[int] = set()
    for place in sorted(range(len(messages)), key=lambda place: messages[place].send_us):
        message = messages[place]
        known_us = earliest.get(message.source)
        if known_us is None or message.send_us < known_us:
            continue
        future.add(place)
        if message.receive_us >= 0 and message.receive_us < earliest.get(message.target, message.receive_us + 1):
            earliest[message.target] = message.receive_us
    return future


class Triggers:
    """The messages that triggered others: at the moment of their receipt, or a flush later.

    With times that are not `exact` no step is at the moment of another.
    """

    def __init__(self, messages: Sequence[MessageRecord], *, exact: bool = True) -> None:
        self._messages = messages
        self.exact = exact
        self._received: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._received_at: dict[tuple[str, int], list[int]] = {}
        self._sent: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, message in enumerate(messages):
            self._sent[message.source].append((message.send_us, place))
            if message.receive_us >= 0:
                self._received[message.target].append((message.receive_us, place))
                if exact:
                    self._received_at.setdefault((message.target, message.receive_us), []).append(place)
        for steps in (*self._received.values(), *self._sent.values()):
            steps.sort()

    def at_once(self, place: int) -> list[int]:
        """Return the places of the messages on whose receipt the message at `place` was sent, at the same moment."""
        message = self._messages[place]
        return [other for other in self.received(message.source, message.send_us) if other != place]

    def received(self, process: str, moment_us: int) -> list[int]:
        """Return the places of the messages that `process` received at `moment_us`."""
        return self._received_at.get((process, moment_us), [])

    def before(self, process: str, moment_us: int) -> list[int]:
        """Return the trigger of `process` at `moment_us`: the messages it received then, else the last one a flush
        before, or the last one of each process where times are not exact."""
        if exact := self.received(process, moment_us):
            return exact
        received = self._received.get(process, [])
        if self.exact:
            return _between(received, moment_us - FLUSH_US_MAX, moment_us)[-1:]
        recent = _between(received, moment_us - HANDLING_US_MAX, moment_us)
        return list({self._messages[place].source: place for place in recent}.values())

    def after(self, process: str, moment_us: int) -> list[int]:
        """Return the places of the messages that `process` sent when it received one at `moment_us`.

        Messages sent a flush later are among them, unless they answer another message.
        """
        sent = _between(self._sent.get(process, []), moment_us, moment_us + FLUSH_US_MAX)
        return [place for place in sent if self._messages[place].send_us == moment_us or not self.at_once(place)]


def _between(steps: Sequence[tuple[int, int]], first_us: int, last_us: int) -> list[int]:
    return [place for _, place in steps[bisect_left(steps, (first_us, -1)) : bisect_left(steps, (last_us + 1, -1))]]


def heartbeats_of(messages: Sequence[MessageRecord], triggers: Triggers, processes: Iterable[str]) -> set[int]:
    """Return the places of the heartbeats among the messages between `processes`, the nodes."""
    nodes = set(processes)
    inner = [
        place
        for place, message in enumerate(messages)
        if message.source in nodes and message.target in nodes and not message.stale
    ]
    kinds = {place: _kind(messages[place]) for place in inner}
    usual = {kind for kind, number in Counter(kinds.values()).items() if number >= _LEAST_REPEATED}
    repeated = sorted((place for place in inner if kinds[place] in usual), key=lambda place: messages[place].send_us)
    causes = {place: triggers.at_once(place) for place in repeated}
    sent: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for place in repeated:
        if not causes[place]:
            sent[kinds[place]].add(messages[place].send_us)
    together_us = 0 if triggers.exact else FLUSH_US_MAX
    even = {kind for kind, times in sent.items() if _is_even(sorted(times), together_us)}
    found: set[int] = set()
    for place in repeated:
        if found.issuperset(causes[place]) if causes[place] else kinds[place] in even:
            found.add(place)
    return found


def _kind(message: MessageRecord) -> tuple[str, str, str]:
    return message.source, message.name, message.summary.translate(_WITHOUT_DIGITS)


def _is_even(times_us: Sequence[int], together_us: int) -> bool:
    """Return whether at least half of the moments follow each other at the same distance.

    Those no farther apart than `together_us` are one: a process tells its peers one after the other.
    """
    distances = [later - earlier for earlier, later in itertools.pairwise(times_us)]
    distances = [distance for distance in distances if distance > together_us]
    if len(distances) < _LEAST_REPEATED - 1:
        return False
    usual = median(distances)
    return 2 * sum(abs(distance - usual) <= _EVEN * usual for distance in distances) >= len(distances)
