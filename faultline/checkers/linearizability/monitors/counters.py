"""A near-linear monitor for counters to which all clients add the same amount.

After v additions the counter shows v times the amount, whichever they were. So a read of v says when the v-th addition
had happened (before it returned) and when the next had not (until it was called): each *place* in the order of
additions gets a window of time, and later places have later windows. The additions have windows of their own, from
call to return. The history is linearizable when every place up to the highest read and every completed addition can be
paired with overlapping windows: two that cross can be exchanged, because the windows of places are in order. Pairing in
order of the earliest deadline, each when it can wait no longer, finds such a pairing when there is one, by the same
exchange.

Additions of different amounts: a read must lie between what had certainly been added before and what may have been
added by its end. Outside of that the history is illegal; inside, the search decides, since finding out which additions
make up a sum is hard (subset sum).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import accumulate
from typing import Any

from faultline.checkers.linearizability.certificates import Contradiction
from faultline.checkers.linearizability.data_types import UNKNOWN, Call
from faultline.checkers.linearizability.decision import Decision, hand_over, illegal, legal
from faultline.checkers.porcupine.model import PENDING, Operation

__all__ = ["monitor_counter"]

_SUM = "impossible sum"


def monitor_counter(operations: Sequence[Operation[Call, Any]]) -> Decision:
    """Decide a history of add and read."""
    adds = [position for position, operation in enumerate(operations) if operation.input[0] == "add"]
    reads = [position for position, operation in enumerate(operations) if operation.input[0] == "read"]
    reads = [position for position in reads if operations[position].return_ != PENDING]
    if any(operations[position].output is UNKNOWN for position in reads):
        return hand_over("a read that returned has no known answer")
    if not all(_is_number(operations[position].input[1]) for position in adds):
        return hand_over("something else than an integer is added")
    wrong = next((position for position in reads if not _is_number(operations[position].output)), None)
    if wrong is not None:
        return illegal([wrong], f"a read saw {operations[wrong].output!r}, which is no integer")
    amounts = {operations[position].input[1] for position in adds} - {0}
    if len(amounts) > 1:
        # The bounds hold for any amounts, so they are tried before the history is handed over for its amounts.
        reason = "different amounts are added, so a sum does not tell how many additions it is made of"
        return _out_of_bounds(operations, adds, reads) or hand_over(reason)
    nothing = [position for position in adds if operations[position].input[1] == 0]
    real = [position for position in adds if operations[position].input[1] != 0] if nothing else adds
    decided = _paired(operations, real, reads, nothing, _amount(amounts))
    # What is out of bounds is told by one read, which explains more than a lack of places.
    return decided if decided.is_legal else _out_of_bounds(operations, adds, reads) or decided


def _amount(amounts: set[Any]) -> int:
    return max(amounts, default=1)


def _is_number(value: Any) -> bool:
    return isinstance(value, int)


def _out_of_bounds(
    operations: Sequence[Operation[Call, Any]], adds: Sequence[int], reads: Sequence[int]
) -> Decision | None:
    """Refuse a read outside of what additions that must, and additions that may, have happened can make up."""
    must = _Sums([(operations[position].return_, operations[position].input[1]) for position in adds])
    may = _Sums([(operations[position].call, operations[position].input[1]) for position in adds])
    for read in reads:
        seen = operations[read].output
        # At least: all increases that must and all decreases that may have happened; at most: the other way round.
        done_up, done_down = must.before(operations[read].call)
        begun_up, begun_down = may.until(operations[read].return_)
        if not done_up + begun_down <= seen <= begun_up + done_down:
            core = [position for position in adds if operations[position].call <= operations[read].return_]
            bounds = f"{done_up + begun_down} and {begun_up + done_down}"
            reason = f"a read saw {seen}, and the counter was between {bounds}"
            return illegal([read, *core], reason, Contradiction(_SUM, (read,)))
    return None


class _Sums:
    """Sums of what is added by a time, increases and decreases apart."""

    def __init__(self, timed: Sequence[tuple[float, Any]]) -> None:
        ordered = sorted(timed)
        self._times = [time for time, _ in ordered]
        self._up = [0, *accumulate(max(amount, 0) for _, amount in ordered)]
        self._down = [0, *accumulate(min(amount, 0) for _, amount in ordered)]

    def before(self, time: float) -> tuple[int, int]:
        count = bisect_left(self._times, time)
        return self._up[count], self._down[count]

    def until(self, time: float) -> tuple[int, int]:
        count = bisect_right(self._times, time)
        return self._up[count], self._down[count]


def _paired(
    operations: Sequence[Operation[Call, Any]],
    adds: Sequence[int],
    reads: Sequence[int],
    nothing: Sequence[int],
    amount: int,
) -> Decision:
    """Decide when each of `adds` adds `amount`."""
    counts: dict[int, list[int]] = {}
    for read in reads:
        count, rest = divmod(operations[read].output, amount)
        if rest or count < 0:
            reason = f"a read saw {operations[read].output}, and every addition is of {amount}"
            return illegal([read, *adds], reason, Contradiction(_SUM, (read,)))
        counts.setdefault(count, []).append(read)
    since, until = _places(operations, counts, len(adds))
    backwards = next((place for place in range(len(adds)) if since[place] > until[place]), None)
    if backwards is not None:
        return _read_backwards(operations, counts, backwards + 1)
    if max(counts, default=0) > len(adds):
        highest = counts[max(counts)]
        return illegal([*highest, *adds], "a read saw more than was ever added", Contradiction(_SUM, (highest[0],)))
    moments = _pair(operations, adds, since, until)
    if isinstance(moments, int):
        return _cramped(operations, adds, counts, moments)
    return legal(_arranged(operations, moments, counts, nothing))


def _places(
    operations: Sequence[Operation[Call, Any]], counts: dict[int, list[int]], adds: int
) -> tuple[list[float], list[float]]:
    """Return since when, and until when, the first, second, … addition can be.

    A place comes after each lower read began and before any higher one returned. Both bounds are carried from place to
    place, since a later addition is after an earlier one.
    """
    since, until = [-PENDING] * adds, [PENDING] * adds
    for count, reads in counts.items():
        if count < adds:
            since[count] = max([operations[read].call for read in reads])
        if 0 < count <= adds:
            until[count - 1] = min([operations[read].return_ for read in reads])
    return list(accumulate(since, max)), list(accumulate(reversed(until), min))[::-1]


def _read_backwards(operations: Sequence[Operation[Call, Any]], counts: dict[int, list[int]], place: int) -> Decision:
    lower = [read for count, reads in counts.items() if count < place for read in reads]
    higher = [read for count, reads in counts.items() if count >= place for read in reads]
    later = max(lower, key=lambda read: operations[read].call)
    earlier = min(higher, key=lambda read: operations[read].return_)
    adds = [position for position, operation in enumerate(operations) if operation.input[0] == "add"]
    seen = operations[earlier].output, operations[later].output
    reason = f"the counter was read as {seen[0]} and after that as {seen[1]}"
    return illegal([earlier, later, *adds], reason, Contradiction(_SUM, (earlier, later)))


def _pair(
    operations: Sequence[Operation[Call, Any]], adds: Sequence[int], since: Sequence[float], until: Sequence[float]
) -> list[tuple[float, int]] | int:
    """Return moments for additions such that the n-th of them falls into the n-th place; the first place without one.

    The windows of places are in order, so places are taken in order. Additions and places that may wait for ever need
    no partner: the former never happened, the latter were never reached.
    """
    by_call = sorted(adds, key=lambda add: operations[add].call)
    by_return = sorted(adds, key=lambda add: operations[add].return_)
    open_: list[tuple[float, int]] = []
    taken: set[int] = set()
    paired: list[tuple[float, int]] = []
    called = urgent = 0
    for place in range(len(adds)):
        while urgent < len(by_return) and by_return[urgent] in taken:
            urgent += 1
        add = by_return[urgent]
        # The earliest deadline is met first, an addition's or the place's, whichever it is.
        if operations[add].return_ <= until[place]:
            if operations[add].return_ == PENDING:
                break
            if since[place] > operations[add].return_:
                return place
        else:
            while called < len(by_call) and operations[by_call[called]].call <= until[place]:
                heappush(open_, (operations[by_call[called]].return_, by_call[called]))
                called += 1
            while open_ and open_[0][1] in taken:
                heappop(open_)
            if not open_:
                return place
            add = heappop(open_)[1]
        taken.add(add)
        paired.append((max(since[place], operations[add].call), add))
    return sorted(paired)


def _cramped(
    operations: Sequence[Operation[Call, Any]], adds: Sequence[int], counts: dict[int, list[int]], place: int
) -> Decision:
    """Return the decision for two reads with too many additions between them, as none fits into `place`.

    Each addition fits into a run of places, so what cannot be paired has a run of places with too many additions that
    fit nowhere else, or too few that fit there (Hall's theorem; a run, because the places are in order). The earliest
    deadline fails at the end of such a run: at the last read that saw `place` or fewer. With too few, a read is out of
    bounds already: additions that fit between two reads are those called by the second that did not precede the first.
    """
    reads = [(count, read) for count, some in counts.items() for read in some]
    lower = [(operations[read].call, count, read) for count, read in reads if count <= place]
    end, count, last = max(lower, default=(-PENDING, 0, 0))
    calls = sorted(operations[add].call for add in adds if operations[add].return_ < end)
    core = [last, *(add for add in adds if lower and operations[add].call <= operations[last].return_)]
    for fewer, read in reads:
        between = len(calls) - bisect_right(calls, operations[read].return_)
        if between > count - fewer and operations[read].return_ < end:
            seen = f"between a read of {operations[read].output} and a read of {operations[last].output}"
            reason = f"{between} additions began and ended {seen}"
            return illegal([read, *core], reason, Contradiction(_SUM, (read, last)))
    return illegal(range(len(operations)), "the reads leave no room for every addition that was acknowledged")


def _arranged(
    operations: Sequence[Operation[Call, Any]],
    moments: Sequence[tuple[float, int]],
    counts: dict[int, list[int]],
    nothing: Sequence[int],
) -> list[int]:
    """Return the linearization: each addition at its moment, reads as early as their count allows."""
    times: dict[int, float] = {add: operations[add].call for add in nothing if operations[add].return_ != PENDING}
    begin = -PENDING
    for place in range(len(moments) + 1):
        if place:
            begin, add = moments[place - 1]
            times[add] = begin
        for read in counts.get(place, ()):
            times[read] = max(begin, operations[read].call)
    # The order of insertion decides between operations at the same moment.
    return sorted(times, key=times.__getitem__)
