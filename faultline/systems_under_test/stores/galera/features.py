"""The features of Galera, as its members' logs tell them."""

from __future__ import annotations

from faultline.harness.feature import Feature

__all__ = ["FEATURES"]

FEATURES = (
    Feature("view-changed", "the members that form the cluster changed", log=r"view\(view_id\(PRIM,"),
    Feature("primary-component-lost", "a member belonged to no majority", log=r"view\(view_id\(NON_PRIM,"),
    Feature(
        "resynchronised",
        "a member was in step with the cluster again",
        log=r"Synchronized with group, ready for connections",
    ),
    Feature("resynchronised-partly", "a member was sent the writes that it had missed", log=r"IST received: "),
    Feature("resynchronised-fully", "a member was sent the whole state", log=r"Installed new state from SST: "),
)
"""Lines of version 4."""
