"""The transactions of a proof as the verifier reads them: what each step saw or wrote, and which of them committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from faultline.checkers.common.words import hashable
from faultline.checkers.transactions.certificates import Place, ProvedTransaction
from faultline.checkers.transactions.levels import LEVELS

__all__ = ["WRITES", "Transactions"]

WRITES: Mapping[str, str] = {"list-append": "append", "rw-register": "w"}
"""The name of a write in each kind of transactions."""


class Transactions:
    """The transactions of a proof, with what each of their steps saw or wrote."""

    def __init__(self, kind: str, level: str, transactions: Sequence[ProvedTransaction]) -> None:
        self.is_list = kind == "list-append"
        self.level = LEVELS[level]
        self.all = transactions
        self.writers: dict[tuple[Any, Any], Place] = {}
        self.fault = ""
        for t, each in enumerate(transactions):
            for s, (f, key, value) in enumerate(each.steps):
                if f not in ("r", WRITES[kind]):
                    self.fault = f"`{f}` in row {each.row} is no step of {kind}"
                elif f == "r" and self.is_list and not isinstance(value, list | None):
                    self.fault = f"row {each.row} read no list"
                elif f != "r" and value is None and not self.is_list:
                    self.fault = f"row {each.row} writes null"
                elif f != "r" and self.writers.setdefault((hashable(key), hashable(value)), (t, s)) != (t, s):
                    self.fault = f"row {each.row} writes what another write has written"
            if (each.outcome == "ok") is (each.return_ is None) or (
                each.return_ is not None and each.return_ < each.call
            ):
                self.fault = f"the times of row {each.row} are none"
        if len({each.row for each in transactions}) < len(transactions):
            self.fault = "it names a row twice"
        self.committed = [each.outcome == "ok" for each in transactions]
        if not self.fault:
            self._commit_what_was_read()

    def _commit_what_was_read(self) -> None:
        unknown = {place[0] for place in self.writers.values() if self.all[place[0]].outcome == "info"}
        for t, each in enumerate(self.all if unknown else ()):
            for s in range(len(each.steps) if each.outcome == "ok" else 0):
                for value in self.seen((t, s)):
                    writer = self.writers.get((hashable(each.steps[s][1]), hashable(value)), (t, s))[0]
                    self.committed[writer] |= writer in unknown

    def is_place(self, place: Place) -> bool:
        """Return whether there is such a step."""
        return 0 <= place[0] < len(self.all) and 0 <= place[1] < len(self.all[place[0]].steps)

    def key(self, place: Place) -> Any:
        """Return the key of a step."""
        return hashable(self.all[place[0]].steps[place[1]][1])

    def value(self, place: Place) -> Any:
        """Return what a step wrote or read."""
        return hashable(self.all[place[0]].steps[place[1]][2])

    def is_write(self, place: Place) -> bool:
        """Return whether a step writes."""
        return self.all[place[0]].steps[place[1]][0] != "r"

    def is_answer(self, place: Place) -> bool:
        """Return whether a step is a read whose answer is known."""
        return not self.is_write(place) and self.all[place[0]].outcome == "ok"

    def seen(self, place: Place) -> list[Any]:
        """Return the versions that a read shows, oldest first; none for a write."""
        value = self.all[place[0]].steps[place[1]][2]
        if not self.is_answer(place) or value is None:
            return []
        return list(map(hashable, value)) if self.is_list else [hashable(value)]

    def of_key(self, place: Place, steps: range | None = None) -> list[Place]:
        """Return the steps of the same transaction on the same key, in order."""
        steps = range(len(self.all[place[0]].steps)) if steps is None else steps
        return [each for s in steps if self.key(each := (place[0], s)) == self.key(place)]

    def before(self, place: Place) -> list[Place]:
        """Return those of them that come before the step."""
        return self.of_key(place, range(place[1]))

    def after(self, place: Place) -> list[Place]:
        """Return those of them that come after it."""
        return self.of_key(place, range(place[1] + 1, len(self.all[place[0]].steps)))

    def is_external(self, place: Place) -> bool:
        """Return whether a step is an answered read that its transaction's own writes come after."""
        return self.is_answer(place) and not any(map(self.is_write, self.before(place)))

    def precedes(self, one: int, other: int, order: str) -> bool:
        """Return whether one transaction precedes another in the `order` "process" or "realtime"."""
        first, second = self.all[one], self.all[other]
        returned = first.return_ is not None and first.return_ < second.call
        return returned and (order == "realtime" or (order == "process" and first.process == second.process))

    def is_later(self, read: Any, write: Place, uses: Sequence[Place]) -> bool:
        """Return whether the version of `write` follows the version `read` of the same register, because of `uses`."""
        if read is None:
            return not uses
        if not self.level.reads_committed or self.value(write) == read or not 1 <= len(uses) <= 2:
            return False
        if not all(self.key(use) == self.key(write) for use in uses) or self.value(uses[0]) != read:
            return False
        if len(uses) == 1:
            return uses[0][0] == write[0] and self.is_external(uses[0])
        one, other = uses
        if self.value(other) != self.value(write) or not self.level.has_versions_in_order:
            return False
        are_uses = all(self.committed[use[0]] and (self.is_write(use) or self.is_external(use)) for use in uses)
        return are_uses and self.precedes(one[0], other[0], self.level.order)
