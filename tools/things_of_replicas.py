"""Objects whose readers may see less than was written, for the fuzzing tools: replicas,
keys with watches, pairs, groups of keys and accounts."""

from __future__ import annotations

import random
from typing import Any

from things_in_use import ReadOrWritten, Shared

from faultline.harness.outcome import Outcome, fail, ok
from faultline.harness.revisions import WHOLE_ENTRY

__all__ = ["Accounts", "Group", "Pair", "Replicas", "WatchedKeys", "WrittenOnce"]


class Replicas(Shared):
    """A register with replicas that may lag; writes answer their version always, at times or never.

    In some histories versions contradict the order of the writes; with `repeats` values are written again in some.
    """

    def __init__(self, rng: random.Random, *, repeats: bool = False) -> None:
        self.rng = rng
        self.versioned = (0.0, 0.5, 1.0)[int(rng.random() * 3)]
        self.lagging = (0.0, 0.1, 0.4)[int(rng.random() * 3)]
        self.confused = 0.5 if rng.random() < 0.3 else 0.0
        self.repeated = 0.3 if repeats and rng.random() < 0.5 else 0.0
        self.values: list[int | None] = [None]
        self.written = 0

    def call(self) -> tuple[str, Any]:
        """Return a new operation."""
        if self.rng.random() < 0.55:
            return "read", None
        self.written += self.rng.random() >= self.repeated
        return "write", self.written

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect."""
        if f == "read":
            return ok(self._some_value() if self.rng.random() < self.lagging else self.values[-1])
        self.values.append(value)
        if self.rng.random() >= self.versioned:
            return ok()
        confused = self.rng.random() < self.confused
        return ok(int(self.rng.random() * 9) if confused else len(self.values) - 1)

    def _some_value(self) -> int | None:
        return self.values[int(self.rng.random() * len(self.values))]

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return an older value or one that may never have been written, or that a write failed."""
        if f == "write":
            return fail("refused")
        return ok(self._some_value() if self.rng.random() < 0.7 else int(self.rng.random() * (self.written + 2)))


class WatchedKeys(Shared):
    """A log of changes of a few keys, and for each process a watch on one path, which drains take from."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.log: list[tuple[int, int, str, int | None]] = []
        self.entries = 0
        self.told: dict[int, int] = {}
        self.written = 0

    def call(self) -> tuple[str, Any]:
        """Return a new operation."""
        draw = self.rng.random()
        if draw < 0.5:
            self.key = "a"
            return "drain", None
        self.key = ("a", "a/1", "a/2", "ab")[int(self.rng.random() * 4)]
        if draw < 0.6:
            return "delete", None
        self.written += 1
        return ("put", self.written) if draw < 0.9 else ("attach", {"lease": "l", "value": self.written})

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect; now and then two keys go in one entry, without a writer."""
        if f == "drain":
            return ok({"number": 1, "items": self._news()})
        change = (self.key, value["value"] if f == "attach" else value)
        # A change may be the second one of its entry, which its writer is not told.
        index = self._append(*[("a/3", None)] * (self.rng.random() < 0.2), change)
        if self.rng.random() < 0.3:
            self._append(("a/1", None), ("a/2", None))
        return ok(index)

    def _append(self, *changes: tuple[str, int | None]) -> int:
        self.entries += 1
        self.log += [(self.entries, ordinal, key, value) for ordinal, (key, value) in enumerate(changes)]
        return self.entries

    def _news(self) -> list[Any]:
        """Return what has come since the last drain; a first one, and one after a gap, begin with the state."""
        items: list[Any] = []
        since = self.told.get(self.process)
        if since is None or self.rng.random() < 0.1:
            since = int(self.rng.random() * (len(self.log) + 1)) if since is None else len(self.log)
            items.append(["state", self._position(since), self._state(since), "begin"])
        until = since + int(self.rng.random() * (len(self.log) - since + 1))
        for index, ordinal, key, value in self.log[since:until]:
            if key != "ab":
                items.append(["event", index, ordinal, key, value, value is None])
        if self.rng.random() < 0.7:
            items.append(["upto", self._position(until)])
        self.told[self.process] = until
        return items

    def _position(self, changes: int) -> list[int]:
        """Return the position after so many changes."""
        if not changes:
            return [0, WHOLE_ENTRY]
        index, ordinal, _, _ = self.log[changes - 1]
        is_whole = changes == len(self.log) or self.log[changes][0] > index
        return [index, WHOLE_ENTRY if is_whole else ordinal]

    def _state(self, changes: int) -> dict[str, int]:
        values = {key: value for _, _, key, value in self.log[:changes] if key != "ab"}
        return {key: value for key, value in values.items() if value is not None}

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return a drain with an item missing, twice or wrong, or its last ones turned round; or another index."""
        if f != "drain":
            return fail("refused") if self.rng.random() < 0.3 else ok(1 + int(self.rng.random() * (self.entries + 1)))
        items = list(outcome.value["items"])
        at = int(self.rng.random() * len(items)) if items else 0
        draw = self.rng.random()
        if draw < 0.35:
            del items[at : at + 1]
        elif draw < 0.5:
            items[at:] = reversed(items[at:])
        elif draw < 0.65:
            items[at:at] = items[at : at + 1]
        else:
            key = ("a", "a/1", "ab")[int(self.rng.random() * 3)]
            index = 1 + int(self.rng.random() * (self.entries + 1))
            items.append(["event", index, 0, key, 1 + int(self.rng.random() * (self.written + 1)), False])
        return ok({"number": 1, "items": items})


class Pair(Shared):
    """A pair of numbers, counted up: the left half may be seen before the right one; a refused one may come again."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.written = 0
        self.refused: int | None = None
        self.left: int | None = None
        self.right: int | None = None

    def call(self) -> tuple[str, Any]:
        """Return a new operation."""
        if self.rng.random() < 0.5:
            return "read-pair", None
        again, self.refused = self.refused, None
        if again is not None and self.rng.random() < 0.5:
            return "write-pair", again
        self.written += 1
        return "write-pair", self.written

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect; now and then only its first half."""
        if f == "write-pair":
            self.left = value
            self.right = value if self.rng.random() < 0.8 else self.right
            self.refused = value if self.right != value else None
            return ok() if self.right == value else fail("refused")
        return ok([self.left, self.right])

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return halves that may never have been there."""
        if f == "write-pair":
            return fail("refused")
        return ok([int(self.rng.random() * (self.written + 2)) or None for _ in range(2)])


class WrittenOnce(ReadOrWritten):
    """Values that are written once each, and read all together, in the order of their writes."""

    reads = 0.4

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.values: list[int] = []

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect; a reader may see less than all, but in order."""
        if f == "write":
            self.values.append(value)
            return ok()
        return ok(self.values[: int(self.rng.random() * (len(self.values) + 1))])

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return values without one of them, or with one that may never have been written."""
        if f == "write":
            return fail("refused")
        values = list(outcome.value)
        if values and self.rng.random() < 0.8:
            del values[int(self.rng.random() * len(values))]
            return ok(values)
        return ok([*values, int(self.rng.random() * (self.written + 2))])


class Group(Shared):
    """Keys that are written once each, and read all together."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.keys = ["x", "y", "z"][: 2 + int(rng.random() * 2)]
        self.unwritten = list(self.keys)
        self.values: dict[str, int] = {}

    def call(self) -> tuple[str, Any]:
        """Return a new operation."""
        if not self.unwritten or self.rng.random() < 0.6:
            return "txn", [["r", key, None] for key in self.keys]
        return "txn", [["w", self.unwritten.pop(), 7]]

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect."""
        if value[0][0] == "w":
            self.values[value[0][1]] = value[0][2]
            return ok(value)
        return ok([["r", key, self.values.get(key)] for key in self.keys])

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return a read that lacks or invents something, or has another value; or that a write failed."""
        if value[0][0] == "w":
            return fail("refused")
        wrong = 8 if self.rng.random() < 0.1 and len(self.values) == len(self.keys) else 7
        return ok([["r", key, wrong if self.rng.random() < 0.5 else None] for key in self.keys])


class Accounts(Shared):
    """Accounts that transfers move money between; one of them is opened by its first transfer."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.balances = {"a": 5, "b": 5}

    def call(self) -> tuple[str, Any]:
        """Return a new operation."""
        if self.rng.random() < 0.5:
            return "read", None
        parties = ["abc"[int(self.rng.random() * 3)] for _ in range(2)]
        return "transfer", {"from": parties[0], "to": parties[1], "amount": int(self.rng.random() * 4)}

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect."""
        if f == "transfer":
            for role, sign in (("from", -1), ("to", 1)):
                self.balances[value[role]] = self.balances.get(value[role], 0) + sign * value["amount"]
            return ok()
        return ok({name: self.balances.get(name, 0) for name in "abc"})

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return balances near the true ones, or the other answer."""
        if f == "transfer":
            return fail("refused")
        return ok({name: balance + int(self.rng.random() * 3) - 1 for name, balance in outcome.value.items()})
