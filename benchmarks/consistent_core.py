"""What consistent-core costs as real processes: batches and pipelines off and on, more servers, and each read mode.

Every server is a process, every message crosses TCP and the harness's proxies, every entry is flushed before it is
acknowledged, and every client has its next operation ready as soon as the last one completed. Three tables are printed:

- *batching and pipelining*, 3 servers, writes only. Batching off: one entry in a request. Pipelining off: one request
  in flight to a follower. The last row lets the leader collect commands for 2 ms, so that they share a flush.
- *servers*, writes only, both on, next to the relative write throughput that the book's chapter on quorums gives.
  Both are relative to one server, which replicates to nobody and waits for its own disk only.
- *read modes*, 3 servers, reads only.

Nothing here is a test: figures depend on the machine and on what else it does; more servers than cores share them.

    python benchmarks/consistent_core.py --seconds 3 --workers 16
    python benchmarks/consistent_core.py --table servers --json
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from faultline.harness.plan import Plan, PlannedOperation
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run_record import RunRecord
from faultline.harness.world.local.world import run_local
from faultline.registry import resolve
from faultline.systems_under_test.reference.raft.settings import READ_MODES

__all__ = [
    "BOOK_WRITE_THROUGHPUT",
    "Measurement",
    "batching_and_pipelining",
    "main",
    "measure",
    "read_modes",
    "servers",
]

BOOK_WRITE_THROUGHPUT = {1: 100, 2: 85, 3: 82, 4: 57, 5: 48, 6: 41, 7: 36}
"""Relative write throughput by servers: the representative table of the book's ch. 10."""

OPERATIONS_PER_SECOND_MAX = 20_000
KEYS = 10
PATIENT = {"request_timeout_ms": "2000", "client_timeout_ms": "5000"}
"""Clients of a busy machine should wait, not ask again."""

BATCHES_OFF, BATCHES_ON = {"batch_entries_max": "1"}, {"batch_entries_max": "64"}
PIPELINE_OFF, PIPELINE_ON = {"in_flight_max": "1"}, {"in_flight_max": "5"}


@dataclass(frozen=True)
class Measurement:
    """One row: what was measured, operations that completed `ok` a second, and their latency."""

    case: str
    operations_per_second: float
    latency_ms_p50: float
    latency_ms_p99: float
    indeterminate: int


@dataclass(frozen=True)
class Load:
    """How long, with how many clients that are always busy, and how often; the best of all rounds is kept."""

    seconds: float
    workers: int
    rounds: int = 1


def closed_loop(plan: Plan, load: Load, f: str) -> Plan:
    """`plan` without faults, with more operations `f` ready at time 0 than there is time for."""
    count = int(load.seconds * OPERATIONS_PER_SECOND_MAX) // load.workers
    operations = [PlannedOperation(worker, 0, "write", f"k{worker % KEYS}", 0) for worker in range(load.workers)]
    operations += [
        PlannedOperation(worker, 0, f, f"k{(number + worker) % KEYS}", number if f == "write" else None)
        for number in range(count)
        for worker in range(load.workers)
    ]
    end_us = int(load.seconds * 1_000_000)
    return msgspec.structs.replace(plan, operations=tuple(operations), faults=(), heal_us=end_us, end_us=end_us + 1)


def measure(case: str, load: Load, *, nodes: int = 3, f: str = "write", options: Mapping[str, str]) -> Measurement:
    """Run `nodes` processes with `options` under `load`; of several rounds the one that was disturbed least."""
    rounds = [_measure_once(case, load, nodes, f, options) for _ in range(load.rounds)]
    return max(rounds, key=lambda found: found.operations_per_second)


def _measure_once(case: str, load: Load, nodes: int, f: str, options: Mapping[str, str]) -> Measurement:
    request = RunRequest(
        system="consistent-core",
        faults=(),
        world="local",
        nodes=nodes,
        duration_s=load.seconds,
        workers=load.workers,
        options={**PATIENT, **options},
    )
    parts = resolve(request)
    plan = closed_loop(make_plan(request, parts), load, f)
    with tempfile.TemporaryDirectory() as folder:
        return _figures(case, run_local(plan, parts, folder=Path(folder)), load, f)


def _figures(case: str, record: RunRecord, load: Load, f: str) -> Measurement:
    rows = [row for row in record.history.rows() if row.f == f]
    latencies_us = sorted(row.complete_us - row.invoke_us for row in rows if row.outcome == "ok")
    if not latencies_us:
        raise SystemExit(f"{case}: not one {f} completed in {load.seconds} s; try more --seconds.")
    elapsed_us = max(row.complete_us for row in rows if row.outcome == "ok") - min(row.invoke_us for row in rows)
    return Measurement(
        case=case,
        operations_per_second=round(len(latencies_us) * 1_000_000 / elapsed_us, 1),
        latency_ms_p50=round(latencies_us[len(latencies_us) // 2] / 1000, 2),
        latency_ms_p99=round(latencies_us[len(latencies_us) * 99 // 100] / 1000, 2),
        indeterminate=sum(row.outcome == "info" for row in rows),
    )


def batching_and_pipelining(load: Load) -> Iterator[Measurement]:
    """Each off and on, and lingering on top."""
    yield measure("neither", load, options=BATCHES_OFF | PIPELINE_OFF)
    yield measure("pipelining", load, options=BATCHES_OFF | PIPELINE_ON)
    yield measure("batching", load, options=BATCHES_ON | PIPELINE_OFF)
    yield measure("both", load, options=BATCHES_ON | PIPELINE_ON)
    yield measure("both, linger 2 ms", load, options=BATCHES_ON | PIPELINE_ON | {"batch_linger_ms": "2"})


def servers(load: Load) -> Iterator[Measurement]:
    """From one to seven servers."""
    for nodes in (1, 2, 3, 5, 7):
        yield measure(f"{nodes} server{'s' * (nodes > 1)}", load, nodes=nodes, options=BATCHES_ON | PIPELINE_ON)


def read_modes(load: Load) -> Iterator[Measurement]:
    """Reads in every mode."""
    for mode in READ_MODES:
        yield measure(mode, load, f="read", options={"read_mode": mode})


TABLES: dict[str, Callable[[Load], Iterator[Measurement]]] = {
    "batching": batching_and_pipelining,
    "servers": servers,
    "reads": read_modes,
}


def _print_table(name: str, rows: Iterator[Measurement]) -> list[Measurement]:
    print(f"{name:20} {'ops/s':>9} {'p50 ms':>9} {'p99 ms':>9} {'unknown':>9}")
    found = []
    for row in rows:
        found.append(row)
        latencies = f"{row.latency_ms_p50:9.2f} {row.latency_ms_p99:9.2f}"
        print(f"{row.case:20} {row.operations_per_second:9.1f} {latencies} {row.indeterminate:9}", flush=True)
    return found


def _print_beside_the_book(rows: list[Measurement]) -> None:
    """The same figures relative to one server, the book's and the measured ones."""
    one = rows[0].operations_per_second
    for row in rows:
        book = BOOK_WRITE_THROUGHPUT[int(row.case.split()[0])]
        print(f"{row.case:20} measured {100 * row.operations_per_second / one:4.0f} %, book {book:4.0f} %")


def main(arguments: list[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--table", choices=[*TABLES, "all"], default="all")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each row is measured")
    parser.add_argument("--workers", type=int, default=16, help="clients that are always busy")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many is printed")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    load = Load(options.seconds, options.workers, options.rounds)
    names = list(TABLES) if options.table == "all" else [options.table]
    if options.json:
        print(json.dumps({name: [asdict(row) for row in TABLES[name](load)] for name in names}))
        return
    for name in names:
        rows = _print_table(name, TABLES[name](load))
        if name == "servers":
            _print_beside_the_book(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
