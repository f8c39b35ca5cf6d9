"""Values of a set, mutexes and locks as registers, for the engine that judges those.

One value of a set is a register that holds whether it is in. A mutex holds whether it is held, and a lock by whom. An
operation that changed something swaps, one that was refused saw the state, and one of unknown outcome may have done the
former:

| operation                          | register                              |
|------------------------------------|---------------------------------------|
| add or remove that changed the set | swap out for in, or in for out        |
| add or remove that does not tell   | write in, or out                      |
| the same that changed nothing      | observe in, or out                    |
| contains                           | observe                               |
| acquire, release that succeeded    | swap free for the client, or back     |
| the same that was refused          | avoid free, or the client             |

So a repeated value or a refused acquire, which the monitors do not decide, costs no search in Python.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from faultline.checkers.linearizability.data_types import UNKNOWN, Call
from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.columns import PENDING as NEVER
from faultline.checkers.linearizability.engine.columns import Columns, Numbers
from faultline.checkers.linearizability.operations import AVOID, OBSERVE, SWAP, WRITE
from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.porcupine.model import PENDING, Operation

__all__ = ["decide_as_registers"]

_OUT, _IN, _IMPOSSIBLE = 0, 1, 2
_FREE, _HELD = 0, 1

_Meaning = tuple[int, int, int]
"""The kind of a register operation, the value that it demands and the one that it puts."""

_NOTHING: _Meaning = (-1, 0, 0)
"""The meaning of an operation that never returned and would have had no effect."""


def decide_as_registers(
    data_type: str, parts: Sequence[Sequence[Operation[Call, Any]]], budget: Budget
) -> list[Decision] | None:
    """Decide each of `parts`, which are values of a `set`, a `mutex` or a `lock`.

    Return None for another data type, and when some operation means none on a register. Orders are positions in a part.
    """
    meaning_of = _MEANINGS.get(data_type)
    columns = None if meaning_of is None else _columns(meaning_of, parts)
    if columns is None:
        return None
    return [
        replace(decision, order=tuple([columns.row[at] for at in decision.order]), core=())
        for decision in check_columns(columns, budget)
    ]


_MeaningOf = Callable[[Operation[Call, Any], Numbers], _Meaning | None]


def _columns(meaning_of: _MeaningOf, parts: Sequence[Sequence[Operation[Call, Any]]]) -> Columns | None:
    """Return the parts as the keys of one history, or None when an operation has no meaning there."""
    values = Numbers([None, True, False])
    keys, kinds, demands, produces, calls, returns, rows = lists = [list[int]() for _ in range(7)]
    for key, part in enumerate(parts):
        for row, operation in enumerate(part):
            meaning = meaning_of(operation, values)
            if meaning is None or type(operation.call) is not int or operation.call < 0:
                return None
            if meaning is _NOTHING:
                continue
            kind, demand, produce = meaning
            keys.append(key)
            kinds.append(kind)
            demands.append(demand)
            produces.append(produce)
            calls.append(operation.call)
            returns.append(NEVER if operation.return_ == PENDING else int(operation.return_))
            rows.append(row)
    narrow = array("i", keys), array("b", kinds), array("i", demands), array("i", produces)
    return Columns(list(range(len(parts))), list(values), *narrow, *(array("q", each) for each in lists[4:]))


def _equals(answer: Any, said: bool) -> bool:
    """Return whether `answer` equals `said` as models compare answers, so that 1 is True."""
    return bool(answer == said)


def _of_set(operation: Operation[Call, Any], _values: Numbers) -> _Meaning | None:
    f, answer, is_pending = operation.input[0], operation.output, operation.return_ == PENDING
    if f == "contains" or _equals(answer, False):
        if is_pending:
            return _NOTHING
        if answer is UNKNOWN:
            return None
        if f != "contains":
            return OBSERVE, _IN if f == "add" else _OUT, 0
        seen = _IN if _equals(answer, True) else _OUT if _equals(answer, False) else _IMPOSSIBLE
        return OBSERVE, seen, 0
    before, after = (_OUT, _IN) if f == "add" else (_IN, _OUT)
    if answer is UNKNOWN or answer is None:
        return WRITE, 0, after
    return (SWAP, before, after) if _equals(answer, True) else None


def _of_mutex(operation: Operation[Call, Any], _values: Numbers) -> _Meaning | None:
    return _holding(operation, _HELD)


def _of_lock(operation: Operation[Call, Any], values: Numbers) -> _Meaning | None:
    try:
        return _holding(operation, values["client", operation.input[1]])
    except TypeError:
        # A client without a hash: the search compares states one by one.
        return None


def _holding(operation: Operation[Call, Any], held: int) -> _Meaning | None:
    """Return the meaning of an acquire or release of what is then, or was, `held`."""
    before, after = (_FREE, held) if operation.input[0] == "acquire" else (held, _FREE)
    is_pending = operation.return_ == PENDING
    if operation.output is False:
        return _NOTHING if is_pending else (AVOID, before, 0)
    # One that returned without telling if it was refused may have been either, which no register operation is.
    return None if operation.output is UNKNOWN and not is_pending else (SWAP, before, after)


_MEANINGS: dict[str, _MeaningOf] = {"set": _of_set, "mutex": _of_mutex, "lock": _of_lock}
