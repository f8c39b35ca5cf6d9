"""The parts of leases and watches in `consistent-core`, with planted bugs or without; see `planted_bugs`."""

from __future__ import annotations

from collections.abc import Iterable

from faultline.systems_under_test.reference.consistent_core.services.lease_planted_bugs import LEASE_CHANGES
from faultline.systems_under_test.reference.consistent_core.services.node import ServiceParts
from faultline.systems_under_test.reference.consistent_core.services.watch_planted_bugs import WATCH_CHANGES
from faultline.systems_under_test.reference.shared.planted_bugs import parts_with_bugs

__all__ = ["service_parts"]

_CHANGES = LEASE_CHANGES | WATCH_CHANGES


def service_parts(names: Iterable[str]) -> ServiceParts:
    """The parts of leases and watches with those of the planted bugs `names` that concern them."""
    return parts_with_bugs(names, ServiceParts(), _CHANGES)
