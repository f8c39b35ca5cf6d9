"""The silence of a partition of `coordinated-kv` after a node was killed, against the time to live of leases.

    python benchmarks/takeover.py          about a minute; twenty seeds for each line

Prints, for the partition's leader, the controller and the core's leader, the longest gap between two answers to clients
around the kill: median and worst, in virtual milliseconds. There is one partition, so that every client notices.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median

import msgspec

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.registry import resolve

SEEDS = 20
KILL = PlannedFault("kill", 2_500_000, 2_000_000, "leader")
AROUND_US = (2_300_000, 5_000_000)


def silence_ms(aim: str, lease_ttl_ms: int, seed: int) -> float:
    """Return the longest gap between two answers around the kill of the node that `aim` names."""
    options = {"aim": aim, "partitions": "1", "lease_ttl_ms": str(lease_ttl_ms), "client_timeout_ms": "3000"}
    request = RunRequest(system="coordinated-kv", nodes=6, seed=seed, faults=("kill",), options=options)
    parts = resolve(request)
    plan = msgspec.structs.replace(make_plan(request, parts), faults=(KILL,))
    history = run_simulated(plan, parts).history
    answered = zip(history.complete_us, history.outcome, strict=True)
    answers = sorted(time_us for time_us, outcome in answered if outcome == "ok")
    low_us, high_us = AROUND_US
    return max(later - earlier for earlier, later in pairwise(answers) if low_us < later < high_us) / 1_000


def main() -> None:
    """Measure and print."""
    print(f"{'killed':<12}{'lease_ttl_ms':>12}{'median':>8}{'worst':>8}")
    for aim in ("owner", "controller", "core"):
        for lease_ttl_ms in (300, 600, 1200):
            silences = [silence_ms(aim, lease_ttl_ms, seed) for seed in range(SEEDS)]
            print(f"{aim:<12}{lease_ttl_ms:>12}{median(silences):>8.0f}{max(silences):>8.0f}")


if __name__ == "__main__":
    main()
