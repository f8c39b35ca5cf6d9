"""The definitions of the memory models, decided by trying everything: for histories of a handful of operations.

Nothing here is shared with the checkers. A history is a list of `Step`s. Every way to let a read see one of the writes
that put its value is tried; with it, each model is a claim about orders, and all orders are enumerated.

- *linearizable*, *sequential*: one legal order of all operations, in real time or in the order of each client.
- *causal memory*: for each client a legal order of all writes and its own reads that keeps causality.
- *causal convergence*: one order of all operations that keeps causality; each read sees the last write of its key, in
  that order, among those that causally precede it.
- *weak causal*: for each read alone a legal order of the writes that causally precede it, and of the read.
- *PRAM*: for each client a legal order of all writes and its own reads that keeps each client's order.

- *k-atomic*: one order of all operations on a key in real time, in which each read sees one of the k latest writes.

Causality is the transitive closure of the clients' orders and of reads from writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

__all__ = ["INITIAL", "MODELS", "Step", "keeps", "smallest_k"]

INITIAL = -1
"""The writer of a value that was there at first."""


class Step(NamedTuple):
    """A read or a write of `value`, None for the initial one, with its moments; `end` is None for an unknown end.

    A write of unknown end may have happened or not.
    """

    client: int
    is_read: bool
    key: str
    value: int | None
    begin: int
    end: int | None


Before = Sequence[Sequence[bool]]


def keeps(history: Sequence[Step], model: str) -> bool:
    """Return whether `history` keeps `model`, with some choice of the writes that happened and of the writers seen."""
    lost = [number for number, step in enumerate(history) if step.end is None]
    for happened in product((False, True), repeat=len(lost)):
        left_out = {number for number, is_there in zip(lost, happened, strict=True) if not is_there}
        steps = [step for number, step in enumerate(history) if number not in left_out]
        if any(MODELS[model](steps, writers) for writers in _ways_to_read(steps)):
            return True
    return False


def smallest_k(history: Sequence[Step], early_us: int = 0) -> int | None:
    """Return the smallest k for which all keys are k-atomic when reads begin `early_us` earlier; None when none is.

    A moment is a thousand microseconds. The values written to a key differ from one another.
    """
    found = [_k_of_key([step for step in history if step.key == key], early_us) for key in "xy"]
    known = [k for k in found if k is not None]
    return max(known) if len(known) == len(found) else None


def _k_of_key(steps: Sequence[Step], early_us: int) -> int | None:
    read = {step.value for step in steps if step.is_read}
    steps = [step for step in steps if step.end is not None or step.value in read]
    before = [[_is_before(a, b, early_us) for b in steps] for a in steps]
    found = [k for order in _orders(tuple(range(len(steps))), before) if (k := _k_of_order(order, steps)) is not None]
    return min(found, default=None)


def _is_before(a: Step, b: Step, early_us: int) -> bool:
    if a.end is None or a.end >= b.begin:
        return False
    return not b.is_read or 1000 * a.end <= 1000 * b.begin - early_us


def _k_of_order(order: Sequence[int], steps: Sequence[Step]) -> int | None:
    worst, values = 1, list[int | None]([None])
    for number in order:
        step = steps[number]
        if not step.is_read:
            values.append(step.value)
        elif step.value in values:
            worst = max(worst, len(values) - values.index(step.value))
        else:
            return None
    return worst


def _ways_to_read(steps: Sequence[Step]) -> Iterator[list[int]]:
    """Yield the writer of each step's value, its own number for a write."""
    options = []
    for number, step in enumerate(steps):
        if not step.is_read:
            options.append([number])
            continue
        same = [n for n, o in enumerate(steps) if not o.is_read and (o.key, o.value) == (step.key, step.value)]
        options.append([INITIAL] * (step.value is None) + same)
    yield from map(list, product(*options))


def _is_legal(order: Sequence[int], steps: Sequence[Step], writers: Sequence[int]) -> bool:
    holds: dict[str, int] = {}
    for number in order:
        step = steps[number]
        if not step.is_read:
            holds[step.key] = number
        elif holds.get(step.key, INITIAL) != writers[number]:
            return False
    return True


def _explained(members: Sequence[int], before: Before, steps: Sequence[Step], writers: Sequence[int]) -> bool:
    return any(_is_legal(order, steps, writers) for order in _orders(tuple(members), before))


def _orders(members: tuple[int, ...], before: Before) -> Iterator[tuple[int, ...]]:
    """Yield every order of `members` that keeps `before`."""
    if not members:
        yield ()
    for number in members:
        rest = tuple(other for other in members if other != number)
        if not any(before[other][number] for other in rest):
            yield from ((number, *order) for order in _orders(rest, before))


def _by_client(steps: Sequence[Step]) -> list[list[bool]]:
    return [[a.client == b.client and a.begin < b.begin for b in steps] for a in steps]


def _in_real_time(steps: Sequence[Step]) -> list[list[bool]]:
    return [[a.end is not None and a.end < b.begin for b in steps] for a in steps]


def _causal(steps: Sequence[Step], writers: Sequence[int]) -> list[list[bool]]:
    before = _by_client(steps)
    for number, writer in enumerate(writers):
        if writer not in (INITIAL, number):
            before[writer][number] = True
    for middle, left, right in product(range(len(steps)), repeat=3):
        before[left][right] |= before[left][middle] and before[middle][right]
    return before


def _linearizable(steps: Sequence[Step], writers: Sequence[int]) -> bool:
    return _explained(range(len(steps)), _in_real_time(steps), steps, writers)


def _sequential(steps: Sequence[Step], writers: Sequence[int]) -> bool:
    return _explained(range(len(steps)), _by_client(steps), steps, writers)


def _for_each_client(steps: Sequence[Step], writers: Sequence[int], before: Before) -> bool:
    return all(
        _explained([n for n, s in enumerate(steps) if not s.is_read or s.client == client], before, steps, writers)
        for client in sorted({step.client for step in steps})
    )


def _causal_memory(steps: Sequence[Step], writers: Sequence[int]) -> bool:
    before = _causal(steps, writers)
    return not _is_circular(before) and _for_each_client(steps, writers, before)


def _pram(steps: Sequence[Step], writers: Sequence[int]) -> bool:
    return _for_each_client(steps, writers, _by_client(steps))


def _weak_causal(steps: Sequence[Step], writers: Sequence[int]) -> bool:
    before = _causal(steps, writers)
    return not _is_circular(before) and all(
        _explained(
            [n for n in range(len(steps)) if before[n][read] and not steps[n].is_read] + [read], before, steps, writers
        )
        for read in range(len(steps))
        if steps[read].is_read
    )


def _causal_convergence(steps: Sequence[Step], writers: Sequence[int]) -> bool:
    before = _causal(steps, writers)
    if _is_circular(before):
        return False
    reads = [number for number, step in enumerate(steps) if step.is_read]
    return any(
        all(_last_known(order, read, before, steps) == writers[read] for read in reads)
        for order in _orders(tuple(range(len(steps))), before)
    )


def _last_known(order: Sequence[int], read: int, before: Before, steps: Sequence[Step]) -> int:
    known = [n for n in order if before[n][read] and not steps[n].is_read and steps[n].key == steps[read].key]
    return known[-1] if known else INITIAL


def _is_circular(before: Before) -> bool:
    return any(before[number][number] for number in range(len(before)))


MODELS: dict[str, Callable[[Sequence[Step], Sequence[int]], bool]] = {
    "linearizable": _linearizable,
    "sequential": _sequential,
    "causal-memory": _causal_memory,
    "causal-convergence": _causal_convergence,
    "weak-causal": _weak_causal,
    "PRAM": _pram,
}
