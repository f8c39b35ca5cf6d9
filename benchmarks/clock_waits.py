"""The cost of waiting for clocks: median latencies of `timestamped-kv` against the bound, for each way of waiting.

    python benchmarks/clock_waits.py
    python benchmarks/clock_waits.py --bounds-ms 1,10 --seeds 5

Simulated runs of the workload `read-write` with correct clocks, over all keys and seeds. The bound is the
largest offset (wait=write, restart) or the error that a clock admits (wait=commit). Links take 0.3 to 2.5 ms one way.
"""

from __future__ import annotations

import argparse
import sys
from statistics import median

from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.registry import resolve

__all__ = ["main"]

WAITS = ("none", "write", "restart", "commit")


def latencies_ms(wait: str, bound_ms: int, seeds: int) -> dict[str, float]:
    """Return the median latency of successful operations by function, in milliseconds."""
    found: dict[str, list[int]] = {"read": [], "write": []}
    for seed in range(seeds):
        request = RunRequest(
            system="timestamped-kv",
            workload="read-write",
            faults=(),
            seed=seed,
            options={"wait": wait, "max_offset_ms": str(bound_ms), "error_bound_ms": str(bound_ms)},
        )
        parts = resolve(request)
        history = run_simulated(make_plan(request, parts), parts).history
        for row in range(len(history)):
            if history.outcome[row] == "ok":
                found[history.f[row]].append(history.complete_us[row] - history.invoke_us[row])
    return {f: median(times) / 1_000 for f, times in found.items()}


def main(arguments: list[str] | None = None) -> int:
    """Print a line per way of waiting and bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bounds-ms", default="1,10,50,100,200")
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args(arguments)
    print("wait     bound ms  read ms  write ms")
    for wait in WAITS:
        for bound_ms in map(int, asked.bounds_ms.split(",")) if wait != "none" else (0,):
            found = latencies_ms(wait, max(1, bound_ms), asked.seeds)
            print(f"{wait:<8} {bound_ms:>8}  {found['read']:>7.1f}  {found['write']:>8.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
