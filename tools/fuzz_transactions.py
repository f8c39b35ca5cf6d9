"""Random small histories of transactions, judged by the checkers and by exhaustive search: they must never disagree.

    python tools/fuzz_transactions.py --seeds 0..9999 --processes 2

Each seed is one history of lists and one of registers: up to five transactions of a few clients on three keys, run by a
database that keeps snapshots, or runs them one by one, or does neither, and some answers are changed. Each is judged at
every level of `transaction_oracle`, with `--one-level` at one of them in turn. Each difference is printed with its
seed, and the program ends with 1.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from judged_seeds import judge_seeds, options
from transaction_oracle import LEVELS, keeps

from faultline.checkers.transactions.checker import check_transactions
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.verdict import Verdict

__all__ = ["KINDS", "disagreements", "main", "random_history"]

KINDS = {"list-append": "append", "rw-register": "w"}
TRANSACTIONS_MAX = 5
KEYS = "xyz"

_VERDICTS = {True: (Verdict.PASS, Verdict.VACUOUS), False: (Verdict.VIOLATION,)}


class _Database:
    """A few clients at once on a database that answers from old states, more or less often."""

    def __init__(self, seed: int, write: str) -> None:
        self.rng = random.Random(seed)
        self.write = write
        self.states: list[dict[str, Any]] = [{}]
        self.written = 0
        self.count = 2 + int(self.rng.random() * (TRANSACTIONS_MAX - 1))
        self.clients = 1 + int(self.rng.random() * 4)
        self.keys = KEYS[: 2 + int(self.rng.random() * 2)]
        self.staleness = self.rng.random()
        self.crashes = self.rng.random() * 0.2
        self.appearing = self.rng.random()

    def history(self) -> History:
        """Return what the clients saw."""
        history = History()
        processes = list(range(self.clients))
        running: dict[int, tuple[int, Any]] = {}
        while len(history) < self.count or running:
            client = int(self.rng.random() * self.clients)
            if client not in running:
                if len(history) < self.count:
                    body = [self._micro() for _ in range(1 + int(self.rng.random() * 4))]
                    operation = Operation(processes[client], "txn", None, body)
                    row = history.invoke(operation, history.next_index, client, "")
                    running[client] = row, self._answer(body) if self.rng.random() < self.appearing else None
                continue
            row, answer = running.pop(client)
            answer = answer or self._answer(history.value[row])
            crashed = self.rng.random() < self.crashes
            outcome = Outcome("info", None, "lost") if crashed else Outcome("ok", answer)
            history.complete(row, outcome, history.next_index)
            processes[client] += len(processes) * crashed
        return history

    def _micro(self) -> list[Any]:
        key = self.keys[int(self.rng.random() * len(self.keys))]
        if self.rng.random() < 0.5:
            return ["r", key, None]
        self.written += 1
        return [self.write, key, self.written]

    def _answer(self, body: list[list[Any]]) -> list[list[Any]]:
        """Take effect now; what is read may be of an old state, for the whole transaction or for one key."""
        old = dict(self.states[int(self.rng.random() * len(self.states))])
        seen, new = (old if self.rng.random() < self.staleness else dict(self.states[-1])), dict(self.states[-1])
        own: dict[str, Any] = {}
        answer = []
        for f, key, value in body:
            if f == "r":
                odd = key not in own and self.rng.random() < self.staleness / 4
                base = old if odd else seen
                value = own.get(key, base.get(key))
                if key not in own:
                    seen[key] = base.get(key)
            else:
                changed = [[*(state.get(key) or ()), value] if f == "append" else value for state in (new, seen)]
                new[key], seen[key] = changed
                own[key] = seen[key]
            answer.append([f, key, value])
        self.states.append(new)
        return answer


def random_history(seed: int, kind: str) -> History:
    """Return the history of `seed`, of lists or registers."""
    return _Database(seed, KINDS[kind]).history()


def disagreements(seeds: Iterable[int], told: Counter[str] | None = None, *, one_level: bool = False) -> Iterator[str]:
    """Yield a line for each verdict that differs from the definition; count the verdicts in `told`.

    With `one_level` each history is judged at a single level, which the seed decides.
    """
    for seed in seeds:
        for kind in KINDS:
            history = random_history(seed, kind)
            for level in (LEVELS[seed % len(LEVELS)],) if one_level else LEVELS:
                kept, result = keeps(history, level), check_transactions(history, kind, level)
                if told is not None:
                    told[f"{kind}, {level}: {'kept' if kept else 'broken'}"] += 1
                if result.verdict not in _VERDICTS[kept]:
                    yield f"seed {seed}, {kind}, {level}: {'kept' if kept else 'broken'}, but {result.sentence}"


def _judge(seeds: range, one_level: bool) -> tuple[list[str], Counter[str]]:
    told: Counter[str] = Counter()
    return list(disagreements(seeds, told, one_level=one_level)), told


def main() -> int:
    """Judge the histories of all seeds."""
    parser = options(__doc__)
    parser.add_argument("--one-level", action="store_true", help="each history at one level, in turn")
    asked = parser.parse_args()
    return judge_seeds(partial(_judge, one_level=asked.one_level), asked)


if __name__ == "__main__":
    sys.exit(main())
