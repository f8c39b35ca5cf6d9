"""Rules that transactions break whatever else happened: each names a few steps of one key and looks at these.

All but the first two need a level. Garbage and duplicates break each; an aborted, an intermediate or a future read and
two orders of one list those that read committed; the transaction's own steps and lost updates those that say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from faultline.checkers.transactions.certificates import Contradiction, Place
from faultline.checkers.transactions.levels import INTERNAL, LOST_UPDATE
from faultline.checkers.transactions.proved import Transactions

__all__ = ["RULES", "breaks"]

_OF_ALL = ("garbage-read", "duplicate-elements")


def _garbage(these: Transactions, read: Place) -> bool:
    return any((these.key(read), value) not in these.writers for value in these.seen(read))


def _duplicate(these: Transactions, read: Place) -> bool:
    return len({*these.seen(read)}) < len(these.seen(read))


def _aborted(these: Transactions, write: Place, read: Place) -> bool:
    is_seen = these.is_write(write) and these.value(write) in these.seen(read)
    return is_seen and these.all[write[0]].outcome == "fail"


def _intermediate(these: Transactions, write: Place, read: Place) -> bool:
    is_last = these.is_write(write) and these.seen(read)[-1:] == [these.value(write)]
    return is_last and write[0] != read[0] and any(map(these.is_write, these.after(write)))


def _future(these: Transactions, write: Place, read: Place) -> bool:
    is_seen = these.is_write(write) and these.value(write) in these.seen(read)
    return is_seen and write[0] == read[0] and write[1] > read[1]


def _incompatible(these: Transactions, one: Place, other: Place) -> bool:
    shorter, longer = sorted((these.seen(one), these.seen(other)), key=len)
    return these.is_list and longer[: len(shorter)] != shorter


def _internal(these: Transactions, read: Place) -> bool:
    """Return whether a read contradicts the transaction's own steps before it."""
    expected: list[Any] | None = None
    own: list[Any] = []
    for step in these.before(read):
        if not these.is_write(step):
            expected, own = these.seen(step), []
        elif these.is_list:
            own.append(these.value(step))
        else:
            expected = [these.value(step)]
    seen = these.seen(read)
    if expected is not None:
        return these.is_answer(read) and seen != expected + own
    return these.is_answer(read) and seen[len(seen) - len(own) :] != own


def _lost(these: Transactions, read: Place, write: Place, other_read: Place, other_write: Place) -> bool:
    """Return whether two transactions read the same version, and then each wrote another one."""
    one, other = read[0], other_read[0]
    are_two = one != other and (write[0], other_write[0]) == (one, other)
    are_steps = all(map(these.is_external, (read, other_read))) and all(map(these.is_write, (write, other_write)))
    return are_two and are_steps and these.seen(read) == these.seen(other_read)


RULES: Mapping[str, tuple[int, Callable[..., bool]]] = {
    "garbage-read": (1, _garbage),
    "duplicate-elements": (1, _duplicate),
    "aborted-read": (2, _aborted),
    "intermediate-read": (2, _intermediate),
    "future-read": (2, _future),
    "incompatible-order": (2, _incompatible),
    INTERNAL: (1, _internal),
    LOST_UPDATE: (4, _lost),
}
"""Each rule with the number of steps that break it, and the test of these."""


def breaks(transactions: Transactions, contradiction: Contradiction) -> bool:
    """Return whether the named steps break the named rule, which the level keeps."""
    rule, because, level = contradiction.rule, contradiction.because, transactions.level
    is_kept = rule in _OF_ALL or (rule in level.keeps if rule in (INTERNAL, LOST_UPDATE) else level.reads_committed)
    if rule not in RULES or not is_kept or not all(map(transactions.is_place, because)):
        return False
    count, is_broken = RULES[rule]
    is_one_key = len({transactions.key(place) for place in because}) == 1
    return len(because) == count and is_one_key and is_broken(transactions, *because)
