"""Toy databases that keep one isolation level each, and the histories of random clients on them.

Each class runs micro-operations of transactions that overlap, on keys a to d. What it promises is in its name; what it
does not promise it breaks now and then, so that the next stronger level can be seen to be violated.
"""

from __future__ import annotations

import random

from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

KEYS = "abcd"


class Serial:
    """Everything happens at commit, at once."""

    def __init__(self, rng):
        self.rng, self.store = rng, {}

    def begin(self, session):
        return []

    def step(self, transaction, f, key, value):
        transaction.append([f, key, value])

    def commit(self, transaction, session):
        for step in transaction:
            if step[0] == "w":
                self.store[step[1]] = step[2]
            else:
                step[2] = self.store.get(step[1])
        return transaction


class Snapshot(Serial):
    """Reads from the snapshot of the beginning; the first committer of a key wins, the others abort."""

    def __init__(self, rng):
        super().__init__(rng)
        self.version = {}

    def begin(self, session):
        return {"snapshot": dict(self.store), "version": dict(self.version), "own": {}, "steps": []}

    def step(self, transaction, f, key, value):
        if f == "w":
            transaction["own"][key] = value
        else:
            value = transaction["own"].get(key, transaction["snapshot"].get(key))
        transaction["steps"].append([f, key, value])

    def commit(self, transaction, session):
        if any(self.version.get(key) != transaction["version"].get(key) for key in transaction["own"]):
            return None
        for key, value in transaction["own"].items():
            self.store[key], self.version[key] = value, object()
        return transaction["steps"]


class ReadCommitted(Snapshot):
    """Each read sees what is committed at that moment, and the last committer wins."""

    def step(self, transaction, f, key, value):
        transaction["snapshot"] = self.store
        super().step(transaction, f, key, value)

    def commit(self, transaction, session):
        self.store.update(transaction["own"])
        return transaction["steps"]


class Causal(Snapshot):
    """Three replicas; a transaction reads a snapshot of its session's and is delivered elsewhere in causal order.

    Concurrent writes are ordered by a stamp that grows along causality, so that replicas agree in the end.
    """

    REPLICAS = 3

    def __init__(self, rng):
        self.rng = rng
        self.replicas = [{} for _ in range(self.REPLICAS)]
        self.applied = [set() for _ in range(self.REPLICAS)]
        self.log = []
        self.clock = 0

    def begin(self, session):
        replica = session % self.REPLICAS
        self._deliver(replica)
        return {"snapshot": dict(self.replicas[replica]), "own": {}, "steps": [], "knows": set(self.applied[replica])}

    def step(self, transaction, f, key, value):
        if f == "w":
            transaction["own"][key] = value
        else:
            seen = transaction["snapshot"].get(key)
            value = transaction["own"].get(key, None if seen is None else seen[1])
        transaction["steps"].append([f, key, value])

    def commit(self, transaction, session):
        if transaction["own"]:
            self.clock += 1
            known = transaction["knows"] | {
                n for n in self.applied[session % self.REPLICAS] if self.log[n][3] == session
            }
            self.log.append((self.clock, transaction["own"], known, session))
            self._apply(session % self.REPLICAS, len(self.log) - 1)
        return transaction["steps"]

    def _deliver(self, replica):
        """Some of what is outstanding, each only after what its author knew."""
        for number, (_, _, knows, _) in enumerate(self.log):
            if number not in self.applied[replica] and knows <= self.applied[replica] and self.rng.random() < 0.5:
                self._apply(replica, number)

    def _apply(self, replica, number):
        stamp, own, _, _ = self.log[number]
        self.applied[replica].add(number)
        for key, value in own.items():
            if stamp > self.replicas[replica].get(key, (0,))[0]:
                self.replicas[replica][key] = (stamp, value)


class ReadAtomic(Causal):
    """The same, delivered in any order: whole transactions become visible, whatever their authors knew.

    Each session stays with its replica, so that sessions never go back.
    """

    def _deliver(self, replica):
        for number in range(len(self.log)):
            if number not in self.applied[replica] and self.rng.random() < 0.5:
                self._apply(replica, number)


def history_of(database, seed, transactions=60, sessions=6):
    """Return the history of clients of `database`, with a few of their transactions open at any time."""
    rng = random.Random(seed)
    store, history, opened, time_us, written = database(rng), History(), {}, 0, 0
    begun = 0
    while begun < transactions or opened:
        session, time_us = rng.randrange(sessions), time_us + 10
        if session not in opened:
            if begun == transactions:
                continue
            begun += 1
            plan = []
            for _ in range(rng.randint(1, 6)):
                f = rng.choice("rrw")
                written += f == "w"
                plan.append([f, rng.choice(KEYS), written if f == "w" else None])
            row = history.invoke(Operation(session, "txn", None, plan), time_us, session, "n")
            opened[session] = (row, store.begin(session), plan, iter(plan))
            continue
        row, transaction, plan, steps = opened[session]
        step = next(steps, None)
        if step is not None:
            store.step(transaction, *step)
            continue
        del opened[session]
        result = store.commit(transaction, session)
        outcome = Outcome("fail", None, "conflict") if result is None else Outcome("ok", result)
        history.complete(row, outcome, time_us)
    return history
