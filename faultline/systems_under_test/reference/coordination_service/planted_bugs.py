"""The planted bugs of `coordination-service`: those of leases, and those of watches."""

from __future__ import annotations

from faultline.systems_under_test.reference.coordination_service import lease_planted_bugs, watch_planted_bugs

__all__ = ["BUGS"]

BUGS = lease_planted_bugs.BUGS.with_those_of(watch_planted_bugs.BUGS)
"""All planted bugs of the system."""
