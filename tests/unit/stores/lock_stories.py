"""Owners of locks over the client of whatever store, and what former owners can do in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from patience import HandSetClock

from faultline.harness.operation import Operation
from faultline.systems_under_test.stores.lock_keeping import LockKeeping
from faultline.systems_under_test.stores.lock_owner import LockingClient, LockOwner

__all__ = ["NewOwner", "do", "owners_of", "tell_of_a_late_write"]

NewOwner = Callable[..., LockOwner]
"""Makes an owner; what happens while it is asleep `meanwhile` says, and the rest is said to its client."""


class ClockedClient(LockingClient, Protocol):
    """A client whose locks are believed in by a clock that can be set."""

    @property
    def keeping(self) -> LockKeeping[Any]:
        """Its locks."""


@contextmanager
def owners_of(new_client: Callable[..., ClockedClient], clock: HandSetClock) -> Iterator[NewOwner]:
    """Yield a function that makes owners, which end with the block and measure their locks by `clock`."""
    made: list[LockOwner] = []

    def make(*, meanwhile: Callable[[], None] = lambda: None, **settings: Any) -> LockOwner:
        client = new_client(**settings)
        client.keeping.clock = clock
        made.append(LockOwner(client, sleep=lambda _: meanwhile()))
        return made[-1]

    yield make
    for owner in made:
        owner.close()


def do(owner: LockOwner, f: str, value: Any = None) -> tuple[str, Any, str | None]:
    outcome = owner.invoke(Operation(3, f, "lock0", value))
    return outcome.kind, outcome.value, outcome.error


def tell_of_a_late_write(owners: NewOwner, end_all_locks: Callable[[], object], *, is_fenced: bool) -> None:
    """A former owner writes behind the next one: that goes in unless there is a fence."""

    def change_owner() -> None:
        end_all_locks()
        do(second, "acquire")
        written.append(do(second, "guarded-write", 6)[1])

    written: list[Any] = []
    first, second = owners(is_fenced=is_fenced, meanwhile=change_owner), owners(is_fenced=is_fenced)
    old = do(first, "acquire")[1]["token"]
    kind, late, error = do(first, "late-write", 7)
    if is_fenced:
        assert (kind, error) == ("fail", "stale-token")
    else:
        assert late["token"] == old < written[0]["token"] and late["index"] > written[0]["index"]
