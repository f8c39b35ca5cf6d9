"""The speed of the simulated world: complete runs and events a second on one core, and the memory it takes.

A complete run is the work of a campaign for one seed: plan it, simulate it, judge it. The three phases are timed apart,
in processor time, so that a busy machine gives much the same figures.
This is no test: figures depend on the machine, so none is compared with a threshold.

    python benchmarks/simulate_runs.py --seeds 0..199
    python benchmarks/simulate_runs.py --system transactional-kv --workload bank --faults leadership --json
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from time import process_time

import msgspec

from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.registry import resolve

__all__ = ["Measurement", "main", "measure"]


@dataclass
class Measurement:
    """The figures: `seconds` of processor time by phase, and totals over all `runs`."""

    request: str
    seeds: str
    runs: int = 0
    operations: int = 0
    events: int = 0
    messages: int = 0
    virtual_s: float = 0.0
    memory_mib_peak: float = 0.0
    seconds: dict[str, float] = field(default_factory=lambda: {"plan": 0.0, "simulate": 0.0, "judge": 0.0})
    verdicts: dict[str, int] = field(default_factory=dict)

    @property
    def seconds_total(self) -> float:
        """The processor time of all phases."""
        return sum(self.seconds.values())

    @property
    def runs_per_second(self) -> float:
        """Complete runs a second, checked."""
        return self.runs / self.seconds_total

    @property
    def events_per_second(self) -> float:
        """Events of the simulated world for each second spent simulating."""
        return self.events / self.seconds["simulate"]

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the processor time that the block takes to `phase`: other programs do not count."""
        start = process_time()
        yield
        self.seconds[phase] += process_time() - start


def measure(request: RunRequest, seeds: range) -> Measurement:
    """Plan, simulate and judge `request` once for each seed. One run beforehand warms up imports and caches."""
    _measure_into(Measurement("", ""), request, range(seeds.start, seeds.start + 1))
    measurement = Measurement(_describe(request), f"{seeds.start}..{seeds.stop - 1}")
    _measure_into(measurement, request, seeds)
    measurement.memory_mib_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return measurement


def _measure_into(measurement: Measurement, request: RunRequest, seeds: range) -> None:
    parts = resolve(request)
    for seed in seeds:
        with measurement.timed("plan"):
            plan = make_plan(msgspec.structs.replace(request, seed=seed), parts)
        with measurement.timed("simulate"):
            record = run_simulated(plan, parts)
        with measurement.timed("judge"):
            judgement = judge(record, parts, run_id=f"{plan.cell}.{seed}")
        measurement.runs += 1
        measurement.operations += len(record.history)
        measurement.events += record.statistics["events"]
        measurement.messages += record.statistics["messages_sent"]
        measurement.virtual_s += record.statistics["virtual_us"] / 1e6
        verdict = judgement.verdict.value
        measurement.verdicts[verdict] = measurement.verdicts.get(verdict, 0) + 1


def main(arguments: list[str] | None = None) -> int:
    """Measure and print a table, or JSON."""
    options = _parser().parse_args(arguments)
    first, _, last = options.seeds.partition("..")
    request = RunRequest(
        system=options.system,
        workload=options.workload,
        faults=tuple(name for name in options.faults.split(",") if name != "none"),
        planted_bugs=tuple(options.planted_bug.split(",")) if options.planted_bug else (),
        nodes=options.nodes,
        workers=options.workers,
        operations=options.operations,
    )
    measurement = measure(request, range(int(first), int(last or first) + 1))
    print(json.dumps(_as_json(measurement), indent=2) if options.json else _as_table(measurement))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Complete runs and events a second of the simulated world, one core.")
    parser.add_argument("--system", default="consistent-core")
    parser.add_argument("--workload", default="register", help="one that the system serves")
    parser.add_argument("--faults", default="leadership", help="fault sets separated by commas, or none")
    parser.add_argument("--planted-bug", default="", help="planted bugs separated by commas")
    parser.add_argument("--seeds", default="0..99", help="A..B, both included")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--workers", type=int, default=5)
    parser.add_argument("--operations", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    return parser


def _describe(request: RunRequest) -> str:
    planted_bugs = "".join(f"+{name}" for name in request.planted_bugs)
    size = f"{request.nodes} nodes, {request.workers} clients, {request.operations} operations"
    return f"{request.system}{planted_bugs}/{request.workload}/{'+'.join(request.faults) or 'calm'}, {size}"


def _as_json(measurement: Measurement) -> dict[str, object]:
    rates = {
        "runs_per_second": round(measurement.runs_per_second, 1),
        "events_per_second": round(measurement.events_per_second),
        "python": platform.python_version(),
    }
    return asdict(measurement) | rates


def _as_table(measurement: Measurement) -> str:
    runs = measurement.runs
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(measurement.verdicts.items()))
    phases = [
        f"  {phase:<10}{seconds / runs * 1000:8.2f} ms a run {seconds / measurement.seconds_total:8.0%}"
        for phase, seconds in measurement.seconds.items()
    ]
    lines = [
        f"{measurement.request}, seeds {measurement.seeds}, Python {platform.python_version()}, one core",
        *phases,
        f"  {'all':<10}{measurement.seconds_total / runs * 1000:8.2f} ms a run",
        f"{measurement.runs_per_second:,.0f} runs/s, {measurement.events_per_second:,.0f} events/s while simulating",
        f"a run has {measurement.events / runs:,.0f} events, {measurement.messages / runs:,.0f} messages and "
        + f"{measurement.operations / runs:,.0f} operations in {measurement.virtual_s / runs:.1f} s of virtual time",
        f"peak memory {measurement.memory_mib_peak:.0f} MiB; verdicts: {verdicts}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
