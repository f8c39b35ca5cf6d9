"""Transactions a second against contention, for the three ways of `transactional-kv` to deal with deadlocks.

    python benchmarks/lock_policies.py
    python benchmarks/lock_policies.py --clients 5,20 --seeds 5
    python benchmarks/lock_policies.py --replication-factors 1,3 --clients 1,5,20

Simulated runs of the workload `bank` without faults: so many clients, each beginning its next transfer or scan as soon
as the last has ended, on the same few accounts. Seconds are simulated ones; links take 0.3 to 2.5 ms one way. With
several replication factors the last column is the ratio to the first of them, for the same operations.
"""

from __future__ import annotations

import argparse
import sys
from statistics import median

import msgspec

from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.registry import resolve

__all__ = ["main"]

POLICIES = ("error", "wound-wait", "wait-die")
_PLENTY = 400


def measured(policy: str, clients: int, seeds: int, replication_factor: str = "1") -> tuple[float, float, float]:
    """Return committed operations a second, the share given up or refused, and the median latency in milliseconds."""
    committed = given_up = 0
    latencies: list[int] = []
    seconds = 0.0
    for seed in range(seeds):
        request = RunRequest(
            system="transactional-kv",
            workload="bank",
            faults=(),
            seed=seed,
            workers=clients,
            operations=_PLENTY,
            options={"policy": policy, "replication_factor": replication_factor},
        )
        parts = resolve(request)
        plan = make_plan(request, parts)
        start_us = plan.operations[0].at_us
        at_once = tuple(msgspec.structs.replace(operation, at_us=start_us) for operation in plan.operations)
        history = run_simulated(msgspec.structs.replace(plan, operations=at_once), parts).history
        ended = [row for row in range(len(history)) if history.outcome[row] == "ok"]
        committed += len(ended)
        given_up += len(history) - len(ended)
        latencies += [history.complete_us[row] - history.invoke_us[row] for row in ended]
        seconds += (max(history.complete_us) - start_us) / 1_000_000
    return committed / seconds, given_up / max(1, committed + given_up), median(latencies) / 1_000


def main(arguments: list[str] | None = None) -> int:
    """Print a line per policy and number of clients."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", default="1,5,10,20")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--replication-factors", default="1")
    asked = parser.parse_args(arguments)
    factors = asked.replication_factors.split(",")
    print("policy      clients  copies  committed/s  given up  median ms  ratio")
    for policy in POLICIES:
        for clients in map(int, asked.clients.split(",")):
            first: float | None = None
            for factor in factors:
                rate, given_up, latency_ms = measured(policy, clients, asked.seeds, factor)
                first = first or rate
                told = f"{policy:<11} {clients:>7}  {factor:>6}  {rate:>11.0f}  {given_up:>8.1%}  {latency_ms:>9.1f}"
                print(f"{told}  {rate / first:>5.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
