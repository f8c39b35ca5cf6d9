"""The features of the store of key ranges."""

from __future__ import annotations

from faultline.systems_under_test.system import Feature

__all__ = ["FEATURES"]

_WHOLE = {"split_by": "nothing"}
_RESTING = {"spread": "never"}

FEATURES = (
    Feature("partition-split", "a partition was split", unless=_WHOLE),
    Feature("split-repeated", "a host was told of a split again, and split once", unless=_WHOLE),
    Feature("trigger-refused", "the coordinator refused a split that no longer fits", unless=_WHOLE),
    Feature("partition-moved", "a host took over a partition with its data", unless=_RESTING),
    Feature("install-repeated", "a host was sent a partition again, and took it once", unless=_RESTING),
    Feature("tasks-resumed", "a coordinator went on with what it had begun before it died"),
    Feature("stale-client-refused", "a client with an old table was refused"),
    Feature("early-client-refused", "a client was refused by a host that does not have the partition yet"),
    Feature("scan-continued", "a scan went on in another partition"),
    Feature("log-compacted", "a host replaced its log by a snapshot"),
)
"""The states and steps that runs of the system can reach."""
