"""The parts of leases and watches in `consistent-core`, with planted bugs or without; see `mutants`."""

from __future__ import annotations

from collections.abc import Iterable

from faultline.systems_under_test.reference.consistent_core.lease_mutants import LEASE_CHANGES
from faultline.systems_under_test.reference.consistent_core.watch_mutants import WATCH_CHANGES
from faultline.systems_under_test.reference.leases_and_watches.extension import ServiceParts
from faultline.systems_under_test.reference.shared.planted_bugs import parts_with_bugs

__all__ = ["service_parts"]

_CHANGES = LEASE_CHANGES | WATCH_CHANGES


def service_parts(names: Iterable[str]) -> ServiceParts:
    """The parts of leases and watches with those of the planted bugs `names` that concern them."""
    return parts_with_bugs(names, ServiceParts(), _CHANGES)
