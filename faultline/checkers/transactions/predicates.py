"""Conditions on objects, and the transactions that select by them.

Three conditions are known: `"true"`, which every existing object meets, `["=", VALUE]`, and `["mod", M, R]` for
integers. A transaction does

    ["insert", KEY, VALUE] or ["w", KEY, VALUE]   give the object KEY this value, whether it exists or not
    ["delete", KEY]                               remove the object
    ["rp", CONDITION, {KEY: VALUE, …}]            all objects that meet the condition; null in the invocation

For the columns these become triples of `w` and `r`: a delete writes null, and each condition is a key of its own, whose
name begins with `objects where`.

Limits: keys of objects are strings that do not begin like that; no object has the value null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from faultline.checkers.transactions.columns import malformed_transaction

__all__ = ["Predicate", "PredicateLanguage"]

_PREFIX = "objects where "


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition: its operator (`true`, `=` or `mod`) and its operands."""

    operator: str
    arguments: tuple[Any, ...]

    def selects(self, value: Any) -> bool:
        """Return whether an object of this value meets the condition; null is an object that does not exist."""
        if value is None:
            return False
        if self.operator == "true":
            return True
        if self.operator == "=":
            return bool(value == self.arguments[0])
        modulus, remainder = self.arguments
        return type(value) is int and value % modulus == remainder


class PredicateLanguage:
    """A translator of transactions into triples, which remembers the condition behind each key that stands for one."""

    def __init__(self) -> None:
        self.predicates: dict[str, Predicate] = {}

    def triples(self, row: int, body: Any) -> Any:
        """Return the transaction in `row` as triples; a malformed transaction is returned unchanged, for
        `encode` to refuse."""
        if not isinstance(body, list | tuple) or not all(isinstance(micro, list | tuple) and micro for micro in body):
            return body
        return [self._triple(row, list(micro)) for micro in body]

    def _triple(self, row: int, micro: list[Any]) -> list[Any]:
        match micro:
            case ["insert" | "w", str(key), value] if value is not None and not key.startswith(_PREFIX):
                return ["w", key, value]
            case ["delete", str(key)] if not key.startswith(_PREFIX):
                return ["w", key, None]
            case ["rp", condition, found] if found is None or isinstance(found, dict):
                return ["r", self._named(row, condition), found]
        raise malformed_transaction(row, f"holds {str(micro)[:80]!r}, which is not insert, w, delete or rp")

    def _named(self, row: int, condition: Any) -> str:
        predicate = _parsed(condition)
        if predicate is None:
            raise malformed_transaction(row, f"asks for {str(condition)[:80]!r}, which is not a known condition")
        texts = [msgspec.json.encode(argument, order="deterministic").decode() for argument in predicate.arguments]
        name = _PREFIX + " ".join([predicate.operator, *texts])
        self.predicates[name] = predicate
        return name


def _parsed(condition: Any) -> Predicate | None:
    match condition:
        case "true" | ["true"]:
            return Predicate("true", ())
        case ["=", value]:
            return Predicate("=", (value,))
        case ["mod", int(modulus), int(remainder)] if modulus > 0:
            return Predicate("mod", (modulus, remainder))
    return None
