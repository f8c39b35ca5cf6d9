"""The features of the store of stamped versions."""

from __future__ import annotations

from faultline.systems_under_test.system import Feature

__all__ = ["FEATURES"]

FEATURES = (
    Feature("stamp-ahead-of-clock", "a node stamped a value later than its own clock"),
    Feature("stamp-too-far-ahead-refused", "a node refused a stamp too far ahead of its clock"),
    Feature("clock-went-back", "a clock that a node waited for went back"),
    Feature("read-waited", "a reader waited until its time was in the past"),
    Feature("read-restarted", "a reader read again at a later time", needs={"wait": "restart"}),
    Feature("client-retried", "a client asked again, as it was not answered"),
)
"""Every mark that nodes and clients can report."""
