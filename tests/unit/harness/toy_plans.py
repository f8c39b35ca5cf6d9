"""Small plans of a system that does not exist, for searches that run none of them."""

from __future__ import annotations

from faultline.harness.plan import Plan, PlannedFault, PlannedOperation

__all__ = ["toy_plan"]


def toy_plan(operations: int, faults: int = 0) -> Plan:
    """Return a plan of so many writes and kills, with seed 100."""
    return Plan(
        system="toy",
        workload="register",
        seed=100,
        nodes=("athens",),
        workers=1,
        operations=tuple(PlannedOperation(0, number, "write", "k0", number) for number in range(operations)),
        faults=tuple(PlannedFault("kill", number, 1) for number in range(faults)),
        heal_us=1_000,
        end_us=2_000,
    )
