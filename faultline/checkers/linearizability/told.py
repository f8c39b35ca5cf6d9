"""Operations in a proof: written with the values of the history, and read back as the subject of a certificate.

The verifier trusts what is checked here, so each fault is named: what is read again must be operations of the model.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import msgspec

from faultline.checkers.linearizability.certificates import ObjectCalls
from faultline.checkers.linearizability.data_types import MODEL_FACTORIES, UNKNOWN
from faultline.checkers.linearizability.descriptions import DATA_TYPES
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.engine.registers import columns_of
from faultline.checkers.linearizability.engine.texts import text_columns
from faultline.checkers.linearizability.kv import KvOperation
from faultline.checkers.linearizability.objects import REMOVALS, ObjectCall, filled
from faultline.checkers.linearizability.operations import (
    AVOID,
    INFINITY,
    OBSERVE,
    SWAP,
    WRITE,
    RegisterOperation,
    canonical,
)
from faultline.checkers.porcupine.model import PENDING, Operation

__all__ = ["ProvedOperation", "fault_of_operations", "subject_of", "told"]

_KINDS = {"read": OBSERVE, "refused-cas": AVOID, "write": WRITE, "cas": SWAP}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_TEXT_KINDS = ("get", "put", "append")
_TIME_MAX = INFINITY - 1
_WITHOUT_ARGUMENT = ("read", *REMOVALS)
_LOOKS = ("read", "refused-cas", "get", "contains")


class ProvedOperation(msgspec.Struct, frozen=True, array_like=True):
    """One operation. A pending one has no `return_`; `row` is its row in the history.

    `value` is what it saw or put, for a compare-and-set both; of an object it is the argument in a list, with the
    answer if there was one. A read of a register and a compare-and-set of a value by itself are both `read`.
    """

    f: str
    value: Any
    call: int
    return_: int | None
    row: int


def told(call: RegisterOperation | KvOperation | ObjectCall) -> ProvedOperation:
    """Return `call` in the history's words."""
    return_ = None if call.return_ == INFINITY else call.return_
    if isinstance(call, KvOperation):
        return ProvedOperation(call.f, call.text, call.call, return_, call.row)
    if isinstance(call, ObjectCall):
        (f, argument), answer = call.operation.input, call.operation.output
        value = [_plain(argument)] if answer is UNKNOWN else [_plain(argument), _plain(answer)]
        return ProvedOperation(f, value, call.call, return_, call.row)
    demand, produce = _plain(call.demand), _plain(call.produce)
    value = {OBSERVE: demand, AVOID: demand, WRITE: produce}.get(call.kind, [demand, produce])
    return ProvedOperation(_NAMES[call.kind], value, call.call, return_, call.row)


def _plain(value: Hashable) -> Any:
    """Return the JSON value for which `operations.canonical` stands in; a set's values in the order of their JSON."""
    if isinstance(value, frozenset):
        return sorted(map(_plain, value), key=lambda each: msgspec.json.encode(each, order="deterministic"))
    return msgspec.json.decode(value.removeprefix(b"json:")) if isinstance(value, bytes) else value


def subject_of(operations: Sequence[ProvedOperation], model: str) -> Columns | ObjectCalls:
    """Return the valid operations of one key as the subject of a certificate."""
    if model in MODEL_FACTORIES:
        return ObjectCalls(
            MODEL_FACTORIES[model].model(), [_object_operation(each, model) for each in operations], model
        )
    if model == "kv":
        texts = [KvOperation(each.f, each.value, each.call, _end(each), each.row) for each in operations]
        return text_columns([(None, texts)])
    calls = list(map(_register_operation, operations))
    columns = columns_of(calls)
    columns.row = type(columns.row)("q", (call.row for call in calls))
    return columns


def _end(each: ProvedOperation) -> int:
    return INFINITY if each.return_ is None else each.return_


def _object_operation(each: ProvedOperation, model: str) -> Operation[Any, Any]:
    f, (argument, answer) = each.f, (*each.value, UNKNOWN)[:2]
    if model in ("set", "queue", "stack") and f not in _WITHOUT_ARGUMENT:
        argument = filled(argument)
    if f == "read" and model == "set" and answer is not UNKNOWN:
        answer = frozenset(map(filled, answer))
    elif f in REMOVALS and answer is not UNKNOWN and answer is not None:
        answer = canonical(answer)
    return Operation(0, (f, argument), each.call, answer, PENDING if each.return_ is None else each.return_)


def _register_operation(each: ProvedOperation) -> RegisterOperation:
    kind = _KINDS[each.f]
    demand = produce = None
    if kind == SWAP:
        demand, produce = map(canonical, each.value)
    elif kind == WRITE:
        produce = canonical(each.value)
    else:
        demand = canonical(each.value)
    return RegisterOperation(kind, demand, produce, each.call, _end(each), each.row)


def fault_of_operations(operations: Sequence[ProvedOperation], model: str) -> str:
    """Return what is wrong with the operations of one key under `model`, in words; nothing when they can be read."""
    if len({each.row for each in operations}) < len(operations):
        return "it names a row twice"
    return next(filter(None, (_fault_of_operation(each, model) for each in operations)), "")


def _fault_of_operation(each: ProvedOperation, model: str) -> str:
    known = DATA_TYPES[model].functions if model in DATA_TYPES else _TEXT_KINDS if model == "kv" else tuple(_KINDS)
    if each.f not in known:
        return f"`{each.f}` in row {each.row} is no operation of the model `{model}`"
    end = _TIME_MAX if each.return_ is None else each.return_
    if not 0 <= each.row <= _TIME_MAX or not 0 <= each.call <= end <= _TIME_MAX:
        return f"the times of row {each.row} are none"
    if each.return_ is None and each.f in _LOOKS:
        return f"row {each.row} saw something although it never returned"
    if model in DATA_TYPES:
        return "" if _is_of_object(each, model) else f"the value in row {each.row} is none of `{each.f}`"
    if model == "kv" and not isinstance(each.value, str):
        return f"the value in row {each.row} is no text"
    if each.f == "cas" and not (isinstance(each.value, list) and len(each.value) == 2):
        return f"the compare-and-set in row {each.row} has no two values"
    if each.f == "cas" and canonical(each.value[0]) == canonical(each.value[1]):
        return f"the compare-and-set in row {each.row} changes nothing and must be a read"
    return ""


def _is_of_object(each: ProvedOperation, model: str) -> bool:
    """Return whether the value is an argument that the function takes, with an answer that it gives if it returned."""
    f, value = each.f, each.value
    if not isinstance(value, list) or len(value) != (1 if each.return_ is None else 2):
        return False
    argument = value[0]
    if f in _WITHOUT_ARGUMENT or model == "mutex":
        is_argument = argument is None
    else:
        # Containers take any value, a lock the number of a process, a counter an amount.
        is_argument = model in ("set", "queue", "stack") or type(argument) is int
    return is_argument and (each.return_ is None or _is_answer(f, model, value[1]))


def _is_answer(f: str, model: str, answer: Any) -> bool:
    if f in REMOVALS:
        return True
    if f == "read":
        return type(answer) is int if model == "counter" else isinstance(answer, list)
    if model == "set":
        return isinstance(answer, bool) or (answer is None and f != "contains")
    return answer is None
