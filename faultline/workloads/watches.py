"""The workload `watches`: some clients change keys in a small tree, others watch paths of it and list them.

Writers put and delete keys, and attach keys to a lease of their own which they then abandon, so that several keys go in
one entry of the log. Watchers set watches on nested paths, and now and then take the events that have come, sometimes
long after they came, so that queues fill. After the heal every worker lists and drains, with pauses for events on the
way. `key-watches` is the same without leases."""

from __future__ import annotations

from typing import Any

from faultline.harness.access import Access
from faultline.harness.errors import UsageError
from faultline.harness.generator import (
    Context,
    Draft,
    Generator,
    each_thread,
    emit,
    limit,
    sequence,
    sleep,
    stagger,
)
from faultline.harness.generator.chance import below, by_weight
from faultline.harness.generator.core import PENDING, Offer
from faultline.harness.workload import Checker

__all__ = ["KeyWatches", "WatchActions", "Watches"]

PATHS = ("servers", "servers/1", "servers2")
"""The paths that are watched and listed."""

KEYS = ("servers/1", "servers/1/address", "servers/2", "servers/2/address", "servers2/1", "servers/10")
"""The keys that are written."""

_WRITING = (("put", 30), ("delete", 10), ("acquire", 12), ("attach", 36), ("abandon", 8), ("list", 4))
_WRITING_WITHOUT_LEASES = (("put", 70), ("delete", 25), ("list", 5))
_WATCHING = (("watch", 7), ("drain", 85), ("list", 8))
_ACTION_SALT = 0x6A09_E667_F3BC_C908
_KEY_SALT = 0xBB67_AE85_84CA_A73B
_PAUSE_US = 150_000
_FINAL_ROUNDS = 5


class WatchActions(Generator, frozen=True, gc=False):
    """Actions of writers and watchers without end; `next_value` has not been written, `begun` workers have a watch."""

    next_value: int = 1
    begun: int = 0
    writing: tuple[tuple[str, int], ...] = _WRITING

    def op(self, context: Context) -> Offer:
        """Return one action of a free worker: every second worker watches, beginning with a watch on all keys."""
        if not context.free:
            return PENDING, self
        worker = context.free_worker()
        if worker % 2:
            return self._watching(context, worker)
        f = by_weight(self.writing, context.chance, _ACTION_SALT)
        key, value = _written(f, worker, self.next_value, context)
        after = WatchActions(self.next_value + 1, self.begun, self.writing) if value is not None else self
        return Draft(f, key, value, worker, context.time_us), after

    def _watching(self, context: Context, worker: int) -> Offer:
        if not self.begun >> worker & 1:
            after = WatchActions(self.next_value, self.begun | 1 << worker, self.writing)
            return Draft("watch", PATHS[0], None, worker, context.time_us), after
        f = by_weight(_WATCHING, context.chance, _ACTION_SALT)
        path = PATHS[below(context.chance, len(PATHS), _KEY_SALT)]
        return Draft(f, path, None, worker, context.time_us), self


def _written(f: str, worker: int, value: int, context: Context) -> tuple[str, Any]:
    """Return the key and the value of a writer's action."""
    key, lease = KEYS[below(context.chance, len(KEYS), _KEY_SALT)], f"lease-{worker}"
    if f in ("acquire", "abandon"):
        return lease, None
    if f == "list":
        return PATHS[below(context.chance, len(PATHS), _KEY_SALT)], None
    if f == "delete":
        return key, None
    return key, {"lease": lease, "value": value} if f == "attach" else value


class Watches:
    """Writers and watchers of a small tree of keys."""

    name = "watches"
    promise = "watchers are told of every change in order, once, and of every gap"
    functions: tuple[str, ...] = ("put", "delete", "acquire", "attach", "abandon", "watch", "drain", "list")
    access = Access(reads=("list",), writes=("put", "delete", "attach"), whole=True)

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = 18_500) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        _refuse_lonely(self.name, workers)
        return limit(operations, stagger(interval_us, WatchActions()))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return rounds, with pauses, in which all workers list and drain, so that those with full queues catch up."""
        lists = [emit("list", path) for path in PATHS]
        drains = [emit("drain", path) for path in PATHS]
        rounds = [each for _ in range(_FINAL_ROUNDS) for each in (*drains, sleep(_PAUSE_US))]
        return each_thread(sequence(*lists, *rounds, *lists, *rounds, *drains))

    def checkers(self) -> tuple[Checker, ...]:
        """Return the checker of watchers' events first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.watches import WatchesChecker

        return (WatchesChecker(), StatsChecker(), AvailabilityChecker(), VacuityChecker(self.access))


class KeyWatches(Watches):
    """The same for stores without leases: a key goes only when a client deletes it."""

    name = "key-watches"
    functions = ("put", "delete", "watch", "drain", "list")

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = 18_500) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        _refuse_lonely(self.name, workers)
        return limit(operations, stagger(interval_us, WatchActions(writing=_WRITING_WITHOUT_LEASES)))


def _refuse_lonely(name: str, workers: int) -> None:
    if workers < 2:
        raise UsageError(f"The workload {name} has writers and watchers; one worker is too few.", "Use two or more.")
