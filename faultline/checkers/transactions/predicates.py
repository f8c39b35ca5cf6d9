"""Conditions on objects, and the transactions that select by them.

Four conditions are known: `"true"`, which every existing object meets, `["=", VALUE]`, and for integers
`["mod", M, R]` and `[">", BOUND]`. A transaction does

    ["insert", KEY, VALUE] or ["w", KEY, VALUE]   give the object KEY this value, whether it exists or not
    ["delete", KEY]                               remove the object
    ["rp", CONDITION, {KEY: VALUE, …}]            all objects that meet the condition; null in the invocation

The `key` of the operation, if it has one, names the table of these objects: conditions select from it alone, and its
objects are called TABLE/KEY.

For the columns these become triples of `w` and `r`: a delete writes null, and each condition is a key of its own, whose
name begins with `objects where`.

Limits: keys of objects are strings that do not begin like that; no object has the value null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from faultline.checkers.transactions.columns import malformed_transaction
from faultline.harness.selection import is_condition, meets

__all__ = ["Predicate", "PredicateLanguage"]

_PREFIX = "objects where "


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition on the objects of a table."""

    condition: Any
    table: str = ""

    def selects(self, value: Any) -> bool:
        """Return whether an object of this value meets the condition; null is an object that does not exist."""
        return meets(self.condition, value)


class PredicateLanguage:
    """A translator of transactions into triples; `tables` are the keys of their rows.

    It remembers the condition behind each key that stands for one, and the table of each object in one.
    """

    def __init__(self, tables: Sequence[str | None]) -> None:
        self.predicates: dict[str, Predicate] = {}
        self.table_of: dict[str, str] = {}
        self._tables = tables

    def triples(self, row: int, body: Any) -> Any:
        """Return the transaction in `row` as triples; a malformed transaction is returned unchanged, for
        `encode` to refuse."""
        if not isinstance(body, list | tuple) or not all(isinstance(micro, list | tuple) and micro for micro in body):
            return body
        return [self._triple(row, list(micro)) for micro in body]

    def _triple(self, row: int, micro: list[Any]) -> list[Any]:
        match micro:
            case ["insert" | "w", str(key), value] if value is not None and not key.startswith(_PREFIX):
                return ["w", self._object(row, key), value]
            case ["delete", str(key)] if not key.startswith(_PREFIX):
                return ["w", self._object(row, key), None]
            case ["rp", condition, found] if found is None or isinstance(found, dict):
                answer = {self._object(row, key): value for key, value in (found or {}).items()}
                return ["r", self._named(row, condition), answer]
        raise malformed_transaction(row, f"holds {str(micro)[:80]!r}, which is not insert, w, delete or rp")

    def _object(self, row: int, key: str) -> str:
        table = self._tables[row]
        if not table:
            return key
        name = f"{table}/{key}"
        self.table_of[name] = table
        return name

    def _named(self, row: int, condition: Any) -> str:
        if not is_condition(condition):
            raise malformed_transaction(row, f"asks for {str(condition)[:80]!r}, which is not a known condition")
        table = self._tables[row] or ""
        operator, *operands = [condition] if isinstance(condition, str) else condition
        texts = [msgspec.json.encode(operand, order="deterministic").decode() for operand in operands]
        name = _PREFIX + " ".join([operator, *texts, *(["in", table] if table else [])])
        self.predicates[name] = Predicate(condition, table)
        return name
