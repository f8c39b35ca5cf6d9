"""Digests of runs and of planned operations, here and in another process with another hash seed.

    python -m faultline.testing.two_processes     reads an order from standard input, prints the digests as JSON

The other process imports the plug-in by its path, with this process's module search path.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from faultline.harness.errors import HarnessError
from faultline.harness.generator.simulate import planned_operations
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan, PlannedOperation
from faultline.harness.plugins import load
from faultline.harness.run import run_simulated
from faultline.harness.workload import Workload

__all__ = [
    "digests_elsewhere",
    "digests_of",
    "main",
    "operations_digest",
    "operations_digest_elsewhere",
    "operations_of",
]

_LIMIT_S = 120
_WORKERS = 5


class _Order(msgspec.Struct, frozen=True, kw_only=True):
    """The order for the other process: run `plans` on `system`, or plan `seeds` of `workload`."""

    system: str = ""
    plans: tuple[Plan, ...] = ()
    workload: str = ""
    seeds: tuple[int, ...] = ()


def digests_of(plan: Plan, parts: Parts) -> list[Any]:
    """Return the digests that identify an execution: that of its history, and the world's statistics."""
    record = run_simulated(plan, parts)
    return [record.history.digest(), record.statistics]


def digests_elsewhere(plans: Sequence[Plan], parts: Parts, hash_seed: str) -> list[Any]:
    """Return the digests of `plans`, run in a fresh process. Raise HarnessError when that fails."""
    return _elsewhere(_Order(system=parts.system_path, plans=tuple(plans)), parts.system_path, hash_seed)


def operations_of(workload: Workload, seed: int, operations: int = 120) -> tuple[PlannedOperation, ...]:
    """Return the operations of clients, before and after the heal, as in a plan."""
    before = workload.generator(workers=_WORKERS, operations=operations, seed=seed, interval_us=18_500)
    after = workload.final_generator(workers=_WORKERS, seed=seed, operations=operations)
    times = {"workers": _WORKERS, "seed": seed, "latency_us": 4_000}
    first = planned_operations(before, **times, start_us=0, end_us=4_000_000)
    return (*first, *planned_operations(after, **times, start_us=5_000_000, end_us=6_500_000))


def operations_digest_elsewhere(path: str, seeds: Sequence[int], hash_seed: str) -> list[Any]:
    """Return the digests of the operations of the workload at `path`, in a fresh process. Raise HarnessError on
    failure."""
    return _elsewhere(_Order(workload=path, seeds=tuple(seeds)), path, hash_seed)


def _elsewhere(order: _Order, path: str, hash_seed: str) -> list[Any]:
    search_path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    ended = subprocess.run(
        [sys.executable, "-m", "faultline.testing.two_processes"],
        input=msgspec.json.encode(order),
        env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": search_path},
        capture_output=True,
        timeout=_LIMIT_S,
        check=False,
    )
    if ended.returncode != 0:
        last = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise HarnessError(f"Another process could not use {path}: {last}.", "It must be importable without this one.")
    digests: list[Any] = msgspec.json.decode(ended.stdout)
    return digests


def main() -> None:
    """Carry out the order on standard input."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=_Order)
    digests: list[Any] = []
    if order.workload:
        workload = load("workload", order.workload, order.workload)()
        digests = [operations_digest(workload, seed) for seed in order.seeds]
    for plan in order.plans:
        digests.append(digests_of(plan, _parts_for(plan, order.system)))
    sys.stdout.buffer.write(msgspec.json.encode(digests))


def operations_digest(workload: Workload, seed: int) -> str:
    """Return the SHA-256 of the operations that `workload` plans for `seed`."""
    return hashlib.sha256(msgspec.json.encode(operations_of(workload, seed))).hexdigest()


def _parts_for(plan: Plan, path: str) -> Parts:
    """Return the parts for running a plan; it has its operations and faults, so their planners are not called."""
    from faultline.nemesis import combined, heal_everything
    from faultline.registry import load_nemeses, load_packages, load_workload

    package = combined(load_packages(plan.fault_set))
    return Parts(
        system=load("system", plan.system, path)(),
        system_path=path,
        workload=load_workload("register"),
        checkers=(),
        nemeses=load_nemeses(package.kinds),
        package=package,
        heal=heal_everything,
    )


if __name__ == "__main__":
    main()
