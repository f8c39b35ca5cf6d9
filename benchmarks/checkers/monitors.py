"""The speed of the monitors: sets, queues, stacks, locks and counters of 10^3 … 10^6 operations, true and changed.

    python benchmarks/checkers/monitors.py
    python benchmarks/checkers/monitors.py --operations 1000000 --json

Histories are those of a true object with ten clients that always have an operation open; one operation in two hundred
crashes. The changed ones have two answers exchanged in the middle, some twenty answers apart (a lock: one release left
out), which nearly always makes them illegal. Timed is `decide`: from a list of operations to a verdict that has been
verified, and once more the verification alone (`verified_s`), of the order or of the contradiction. The port of
Porcupine gets the same operations, up to `--port-max` of them, because its cost grows with their square at best.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from time import process_time
from typing import Any

from faultline.checkers.linearizability.certificates import Certificate, ObjectCalls
from faultline.checkers.linearizability.data_types import MODEL_FACTORIES, UNKNOWN, Call
from faultline.checkers.linearizability.monitors import decide
from faultline.checkers.linearizability.verifier import fault_of
from faultline.checkers.porcupine import PENDING, UNLIMITED, Operation, check_operations_timeout

__all__ = ["main", "true_history", "with_exchanged_answers"]

CLIENTS = 10
CRASHES = 0.005
PORT_TIMEOUT_S = 20.0

Effect = Callable[[Call], Any]
_WAITS = object()


def _container(first_out: Callable[[deque[Any]], Any], put: str) -> Effect:
    values: deque[Any] = deque()

    def effect(call: Call) -> Any:
        if call[0] == put:
            values.append(call[1])
            return None
        return first_out(values) if values else None

    return effect


def _set() -> Effect:
    values: set[Any] = set()

    def effect(call: Call) -> Any:
        f, value = call
        present = value in values
        if f == "contains":
            return present
        (values.add if f == "add" else values.discard)(value)
        return present is (f == "remove")

    return effect


def _lock() -> Effect:
    holder: list[Any] = []

    def effect(call: Call) -> Any:
        if holder != ([] if call[0] == "acquire" else [call[1]]):
            return _WAITS
        holder[:] = [call[1]] if call[0] == "acquire" else []
        return None

    return effect


def _counter() -> Effect:
    total = [0]

    def effect(call: Call) -> Any:
        total[0] += 1 if call[0] == "add" else 0
        return None if call[0] == "add" else total[0]

    return effect


_OBJECTS: dict[str, Callable[[], Effect]] = {
    "set": _set,
    "queue": lambda: _container(deque.popleft, "enqueue"),
    "stack": lambda: _container(deque.pop, "push"),
    "lock": _lock,
    "counter": _counter,
}


def _next_call(rng: random.Random, kind: str, number: int, client: int, before: Call | None) -> Call:
    if kind == "lock":
        return ("release" if before == ("acquire", client) else "acquire", client)
    if kind == "counter":
        return ("add", 1) if rng.random() < 0.5 else ("read", None)
    if kind == "set":
        recent = number // 8 - int(rng.random() * 3)
        return ("add", "contains", "contains", "remove")[number % 8 % 4 if number % 8 < 4 else 1], max(0, recent)
    put, take = ("enqueue", "dequeue") if kind == "queue" else ("push", "pop")
    return (put, number) if rng.random() < 0.5 else (take, None)


def true_history(kind: str, operations: int, seed: int) -> list[Operation[Call, Any]]:
    """Return the history of ten clients of a correct object."""
    rng, effect = random.Random(seed), _OBJECTS[kind]()
    history: list[Operation[Call, Any]] = []
    names, last = list(range(CLIENTS)), dict[int, Call]()
    open_: dict[int, tuple[Call, int, Any]] = {}
    time = number = 0
    while len(history) < operations:
        time += 1
        client = int(rng.random() * CLIENTS)
        if client not in open_:
            call = _next_call(rng, kind, number, names[client], last.get(client))
            open_[client], number = (call, time, _WAITS), number + 1
            continue
        call, begun, answer = open_[client]
        if answer is _WAITS:
            open_[client] = (call, begun, effect(call))
            continue
        crashes = kind not in ("lock", "queue", "stack") or call[0] in ("enqueue", "push")
        if crashes and rng.random() < CRASHES:
            names[client] += CLIENTS
            history.append(Operation(client, call, begun, UNKNOWN, PENDING))
        else:
            history.append(Operation(client, call, begun, answer, time))
            last[client] = call
        del open_[client]
    rest = [(client, call, begun) for client, (call, begun, answer) in open_.items() if answer is not _WAITS]
    return history + [Operation(client, call, begun, UNKNOWN, PENDING) for client, call, begun in rest]


def with_exchanged_answers(history: list[Operation[Call, Any]]) -> list[Operation[Call, Any]]:
    """Return the history with the answers, or for a lock the times, of two operations exchanged that are far apart."""
    changed = list(history)
    f = {"add": "read", "enqueue": "dequeue", "push": "pop"}.get(history[0].input[0], history[0].input[0])
    f = next((g for g in ("contains", "read", "dequeue", "pop", "acquire") if _has(history, g)), f)
    answered = [at for at, each in enumerate(history) if each.output is not None and each.output is not UNKNOWN]
    known = [at for at in answered if history[at].input[0] == f]
    if not known:
        at = next(at for at in range(len(history) // 2, len(history)) if history[at].input[0] == "release")
        del changed[at]
        return changed
    put = {each.input[1]: each.call for each in history if each.input[0] in ("enqueue", "push")}
    middle = len(known) // 2
    one, other = next(
        (one, other)
        for one in known[middle:]
        for other in known[middle + 20 : middle + 2_000]
        if history[one].output != history[other].output
        and history[one].return_ < history[other].call
        and put.get(history[other].output, 0) < history[one].call
    )
    changed[one] = replace(history[one], output=history[other].output)
    changed[other] = replace(history[other], output=history[one].output)
    return changed


def _has(history: list[Operation[Call, Any]], f: str) -> bool:
    return any(operation.input[0] == f for operation in history)


def _timed(kind: str, history: list[Operation[Call, Any]], port_max: int) -> dict[str, Any]:
    start = process_time()
    found = decide(kind, history, UNLIMITED)
    figures: dict[str, Any] = {
        "verdict": found.legality.value,
        "engine": found.engine,
        "confirmed": found.is_confirmed,
        "core": len(found.core),
        "s": round(process_time() - start, 4),
    }
    subject = ObjectCalls(MODEL_FACTORIES[kind].model(), history, kind)
    made = Certificate(subject, order=found.order) if found.is_legal else found.certificate
    start = process_time()
    figures["holds"] = made is not None and not fault_of(made)
    figures["verified_s"] = round(process_time() - start, 4)
    if len(history) <= port_max + CLIENTS:
        start = process_time()
        figures["port"] = check_operations_timeout(MODEL_FACTORIES[kind].model(), history, PORT_TIMEOUT_S).value
        figures["port_s"] = round(process_time() - start, 3)
    return figures


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="*", default=list(_OBJECTS), choices=list(_OBJECTS))
    parser.add_argument("--operations", nargs="*", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port-max", type=int, default=1_000, help="longest history that the port is given")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each line")
    arguments = parser.parse_args()
    for kind in arguments.kinds:
        for operations in arguments.operations:
            true = true_history(kind, operations, arguments.seed)
            for name, history in (("true", true), ("changed", with_exchanged_answers(true))):
                figures = _timed(kind, history, arguments.port_max)
                peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                line = {"kind": kind, "operations": operations, "history": name, **figures, "peak_mb": peak_mb}
                print(
                    json.dumps(line) if arguments.json else "  ".join(f"{k} {v}" for k, v in line.items()), flush=True
                )


if __name__ == "__main__":
    main()
