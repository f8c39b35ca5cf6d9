"""Measure the processor time of probing a pass, as a share of the time of judging it, for each workload.

    python benchmarks/sensitivity.py
    python benchmarks/sensitivity.py register append --operations 2000 --markdown

A campaign probes one of SAMPLED_EVERY simulated runs, so its share is the quotient divided by that number. The last
figure is for the same history, probed as a real run is. One run of each workload comes first, to fill the caches.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import NamedTuple

import msgspec

from faultline.harness.judge import judge
from faultline.harness.parts import Parts
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import SAMPLED_EVERY, probe
from faultline.registry import resolve

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from workload_sensitivity import SYSTEMS

__all__ = ["main", "measured"]

SEEDS = range(0, 4 * SAMPLED_EVERY, SAMPLED_EVERY)


class Costs(NamedTuple):
    """The times of a run in milliseconds."""

    judging: float
    simulated: float
    real: float


def measured(workload: str, operations: int) -> Costs:
    """Return the mean over the seeds, after a run that warms up."""
    runs = [_run(workload, operations, seed) for seed in SEEDS]
    for each in runs[:1]:
        _costs(*each)
    costs = [_costs(*each) for each in runs]
    return Costs(*(sum(column) / len(costs) for column in zip(*costs, strict=True)))


def _run(workload: str, operations: int, seed: int) -> tuple[RunRecord, Parts]:
    system, options = SYSTEMS[workload]
    request = RunRequest(
        system=system,
        workload=workload,
        faults=("durability",),
        seed=seed,
        options=dict(options),
        operations=operations,
    )
    parts = resolve(request)
    return run_simulated(make_plan(request, parts), parts), parts


def _costs(record: RunRecord, parts: Parts) -> Costs:
    real = msgspec.structs.replace(record, world="hosts")
    return Costs(
        _ms(lambda: judge(record, parts, run_id="")),
        _ms(lambda: probe(record, parts.checkers, parts.anomalies)),
        _ms(lambda: probe(real, parts.checkers, parts.anomalies)),
    )


def _ms(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return 1_000 * (process_time() - start)


def main() -> None:
    """Print a line for each workload."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="*", help="which; all that a simulated system serves by default")
    parser.add_argument("--operations", type=int, default=200)
    parser.add_argument("--markdown", action="store_true", help="print the rows of a table")
    arguments = parser.parse_args()
    for workload in arguments.workloads or [name for name, (system, _) in SYSTEMS.items() if system]:
        costs = measured(workload, arguments.operations)
        share, real = costs.simulated / costs.judging / SAMPLED_EVERY, costs.real / costs.judging
        if arguments.markdown:
            print(f"| `{workload}` | {costs.judging:.1f} | {costs.simulated:.1f} | {share:.0%} | {costs.real:.1f} |")
        else:
            print(f"{workload:18} judging {costs.judging:6.1f} ms  probe {costs.simulated:6.1f} ms, {share:4.0%} of a")
            print(
                f"{'':18} campaign's judging; as a real run {costs.real:6.1f} ms, {real:.1f} times its judging",
                flush=True,
            )


if __name__ == "__main__":
    main()
