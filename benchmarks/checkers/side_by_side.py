"""All engines on the same histories, one process for each pair, beside the measured needs of other tools.

    python benchmarks/checkers/side_by_side.py
    python benchmarks/checkers/side_by_side.py --operations 100000 --logs ../shared/histories/porcupine
    python benchmarks/checkers/side_by_side.py --only bank --markdown

Engines: `native`, the monitor and the slot search in C; `search`, the same without the monitor; `python`, the same
algorithms without the kernel; `generic`, interned states and memoised transitions for any model (`can_reach`: with that
hook); `monitor`, those of sets, queues, stacks, locks and counters; `port`, that of Porcupine; `inference`, the
transactional checker; `isolation`, the search for a serial order of registers. Each process builds the history,
then checks it once to warm up if that is quick, and reports the least processor time of up to three checks and the most
memory it had at any time. One that needs more than `--limit-s` seconds of processor time or `--limit-mb` of memory is
ended. The figures of other tools stand in `anchors.toml`, with their origin.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import generic_models
import linearizability
import monitors
import transactions

from faultline.checkers.importers import format_named
from faultline.checkers.isolation.strong import SerializabilityChecker
from faultline.checkers.linearizability.data_types import MODEL_FACTORIES
from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.engine.texts import text_columns
from faultline.checkers.linearizability.generic import check_part
from faultline.checkers.linearizability.kv import kv_operations, referee_kv
from faultline.checkers.linearizability.models import KV_MODEL, referee_operations, register_model
from faultline.checkers.linearizability.monitors.decision import decide, hooks_for
from faultline.checkers.linearizability.operations import INFINITY, RegisterOperation
from faultline.checkers.linearizability.referee import decide_by_port
from faultline.checkers.porcupine import UNLIMITED, check_single
from faultline.checkers.transactions.checker import check_transactions

__all__ = ["main"]

REPETITIONS = 3
SLOW_S = 2.0
DATA = Path(__file__).parents[2] / "tests" / "data" / "histories"
ANCHORS = Path(__file__).with_name("anchors.toml")

Check = Callable[[], str]
"""One check of a given history, which returns the verdict."""


class Figure(NamedTuple):
    """The time and memory of one engine for one history, or the reason why there is no figure."""

    history: str
    engine: str
    ms: float | None
    peak_mb: int | None
    verdict: str


def _of_columns(make: Callable[[], Columns]) -> dict[str, Callable[[], Check]]:
    """Return the engines for registers."""

    def port(by: Callable[..., Any]) -> Check:
        keys = _by_key(make())
        model = register_model(0)
        return lambda: _worst(by(model, operations, UNLIMITED).legality.value for operations in keys)

    def engine(**how: Any) -> Check:
        columns = make()
        return lambda: _worst(decision.legality.value for decision in check_columns(columns, UNLIMITED, **how))

    return {
        "native": partial(engine, engine="native"),
        "search": partial(engine, engine="native", method="search"),
        "python": partial(engine, engine="python"),
        "generic": partial(port, check_part),
        "port": partial(port, decide_by_port),
    }


def _by_key(columns: Columns) -> list[list[Any]]:
    by_key: list[list[RegisterOperation]] = [[] for _ in columns.keys]
    rows = zip(columns.kind, columns.demand, columns.produce, columns.call, columns.return_, columns.key)
    for row, (kind, demand, produce, call, return_, key) in enumerate(rows):
        operation = RegisterOperation(kind, demand, produce, call, INFINITY if return_ < 0 else return_, row)
        by_key[key].append(operation)
    return list(map(referee_operations, by_key))


def _of_kv(path: Path) -> dict[str, Callable[[], Check]]:
    def parts() -> list[tuple[str | None, Any]]:
        history = format_named("porcupine-kv").read(path).history
        return [(key, kv_operations(history, rows)) for key, rows in history.rows_by_key().items()]

    def engine(name: str) -> Check:
        columns = text_columns(parts())
        return lambda: _worst(decision.legality.value for decision in check_columns(columns, UNLIMITED, engine=name))

    def port() -> Check:
        operations = [referee_kv(part) for _, part in parts()]
        return lambda: _worst(check_single(KV_MODEL, each, UNLIMITED).result.value for each in operations)

    return {"native": partial(engine, "native"), "python": partial(engine, "python"), "port": port}


def _of_bank(clients: int, operations: int) -> dict[str, Callable[[], Check]]:
    def engine(hooks: str) -> Check:
        history = generic_models.bank_history(clients, operations, 1)
        return lambda: check_part(generic_models.BANK, history, UNLIMITED, generic_models.HOOKS[hooks]).legality.value

    def port() -> Check:
        history = generic_models.bank_history(clients, operations, 1)
        return lambda: check_single(generic_models.BANK, history, UNLIMITED).result.value

    return {"generic": partial(engine, "no hooks"), "can_reach": partial(engine, "can_reach"), "port": port}


def _of_data_type(kind: str, operations: int) -> dict[str, Callable[[], Check]]:
    def monitor() -> Check:
        history = monitors.true_history(kind, operations, 1)
        return lambda: decide(kind, history, UNLIMITED).legality.value

    def generic() -> Check:
        history = monitors.true_history(kind, operations, 1)
        return lambda: check_part(MODEL_FACTORIES[kind].model(), history, UNLIMITED, hooks_for(kind)).legality.value

    def port() -> Check:
        history = monitors.true_history(kind, operations, 1)
        return lambda: check_single(MODEL_FACTORIES[kind].model(), history, UNLIMITED).result.value

    return {"monitor": monitor, "generic": generic, "port": port}


def _of_transactions(workload: str, size: int) -> dict[str, Callable[[], Check]]:
    def inference() -> Check:
        history = transactions.synthetic_history(size, workload)
        return lambda: check_transactions(history, workload, "strict-serializable").verdict.value

    def isolation() -> Check:
        history = transactions.synthetic_history(size, workload)
        return lambda: SerializabilityChecker().check(history).verdict.value

    return {"inference": inference} | ({"isolation": isolation} if workload == "rw-register" else {})


def _histories(operations: int, logs: Path | None) -> Iterator[tuple[str, dict[str, Callable[[], Check]]]]:
    """Yield every history by name, with the engines that can check it."""
    jepsen, kv = (logs / "jepsen", logs / "kv") if logs else (DATA, DATA)
    yield "etcd logs in one batch", _of_columns(partial(linearizability.joined_logs, jepsen))
    for path in sorted(kv.glob("c[0-9][0-9]-*.txt")):
        yield f"kv {path.stem}", _of_kv(path)
    for name, make in linearizability.synthetic(operations):
        yield name, _of_columns(make)
    for clients, count in ((5, 200), (10, 1_000), (20, 400)):
        yield f"bank, {clients} clients, {count}", _of_bank(clients, count)
    for size in (size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= operations):
        for kind in ("set", "queue", "stack", "lock", "counter"):
            yield f"{kind}, 10 clients, {size}", _of_data_type(kind, size)
        for workload in ("list-append", "rw-register"):
            yield f"{workload}, {size} transactions", _of_transactions(workload, size)


def _worst(verdicts: Any) -> str:
    found = set(verdicts)
    return next((name for name in ("Illegal", "Unknown") if name in found), "Ok")


def _measure_here(make: Callable[[], Check], limit_s: float, limit_mb: int) -> dict[str, Any]:
    """Measure one pair in this process, which the operating system ends at the limits."""
    resource.setrlimit(resource.RLIMIT_AS, (limit_mb << 20, limit_mb << 20))
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit_s), math.ceil(limit_s) + 1))
    check, best, verdict = make(), float("inf"), ""
    for _ in range(1 + REPETITIONS):
        start = process_time()
        verdict = check()
        best = min(best, process_time() - start)
        if best > SLOW_S:
            break
    return {
        "ms": best * 1000,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "verdict": verdict,
    }


def _measure_apart(history: str, engine: str, arguments: argparse.Namespace) -> Figure:
    """Measure one pair in a process of its own."""
    command = [sys.executable, __file__, "--one", history, engine, "--operations", str(arguments.operations)]
    command += ["--limit-mb", str(arguments.limit_mb), "--limit-s", str(arguments.limit_s)]
    command += ["--logs", str(arguments.logs)] if arguments.logs else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return Figure(history, engine, None, None, f"> {arguments.limit_s:g} s")
    if done.returncode:
        what = "out of memory" if "emory" in done.stderr else done.stderr.strip().splitlines()[-1][:60]
        return Figure(history, engine, None, None, what)
    return Figure(history, engine, **json.loads(done.stdout))


def _told(figure: Figure) -> str:
    if figure.ms is None:
        return figure.verdict
    time = f"{figure.ms:.2f} ms" if figure.ms < 10 else f"{figure.ms:.0f} ms" if figure.ms < 1000 else ""
    return f"{time or f'{figure.ms / 1000:.2f} s'}, {figure.peak_mb} MB"


def _lines(history: str, figures: list[Figure], is_markdown: bool) -> Iterator[str]:
    """Yield the figures of one history, and those of other tools."""
    anchors = tomllib.loads(ANCHORS.read_text(encoding="utf-8")).get(history, {})
    verdict = next((figure.verdict for figure in figures if figure.ms is not None), "")
    told = [(figure.engine, _told(figure)) for figure in figures] + list(anchors.items())
    if is_markdown:
        yield f"| {history} | {verdict} | {' · '.join(f'{engine} {text}' for engine, text in told)} |"
        return
    yield f"{history}: {verdict}"
    yield from (f"    {engine:<14}{text}" for engine, text in told)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--operations", type=int, default=10_000, help="the largest synthetic history")
    parser.add_argument("--only", default="", help="only histories whose name holds this")
    parser.add_argument("--engine", action="append", help="only these engines")
    parser.add_argument("--logs", type=Path, help="folder with jepsen/etcd_*.log and kv/c*.txt [default: a few]")
    parser.add_argument(
        "--limit-s", type=float, default=20, help="processor time for a pair, with building its history"
    )
    parser.add_argument("--limit-mb", type=int, default=4_000, help="memory for a pair")
    parser.add_argument("--markdown", action="store_true", help="print rows of a table")
    parser.add_argument("--one", nargs=2, metavar=("HISTORY", "ENGINE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    histories = dict(_histories(arguments.operations, arguments.logs))
    if arguments.one:
        history, engine = arguments.one
        print(json.dumps(_measure_here(histories[history][engine], arguments.limit_s, arguments.limit_mb)))
        return
    for history, engines in histories.items():
        if arguments.only in history:
            chosen = [engine for engine in engines if not arguments.engine or engine in arguments.engine]
            figures = [_measure_apart(history, engine, arguments) for engine in chosen]
            print("\n".join(_lines(history, figures, arguments.markdown)), flush=True)


if __name__ == "__main__":
    main()
