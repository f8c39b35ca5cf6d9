"""The features of the data grid, and those of its members."""

from __future__ import annotations

from faultline.systems_under_test.system import Feature

__all__ = ["FEATURES"]

_NONE = {"minimum_size": "none"}

FEATURES = (
    Feature("member-joined", "a coordinator admitted a member", essential=True),
    Feature("member-rejoined", "a member that was taken for failed came back"),
    Feature("members-failed", "a coordinator removed silent members"),
    Feature("coordinator-claimed", "the next in age took over from a silent coordinator"),
    Feature("removal-learned", "a member learned that it was removed"),
    Feature("update-repaired", "a member that had missed a membership was sent it"),
    Feature("slept-through", "a member noticed that it had slept, and did not accuse others"),
    Feature("groups-merged", "two groups became one"),
    Feature("table-made", "a coordinator handed out the partitions", essential=True),
    Feature("round-refused", "a coordinator learned of a later round, and began one above it"),
    Feature("minimum-size-not-reached", "a group that is too small made no table", unless=_NONE),
    Feature("backup-promoted", "a backup took over from an owner that failed"),
    Feature("partition-moved", "a partition went on at another member although its owner lives"),
    Feature("partition-away", "a partition waited for the only members that have its data", unless=_NONE),
    Feature("partition-begun-anew", "all copies of a partition were lost"),
    Feature("copy-sent-again", "a backup that lagged behind got the whole content again"),
    Feature("duplicate-answered", "a retried request was answered and not executed again"),
    Feature("lease-missing", "an owner held answers back, as it had no lease"),
    Feature("old-lease-awaited", "a new owner waited for the lease of a silent one to run out"),
    Feature("request-refused", "a client asked a node that does not serve the partition"),
    Feature("client-refused", "a client was refused, and asked for a newer table"),
    Feature("client-retried", "a client asked again, as it was not answered"),
    Feature("copies-dropped", "a group that dissolved dropped its data", needs=_NONE),
    Feature("dropped-writes-compared", "an owner said what became of a dissolved group's writes", needs=_NONE),
)
"""Every mark that nodes and clients can report."""
