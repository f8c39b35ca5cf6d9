"""Random histories of sets, queues, stacks, locks, mutexes and counters: true ones, and what becomes of them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from faultline.checkers.linearizability.data_types import UNKNOWN
from faultline.checkers.porcupine import PENDING, Operation

__all__ = ["KINDS", "corrupted", "invented_histories", "true_histories"]

KINDS = ("set", "queue", "stack", "lock", "mutex", "counter")
_CALLS = {
    "set": ("add", "remove", "contains"),
    "queue": ("enqueue", "dequeue"),
    "stack": ("push", "pop"),
    "lock": ("acquire", "release"),
    "mutex": ("acquire", "release"),
    "counter": ("add", "read"),
}
_WAITS = object()


class _Object:
    """A true object of some kind, on which an operation takes effect at one moment."""

    def __init__(self, kind):
        self.kind, self.values, self.total = kind, [], 0

    def take_effect(self, f, value):
        """The answer, or that the caller has to wait."""
        if f in ("enqueue", "push"):
            return self.values.append(value)
        if f in ("dequeue", "pop"):
            return self.values.pop(0 if f == "dequeue" else -1) if self.values else None
        if self.kind == "counter":
            self.total += value or 0
            return None if f == "add" else self.total
        if self.kind == "set":
            return self._set(f, value)
        return self._lock(f, value)

    def _set(self, f, value):
        present = value in self.values
        if f == "add" and not present:
            self.values.append(value)
        if f == "remove" and present:
            self.values.remove(value)
        return present if f == "contains" else present is (f == "remove")

    def _lock(self, f, value):
        if self.values != ([] if f == "acquire" else [value]):
            return _WAITS
        self.values[:] = [value] if f == "acquire" else []
        return None


@st.composite
def true_histories(draw, kind, operations_max=9, clients=3):
    """Draw a history of a true object's clients. Some operations are cut off before or after their effect."""
    made, history, waiting, crashes = _Object(kind), [], {}, [0] * clients
    size, fresh = draw(st.integers(1, operations_max)), 0
    for time in range(6 * operations_max):
        client = draw(st.integers(0, clients - 1))
        if client not in waiting:
            if len(history) + len(waiting) < size:
                fresh += 1
                waiting[client] = (_draw_call(draw, kind, client + clients * crashes[client], fresh), time, _WAITS)
            continue
        (f, value), call, answer = waiting[client]
        fate = draw(st.sampled_from(["go on"] * 5 + ["crash"]))
        if fate == "crash":
            crashes[client] += 1
            history.append(_cut_off(client, (f, value), call))
            del waiting[client]
        elif answer is _WAITS:
            waiting[client] = ((f, value), call, made.take_effect(f, value))
        else:
            history.append(Operation(client, (f, value), call, answer, time))
            del waiting[client]
    return history + [_cut_off(client, call, since) for client, (call, since, _) in waiting.items()]


def _cut_off(client, call, since):
    return Operation(client, call, since, UNKNOWN, PENDING)


def _draw_call(draw, kind, client, fresh):
    f = draw(st.sampled_from(_CALLS[kind]))
    if kind == "lock":
        return f, client
    if f in ("dequeue", "pop", "read") or kind == "mutex":
        return f, None
    if kind == "set":
        return f, draw(st.integers(1, 3))
    return f, (draw(st.sampled_from([1, 1, 1, 2])) if kind == "counter" else fresh)


@st.composite
def corrupted(draw, history, kind):
    """`history` after one to three events were taken away, moved, exchanged or changed, in any order."""
    changed = list(history)
    for _ in range(draw(st.integers(1, 3))):
        if not changed:
            break
        at = draw(st.integers(0, len(changed) - 1))
        operation = changed[at]
        change = draw(st.sampled_from(["remove", "move", "exchange", "answer"]))
        if change == "remove":
            del changed[at]
        elif change == "move":
            call = draw(st.integers(0, 60))
            length = operation.return_ if operation.return_ == PENDING else operation.return_ - operation.call
            changed[at] = replace(operation, call=call, return_=call + length)
        elif change == "exchange":
            other = draw(st.integers(0, len(changed) - 1))
            changed[at], changed[other] = _exchanged(operation, changed[other])
        elif operation.return_ != PENDING:
            changed[at] = replace(operation, output=draw(_answers(kind, operation)))
    return draw(st.permutations(changed))


def _exchanged(one, other):
    if one.input[0] != other.input[0] or PENDING in (one.return_, other.return_):
        return one, other
    return replace(one, output=other.output), replace(other, output=one.output)


def _answers(kind, operation):
    if operation.input[0] in ("dequeue", "pop", "read"):
        return st.sampled_from([*([None] if kind != "counter" else []), 0, 1, 2, 3, 4, 5])
    if kind == "set":
        return st.booleans()
    return st.sampled_from([None, None, False] if kind in ("lock", "mutex") else [None])


@st.composite
def invented_histories(draw, kind, operations_max=7):
    """Operations of any answer at any time, mostly illegal."""
    history = []
    for number in range(draw(st.integers(1, operations_max))):
        f, value = _draw_call(
            draw, kind, draw(st.integers(0, 2)), number // 2 if kind in ("queue", "stack") else number
        )
        call, length = draw(st.integers(0, 14)), draw(st.integers(1, 8))
        operation = Operation(number, (f, value), call, None, call + length)
        operation = replace(operation, output=draw(_answers(kind, operation)))
        if draw(st.sampled_from([False] * 4 + [True])):
            operation = replace(operation, output=UNKNOWN, return_=PENDING)
        history.append(operation)
    return history
