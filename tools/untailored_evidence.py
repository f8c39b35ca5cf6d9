"""Measure how often the default campaign of a system, which is fitted to no bug, finds each planted bug.

    python tools/untailored_evidence.py --jobs 2                     what is not recorded yet, of all systems
    python tools/untailored_evidence.py --system gossip --again      one system, measured anew
    python tools/untailored_evidence.py --bug gap-accepted --runs 500

A run is one of `faultline campaign --system S --planted-bug B`, in the order of that campaign: a seed of each cell,
from seed 1 on, in the universe of that seed. Each bug has 100 runs, and 500 when less than a fifth of those found it.
A bug is left after `--seconds` of processor time; its record says after how many runs. Records are appended one by one
to docs/reference/untailored-campaigns.jsonl, so the tool can be stopped anywhere, and goes on where it stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import islice
from multiprocessing import get_context

from bug_evidence import Untailored, bugs, read_untailored, reference_systems, write_untailored
from record_evidence import RARE, leave_interrupts_alone
from universe_power import requests_of

from faultline.campaign.engine import default_engine
from faultline.harness.commands import run_command
from faultline.harness.errors import UsageError
from faultline.harness.verdict import Verdict
from faultline.power.worker import INVARIANTS

__all__ = ["main", "measured"]


def measured(system: str, bug: str, runs: int, rare_runs: int, seconds: float) -> Untailored:
    """Run the default campaign of `system` with `bug` planted, and count the runs that accuse it.

    The first `runs` are followed by more, up to `rare_runs`, when fewer than a fifth of them accused it. No run is
    begun after `seconds` of processor time.
    """
    engine, made, by_any, by_clients, refused, first, first_s = default_engine("simulated"), 0, 0, 0, 0, "", 0.0
    began_s = time.process_time()
    for request in islice(requests_of(system, bug, "drawn", first=1), rare_runs):
        spent_s = time.process_time() - began_s
        if spent_s >= seconds or (made >= runs and by_any >= RARE * made):
            break
        made += 1
        try:
            judgement = engine.judged(request)
        except UsageError:
            # A universe of this seed leaves the promise: the campaign records the run as refused.
            refused += 1
            continue
        if judgement.verdict is Verdict.VIOLATION:
            by_any += 1
            by_clients += any(finding.checker != INVARIANTS for finding in judgement.findings)
            if not first:
                first, first_s = run_command(request), time.process_time() - began_s
    return Untailored(
        system=system,
        bug=bug,
        runs=made,
        by_any=by_any,
        by_clients=by_clients,
        refused=refused,
        first=first,
        first_s=round(first_s, 1),
        processor_s=round(time.process_time() - began_s, 1),
    )


def main(arguments: Sequence[str]) -> int:
    """Measure every bug that is asked for and not recorded, and record it; return 130 after Ctrl-C."""
    options = _parsed(arguments)
    due = list(_due(options))
    if not due:
        print("Nothing is due: no planted bug has that name, or all are recorded; --again measures them anew.")
        return 0
    limits = (options.runs, options.rare_runs, options.seconds)
    executor = ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn"), initializer=leave_interrupts_alone)
    try:
        for task in as_completed([executor.submit(measured, system, bug, *limits) for system, bug in due]):
            one = task.result()
            # Read again, so that records of another process since then are kept.
            write_untailored({**read_untailored(), one.key: one}.values())
            print(f"{one.system}+{one.bug}: {one.by_any} of {one.runs}, by clients {one.by_clients}", flush=True)
    except KeyboardInterrupt:
        print("Stopped; what was measured is recorded, and the next call goes on.")
        return 130
    finally:
        executor.shutdown(cancel_futures=True)
    return 0


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--system", action="append", help="only this system; may be repeated")
    parser.add_argument("--bug", action="append", help="only this planted bug; may be repeated")
    parser.add_argument("--runs", type=int, default=100, help="runs of each bug")
    parser.add_argument(
        "--rare-runs", type=int, default=500, help="runs of a bug that fewer than a fifth of them found"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time for each bug")
    parser.add_argument("--again", action="store_true", help="measure also what is recorded")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser.parse_args(arguments)


def _due(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    known = read_untailored()
    for system in reference_systems():
        for planted_bug in bugs(system):
            key = system.name, planted_bug.name
            is_asked = (not options.system or key[0] in options.system) and (not options.bug or key[1] in options.bug)
            if is_asked and (options.again or key not in known):
                yield key


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
