"""Random small histories of registers, judged by the checkers of memory models and by trying every order.

    python tools/fuzz_memory.py --kind models --seeds 0..99999 --processes 2

Each seed is one history of at most eight reads and writes of up to two keys by up to three clients, some of unknown
outcome, some of values that repeat. Each client has a replica, which hears of other writes late, in order or out of
order, and keeps the last or the latest; some reads answer any value at all.
Verdicts on values that are unique must be those of `memory_oracle`; on repeated values *unknown* is allowed too. The
evidence of each violation must break the model alone. `--kind staleness` compares figures: the bounds must hold the
smallest k and be equal up to 2, and the smallest Δ must make the history linearizable, while a microsecond less does
not. Differences are printed with their seeds, and the program then
ends with 1.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial

from judged_seeds import judge_seeds, options
from memory_oracle import Step, keeps, smallest_k

from faultline.checkers.judges import judge
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.verdict import CheckResult, Verdict

__all__ = ["CHECKED", "KINDS", "differences", "differences_of_staleness", "history_of", "main", "random_steps"]

CHECKED = {
    "sequential": "sequential",
    "causal-memory": "causal-memory",
    "causal-convergence": "causal-convergence",
    "weak-causal": "weak-causal",
    "pram": "PRAM",
}
"""The checkers and the models that the oracle decides for them."""

OPERATIONS_MAX = 8


class _Replicas:
    """A replica for each client, which hears of the others' writes late, and in which order depends on the seed."""

    def __init__(self, rng: random.Random, clients: int) -> None:
        self.rng = rng
        self.is_fifo, self.is_last_writer_wins = rng.random() < 0.6, rng.random() < 0.4
        self.eagerness = rng.random()
        self.corruption = (0.0, 0.1, 0.4, 1.0)[int(rng.random() * 4)]
        self.written: dict[str, list[int | None]] = {"x": [None], "y": [None]}
        self.held: list[dict[str, tuple[int, int | None]]] = [{} for _ in range(clients)]
        self.on_the_way: list[list[tuple[int, str, int, int]]] = [[] for _ in range(clients)]

    def write(self, client: int, key: str, value: int, stamp: int) -> None:
        """Apply a write at the client's own replica, and send it to the others."""
        self.written[key].append(value)
        self._apply(client, key, value, stamp)
        for other, messages in enumerate(self.on_the_way):
            if other != client:
                messages.append((client, key, value, stamp))

    def read(self, client: int, key: str) -> int | None:
        """Return what the client's replica holds after it has heard of some more, or now and then any value."""
        messages = self.on_the_way[client]
        while messages and self.rng.random() < self.eagerness:
            at = int(self.rng.random() * len(messages))
            if self.is_fifo:
                at = next(n for n, message in enumerate(messages) if message[0] == messages[at][0])
            _, sent_key, value, stamp = messages.pop(at)
            self._apply(client, sent_key, value, stamp)
        if self.rng.random() < self.corruption:
            return self.written[key][int(self.rng.random() * len(self.written[key]))]
        return self.held[client].get(key, (0, None))[1]

    def _apply(self, client: int, key: str, value: int, stamp: int) -> None:
        if not self.is_last_writer_wins or self.held[client].get(key, (0, None))[0] < stamp:
            self.held[client][key] = (stamp, value)


def random_steps(seed: int, operations_max: int = OPERATIONS_MAX) -> list[Step]:
    """Return the history of `seed`, in order of invocation."""
    rng = random.Random(seed)
    size, clients = 2 + int(rng.random() ** 0.5 * (operations_max - 1)), 2 + int(rng.random() * 2)
    keys, repeats = "xy"[: 1 + int(rng.random() * 2)], rng.random() < 0.25
    replicas, steps = _Replicas(rng, clients), list[Step]()
    free, names, moment = [0] * clients, list(range(clients)), 0
    for number in range(size):
        at, key = int(rng.random() * clients), keys[int(rng.random() * len(keys))]
        begin = max(free[at], moment) + 1
        moment = begin if rng.random() < 0.7 else moment
        end: int | None = begin + 1 + int(rng.random() * 3)
        client, is_read = names[at], rng.random() < 0.55
        if is_read:
            value = replicas.read(at, key)
        else:
            value = 1 + int(rng.random() * 2) if repeats else number + 1
            replicas.write(at, key, value, number + 1)
            if rng.random() < 0.12:
                end, names[at] = None, client + clients
        free[at] = begin if end is None else end
        steps.append(Step(client, is_read, key, value, begin, end))
    return steps


def history_of(steps: Sequence[Step]) -> History:
    """Return the steps as a history; what ends at a moment returns after all that begin then."""
    history, rows = History(), dict[int, int]()
    events = [(step.begin, 0, number) for number, step in enumerate(steps)]
    events += [(step.end, 1, number) for number, step in enumerate(steps) if step.end is not None]
    for moment, is_end, number in sorted(events):
        step = steps[number]
        if is_end:
            history.complete(rows[number], Outcome("ok", step.value if step.is_read else None, None), moment * 1000)
        else:
            f, value = ("read", None) if step.is_read else ("write", step.value)
            operation = Operation(step.client, f, step.key, value)
            rows[number] = history.invoke(operation, moment * 1000, step.client, "n1")
    return history


def differences(steps: Sequence[Step], counts: Counter[str]) -> list[str]:
    """Return what is wrong with the verdicts on `steps`; `counts` counts them."""
    history = history_of(steps)
    in_order = sorted(range(len(steps)), key=lambda number: (steps[number].begin, number))
    is_unique = _is_unique(steps)
    expected = {model: keeps(steps, model) for model in ("linearizable", *CHECKED.values())}
    found = []
    for name, model in CHECKED.items():
        result = judge(name, history).check(history)
        counts[f"{name}: {result.verdict}{'' if is_unique else ', repeated values'}"] += 1
        if result.verdict is Verdict.VACUOUS and not any(step.is_read for step in steps):
            continue
        right = Verdict.PASS if expected[model] else Verdict.VIOLATION
        may_be_unknown = not is_unique and name != "sequential"
        if result.verdict is not right and not (may_be_unknown and result.verdict is Verdict.UNKNOWN):
            found.append(f"{name} says {result.verdict}, and trying every order {right}")
        found += _wrong_strength(result, expected)
        for finding in result.findings:
            core = [steps[in_order[row]] for row in finding.operations]
            if finding.anomaly == "conflicting-write-order" and keeps(core, model):
                found.append(f"{name}: its evidence keeps the model")
    return found


def differences_of_staleness(steps: Sequence[Step], counts: Counter[str]) -> list[str]:
    """Return what is wrong with the figures of `steps`; none of values that repeat."""
    if not _is_unique(steps):
        return []
    history = history_of(steps)
    result, k = judge("staleness", history).check(history), smallest_k(steps)
    if not any(step.is_read for step in steps):
        is_undecided = result.verdict in (Verdict.UNKNOWN, Verdict.VACUOUS)
        return [] if is_undecided else [f"staleness of no read is {result.verdict}"]
    counts[f"staleness: k is {k}"] += 1
    if k is None or result.verdict is Verdict.VIOLATION:
        return [] if (k is None) == (result.verdict is Verdict.VIOLATION) else [f"{result.verdict} where k is {k}"]
    (low, high), stale_us = result.detail["versions"], result.detail["stale_us"]
    counts[f"staleness: bounds of k are {'equal' if low == high else 'apart'}"] += 1
    found = [] if low <= k <= high and (k > 2 or low == high) else [f"k is {k}, and its bounds {low} and {high}"]
    if smallest_k(steps, stale_us) != 1:
        found.append(f"not linearizable with reads {stale_us} µs earlier")
    if stale_us and smallest_k(steps, stale_us - 1) == 1:
        found.append(f"linearizable with reads {stale_us - 1} µs earlier")
    return found


def _wrong_strength(result: CheckResult, expected: dict[str, bool]) -> list[str]:
    holds, broken = result.detail["holds"], [*result.detail["not"], *result.detail["also_not"]]
    wrong = [f"{model} is said to hold" for model in holds if not expected[model]]
    return wrong + [f"{model} is said to be ruled out" for model in broken if expected.get(model)]


def _is_unique(steps: Sequence[Step]) -> bool:
    writes = [(step.key, step.value) for step in steps if not step.is_read]
    return len(set(writes)) == len(writes)


KINDS = {"models": differences, "staleness": differences_of_staleness}


def _judge(kind: str, seeds: range) -> tuple[list[str], Counter[str]]:
    counts: Counter[str] = Counter()
    complaints = [f"seed {seed}: {each}" for seed in seeds for each in KINDS[kind](random_steps(seed), counts)]
    return complaints, counts


def main() -> int:
    """Judge the histories of all seeds."""
    parser = options(__doc__)
    parser.add_argument("--kind", choices=KINDS, default="models")
    asked = parser.parse_args()
    return judge_seeds(partial(_judge, asked.kind), asked)


if __name__ == "__main__":
    sys.exit(main())
