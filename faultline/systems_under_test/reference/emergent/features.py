"""The features of the cluster led by its oldest member."""

from __future__ import annotations

from faultline.systems_under_test.system import Feature

__all__ = ["FEATURES"]

FEATURES = (
    Feature("member-joined", "a coordinator admitted a member", essential=True),
    Feature("member-rejoined", "a member that was taken for failed came back"),
    Feature("members-failed", "a coordinator removed silent members"),
    Feature(
        "coordinator-claimed", "the next in age took over from a silent coordinator", essential=True, faults=("kill",)
    ),
    Feature("removal-learned", "a member learned that it was removed"),
    Feature("update-repaired", "a member that had missed a membership was sent it"),
    Feature("slept-through", "a member noticed that it had slept, and did not accuse others"),
    Feature("groups-merged", "two groups became one"),
    Feature("not-enough-members", "clients were refused, as too few members are live"),
)
"""Every mark that the nodes can report."""
