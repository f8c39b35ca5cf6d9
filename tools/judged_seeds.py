"""Random histories of many seeds, judged in batches on several processes: what the fuzzing tools have in common."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable
from time import perf_counter

from faultline.campaign.matrix import parse_seeds

__all__ = ["Judge", "judge_seeds", "options"]

BATCH = 250

PROGRESS = 50_000
"""The seeds after which the progress is told, on standard error."""

Judge = Callable[[range], tuple[list[str], Counter[str]]]
"""A function of seeds that returns a line for each difference, and counts of what was judged."""


def options(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that all of the tools have; the first line of `description` is its help."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--seeds", type=parse_seeds, default="0..9999", help="first..last, both included")
    parser.add_argument("--processes", type=int, default=1)
    return parser


def judge_seeds(judge: Judge, asked: argparse.Namespace) -> int:
    """Judge all seeds; print the differences, then the counts. Return 1 after a difference, otherwise 0.

    `judge` is called in other processes, so it is a function of a module, or a `partial` of one.
    """
    seeds: range = asked.seeds
    start, counts, differences, done = perf_counter(), Counter[str](), 0, 0
    batches = [seeds[at : at + BATCH] for at in range(0, len(seeds), BATCH)]
    with multiprocessing.Pool(asked.processes) as pool:
        for found, counted in pool.imap_unordered(judge, batches):
            differences += len(found)
            counts += counted
            for difference in found:
                print(difference, flush=True)
            before, done = done, min(done + BATCH, len(seeds))
            if before // PROGRESS < done // PROGRESS:
                print(f"{done:,} of {len(seeds):,} seeds", file=sys.stderr, flush=True)
    print(f"{len(seeds)} seeds, {differences} differences, {perf_counter() - start:.0f} s")
    for what, count in sorted(counts.items()):
        print(f"  {what:40} {count}")
    return 1 if differences else 0
