"""Contradictions: the certificates of monitors, each a rule and the few operations that break it.

A monitor refuses a history for a reason that holds whatever else the history contains. Each rule below is such a
reason, with the argument for it. `breaks` looks once through the whole history, since a rule may say that a value is
put in once, and knows nothing of the monitors.

An operation takes effect at a moment from its call to its return; at equal times calls come first. So one operation
precedes another when it returned before the other's call.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from math import gcd, inf
from typing import Any, NamedTuple

from faultline.checkers.linearizability.certificates import Contradiction
from faultline.checkers.linearizability.data_types import UNKNOWN, Call
from faultline.checkers.porcupine.model import PENDING, Operation

__all__ = ["RULES", "breaks"]

Operations = Sequence[Operation[Call, Any]]
Named = Sequence[int]

_PUTS = {"queue": "enqueue", "stack": "push", "lock": "acquire"}
_TAKES = {"queue": "dequeue", "stack": "pop", "lock": "release"}


def breaks(data_type: str, operations: Operations, contradiction: Contradiction) -> bool:
    """Return whether the operations named by `contradiction` break its rule in this history of `data_type`."""
    rule = RULES.get((data_type, contradiction.rule))
    named = contradiction.operations
    if rule is None or not all(0 <= i < len(operations) for i in named) or len(set(named)) < len(named):
        return False
    return rule(data_type, operations, named)


def _put(data_type: str, operation: Operation[Call, Any]) -> list[Hashable]:
    """Return what `operation` may put in, a value or a holder; nothing when it puts nothing."""
    is_put = operation.input[0] == _PUTS[data_type] and not (data_type == "lock" and operation.output is False)
    return [operation.input[1]] if is_put else []


def _taken(data_type: str, operation: Operation[Call, Any]) -> list[Hashable]:
    """Return what `operation` certainly took out; nothing when it took nothing, or that is not known."""
    answer = operation.output
    if operation.input[0] != _TAKES[data_type] or answer is UNKNOWN or operation.return_ == PENDING:
        return []
    if data_type == "lock":
        return [] if answer is False else [operation.input[1]]
    return [] if answer is None else [answer]


def _is_taken_too_often(data_type: str, operations: Operations, named: Named) -> bool:
    """Return whether more of a value was taken out by the return of one operation than was put in until then.

    A put that was called later comes after all these takes.
    """
    if len(named) != 1 or not (values := _taken(data_type, operations[named[0]])):
        return False
    end = operations[named[0]].return_
    puts = sum(_put(data_type, each) == values and each.call <= end for each in operations)
    return puts < sum(_taken(data_type, each) == values and each.return_ <= end for each in operations)


class _Stay(NamedTuple):
    """A value that is put in once, and did go in: the put, and between which times it leaves.

    It is certainly inside between the return of its put and `leaves_since`. `is_taken`: an answer tells that it left.
    """

    put: Operation[Call, Any]
    leaves_since: float
    leaves_until: float
    is_taken: bool

    @property
    def is_in_by(self) -> float:
        return min(self.put.return_, self.leaves_until)


def _stays(data_type: str, operations: Operations, puts: Named) -> list[_Stay] | None:
    """Return the stays of the values that `puts` put in; None when a value is not put in once for certain.

    A value whose removal was answered left by that one. Another may have left by a removal without an answer, of which
    the earliest call is a bound, or may have stayed.
    """
    values = [value for i in puts for value in _put(data_type, operations[i])]
    times_put: dict[Hashable, int] = dict.fromkeys(values, 0)
    if len(times_put) < len(puts):
        return None
    takes: dict[Hashable, Operation[Call, Any]] = {}
    unanswered: float = inf
    for each in operations:
        for value in _put(data_type, each):
            if value in times_put:
                times_put[value] += 1
        for value in _taken(data_type, each):
            if value in times_put and takes.setdefault(value, each) is not each:
                return None
        if each.input[0] == _TAKES[data_type] and (each.output is UNKNOWN or each.return_ == PENDING):
            unanswered = min(unanswered, each.call)
    stays: list[_Stay] = []
    for i, value in zip(puts, values, strict=True):
        put, take = operations[i], takes.get(value)
        if times_put[value] != 1 or (take is None and put.return_ == PENDING):
            return None
        stays.append(_Stay(put, unanswered, inf, False) if take is None else _Stay(put, take.call, take.return_, True))
    return stays


class _Covered:
    """The times at which one of some stays is certainly inside, as open intervals that do not touch."""

    def __init__(self, stays: Iterable[_Stay]) -> None:
        self._begins: list[float] = []
        self._ends: list[float] = []
        inside = ((stay.put.return_, stay.leaves_since) for stay in stays)
        for begin, end in sorted(pair for pair in inside if pair[0] < pair[1]):
            # Where one leaves at the time another is in, there may be a moment between the two.
            if self._ends and begin < self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._begins.append(begin)
                self._ends.append(end)

    def holds(self, begin: float, end: float) -> bool:
        """Return whether all moments from `begin` to `end` are covered."""
        found = bisect_left(self._begins, begin) - 1
        return found >= 0 and end < self._ends[found]


def _is_overtaken(data_type: str, operations: Operations, named: Named) -> bool:
    """Return whether the second value left a queue before the first, although the first was put in before it.

    Named are the two puts. The first value can leave no earlier than its removals are called.
    """
    if len(named) != 2 or (stays := _stays(data_type, operations, named)) is None:
        return False
    first, second = stays
    return first.put.return_ < second.put.call and second.is_taken and second.leaves_until < first.leaves_since


def _is_never_empty(data_type: str, operations: Operations, named: Named) -> bool:
    """Return whether a removal found nothing, while one value or another was certainly inside all the time.

    Named are the removal and the puts of the values.
    """
    if not named or (stays := _stays(data_type, operations, named[1:])) is None:
        return False
    empty = operations[named[0]]
    found_nothing = empty.input[0] == _TAKES[data_type] and empty.output is None and empty.return_ != PENDING
    return found_nothing and _Covered(stays).holds(empty.call, empty.return_)


def _has_no_bottom(data_type: str, operations: Operations, named: Named) -> bool:
    """Return whether none of some values can lie at the bottom of a stack, among themselves.

    The first of them to be pushed meets no other of them, and when it is popped, all the others are gone. Named are
    the pushes. The argument is that of Lee & Mathur, OOPSLA 2025.
    """
    if not named or (stays := _stays(data_type, operations, named)) is None:
        return False
    covered = _Covered(stays)
    return all(
        covered.holds(stay.put.call, stay.is_in_by)
        or (stay.is_taken and covered.holds(max(stay.put.call, stay.leaves_since), stay.leaves_until))
        for stay in stays
    )


def _has_two_holders(data_type: str, operations: Operations, named: Named) -> bool:
    """Return whether two acquires succeeded, and there is a time at which neither of the holds can have ended.

    A hold can end from the earliest call of a release by its client that does not precede the acquire. One of the two
    acquires is the later; it found the lock held.
    """
    if len(named) != 2:
        return False
    spans: list[tuple[float, float]] = []
    for i in named:
        acquire = operations[i]
        if not _put(data_type, acquire) or acquire.output is UNKNOWN or acquire.return_ == PENDING:
            return False
        releases = (
            each.call
            for each in operations
            if each.input == ("release", acquire.input[1]) and each.output is not False and each.return_ >= acquire.call
        )
        spans.append((acquire.return_, min(releases, default=inf)))
    return max(begin for begin, _ in spans) < min(end for _, end in spans)


def _is_impossible_sum(_data_type: str, operations: Operations, named: Named) -> bool:
    """Return whether no additions between two reads make up the difference of what these saw.

    With one read named, the beginning, at 0, stands for the first. All amounts and answers must be integers. The
    first must precede the second; or all amounts have one sign, and then the answers tell which came first.
    """
    if not 1 <= len(named) <= 2:
        return False
    reads = [operations[i] for i in named]
    added = [each for each in operations if each.input[0] == "add"]
    amounts: list[Any] = [each.input[1] for each in added]
    seen: list[Any] = [0, *(read.output for read in reads)][-2:]
    if not all(isinstance(each, int) for each in (*amounts, *seen)):
        return False
    if any(read.input[0] != "read" or read.return_ == PENDING for read in reads):
        return False
    earlier, later, difference = reads[0], reads[-1], seen[1] - seen[0]
    since, after = (-inf, -inf) if len(reads) == 1 else (earlier.call, earlier.return_)
    rises, falls = all(amount >= 0 for amount in amounts), all(amount <= 0 for amount in amounts)
    if after >= later.call and not ((rises and difference > 0) or (falls and difference < 0)):
        return False
    # What may lie between overlaps the span of both reads; what certainly does began and ended between the two.
    may = [n for n, each in zip(amounts, added) if each.call <= later.return_ and each.return_ >= since]
    must = [n for n, each in zip(amounts, added) if after < each.call and each.return_ < later.call]
    low = sum(n for n in must if n > 0) + sum(n for n in may if n < 0)
    high = sum(n for n in may if n > 0) + sum(n for n in must if n < 0)
    step = gcd(*amounts)
    return not low <= difference <= high or (difference % step if step else difference) != 0


def _saw(operation: Operation[Call, Any]) -> bool:
    """Return whether the value was certainly in the set when `operation` took effect."""
    f, answer = operation.input[0], operation.output
    return _is_told(operation) and f in _SEEING and answer == _SEEING[f]


def _is_told(operation: Operation[Call, Any]) -> bool:
    """Return whether `operation` returned with a known answer; an unknown one may equal any other."""
    return operation.return_ != PENDING and operation.output is not UNKNOWN


_SEEING = {"contains": True, "add": False, "remove": True}


def _changes(operations: Operations, f: str, value: Hashable) -> list[Operation[Call, Any]]:
    """Return the operations that may have put `value` into a set (`add`), or taken it out (`remove`)."""
    return [each for each in operations if each.input == (f, value) and each.output is not False]


def _is_seen_while_out(_data_type: str, operations: Operations, named: Named) -> bool:
    """Return whether an operation saw a value in a set before any add of it, or between a remove and the next add.

    Named are the operation that saw it and the remove, if any. A value that is added at most once is not added again
    behind a remove that took it out.
    """
    if not 1 <= len(named) <= 2 or not _saw(operations[named[0]]):
        return False
    seen, value = operations[named[0]], operations[named[0]].input[1]
    adds = _changes(operations, "add", value)
    if len(named) == 2:
        remove = operations[named[1]]
        if remove.input != ("remove", value) or not remove.return_ < seen.call:
            return False
        is_last = remove.output is True and len(adds) == 1
        adds = [] if is_last else [each for each in adds if each.return_ >= remove.call]
    return seen.return_ < min((each.call for each in adds), default=inf)


def _is_missed_while_in(_data_type: str, operations: Operations, named: Named) -> bool:
    """Return whether an operation missed a value that was in a set all the time, and is added only once.

    Such a value is in for one stretch of time. Named are the operation that missed it, one before it that shows that
    the stretch had begun, and one after it that saw the value; without the last, each remove must be called later.
    """
    if not 2 <= len(named) <= 3:
        return False
    missed, shown = operations[named[0]], operations[named[1]]
    value = missed.input[1]
    if missed.input[0] not in ("contains", "remove") or not _is_told(missed) or missed.output not in (False,):
        return False
    adds = _changes(operations, "add", value)
    if len(adds) != 1 or any(operations[i].input[1] != value for i in named):
        return False
    if not (shown is adds[0] or _saw(shown)) or not shown.return_ < missed.call:
        return False
    if len(named) == 3:
        return _saw(operations[named[2]]) and missed.return_ < operations[named[2]].call
    return all(missed.return_ < each.call for each in _changes(operations, "remove", value))


RULES: Mapping[tuple[str, str], Callable[[str, Operations, Named], bool]] = {
    ("queue", "taken too often"): _is_taken_too_often,
    ("queue", "overtaken"): _is_overtaken,
    ("queue", "never empty"): _is_never_empty,
    ("stack", "taken too often"): _is_taken_too_often,
    ("stack", "never empty"): _is_never_empty,
    ("stack", "no bottom"): _has_no_bottom,
    ("lock", "taken too often"): _is_taken_too_often,
    ("lock", "two holders"): _has_two_holders,
    ("counter", "impossible sum"): _is_impossible_sum,
    ("set", "seen while out"): _is_seen_while_out,
    ("set", "missed while in"): _is_missed_while_in,
}
"""The rules by object and name, each as a function of the object, its history and the operations named."""
