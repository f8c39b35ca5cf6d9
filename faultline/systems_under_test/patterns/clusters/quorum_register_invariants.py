"""The invariants of `quorum-register`, checked on what its nodes report while a run goes on.

The reports of several nodes are compared in the order in which they were made; the simulated world has one order.
"""

from __future__ import annotations

import msgspec

from faultline.harness.invariant import Breach, Invariant, Report
from faultline.systems_under_test.patterns.clusters.quorum_register_messages import CopyStored, Stamp, StoreCompleted

__all__ = ["CompletedStoresAreOnAQuorum", "StampsNameOneValue", "quorum_register_invariants"]

Events = tuple[type[msgspec.Struct], ...]


class CompletedStoresAreOnAQuorum:
    """QRM-I2, RWL-I2: what a coordinator calls stored has been taken by a write quorum of distinct replicas."""

    id = "QRM-I2"
    statement = "A store is acknowledged only when a write quorum of distinct replicas has taken it or a newer one."
    events: Events = (CopyStored, StoreCompleted)
    needs_order = True

    def __init__(self) -> None:
        self._newest: dict[str, dict[str, Stamp]] = {}

    def observe(self, time_us: int, node: str, event: CopyStored | StoreCompleted, report: Report) -> None:
        """Remember the newest copy of each replica; count those as new as an acknowledged one."""
        copies = self._newest.setdefault(event.key, {})
        if isinstance(event, CopyStored):
            copies[node] = event.stamp
            return
        holders = sorted(replica for replica, stamp in copies.items() if stamp >= event.stamp)
        if len(holders) < event.needed:
            sentence = (
                f"{node} took a value of {event.key} as stored when only {', '.join(holders) or 'nobody'} had it, "
                f"and {event.needed} replicas are needed."
            )
            report(Breach(invariant=self.id, sentence=sentence, time_us=time_us, node=node))


class StampsNameOneValue:
    """Stamps are unique: two copies with one stamp are the same value."""

    id = "QRM-R7"
    statement = "Two copies with the same stamp hold the same value."
    events: Events = (CopyStored,)
    needs_order = False

    def __init__(self) -> None:
        self._checksums: dict[tuple[str, Stamp], int] = {}

    def observe(self, time_us: int, node: str, event: CopyStored, report: Report) -> None:
        """Remember which value each stamp stood for first."""
        checksum = self._checksums.setdefault((event.key, event.stamp), event.checksum)
        if checksum != event.checksum:
            sentence = f"{node} took a value of {event.key} whose stamp {event.stamp.counter} of {event.stamp.node} "
            sentence += "stood for another value before."
            report(Breach(invariant=self.id, sentence=sentence, time_us=time_us, node=node))


def quorum_register_invariants() -> list[Invariant]:
    """Fresh instances, for one run."""
    return [CompletedStoresAreOnAQuorum(), StampsNameOneValue()]
