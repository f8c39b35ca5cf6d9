"""Objects that random clients use at once, for the fuzzing tools: true effects, and answers that are wrong."""

from __future__ import annotations

import random
from typing import Any, Protocol

from faultline.harness.outcome import CAS_MISMATCH, Outcome, fail, ok

__all__ = [
    "KEY",
    "Bank",
    "GrowingSet",
    "Ids",
    "Number",
    "Queue",
    "ReadOrWritten",
    "Register",
    "Shared",
    "Thing",
    "Values",
    "Version",
]

KEY = "k"


class Thing(Protocol):
    """An object that clients use at once."""

    process: int
    """The process whose turn it is."""

    key: str
    """The key of its operation."""

    def call(self) -> tuple[str, Any]:
        """Return the function and the argument of a new operation."""

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect; return its true outcome."""

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return an outcome that may be false."""


class Shared:
    """An object that is the same to all clients."""

    process = 0
    key = KEY


class ReadOrWritten(Shared):
    """An object that is read, or written with a value that no write had before."""

    rng: random.Random
    written = 0
    reads = 0.5

    def call(self) -> tuple[str, Any]:
        """Return a new operation."""
        if self.rng.random() < self.reads:
            return "read", None
        self.written += 1
        return "write", self.written


class Values(Shared):
    """The values of a register, all different (`is_unique`) or drawn from `domain` many."""

    rng: random.Random
    is_unique: bool
    domain: int
    state: int | None = None
    written = 0

    def old_value(self) -> int | None:
        """Return a value that may be there."""
        if self.rng.random() < 0.5:
            return self.state
        return int(self.rng.random() * (self.written + 1 if self.is_unique else self.domain)) or None

    def new_value(self) -> int | None:
        """Return a value to put there."""
        if self.is_unique:
            self.written += 1
            return self.written
        return int(self.rng.random() * self.domain) or None


class Register(Values):
    """A register with few values, or with values that are all different; with or without compare-and-set."""

    def __init__(self, rng: random.Random, *, with_cas: bool) -> None:
        self.rng = rng
        self.functions = ("read", "write", "cas") if with_cas else ("read", "write")
        self.domain = int(rng.random() * 3) + 2
        self.is_unique = rng.random() < 0.6

    def call(self) -> tuple[str, Any]:
        """Return a new operation."""
        f = self.functions[int(self.rng.random() * len(self.functions))]
        if f == "read":
            return f, None
        return f, self.new_value() if f == "write" else [self.old_value(), self.new_value()]

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect."""
        if f == "read":
            return ok(self.state)
        if f == "cas" and self.state != value[0]:
            return fail(CAS_MISMATCH)
        self.state = value[1] if f == "cas" else value
        return ok()

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return another value, or the other answer."""
        if f == "read":
            return ok(self.old_value())
        if outcome.kind == "ok":
            return fail(CAS_MISMATCH) if f == "cas" else fail("refused")
        return ok()


class GrowingSet(Shared):
    """A set that is added to and read, with elements that are all different, or not."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.is_unique = rng.random() < 0.7
        self.elements: list[int] = []
        self.added = 0

    def call(self) -> tuple[str, Any]:
        """Return a new operation."""
        if self.rng.random() < 0.5:
            return "read", None
        self.added += 1
        return "add", self.added if self.is_unique else int(self.rng.random() * 3)

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect."""
        if f == "read":
            return ok(list(self.elements))
        if value not in self.elements:
            self.elements.append(value)
        return ok()

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return a beginning of the elements, one more, or one twice; or the other answer."""
        if f == "add":
            return fail("refused")
        element = int(self.rng.random() * (self.added + 2))
        return ok([*outcome.value[: int(self.rng.random() * (len(outcome.value) + 1))], element])


class Queue(Shared):
    """A queue of elements that are all different, or not; what comes out has no order."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.is_unique = rng.random() < 0.7
        self.elements: list[int] = []
        self.added = 0

    def call(self) -> tuple[str, Any]:
        """Return a new operation."""
        draw = self.rng.random()
        if draw < 0.5:
            return "dequeue" if draw < 0.45 else "drain", None
        self.added += 1
        return "enqueue", self.added if self.is_unique else int(self.rng.random() * 3)

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect."""
        if f == "enqueue":
            self.elements.append(value)
            return ok()
        if f == "drain":
            drained, self.elements = self.elements, []
            return ok(drained)
        return ok(self.elements.pop(int(self.rng.random() * len(self.elements))) if self.elements else None)

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return any element, or the other answer."""
        if f == "enqueue":
            return fail("refused")
        element = int(self.rng.random() * (self.added + 2))
        return ok([*outcome.value, element] if f == "drain" else element)


class Version(Shared):
    """A number that each increment raises."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.value: int | None = None

    def call(self) -> tuple[str, Any]:
        """Return a new operation."""
        return "read" if self.rng.random() < 0.6 else "increment", None

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect; some increments answer with the number."""
        if f == "increment":
            self.value = (self.value or 0) + 1
            return ok(self.value if self.rng.random() < 0.5 else None)
        return ok(self.value)

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return a number near the true one, or none."""
        return ok((outcome.value or 0) + int(self.rng.random() * 3) - 1 if self.rng.random() < 0.8 else None)


class Bank(Shared):
    """Two accounts with ten together."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.balances = {"a": 5, "b": 5}

    def call(self) -> tuple[str, Any]:
        """Return a new operation."""
        return ("read", None) if self.rng.random() < 0.6 else ("transfer", {"from": "a", "to": "b", "amount": 2})

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect, where the account has the money."""
        if f == "read":
            return ok(dict(self.balances))
        if self.balances["a"] < value["amount"]:
            return fail("no-money")
        self.balances["a"] -= value["amount"]
        self.balances["b"] += value["amount"]
        return ok()

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return a wrong total, an account too few or too many, or a balance below zero."""
        if f != "read":
            return outcome
        wrongs: tuple[dict[str, Any], ...] = ({"a": 5, "b": 6}, {"a": 10}, {"a": 5, "b": 5, "c": 0}, {"a": -1, "b": 11})
        return ok(wrongs[int(self.rng.random() * 4)])


class Number(Shared):
    """A counter that is added to and subtracted from."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.value = 0

    def call(self) -> tuple[str, Any]:
        """Return a new operation."""
        return ("read", None) if self.rng.random() < 0.5 else ("add", int(self.rng.random() * 7) - 3)

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect."""
        self.value += value or 0
        return ok(self.value if f == "read" else None)

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return a number near the true one, or the other answer."""
        return ok(outcome.value + int(self.rng.random() * 9) - 4) if f == "read" else fail("refused")


class Ids(Shared):
    """A source of identifiers."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.last = 0

    def call(self) -> tuple[str, Any]:
        """Return a new operation."""
        return "generate", None

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect."""
        self.last += 1
        return ok(self.last)

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return an identifier that may have been handed out."""
        return ok(1 + int(self.rng.random() * (self.last + 1)))
