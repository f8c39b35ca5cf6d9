"""The features of the store of siblings."""

from __future__ import annotations

from faultline.systems_under_test.system import Feature

__all__ = ["FEATURES"]

_LAST_WRITE_WINS = {"versions": "last-write-wins"}

FEATURES = (
    Feature("siblings-kept", "two concurrent writes were both kept", unless=_LAST_WRITE_WINS),
    Feature("siblings-resolved", "a write replaced several siblings", unless=_LAST_WRITE_WINS),
    Feature("obsolete-write-refused", "a write was refused, as its context is older than what is stored"),
    Feature("read-repaired", "a reader's node sent a replica what it lacked", unless={"read_repair": "off"}),
    Feature("not-enough-copies", "a write reached too few replicas"),
    Feature("next-replica-asked", "a client turned to another replica"),
)
"""Every mark that nodes and clients can report."""
