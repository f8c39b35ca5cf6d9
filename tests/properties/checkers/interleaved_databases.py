"""Databases so small that their isolation level is plain to see, and clients that write histories with them.

Every transaction is a list of micro-operations that are asked one at a time, interleaved at random with those of the
others:

- *none*: each takes effect at once, for all to see;
- *read-committed*: reads see what is committed at that moment (and own writes), writes appear together at the commit;
  what one transaction has written to, no other may write to before it has committed, or it is aborted;
- *snapshot-isolation*: reads see what was committed at the beginning, and a transaction is aborted when it commits
  a write to a key to which another has committed in between;
- *serializable*: a transaction does everything at its commit, but what it sees may be old if it writes nothing;
- *strict-serializable*: as before, without the age.
"""

from __future__ import annotations

import random
from typing import Any

from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["LEVELS", "toy_history"]

LEVELS = ("none", "read-committed", "snapshot-isolation", "serializable", "strict-serializable")

State = dict[str, Any]


class _Database:
    def __init__(self, level: str, rng: random.Random) -> None:
        self.level = level
        self.rng = rng
        self.states: list[State] = [{}]
        self.committed: list[set[str]] = [set()]
        self.locks: dict[str, _Transaction] = {}

    def read_state(self, began: int) -> State:
        return self.states[began if self.level == "snapshot-isolation" else -1]

    def commit(self, began: int, effects: list[list[Any]]) -> bool:
        keys = {micro[1] for micro in effects}
        if self.level == "snapshot-isolation" and any(keys & other for other in self.committed[began + 1 :]):
            return False
        state = dict(self.states[-1])
        for micro in effects:
            _apply(state, micro)
        self.states.append(state)
        self.committed.append(keys)
        return True


def _apply(state: State, micro: list[Any]) -> None:
    name, key, value = micro
    if name == "append":
        state[key] = [*state.get(key, []), value]
    elif name == "w":
        state[key] = value


class _Transaction:
    """One transaction on its way, step by step; `answer` fills in as it goes."""

    def __init__(self, database: _Database, body: list[list[Any]]) -> None:
        self.database = database
        self.body = body
        self.began = len(database.states) - 1
        self.answer: list[list[Any]] = []
        self.effects: list[list[Any]] = []
        self.doomed = False

    def step(self) -> bool:
        """Do the next micro-operation; False when there is none left to do before the commit."""
        if len(self.answer) == len(self.body) or self.database.level.endswith("serializable"):
            return False
        self._do(self.body[len(self.answer)], self.database.read_state(self.began))
        return True

    def _do(self, micro: list[Any], seen: State) -> None:
        name, key, value = micro
        if name == "r":
            state = dict(seen)
            for effect in self.effects:
                _apply(state, effect)
            self.answer.append(["r", key, state.get(key)])
            return
        self.answer.append([name, key, value])
        if self.database.level == "read-committed":
            self.doomed |= self.database.locks.setdefault(key, self) is not self
        if self.database.level == "none":
            _apply(self.database.states[-1], micro)
        else:
            self.effects.append(micro)

    def commit(self) -> bool:
        """Finish; False when the database aborts the transaction."""
        database = self.database
        database.locks = {key: holder for key, holder in database.locks.items() if holder is not self}
        if database.level.endswith("serializable"):
            reads_only = all(micro[0] == "r" for micro in self.body)
            old = database.level == "serializable" and reads_only
            seen = database.states[-1 - int(database.rng.random() * min(3, len(database.states))) if old else -1]
            for micro in self.body:
                self._do(micro, seen)
        return database.level == "none" or (not self.doomed and database.commit(self.began, self.effects))


def toy_history(
    level: str,
    seed: int,
    write: str = "append",
    *,
    transactions: int = 40,
    clients: int = 4,
    keys: int = 3,
    uncertain: float = 0.1,
) -> History:
    """A history of a toy database at `level`; `write` is `append` or `w`, `uncertain` the share of unknown outcomes."""
    rng = random.Random(seed)
    database, history = _Database(level, rng), History()
    processes, next_process = list(range(clients)), clients
    running: dict[int, tuple[int, _Transaction]] = {}
    written: dict[str, int] = {}
    while len(history) < transactions or running:
        client = int(rng.random() * clients)
        if client not in running:
            if len(history) < transactions:
                body = _body(rng, write, keys, written)
                row = history.invoke(Operation(processes[client], "txn", None, body), history.next_index, client, "")
                running[client] = (row, _Transaction(database, body))
            continue
        row, transaction = running[client]
        if transaction.step():
            continue
        del running[client]
        outcome = _finish(transaction, rng, uncertain)
        history.complete(row, outcome, history.next_index)
        if outcome.kind == "info":
            processes[client], next_process = next_process, next_process + 1
    return history


def _finish(transaction: _Transaction, rng: random.Random, uncertain: float) -> Outcome:
    lost = rng.random() < uncertain
    if lost and rng.random() < 0.5 and transaction.database.level != "none":
        transaction.doomed = True
        transaction.commit()
        return Outcome("info", None, "lost")
    if not transaction.commit():
        return Outcome("fail", None, "conflict")
    return Outcome("info", None, "lost") if lost else Outcome("ok", transaction.answer)


def _body(rng: random.Random, write: str, keys: int, written: dict[str, int]) -> list[list[Any]]:
    body: list[list[Any]] = []
    for _ in range(1 + int(rng.random() * 4)):
        key = "xyzuv"[int(rng.random() * keys)]
        if rng.random() < 0.5:
            body.append(["r", key, None])
        else:
            written[key] = written.get(key, 0) + 1
            body.append([write, key, written[key]])
    return body
