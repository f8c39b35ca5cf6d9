"""Compare simulated runs before and after a change of the code: fifty runs of each system, by their digests.

    python tools/run_digests.py record before.jsonl
    python tools/run_digests.py compare before.jsonl

`record` draws the runs (system, workload, options, faults, seed; every third one with a planted bug), carries them out
and writes a line for each: the request, and digests of its result. `compare` carries out the requests of a record
with the code of today and prints each run that differs, with the fields that do. The exit code is 1 when a run differs
and 2 when a request can no longer be planned; the record holds the requests, so it may be made by another commit.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import TypeVar

import msgspec
from random_clean_runs import draw

from faultline.campaign.engine import default_engine
from faultline.harness.commands import run_command
from faultline.harness.errors import UsageError
from faultline.harness.planning import RunRequest
from faultline.registry import load_system, systems

__all__ = ["RunDigest", "difference", "digest_of", "drawn_run", "main"]

T = TypeVar("T")
R = TypeVar("R")

RUNS = 50
"""The number of runs of each system."""

_BUG_EVERY = 3
_DRAWS_MAX = 200


class RunDigest(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a request: SHA-256 of the plan, the history and the marks; counts of the world; the verdict."""

    request: RunRequest
    plan: str
    history: str
    marks: str
    statistics: dict[str, int]
    verdict: str
    signature: str


def main() -> int:
    """Record or compare, on every core."""
    arguments = _arguments()
    if arguments.action == "record":
        chosen = arguments.system or sorted(systems())
        tasks = [(name, number) for name in chosen for number in range(arguments.runs)]
        lines = [msgspec.json.encode(one) + b"\n" for one in _on_every_core(drawn_run, tasks)]
        arguments.file.write_bytes(b"".join(lines))
        print(f"{len(lines)} runs recorded in {arguments.file}")
        return 0
    return _compare(arguments.file, arguments.system)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--system", action="append", choices=sorted(systems()), help="this system only; repeatable")
    parser.add_argument("--runs", type=int, default=RUNS, help="how many of each system")
    return parser.parse_args()


def _compare(file: Path, chosen: list[str] | None) -> int:
    recorded = [msgspec.json.decode(line, type=RunDigest) for line in file.read_bytes().splitlines()]
    recorded = [one for one in recorded if not chosen or one.request.system in chosen]
    requests = [one.request for one in recorded]
    different = refused = 0
    for before, after in zip(recorded, _on_every_core(digest_of, requests), strict=True):
        if isinstance(after, str):
            refused += 1
            print(f"refused: {run_command(before.request)}\n    {after}", flush=True)
        elif fields := difference(before, after):
            different += 1
            print(f"differs in {', '.join(fields)}: {run_command(before.request)}", flush=True)
    print(f"{len(recorded)} runs: {different} differ, {refused} refused")
    return 1 if different else 2 if refused else 0


def difference(before: RunDigest, after: RunDigest) -> list[str]:
    """Return the names of the fields in which two digests differ."""
    return [name for name in RunDigest.__struct_fields__ if getattr(before, name) != getattr(after, name)]


def drawn_run(task: tuple[str, int]) -> RunDigest:
    """Return the digest of the run of that number of a system; draw again while a request is refused."""
    system, number = task
    bugs = [*load_system(system).planted_bugs]
    for attempt in range(_DRAWS_MAX):
        random = Random(f"digests/{system}/{number}/{attempt}")
        request = draw(random, system)
        if number % _BUG_EVERY == 0 and bugs:
            request = msgspec.structs.replace(request, planted_bugs=(random.choice(bugs),))
        digest = digest_of(request)
        if isinstance(digest, RunDigest):
            return digest
    raise AssertionError(f"{_DRAWS_MAX} draws for run {number} of {system} were all refused")


def digest_of(request: RunRequest) -> RunDigest | str:
    """Carry out `request` and return its digest; the refusal when it cannot be carried out."""
    engine = default_engine("simulated")
    try:
        parts = engine.resolve(request)
        plan = engine.plan(request, parts)
        engine.refuse(plan, parts)
        record = engine.simulate(plan, parts, False)
        judgement = engine.judge(record, parts, "run")
    except UsageError as error:
        return str(error)
    return RunDigest(
        request=request,
        plan=plan.digest(),
        history=record.history.digest(),
        marks=hashlib.sha256(msgspec.json.encode(record.marks, order="sorted")).hexdigest(),
        statistics=record.statistics,
        verdict=judgement.verdict.value,
        signature=judgement.signature,
    )


def _on_every_core(function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        yield from pool.imap(function, tasks, chunksize=5)
        pool.close()
        pool.join()


if __name__ == "__main__":
    sys.exit(main())
