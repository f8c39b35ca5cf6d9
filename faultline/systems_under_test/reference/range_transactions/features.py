"""The features of the store of ranges with transactions."""

from __future__ import annotations

from faultline.systems_under_test.system import Feature

__all__ = ["FEATURES"]

_COMMIT = {"wait": "commit"}
_RESTART = {"wait": "restart"}

FEATURES = (
    Feature("partition-split", "a range was split"),
    Feature("range-split-with-open-transaction", "a range was split under a transaction that was not prepared"),
    Feature("range-split-with-prepared-transaction", "a range was split under a prepared transaction"),
    Feature("range-moved", "a range moved to another node"),
    Feature("range-moved-with-open-transaction", "a range moved away under a transaction that was not prepared"),
    Feature("range-moved-with-prepared-transaction", "a prepared transaction moved with its range"),
    Feature("stale-range-refused", "a host refused a message for a range that it does not hold so"),
    Feature("protocol-message-refused", "a coordinator was refused, and looked for the range again"),
    Feature("table-refreshed", "a client fetched the table again"),
    Feature("tasks-resumed", "the coordinator of the table went on with what it had begun before it died"),
    Feature("trigger-refused", "the coordinator of the table refused a split that no longer fits"),
    Feature("commit-waited", "a coordinator waited for the time of a commit to pass", needs=_COMMIT),
    Feature("read-restarted", "a reader read anew, at a later time", needs=_RESTART),
    Feature("read-restarted-over-several-keys", "a reader read several keys anew, at a later time", needs=_RESTART),
    Feature("snapshot-read-waited", "a read at one time waited for transactions that may commit before it"),
    Feature("lock-waited-for", "a transaction waited for a lock", unless={"policy": "error"}),
    Feature("lock-wait-ended", "a transaction waited too long for a lock", unless={"policy": "error"}),
    Feature("transaction-wounded", "an older transaction took a lock away", needs={"policy": "wound-wait"}),
    Feature("transaction-tried-again", "a client began its transaction anew"),
    Feature("transaction-timed-out", "a coordinator rolled back a transaction without news for too long"),
    Feature("open-transaction-lost", "a participant had forgotten an open transaction, and refused it"),
    Feature("voted-no", "a participant would not commit"),
    Feature("in-doubt-after-restart", "a participant began prepared, without the decision"),
    Feature("decision-asked-for", "a participant asked a coordinator what was decided"),
    Feature("presumed-abort", "a coordinator came back without a decision, and rolled back"),
    Feature("time-too-far-ahead", "a node refused a time too far ahead of its clock"),
    Feature("log-compacted", "a node replaced its log by a snapshot"),
    Feature("client-retried", "a client asked again, as it was not answered"),
)
"""The states and steps that runs of the system can reach."""
