"""Random small histories of objects, judged by every engine and by trying all orders: they must never disagree.

    python tools/fuzz_objects.py --kind queue --seeds 0..999999 --processes 2

Each seed is one history of at most eight operations of clients that use a set, queue, stack, lock, mutex, counter or
`cell` (a number that is read, written, added to and swapped) at once. Operations crash before or after their effect,
some answers are wrong, some times are equal, some values repeat. Each is judged by its monitor, by the generic search
in both forms, with hooks and without, and by the port of Porcupine; the judge of all is a walk over all orders that
remembers nothing. Every refutation of a search is checked by `model_rules`, in both forms, and every core of a
monitor by that walk. The monitor and the native search judge every history, the others a fifth of them in turn, and
with `--all` every one too. Differences are printed with their seeds, and the program then ends with 1.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

from judged_seeds import judge_seeds, options

from faultline.checkers.linearizability.data_types import MODEL_FACTORIES, UNKNOWN
from faultline.checkers.linearizability.engine.native import engine_in_use
from faultline.checkers.linearizability.generic_search import NO_HOOKS, Hooks, WalkedBy, search_generic
from faultline.checkers.linearizability.monitors import native_containers
from faultline.checkers.linearizability.monitors.decision import decide, hooks_for
from faultline.checkers.linearizability.replay import is_linearization
from faultline.checkers.porcupine import PENDING, UNLIMITED, Model, Operation, check_single

__all__ = ["FORMS", "KINDS", "disagreements", "explains", "hooks_of", "main", "model_of", "random_object_history"]

OPERATIONS_MAX = 8
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "set": ("add", "remove", "contains"),
    "queue": ("enqueue", "dequeue"),
    "stack": ("push", "pop"),
    "lock": ("acquire", "release"),
    "mutex": ("acquire", "release"),
    "counter": ("add", "read"),
    "cell": ("read", "read", "write", "add", "swap"),
}
KINDS = tuple(FUNCTIONS)
FORMS: tuple[WalkedBy, ...] = ("python",) if engine_in_use().name == "python" else ("native", "python")

AnyOperation = Operation[Any, Any]


def _cell_step(state: int, given: tuple[str, Any], answer: Any) -> tuple[bool, int]:
    f, value = given
    if f == "read":
        return answer is UNKNOWN or answer == state, state
    if f == "swap":
        return state == value[0], value[1]
    return True, value if f == "write" else (state + value) % 3


CELL: Model[int, tuple[str, Any], Any] = Model(init=lambda: 0, step=_cell_step)


def model_of(kind: str) -> Model[Any, Any, Any]:
    """Return the sequential specification."""
    return CELL if kind == "cell" else MODEL_FACTORIES[kind].model()


def hooks_of(kind: str) -> Hooks[Any, Any, Any]:
    """Return what the search may know of it."""
    return Hooks(readonly=_is_read) if kind == "cell" else hooks_for(kind)


def _is_read(given: tuple[str, Any], _answer: Any) -> bool:
    return given[0] == "read"


class _Clients:
    """Clients of one object, which take turns at random."""

    def __init__(self, kind: str, seed: int, operations_max: int) -> None:
        self.rng = random.Random(seed)
        self.kind, self.model = kind, model_of(kind)
        self.size = 1 + int(self.rng.random() * operations_max)
        self.clients = 1 + int(self.rng.random() * 5)
        self.domain = (1, 2, 3, 100)[int(self.rng.random() * 4)]
        self.crashes = self.rng.random() * 0.25
        self.corruption = (0.0, 0.1, 0.3, 0.6)[int(self.rng.random() * 4)]
        self.pace = (1, 1, 0.6)[int(self.rng.random() * 3)]
        self.state = self.model.init()

    def invoke(self, client: int) -> tuple[str, Any]:
        """Return a new call."""
        f = FUNCTIONS[self.kind][int(self.rng.random() * len(FUNCTIONS[self.kind]))]
        value = 1 + int(self.rng.random() * self.domain)
        if self.kind == "lock":
            return f, client
        if self.kind == "mutex" or f in ("dequeue", "pop", "read"):
            return f, None
        if self.kind == "counter":
            return f, (1, 1, 1, 2, 0, -1)[int(self.rng.random() * 6)]
        if self.kind == "cell":
            return f, ((value - 1) % 3, int(self.rng.random() * 3)) if f == "swap" else (value - 1) % 3
        return f, value

    def answer(self, call: tuple[str, Any]) -> Any:
        """Let the operation take effect now, and return its answer, which is wrong now and then."""
        known = [None, False, True, 0, 1, 2, 3, self.domain]
        fitting = [answer for answer in known if self.model.step(self.state, call, answer)[0]]
        if call[0] in ("read", "dequeue", "pop") and self.state and self.kind in ("queue", "stack"):
            fitting = [self.state[0 if self.kind == "queue" else -1]]
        if self.kind == "counter" and call[0] == "read":
            fitting = [self.state]
        is_silent = call[0] in ("enqueue", "push", "write", "swap", "add") and self.kind != "set"
        if not fitting or (self.rng.random() < self.corruption and not is_silent):
            return self.wrong(call)
        if is_silent or (None in fitting and self.kind in ("lock", "mutex")):
            answer = None
        else:
            answer = fitting[int(self.rng.random() * len(fitting))]
        self.state = self.model.step(self.state, call, answer)[1]
        return answer

    def wrong(self, call: tuple[str, Any]) -> Any:
        """Return any answer that fits the function."""
        if self.kind == "set":
            return (True, False, None)[int(self.rng.random() * (2 if call[0] == "contains" else 3))]
        if self.kind in ("lock", "mutex"):
            return (None, None, False)[int(self.rng.random() * 3)]
        if call[0] in ("dequeue", "pop"):
            return (None, 1, 2, 3, self.domain)[int(self.rng.random() * 5)]
        return int(self.rng.random() * 4) if call[0] == "read" else None


def random_object_history(kind: str, seed: int, operations_max: int = OPERATIONS_MAX) -> list[AnyOperation]:
    """Return the history of an object for `seed`, in order of return."""
    clients, time, begun = _Clients(kind, seed, operations_max), 0.0, 0
    rng, names = clients.rng, list(range(clients.clients))
    under_way: dict[int, tuple[Any, int, bool, Any]] = {}
    history: list[AnyOperation] = []
    while begun < clients.size or under_way:
        time += clients.pace
        client = int(rng.random() * clients.clients)
        call, since, happened, answer = under_way.pop(client, (None, 0, False, None))
        if call is None:
            if begun < clients.size:
                begun += 1
                under_way[client] = (clients.invoke(names[client]), int(time), False, None)
        elif rng.random() < clients.crashes:
            names[client] += clients.clients
            history.append(Operation(client, call, since, UNKNOWN, PENDING))
        elif happened:
            history.append(Operation(client, call, since, answer, int(time)))
        else:
            under_way[client] = (call, since, True, clients.answer(call))
    return history


def explains(model: Model[Any, Any, Any], history: Sequence[AnyOperation]) -> bool:
    """Return whether some order of all completed operations and some pending ones is legal, by trying all of them."""

    def goes_on(state: Any, left: Sequence[AnyOperation]) -> bool:
        end = min((operation.return_ for operation in left), default=PENDING)
        if end == PENDING:
            return True
        for number, operation in enumerate(left):
            if operation.call <= end:
                is_legal, after = model.step(state, operation.input, operation.output)
                if is_legal and goes_on(after, [*left[:number], *left[number + 1 :]]):
                    return True
        return False

    return goes_on(model.init(), history)


def _by_port(kind: str, history: Sequence[AnyOperation]) -> tuple[str, str]:
    return check_single(model_of(kind), history, UNLIMITED).result.value, ""


def _by_monitor(kind: str, history: Sequence[AnyOperation]) -> tuple[str, str]:
    if kind == "cell":
        return "", ""
    found = decide(kind, history, UNLIMITED)
    if found.is_illegal and explains(model_of(kind), [history[position] for position in found.core]):
        return found.legality.value, "its core is legal"
    return found.legality.value, "" if found.is_confirmed else "it is not confirmed"


def _by_monitor_in_python(kind: str, history: Sequence[AnyOperation]) -> tuple[str, str]:
    if kind not in ("queue", "stack"):
        return "", ""
    with patch.object(native_containers, "kernel", lambda: (None, "this judge does without it")):
        return _by_monitor(kind, history)


def _by_search(form: WalkedBy, has_hooks: bool, kind: str, history: Sequence[AnyOperation]) -> tuple[str, str]:
    """Judge by one form of the search; look again at its order, or at its refutation."""
    walked = search_generic(model_of(kind), history, UNLIMITED, hooks_of(kind) if has_hooks else NO_HOOKS, form)
    decision = walked.decision
    if decision.is_legal:
        holds = is_linearization(model_of(kind), history, decision.order)
        return decision.legality.value, "" if holds else "its order does not hold"
    if not walked.is_proved or walked.refutation().fault():
        return decision.legality.value, "its configurations do not refute the history"
    return decision.legality.value, ""


Judge = Callable[[str, Sequence[AnyOperation]], tuple[str, str]]
"""Returns a verdict, empty when it judges no such object, and a complaint about its grounds."""

JUDGES: dict[str, Judge] = {
    "monitor": _by_monitor,
    "monitor in python": _by_monitor_in_python,
    **{f"{form} search": partial(_by_search, form, False) for form in FORMS},
    **{f"{form} search with hooks": partial(_by_search, form, True) for form in FORMS},
    "port": _by_port,
}
RARE = ("native search with hooks", "python search", "python search with hooks", "port", "monitor in python")
"""The judges that take turns."""


def disagreements(kind: str, seeds: Sequence[int], counts: Counter[str], all_judges: bool = False) -> list[str]:
    """Return the disagreements of the engines with the walk over all orders; `counts` counts the verdicts."""
    complaints: list[str] = []
    for seed in seeds:
        history = random_object_history(kind, seed)
        expected = "Ok" if explains(model_of(kind), history) else "Illegal"
        counts[f"all orders: {expected}"] += 1
        for name, judge in JUDGES.items():
            if name in RARE and not all_judges and name != RARE[seed % len(RARE)]:
                continue
            verdict, complaint = judge(kind, history)
            counts[f"{name}: {verdict}"] += bool(verdict)
            if verdict not in ("", expected):
                complaint = f"{verdict}, and trying all orders says {expected}"
            if complaint:
                complaints.append(f"seed {seed}: {name}: {complaint}")
    return complaints


def _judge(kind: str, all_judges: bool, seeds: range) -> tuple[list[str], Counter[str]]:
    counts: Counter[str] = Counter()
    return disagreements(kind, seeds, counts, all_judges), counts


def main() -> int:
    """Judge the histories of all seeds."""
    parser = options(__doc__)
    parser.add_argument("--kind", choices=KINDS, default="queue")
    parser.add_argument("--all", action="store_true", help="every judge for every history")
    asked = parser.parse_args()
    return judge_seeds(partial(_judge, asked.kind, asked.all), asked)


if __name__ == "__main__":
    sys.exit(main())
