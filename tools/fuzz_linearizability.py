"""Random small histories, judged by the fast engine and by the port of Porcupine: they must never disagree.

    python tools/fuzz_linearizability.py --seeds 0..999999 --processes 2
    python tools/fuzz_linearizability.py --seeds 0..999999 --processes 2 --model repeats
    python tools/fuzz_linearizability.py --seeds 0..999999 --processes 2 --model kv

Each seed is one history of a register that a few clients use at once: reads, writes and compare-and-sets, over few
values or over values that are all different (`cas-register`), or over values of which some repeat soon (`repeats`); or
of a string that is read, put and appended to, with texts that repeat, that begin each other, or that are all different
(`kv`). Operations crash before or after their effect; some answers are wrong. Each is judged by the native kernel and
by the plain Python engine, each with the monitor and by search alone; a small history of a register also by trying all
orders. Every linearization is replayed once more. What the monitor names in a refusal is judged by itself, with all
other writes free to happen at any time or never, and must be illegal. `--quick` leaves out the port, all orders and
plain Python. The first difference is printed with its seed,
and the program ends with 1.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from judged_seeds import judge_seeds, options
from things_in_use import Values

from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.linearizability.engine.batch import Method, check_columns
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.engine.native import engine_in_use
from faultline.checkers.linearizability.engine.registers import columns_of
from faultline.checkers.linearizability.engine.texts import text_columns
from faultline.checkers.linearizability.kv import KvOperation, referee_kv
from faultline.checkers.linearizability.models import KV_MODEL, referee_operations, register_model
from faultline.checkers.linearizability.operations import (
    AVOID,
    BEGINNING,
    INFINITY,
    OBSERVE,
    SWAP,
    WRITE,
    RegisterOperation,
)
from faultline.checkers.linearizability.replay import is_linearization
from faultline.checkers.porcupine import check_operations

__all__ = ["disagreements", "has_legal_order", "main", "random_history", "random_texts"]

METHODS: tuple[Method, ...] = ("auto", "search")
OPERATIONS_MAX = 13
ALL_ORDERS_MAX = 7


class _Register(Values):
    """A register that clients use at once, some of which crash or misread."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.size = 1 + int(self.rng.random() * OPERATIONS_MAX)
        self.clients = 1 + int(self.rng.random() * 6)
        self.domain = (2, 3, 4)[int(self.rng.random() * 3)]
        self.is_unique = self.rng.random() < 0.4
        self.crashes = self.rng.random() * 0.3
        self.corruption = (0.0, 0.0, 0.1, 0.3)[int(self.rng.random() * 4)]
        self.begun = 0

    def invoke(self, time: int) -> list[Any]:
        """Return a new operation: kind, demand, produce, call."""
        self.begun += 1
        kind = (OBSERVE, WRITE, SWAP)[int(self.rng.random() * 3)]
        if kind == OBSERVE:
            return [OBSERVE, None, None, time]
        if kind == WRITE:
            return [WRITE, None, self.new_value(), time]
        demand, produce = self.old_value(), self.new_value()
        return [SWAP, demand, produce, time] if demand != produce else [OBSERVE, None, None, time]

    def take_effect(self, operation: list[Any]) -> None:
        """Let the operation take effect now."""
        kind, demand, produce, _ = operation
        if kind == OBSERVE:
            operation[1] = self.old_value() if self.rng.random() < self.corruption else self.state
        elif kind == SWAP and self.state != demand:
            operation[0], operation[2] = AVOID, None
        else:
            self.state = produce


class _RepeatingRegister(_Register):
    """A register on which most values are new, and some are put again soon after."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.is_unique = True
        self.size = 2 + int(self.rng.random() * (OPERATIONS_MAX + 3))
        self.repeats = (0.1, 0.3, 0.6)[int(self.rng.random() * 3)]
        self.corruption = (0.0, 0.1, 0.3, 0.5)[int(self.rng.random() * 4)]

    def new_value(self) -> int | None:
        """Return a new value, or one of the last few, or the initial one."""
        if self.rng.random() < self.repeats:
            return max(0, self.written - int(self.rng.random() * 4)) or None
        return super().new_value()


def random_history(seed: int, *, repeats: bool = False) -> list[RegisterOperation]:
    """Return the history of a register for `seed`, in order of call; with `repeats`, most values are put only once."""
    register = _RepeatingRegister(seed) if repeats else _Register(seed)
    done = _carried_out(register, lambda given: given[0] >= WRITE)
    return [
        RegisterOperation(kind, demand, produce, call, return_, row)
        for row, ((kind, demand, produce, call), return_) in enumerate(done)
    ]


class _Text:
    """A string that clients use at once, some of which crash or misread."""

    alphabets = (("a", "b"), ("a", "b", "ab", "ba", ""), ("x", "xy", "y"), ())

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.size = 1 + int(self.rng.random() * 10)
        self.clients = 1 + int(self.rng.random() * 4)
        self.texts = self.alphabets[int(self.rng.random() * 4)]
        self.has_brackets = self.rng.random() < 0.5
        self.puts = (0.0, 0.1, 0.3)[int(self.rng.random() * 3)]
        self.crashes = self.rng.random() * 0.25
        self.corruption = (0.0, 0.0, 0.15, 0.3)[int(self.rng.random() * 4)]
        self.state = ""
        self.seen = [""]
        self.begun = 0

    def invoke(self, time: int) -> list[Any]:
        """Return a new operation: function, text, call."""
        self.begun += 1
        draw = self.rng.random()
        text = f"<{self.begun}>" if self.has_brackets else str(self.begun)
        if self.texts:
            text = self.texts[int(self.rng.random() * len(self.texts))]
        return ["get" if draw < 0.45 else "put" if draw < 0.45 + self.puts else "append", text, time]

    def take_effect(self, operation: list[Any]) -> None:
        """Let the operation take effect now."""
        if operation[0] == "get":
            operation[1] = self.wrong_answer() if self.rng.random() < self.corruption else self.state
        else:
            self.state = operation[1] if operation[0] == "put" else self.state + operation[1]
            self.seen.append(self.state)

    def wrong_answer(self) -> str:
        """Return a string with an unwritten tail or a loss at either end, or an old string."""
        old = self.seen[int(self.rng.random() * len(self.seen))]
        return (self.state + "z", self.state[:-1], self.state[1:], old)[int(self.rng.random() * 4)]


def random_texts(seed: int) -> list[KvOperation]:
    """Return the history of a string for `seed`, in order of call."""
    return [
        KvOperation(f, text, call, return_, row)
        for row, ((f, text, call), return_) in enumerate(_carried_out(_Text(seed), lambda given: given[0] != "get"))
    ]


def _carried_out(thing: _Register | _Text, changes: Callable[[list[Any]], bool]) -> list[tuple[list[Any], int]]:
    """Return operations on `thing` by clients that take turns at random, with their returns, in order of call.

    An operation that crashes stays pending if it `changes` the object.
    """
    time = 0
    under_way: dict[int, tuple[list[Any], bool]] = {}
    done: list[tuple[list[Any], int]] = []
    while thing.begun < thing.size or under_way:
        time += 1
        client = int(thing.rng.random() * thing.clients)
        operation, happened = under_way.pop(client, (None, False))
        if operation is None:
            if thing.begun < thing.size:
                under_way[client] = (thing.invoke(time), False)
        elif thing.rng.random() < thing.crashes:
            if changes(operation):
                done.append((operation, INFINITY))
        elif happened:
            done.append((operation, time))
        else:
            thing.take_effect(operation)
            under_way[client] = (operation, True)
    return sorted(done, key=_call)


def _call(done: tuple[list[Any], int]) -> int:
    return int(done[0][-1])


def quick_disagreements(seeds: Sequence[int], counts: Counter[str], model: str) -> list[str]:
    """Return where the native monitor and search disagree on registers, in words, and which cores are legal."""
    histories = [random_history(seed, repeats=model == "repeats") for seed in seeds]
    columns, complaints = _joined(histories), list[str]()
    searched, decisions = check_columns(columns, method="search"), check_columns(columns)
    for seed, expected, decision in zip(seeds, searched, decisions):
        counts[f"{decision.engine}: {decision.legality}"] += 1
        if decision.legality != expected.legality:
            complaints.append(
                f"seed {seed}: {decision.engine} says {decision.legality}, the search {expected.legality}"
            )
    return complaints + [f"seed {seeds[key]}: the core is legal" for key in _legal_cores(histories, decisions)]


def disagreements(seeds: Sequence[int], counts: Counter[str], model: str = "cas-register") -> list[str]:
    """Return the disagreements of the engines and the port, in words; `counts` counts the verdicts by engine."""
    if model == "kv":
        texts = [random_texts(seed) for seed in seeds]
        expected = [check_operations(KV_MODEL, referee_kv(history)) for history in texts]
        columns = text_columns((str(seed), history) for seed, history in zip(seeds, texts))
    else:
        histories = [random_history(seed, repeats=model == "repeats") for seed in seeds]
        expected = [check_operations(register_model(), referee_operations(history)) for history in histories]
        columns = _joined(histories)
    complaints: list[str] = []
    if model != "kv":
        complaints += _against_all_orders(seeds, histories, expected)
    for engine in ["python"] if engine_in_use().name == "python" else ["native", "python"]:
        for method in METHODS:
            decisions = check_columns(columns, engine=engine, method=method)
            for key, (seed, is_legal, decision) in enumerate(zip(seeds, expected, decisions)):
                counts[f"{engine}, {decision.engine}: {decision.legality}"] += 1
                if decision.is_legal != is_legal:
                    complaints.append(f"seed {seed}: {engine} ({method}) says {decision.legality}, the port {is_legal}")
                elif is_legal and model != "kv" and not _holds(histories, key, decision):
                    complaints.append(f"seed {seed}: {engine} ({method}) gives a false witness")
            if method == "auto" and model != "kv":
                cores = _legal_cores(histories, decisions)
                complaints += [f"seed {seeds[key]}: {engine} names what is legal by itself" for key in cores]
    return complaints


def _against_all_orders(
    seeds: Sequence[int], histories: Sequence[list[RegisterOperation]], expected: Sequence[bool]
) -> list[str]:
    """Return where the port and a trial of all orders disagree on a small history."""
    return [
        f"seed {seed}: the port says {is_legal}, a trial of all orders does not"
        for seed, history, is_legal in zip(seeds, histories, expected)
        if len(history) <= ALL_ORDERS_MAX and has_legal_order(history) != is_legal
    ]


def has_legal_order(remaining: Sequence[RegisterOperation], state: object = None) -> bool:
    """Return whether an order of `remaining` is legal from `state` on, by trying all, with no memory and no rule."""
    if all(operation.return_ == INFINITY for operation in remaining):
        return True
    first_return = min(operation.return_ for operation in remaining)
    for i, operation in enumerate(remaining):
        if operation.call > first_return or not _is_legal(operation, state):
            continue
        after = operation.produce if operation.kind >= WRITE else state
        if has_legal_order([*remaining[:i], *remaining[i + 1 :]], after):
            return True
    return False


def _is_legal(operation: RegisterOperation, state: object) -> bool:
    return operation.kind == WRITE or (operation.demand == state) == (operation.kind != AVOID)


def _legal_cores(histories: Sequence[list[RegisterOperation]], decisions: Sequence[Decision]) -> list[int]:
    """Return the keys on which what the monitor named is legal when all other writes are free."""
    keys = [key for key, decision in enumerate(decisions) if decision.is_illegal and decision.core]
    begins = list(accumulate(map(len, histories), initial=0))
    relaxed = []
    for key in keys:
        core = {i - begins[key] for i in decisions[key].core}
        free = [operation._replace(call=BEGINNING, return_=INFINITY) for operation in histories[key]]
        kept = [i for i, operation in enumerate(free) if i in core or operation.kind >= WRITE]
        relaxed.append([histories[key][i] if i in core else free[i] for i in kept])
    return [key for key, decision in zip(keys, check_columns(_joined(relaxed), method="search")) if decision.is_legal]


def _holds(histories: Sequence[Sequence[RegisterOperation]], key: int, decision: Decision) -> bool:
    """Return whether the linearization found is one, by a replay on the model."""
    begin = sum(map(len, histories[:key]))
    return is_linearization(register_model(), referee_operations(histories[key]), [i - begin for i in decision.order])


def _joined(histories: Sequence[Sequence[RegisterOperation]]) -> Columns:
    """Return all histories as the keys of one."""
    joined = Columns(list(range(len(histories))), [None])
    for key, history in enumerate(histories):
        columns = columns_of(history)
        base = len(joined.values) - 1
        joined.values += columns.values[1:]
        joined.key.extend([key] * len(history))
        joined.kind.extend(columns.kind)
        joined.demand.extend(value and value + base for value in columns.demand)
        joined.produce.extend(value and value + base for value in columns.produce)
        joined.call.extend(columns.call)
        joined.return_.extend(columns.return_)
        joined.row.extend(columns.row)
    return joined


def _judge(model: str, is_quick: bool, seeds: range) -> tuple[list[str], Counter[str]]:
    counts: Counter[str] = Counter()
    return (quick_disagreements if is_quick else disagreements)(seeds, counts, model), counts


def main() -> int:
    """Judge the histories of all seeds."""
    parser = options(__doc__)
    parser.add_argument("--model", choices=("cas-register", "repeats", "kv"), default="cas-register")
    parser.add_argument("--quick", action="store_true", help="registers: only the native monitor against the search")
    asked = parser.parse_args()
    return judge_seeds(partial(_judge, asked.model, asked.quick), asked)


if __name__ == "__main__":
    sys.exit(main())
