"""Objects that know their clients, for the fuzzing tools: days that guests book, locks, leases, versions and lists."""

from __future__ import annotations

import random
from typing import Any

from things_in_use import KEY, ReadOrWritten

from faultline.harness.outcome import Outcome, fail, ok

__all__ = ["Day", "Lease", "Lists", "Lock", "Versions"]


class Day:
    """A day on which one guest books both a truck and a backhoe."""

    process = 0
    key = KEY

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.guest: str | None = None

    def call(self) -> tuple[str, Any]:
        """Return a new operation; a process is one guest."""
        return ("book", f"guest {self.process}") if self.rng.random() < 0.5 else ("bookings", None)

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect."""
        self.guest = self.guest or value
        return ok([self.guest, self.guest])

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return that neither is booked, that another guest has both, or that he has one of them."""
        other = f"guest {int(self.rng.random() * 6)}"
        answers = ([None, None], [other, other], [other, self.guest])
        return ok(answers[int(self.rng.random() * 3)])


class Lock:
    """A lock that its client holds until it releases it, with tokens, and a resource that it guards."""

    process = 0
    key = KEY

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.holder: int | None = None
        self.token = self.written = 0
        self.tokens: dict[int, int] = {}

    def call(self) -> tuple[str, Any]:
        """Return what the process may do next: mostly a release or a write when it has had the lock."""
        draw = self.rng.random()
        if self.process not in self.tokens:
            return "acquire", None
        if draw < 0.4:
            return "write", {"token": self.tokens[self.process]}
        return ("release" if draw < 0.8 and self.holder == self.process else "acquire"), None

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect."""
        if f == "write":
            if value["token"] < self.written:
                return fail("stale-token")
            self.written = value["token"]
            return ok()
        if f == "release":
            if self.holder != self.process:
                return fail("not-held")
            self.holder = None
            return ok()
        if self.holder not in (None, self.process):
            return fail("taken")
        return self._granted()

    def _granted(self) -> Outcome:
        self.holder = self.process
        self.token += 1
        self.tokens[self.process] = self.token
        return ok({"token": self.token})

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return a token that may be old, or the other answer."""
        if f == "acquire":
            return ok({"token": 1 + int(self.rng.random() * (self.token + 2))})
        return fail("refused") if outcome.kind == "ok" else ok()


class Lease(Lock):
    """A lease that another client may get at any time, since its end is not seen, and a log of guarded writes."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.index = 0

    def call(self) -> tuple[str, Any]:
        """Return what the process may do next."""
        if self.process not in self.tokens:
            return "acquire", None
        weighted = ("acquire", "check", "check", "guarded-write", "guarded-write", "late-write", "release", "abandon")
        return weighted[int(self.rng.random() * len(weighted))], None

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect; a client that has lost the lease refuses it itself."""
        if f == "acquire":
            return self._granted() if self.holder is None or self.rng.random() < 0.6 else fail("taken")
        if self.holder != self.process:
            return fail("not-held")
        if f in ("release", "abandon"):
            self.holder = None
        if not f.endswith("-write"):
            return ok()
        self.index += 1
        return ok({"token": self.tokens[self.process], "index": self.index})

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return another token or place, or the other answer."""
        if f.endswith("-write"):
            token, index = (1 + int(self.rng.random() * (most + 1)) for most in (self.token, self.index))
            return ok({"token": token, "index": index})
        return super().wrong(f, value, outcome)


class Versions(ReadOrWritten):
    """A register whose writes are given versions."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.values: list[Any] = [None]

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect."""
        if f == "write":
            self.values.append(value)
        return self._answer(len(self.values) - 1)

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return an earlier version, or one with a value that is not its own."""
        least = 1 if f == "write" else 0
        version = least + int(self.rng.random() * (len(self.values) - least))
        if self.rng.random() < 0.7:
            return self._answer(version)
        return ok([version, 1 + int(self.rng.random() * (self.written + 1))])

    def _answer(self, version: int) -> Outcome:
        return ok([version, self.values[version]] if version else None)


class Lists:
    """Two lists that transactions append to and read."""

    process = 0
    key = KEY

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lists: dict[str, list[int]] = {"x": [], "y": []}
        self.earlier: list[dict[str, list[int]]] = [{"x": [], "y": []}]
        self.appended = 0

    def call(self) -> tuple[str, Any]:
        """Return a transaction of one to three steps."""
        return "txn", [self._step() for _ in range(1 + int(self.rng.random() * 3))]

    def _step(self) -> list[Any]:
        key = "xy"[self.rng.random() < 0.5]
        if self.rng.random() < 0.5:
            return ["r", key, None]
        self.appended += 1
        return ["append", key, self.appended]

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the transaction take effect."""
        outcome = ok(_carried_out(self.lists, value))
        self.earlier.append({key: list(elements) for key, elements in self.lists.items()})
        return outcome

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return what the transaction would have read of an earlier state, or a list that may never have been."""
        draw = self.rng.random()
        if draw < 0.7:
            state = self.earlier[int(self.rng.random() * len(self.earlier))]
            return ok(_carried_out({key: list(elements) for key, elements in state.items()}, value))
        if draw < 0.8:
            return fail("refused")
        element = 1 + int(self.rng.random() * (self.appended + 1))
        return ok([[f, key, [*read, element] if f == "r" else read] for f, key, read in outcome.value])


def _carried_out(lists: dict[str, list[int]], steps: Any) -> list[list[Any]]:
    """Return `steps` with the answers of their reads, and append to `lists`."""
    done = []
    for f, key, value in steps:
        if f == "append":
            lists[key].append(value)
        done.append([f, key, list(lists[key]) if f == "r" else value])
    return done
