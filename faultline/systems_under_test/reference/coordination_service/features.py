"""The features of `coordination-service`."""

from __future__ import annotations

from faultline.systems_under_test.reference.leases_and_watches.features import LEASE_FEATURES, WATCH_FEATURES
from faultline.systems_under_test.reference.raft.features import KERNEL_FEATURES
from faultline.systems_under_test.system import Feature

__all__ = ["FEATURES"]

FEATURES: tuple[Feature, ...] = (*KERNEL_FEATURES, *LEASE_FEATURES, *WATCH_FEATURES)
"""The states and steps that runs can reach."""
