"""The locks of transactions: they decide which transaction has a key, which waits, and which is aborted.

Reads share a lock, a write excludes all others. Locks are kept until the transaction ends (strict two-phase locking).
This makes histories serializable, but transactions can wait for each other in a circle. Three policies prevent that:

    error        no request waits: a conflict is refused, and the client tries again after a random time
    wound-wait   an older transaction aborts (wounds) younger owners and goes on; a younger one waits
    wait-die     an older transaction waits for younger owners; a younger one is refused (dies)

Under the last two, transactions wait in one direction of age only, so no circle closes. Ages must be the same on all
servers and never change (`TransactionRef`). A waiting request is decided again whenever the owners of its lock change,
because the rule applies to the *present* owners: an owner that came later can be older.

An owner that has promised to commit cannot be wounded, so an older transaction waits for it. The printed rule is then
no longer free of deadlocks: A prepared on one server waits for a lock of B on another one, and B, the older, for A on
the first. That is why every wait has an end (`lock_wait_us` of the participant), after which it counts as refused.

Sources: Patterns of Distributed Systems ch. 21; Rosenkrantz, Stearns and Lewis, "System Level Concurrency Control for
Distributed Database Systems" (TODS 1978) for wound-wait and wait-die.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId, TransactionRef
from faultline.systems_under_test.patterns.promise import Promise

__all__ = ["Decision", "Lock", "LockManager", "LockMode", "LockRequest", "WaitPolicy", "WriteConflict"]


class LockMode(Enum):
    """The two modes of a lock."""

    READ = "read"
    WRITE = "write"


class WaitPolicy(Enum):
    """The treatment of a request that conflicts with the owners of a lock."""

    ERROR = "error"
    WOUND_WAIT = "wound-wait"
    WAIT_DIE = "wait-die"


class Decision(Enum):
    """The decision about a request, given the present owners."""

    GRANT = "grant"
    WOUND = "wound"
    WAIT = "wait"
    REFUSE = "refuse"


class WriteConflict(Exception):
    """The lock was refused: the transaction must be rolled back, and may be tried again."""


class LockRequest:
    """A request for a lock; `granted` is completed when the transaction has it, or fails with WriteConflict."""

    __slots__ = ("granted", "mode", "ref")

    def __init__(self, ref: TransactionRef, mode: LockMode) -> None:
        self.ref = ref
        self.mode = mode
        self.granted: Promise[None] = Promise()


class Lock:
    """The lock of one key: its owners in the order in which they came, and the waiting requests in the order of age."""

    __slots__ = ("owners", "queue")

    def __init__(self) -> None:
        self.owners: dict[TransactionId, tuple[TransactionRef, LockMode]] = {}
        self.queue: list[LockRequest] = []

    def conflicting(self, request: LockRequest) -> list[TransactionRef]:
        """Return the owners that stand in the way. Reads share; a sole owner may go from reading to writing."""
        return [
            ref
            for transaction, (ref, mode) in self.owners.items()
            if transaction != request.ref.id and LockMode.WRITE in (mode, request.mode)
        ]

    def enter(self, request: LockRequest) -> None:
        """Queue `request` behind those of older transactions."""
        self.queue.append(request)
        self.queue.sort(key=lambda waiting: waiting.ref.age)

    def add_owner(self, ref: TransactionRef, mode: LockMode) -> None:
        """Make `ref` an owner; an owner that may write and asks to read keeps the right to write."""
        held = self.owners.get(ref.id)
        self.owners[ref.id] = (ref, self.mode_after(held[1] if held else mode, mode))

    @staticmethod
    def mode_after(held: LockMode, asked: LockMode) -> LockMode:
        """Return the mode of an owner that holds one and asks for another: the stronger of the two."""
        return LockMode.WRITE if LockMode.WRITE in (held, asked) else LockMode.READ


class LockManager:
    """The locks of one server; `is_prepared` tells which transactions cannot be wounded, `wound` aborts one here."""

    lock_class: type[Lock] = Lock

    def __init__(
        self,
        policy: WaitPolicy,
        is_prepared: Callable[[TransactionId], bool],
        wound: Callable[[TransactionRef, TransactionRef], None],
    ) -> None:
        self._policy = policy
        self._is_prepared = is_prepared
        self._wound = wound
        self._locks: dict[str, Lock] = {}
        self._owned: dict[TransactionId, dict[str, None]] = {}

    def acquire(self, ref: TransactionRef, key: str, mode: LockMode) -> Promise[None]:
        """Ask for the lock on `key`; the promise is completed when `ref` has it, or fails with WriteConflict."""
        request = LockRequest(ref, mode)
        lock = self._lock(key)
        if self._act(key, lock, request, self._decide(lock, request)):
            self._review(key)
        else:
            lock.enter(request)
        return request.granted

    def take(self, ref: TransactionRef, key: str, mode: LockMode) -> None:
        """Take the lock without asking: after a restart, for a transaction that held it when it was prepared."""
        self._lock(key).add_owner(ref, mode)
        self._owned.setdefault(ref.id, {})[key] = None

    def release_all(self, transaction: TransactionId) -> None:
        """Free the locks of a transaction that is over, refuse its waiting requests, and decide those of others
        again.
        """
        owned = list(self._owned.pop(transaction, ()))
        waited = [key for key, lock in self._locks.items() if any(asked.ref.id == transaction for asked in lock.queue)]
        touched = dict.fromkeys([*owned, *waited])
        refused: list[LockRequest] = []
        for key in touched:
            lock = self._lock(key)
            lock.owners.pop(transaction, None)
            refused += [asked for asked in lock.queue if asked.ref.id == transaction]
            lock.queue = [asked for asked in lock.queue if asked.ref.id != transaction]
        _refuse(refused)
        for key in touched:
            self._review(key)
            self._forget_if_free(key)

    def release(self, transaction: TransactionId, key: str) -> None:
        """Give back one lock early, as weaker isolation does."""
        self._owned.get(transaction, {}).pop(key, None)
        self._lock(key).owners.pop(transaction, None)
        self._review(key)

    def give_up(self, transaction: TransactionId, key: str) -> None:
        """Refuse the requests of this transaction that wait for `key`: they have waited long enough."""
        lock = self._lock(key)
        refused = [asked for asked in lock.queue if asked.ref.id == transaction]
        lock.queue = [asked for asked in lock.queue if asked.ref.id != transaction]
        _refuse(refused)

    def holds(self, transaction: TransactionId, key: str, mode: LockMode) -> bool:
        """Return whether the transaction owns `key` in this mode, or in a stronger one."""
        lock = self._locks.get(key)
        held = lock.owners.get(transaction) if lock else None
        return held is not None and (mode is LockMode.READ or held[1] is LockMode.WRITE)

    def locks_of(self, transaction: TransactionId) -> dict[str, LockMode]:
        """Return all keys that the transaction has locked, with the mode of each."""
        return {key: self._locks[key].owners[transaction][1] for key in self._owned.get(transaction, ())}

    def blockers(self, transaction: TransactionId, key: str) -> list[TransactionRef]:
        """Return the owners that this transaction waits for on `key`; none when no owner is in its way."""
        lock = self._lock(key)
        return [ref for asked in lock.queue if asked.ref.id == transaction for ref in lock.conflicting(asked)]

    def _decide(self, lock: Lock, request: LockRequest) -> Decision:
        owners = lock.conflicting(request)
        if not owners:
            return Decision.GRANT
        if self._policy is WaitPolicy.ERROR:
            return Decision.REFUSE
        all_younger = all(self._is_younger(owner, request.ref) for owner in owners)
        if self._policy is WaitPolicy.WAIT_DIE:
            return Decision.WAIT if all_younger else Decision.REFUSE
        # A prepared owner has promised to commit, so it can only be waited for.
        wounds = all_younger and not any(self._cannot_be_wounded(owner.id) for owner in owners)
        return Decision.WOUND if wounds else Decision.WAIT

    def _is_younger(self, one: TransactionRef, other: TransactionRef) -> bool:
        return one.is_younger_than(other)

    def _cannot_be_wounded(self, transaction: TransactionId) -> bool:
        return self._is_prepared(transaction)

    def _act(self, key: str, lock: Lock, request: LockRequest, decision: Decision) -> bool:
        """Do what was decided; False when the request has to wait."""
        if decision is Decision.WAIT:
            return False
        if decision is Decision.REFUSE:
            _refuse([request])
            return True
        # Until it is granted it waits like any other: a lock that a victim gives back may go to a transaction that
        # wounds this one.
        lock.enter(request)
        while not request.granted.done:
            match self._decide(lock, request):
                case Decision.GRANT:
                    lock.queue.remove(request)
                    lock.add_owner(request.ref, request.mode)
                    self._owned.setdefault(request.ref.id, {})[key] = None
                    request.granted.complete(None)
                case Decision.WOUND:
                    self._wound(lock.conflicting(request)[0], request.ref)
                case _:
                    break
        return True

    def _review(self, key: str) -> None:
        """Decide all waiting requests again, oldest first, until no decision changes."""
        lock = self._lock(key)
        changed = True
        while changed:
            changed = False
            # Each decision can change the owners, so the queue is read anew after it.
            for request in self._waiting(lock):
                decision = self._decide(lock, request)
                if decision is not Decision.WAIT:
                    lock.queue.remove(request)
                    self._act(key, lock, request, decision)
                    changed = True
                    break

    def _waiting(self, lock: Lock) -> list[LockRequest]:
        return list(lock.queue)

    def _forget_if_free(self, key: str) -> None:
        lock = self._locks.get(key)
        if lock is not None and not lock.owners and not lock.queue:
            del self._locks[key]

    def _lock(self, key: str) -> Lock:
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = self.lock_class()
        return lock


def _refuse(requests: Iterable[LockRequest]) -> None:
    for request in requests:
        if not request.granted.done:
            request.granted.fail(WriteConflict(f"transaction {request.ref.id} was refused a lock"))
