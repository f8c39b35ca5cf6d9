"""The forward frontier in plain Python: return by return, every configuration in which a history can be.

It goes by the rules of the verifier itself and adds only the order in which configurations are made, so it is short;
the kernel's has rules of its own. With no look-ahead but R5, which only makes configurations equal, it is empty
exactly at the first return that makes the history illegal.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from faultline.checkers.linearizability.certificates import Configuration, Configurations
from faultline.checkers.linearizability.decision import Legality
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.value_rules import ValueRules
from faultline.checkers.linearizability.verify import Groups, Place
from faultline.checkers.porcupine.budget import Budget

__all__ = ["Frontier", "advance"]


class Frontier(NamedTuple):
    """The forward frontier of one key at its end: `furthest` is the return at which it was empty, if it was.

    `configurations` refute the key when it is illegal; `looks` is the work done.
    """

    legality: Legality
    furthest: int
    looks: int
    configurations: Configurations


def advance(columns: Columns, looks_max: int, budget: Budget) -> Frontier:
    """Return the frontier of the one key in `columns`, given up after so many looks or when the time is over."""
    rules = ValueRules(columns)
    by_rank: defaultdict[int, dict[tuple[int, frozenset[int]], list[Groups]]] = defaultdict(dict)
    queues: defaultdict[int, list[Place]] = defaultdict(list)
    members: list[Configuration] = []
    furthest, looks = -1, 0

    def add(place: Place) -> None:
        known = by_rank[place.rank].setdefault((place.state, place.ahead), [])
        if not any(_is_within(before, place.used) for before in known):
            known[:] = [before for before in known if not _is_within(place.used, before)]
            known.append(place.used)
            queues[place.rank].append(place)

    beginning = rules.beginning()
    if beginning is None:
        return Frontier(Legality.LEGAL, len(rules.windows), looks, Configurations.of(()))
    add(beginning)
    for rank in range(len(rules.windows)):
        # Steps within this rank make the queue longer while it is worked off.
        queue = queues[rank]
        for place in queue:
            for after in rules.steps(place):
                looks += 1
                if after is None:
                    return Frontier(Legality.LEGAL, len(rules.windows), looks, Configurations.of(()))
                add(after)
            if looks > looks_max or budget.is_over():
                return Frontier(Legality.UNKNOWN, rank, looks, Configurations.of(()))
        furthest = rank if queue else furthest
        known = by_rank.pop(rank, {})
        del queues[rank]
        members += [_told(rules, place) for place in queue if place.used in known[place.state, place.ahead]]
    return Frontier(Legality.ILLEGAL, furthest, looks, Configurations.of(members))


def _is_within(less: Groups, more: Groups) -> bool:
    counts = dict(more)
    return all(count <= counts.get(group, 0) for group, count in less)


def _told(rules: ValueRules, place: Place) -> Configuration:
    used = (i for group, count in place.used for i in rules.members[group][:count])
    return Configuration(place.rank, place.state, tuple(sorted(place.ahead)), tuple(used))
