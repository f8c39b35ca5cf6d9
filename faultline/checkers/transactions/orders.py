"""That a few transactions on registers have no order: each one is tried.

Where the order of two writes is open, no cycle need hold in every order, although one does in each. Then a *core* of a
few transactions is the certificate. Leaving out all others, with the reads of their writes, can only help, so that what
remains asks little: a read of a member's write, or of null, must find it as the last write of its key by a member.

An execution is a sequence of beginnings, which read, and of ends, which write. Serializability has each end right
behind its beginning. A snapshot may end later, if no other that ended in between wrote a key that it writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from faultline.checkers.transactions.proved import Transactions

__all__ = ["CORE_MAX", "fault_of_core"]

CORE_MAX = 8
"""The most transactions of a core."""

_STATES_MAX = 200_000


class _State(NamedTuple):
    """An execution so far: who ended, who began with the keys written since, and the last writer of each key."""

    done: frozenset[int]
    begun: tuple[tuple[int, frozenset[Any]], ...]
    last: tuple[tuple[Any, int], ...]


def fault_of_core(transactions: Transactions, core: Sequence[int]) -> str:
    """Return why the members of `core` are not known to have no order, in words."""
    if not transactions.level.has_versions_in_order or transactions.is_list:
        return "a core does not show what breaks this level"
    if not 0 < len({*core}) == len(core) <= CORE_MAX:
        return f"its core has no transaction, one twice, or more than {CORE_MAX}"
    if not all(0 <= t < len(transactions.all) and transactions.committed[t] for t in core):
        return "its core has a transaction that did not commit"
    tried = _Tried(transactions, core)
    waiting, known = [_State(frozenset(), (), ())], set[_State]()
    while waiting:
        state = waiting.pop()
        if len(state.done) == len(core):
            return "the transactions of its core can be put in order"
        for following in tried.steps(state):
            if following not in known:
                known.add(following)
                waiting.append(following)
        if len(known) > _STATES_MAX:
            return "its core has too many orders to try"
    return ""


class _Tried:
    """The members of a core, with what each wants to read from whom, and writes."""

    def __init__(self, transactions: Transactions, core: Sequence[int]) -> None:
        self._these, self._core = transactions, core
        self._is_serial = transactions.level.is_serial
        self._reads: dict[int, dict[Any, int | None]] = {t: {} for t in core}
        self._writes: dict[int, frozenset[Any]] = {}
        for t in core:
            places = [(t, s) for s in range(len(transactions.all[t].steps))]
            self._writes[t] = frozenset(transactions.key(place) for place in places if transactions.is_write(place))
            for place in filter(transactions.is_external, places):
                key, value = transactions.key(place), transactions.value(place)
                writer = None if value is None else transactions.writers.get((key, value), (-1, 0))[0]
                if writer is None or writer in core:
                    self._reads[t][key] = writer

    def steps(self, state: _State) -> Iterator[_State]:
        """Yield where each beginning or end that may come next leads."""
        last, begun = dict(state.last), dict(state.begun)
        for t in self._core:
            if t in begun:
                if not begun[t] & self._writes[t]:
                    yield self._ended(state, t)
            elif t not in state.done and self._may_begin(state, last, t):
                after = _State(state.done, tuple(sorted({**begun, t: frozenset()}.items())), state.last)
                yield self._ended(after, t) if self._is_serial else after

    def _may_begin(self, state: _State, last: dict[Any, int], t: int) -> bool:
        these = self._these
        is_due = all(
            other in state.done or other == t or not these.precedes(other, t, these.level.order) for other in self._core
        )
        return is_due and all(last.get(key) == writer for key, writer in self._reads[t].items())

    def _ended(self, state: _State, t: int) -> _State:
        begun = tuple((other, keys | self._writes[t]) for other, keys in state.begun if other != t)
        last = tuple(sorted({**dict(state.last), **dict.fromkeys(self._writes[t], t)}.items(), key=repr))
        return _State(state.done | {t}, begun, last)
