"""The features of the gossiping cluster."""

from __future__ import annotations

from faultline.systems_under_test.system import Feature

__all__ = ["FEATURES"]

_JUDGED = {"detector": "none"}
_LIFEGUARD = {"detector": "lifeguard"}

FEATURES = (
    Feature("digests-equal", "two nodes found that they know the same", unless={"exchange": "full"}),
    Feature("reply-cut-short", "a node had more to tell than one message holds"),
    Feature("own-past-refused", "a node was told of its own past, and did not take it in"),
    Feature(
        "generation-replaced",
        "a node learned that another was started anew",
        essential=True,
        faults=("kill", "restarts"),
    ),
    Feature("delta-with-gap-refused", "a node refused news with a gap before them"),
    Feature("node-marked-down", "a node took another for down", unless=_JUDGED),
    Feature("node-marked-up", "a node took another for up again", unless=_JUDGED),
    Feature(
        "earlier-life-ignored",
        "a node was told of a heartbeat from before another's restart, and did not count it",
        needs={"detector": "heartbeats"},
    ),
    Feature("member-suspected", "a node suspected another that answered no probe", needs=_LIFEGUARD),
    Feature("suspicion-refuted", "a node refuted that it is suspected or dead", needs=_LIFEGUARD),
)
"""Every mark that the nodes can report."""
