"""The commands of a key-value store on one key, and their effects on its value.

Reading and setting may be repeated without harm. *Increment* and *transfer* may not: done twice they count twice, which
is the reason for an idempotent receiver. *Add element* is the case between: a repetition changes nothing, but if it is
never executed the element is lost.

`executed` is a pure function of value and command, so that every server comes to the same value, however it stores it.
A value is never changed in place: an earlier answer may still hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, UNSUPPORTED

__all__ = [
    "FUNCTIONS",
    "INSUFFICIENT_QUANTITY",
    "NO_SUCH_ACCOUNT",
    "VERSION_COMPACTED",
    "WRONG_KIND_OF_VALUE",
    "AddElement",
    "AppendElement",
    "Command",
    "CompareAndSet",
    "DeleteKey",
    "Executed",
    "GetLease",
    "GetValue",
    "GuardedWrite",
    "Increment",
    "ListValues",
    "RegisterLease",
    "RevokeLease",
    "SetValue",
    "SetWithLease",
    "Transfer",
    "command_of",
    "executed",
]

INSUFFICIENT_QUANTITY = "insufficient-quantity"
"""The error code of a transfer that exceeds the balance; nothing was moved."""

NO_SUCH_ACCOUNT = "no-such-account"
"""The error code of a transfer from or to an account that the key does not hold; nothing was moved."""

VERSION_COMPACTED = "version-compacted"
"""The error code of a read in a past that is not kept any more; the client reads something newer."""

WRONG_KIND_OF_VALUE = "wrong-kind-of-value"
"""The error code of a command that the value at its key cannot bear, such as an increment of a text."""


class GetValue(msgspec.Struct, frozen=True, tag="get-value"):
    """Read the value of `key`."""

    key: str


class SetValue(msgspec.Struct, frozen=True, tag="set-value"):
    """Write `value` to `key`."""

    key: str
    value: Any


class CompareAndSet(msgspec.Struct, frozen=True, tag="compare-and-set"):
    """Write `value` to `key` if it holds `expected`; the error is `cas-mismatch` if it does not."""

    key: str
    expected: Any
    value: Any


class AddElement(msgspec.Struct, frozen=True, tag="add-element"):
    """Add `element` to the set at `key`, a list in the order of adding, unless the set has it."""

    key: str
    element: Any


class AppendElement(msgspec.Struct, frozen=True, tag="append-element"):
    """Put `element` at the end of the list at `key`, also when it is there already."""

    key: str
    element: Any


class Increment(msgspec.Struct, frozen=True, tag="increment"):
    """Add `amount` to the number at `key`, 0 at first; the answer is the new number."""

    key: str
    amount: int


class DeleteKey(msgspec.Struct, frozen=True, tag="delete-key"):
    """Remove `key`; the answer is whether it existed."""

    key: str


class RegisterLease(msgspec.Struct, frozen=True, tag="register-lease"):
    """Grant the lease called `key`, which ends by itself after `ttl_us`; the answer is its fencing token."""

    key: str
    ttl_us: int


class RevokeLease(msgspec.Struct, frozen=True, tag="revoke-lease"):
    """End the lease called `key`, which its owner needs no more."""

    key: str
    incarnation: int


class SetWithLease(msgspec.Struct, frozen=True, tag="set-with-lease"):
    """Write `value` to `key`, and remove it when the lease `lease` ends; `no-lease` if there is none."""

    key: str
    value: Any
    lease: str


class GuardedWrite(msgspec.Struct, frozen=True, tag="guarded-write"):
    """Write to the resource `key` under a fencing token; `stale-token` if it has accepted a greater one."""

    key: str
    token: int
    value: Any


class ListValues(msgspec.Struct, frozen=True, tag="list-values"):
    """Read `key` and all keys below it; the answer is a map in the order of the keys."""

    key: str


class GetLease(msgspec.Struct, frozen=True, tag="get-lease"):
    """Read the state of the lease called `key`; nothing if there is none."""

    key: str


class Transfer(msgspec.Struct, frozen=True, tag="transfer"):
    """Move `quantity` from one account to another of the map from accounts to balances at `key`."""

    key: str
    source: str
    target: str
    quantity: int


Command = (
    GetValue
    | SetValue
    | CompareAndSet
    | AddElement
    | AppendElement
    | Increment
    | Transfer
    | DeleteKey
    | RegisterLease
    | RevokeLease
    | SetWithLease
    | GuardedWrite
    | ListValues
    | GetLease
)
"""All commands of a store. `executed` knows those of one key; leases and listings are `service_commands`."""


class Executed(msgspec.Struct, frozen=True):
    """The effect of a command: the new value of the key, the code of an error, and the answer."""

    value: Any
    error: str | None = None
    answer: Any = None


def executed(value: Any, command: Command) -> Executed:
    """Return the effect of `command` on `value`, the present value of its key (None for none).

    A command that this store does not serve, or that is for values of another kind, has no effect: every replica
    applies it, so it must not end them all.
    """
    effect = _EFFECTS.get(type(command))
    if effect is None:
        return Executed(value, UNSUPPORTED)
    try:
        return effect(value, command)
    except (TypeError, AttributeError):
        return Executed(value, WRONG_KIND_OF_VALUE)


def _compare_and_set(value: Any, command: CompareAndSet) -> Executed:
    return Executed(value, CAS_MISMATCH) if value != command.expected else Executed(command.value)


def _increment(value: Any, command: Increment) -> Executed:
    number = (value or 0) + command.amount
    return Executed(number, None, number)


def _add_element(value: Any, command: AddElement) -> Executed:
    elements = value or []
    return Executed(elements if command.element in elements else [*elements, command.element])


def _transfer(value: Any, command: Transfer) -> Executed:
    balances = value or {}
    if command.source not in balances or command.target not in balances:
        return Executed(value, NO_SUCH_ACCOUNT)
    if balances[command.source] < command.quantity:
        return Executed(value, INSUFFICIENT_QUANTITY)
    moved = {**balances, command.source: balances[command.source] - command.quantity}
    moved[command.target] += command.quantity
    return Executed(moved)


def _get(value: Any, _: GetValue) -> Executed:
    return Executed(value, None, value)


def _set(_: Any, command: SetValue) -> Executed:
    return Executed(command.value)


def _append_element(value: Any, command: AppendElement) -> Executed:
    return Executed([*(value or []), command.element])


_EFFECTS: Mapping[type, Callable[[Any, Any], Executed]] = {
    GetValue: _get,
    SetValue: _set,
    CompareAndSet: _compare_and_set,
    Increment: _increment,
    AppendElement: _append_element,
    AddElement: _add_element,
    Transfer: _transfer,
}


def command_of(operation: Operation) -> Command | None:
    """Return the command for an operation of a workload, whose values are those of Jepsen's; None if there is none."""
    make = _COMMANDS.get(operation.f)
    return None if make is None else make(operation.key or "", operation.value)


_COMMANDS: dict[str, Callable[[str, Any], Command]] = {
    "read": lambda key, _: GetValue(key),
    "write": SetValue,
    "cas": lambda key, value: CompareAndSet(key, *value),
    "add": AddElement,
    "append": AppendElement,
    "increment": lambda key, value: Increment(key, 1 if value is None else value),
    "generate": lambda key, _: Increment(key, 1),
    "transfer": lambda key, value: Transfer(key, value["from"], value["to"], value["amount"]),
}

FUNCTIONS = tuple(_COMMANDS)
"""The operations that have a command."""
