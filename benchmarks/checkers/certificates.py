"""The cost of a verdict with verified evidence, beside that of the kernel alone: illegal registers and strings.

    python benchmarks/checkers/certificates.py
    python benchmarks/checkers/certificates.py --operations 10000

Registers are those of `linearizability.py` with one read changed at nine tenths, five values, ten clients; of each kind
the first illegal histories of some seeds. Strings are ten keys of 50 clients, of which each has one get that
answers a text of long before, from a file. Figures are milliseconds of processor time, the least of three: `kernel`
from columns to a bare verdict, `frontier` makes the certificate, `verified` verifies it in the kernel and `plainly` in
plain Python, `whole` is the check from a history (or file) to the finding, with all of that and the sentence.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

from linearizability import register_history

from faultline.checkers.files import check_file
from faultline.checkers.linearizability import LinearizabilityChecker
from faultline.checkers.linearizability.certificates import Configurations
from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.columns import PENDING, Columns
from faultline.checkers.linearizability.engine.proofs import fault_of_refutation, frontier
from faultline.checkers.linearizability.operations import AVOID, OBSERVE, WRITE
from faultline.checkers.linearizability.value_rules import ValueRules
from faultline.checkers.linearizability.verify import fault_of_set
from faultline.checkers.porcupine.budget import Budget
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, fail, ok

__all__ = ["history_of", "main", "strings"]

REPETITIONS = 3
STEPS_MAX = 5_000_000
HISTORIES = 3
CLIENTS, KEYS, GETS = 50, 10, 0.5


def history_of(columns: Columns) -> History:
    """Return the one register in `columns` as a history."""
    events = [(columns.call[i], False, i) for i in range(len(columns))]
    events += [(at, True, i) for i, at in enumerate(columns.return_) if at != PENDING]
    history, rows, idle, client_of = History(), dict[int, int](), list[int](), dict[int, int]()
    for time, is_return, i in sorted(events):
        kind, values = columns.kind[i], columns.values
        if is_return:
            told = fail(CAS_MISMATCH) if kind == AVOID else ok(values[columns.demand[i]] if kind == OBSERVE else None)
            history.complete(rows[i], told, time)
            idle.append(client_of[i])
            continue
        client = client_of[i] = idle.pop() if idle else len(client_of)
        f = {OBSERVE: "read", WRITE: "write"}.get(kind, "cas")
        value = {"read": None, "write": values[columns.produce[i]]}.get(f, [values[columns.demand[i]], "new"])
        if f == "cas" and kind != AVOID:
            value = [values[columns.demand[i]], values[columns.produce[i]]]
        rows[i] = history.invoke(Operation(client, f, None, value), time, client, "n1")
    return history


def strings(path: Path, seed: int, operations: int) -> None:
    """Write a history of ten strings in Porcupine's format to `path`; one get of each, late, answers an old text."""
    rng = random.Random(seed)
    texts: dict[int, list[str]] = {key: [""] for key in range(KEYS)}
    under_way: dict[int, list[Any]] = {}
    lines: list[str] = []
    changed: set[int] = set()
    begun = 0
    while begun < operations or under_way:
        client = rng.randrange(CLIENTS)
        f, key, text, happened = under_way.get(client, ("", 0, "", False))
        if not f and begun < operations:
            begun += 1
            f = "get" if rng.random() < GETS else "put" if rng.random() < 0.1 else "append"
            under_way[client] = [f, rng.randrange(KEYS), f"x {client} {begun} y", False]
            lines.append(_event("invoke", client, *under_way[client][:3]))
        elif f and not happened:
            if f == "get":
                is_late = begun > 0.8 * operations and key not in changed
                text = texts[key][-25:][0] if is_late else texts[key][-1]
                changed.update({key} if is_late else ())
            else:
                texts[key].append(text if f == "put" else texts[key][-1] + text)
            under_way[client] = [f, key, text, True]
        elif f:
            lines.append(_event("ok", *(client, *under_way.pop(client)[:3])))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _event(kind: str, client: int, f: str, key: int, text: str) -> str:
    value = "nil" if kind == "invoke" and f == "get" else f'"{text}"'
    return f'{{:process {client}, :type :{kind}, :f :{f}, :key "{key}", :value {value}}}'


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least processor time of `work` in milliseconds, and what it returns."""
    best, found = float("inf"), None
    for _ in range(REPETITIONS):
        start = process_time()
        found = work()
        best = min(best, process_time() - start)
    return 1000 * best, found


def _illegal(kind: str, size: int) -> Iterator[Columns]:
    """Yield the first few illegal histories of the kind."""
    found = 0
    for seed in range(1, 60):
        columns = register_history(kind, 10, size, is_corrupted=True, seed=seed)
        if check_columns(columns, Budget(STEPS_MAX))[0].is_illegal:
            yield columns
            found += 1
        if found == HISTORIES:
            return


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operations", type=int, default=3_000, help="the largest register")
    arguments = parser.parse_args()
    print("| history | kernel | frontier | verified | plainly | whole | whole / kernel | configurations | verdict |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|---|")
    for size in [size for size in (1_000, 3_000, 10_000) if size <= arguments.operations]:
        for kind in ("five", "five-cas"):
            for columns in _illegal(kind, size):
                _register_row(f"{kind}, {size}", columns)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "strings.txt"
        for seed in range(HISTORIES):
            strings(path, seed, 2_000)
            whole, result = _timed(partial(check_file, path, "porcupine-kv"))
            told = f"{result.verdict}, {result.detail['illegal_keys']} of {KEYS} keys illegal"
            print(f"| ten strings, 50 clients, 2,000, from file | | | | | {whole:.0f} | | | {told} |")


def _plainly(columns: Columns, configurations: Configurations) -> str:
    return fault_of_set(ValueRules(columns), configurations)


def _register_row(name: str, columns: Columns) -> None:
    kernel, _ = _timed(partial(check_columns, columns, Budget(STEPS_MAX)))
    made_in, made = _timed(partial(frontier, columns))
    verified_in, _ = _timed(partial(fault_of_refutation, columns, made.configurations))
    plainly_in, _ = _timed(partial(_plainly, columns, made.configurations))
    whole, result = _timed(partial(LinearizabilityChecker().check, history_of(columns)))
    figures = f"{kernel:.1f} | {made_in:.1f} | {verified_in:.1f} | {plainly_in:.0f} | {whole:.1f}"
    members = len(made.configurations)
    print(f"| {name} | {figures} | {whole / kernel:.1f} | {members:,} | {result.verdict} |", flush=True)


if __name__ == "__main__":
    main()
