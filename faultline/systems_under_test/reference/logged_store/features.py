"""The features of the store of one server."""

from __future__ import annotations

from faultline.systems_under_test.system import Feature

__all__ = ["FEATURES"]

FEATURES = (
    Feature("entries-replayed", "a restart replayed entries that the file did not have", faults=("kill",)),
    Feature("versions-read-from-file", "a restart began with the versions in a file", faults=("kill",)),
    Feature("versions-stored", "the versions were stored in a file"),
    Feature("log-cleaned", "log files below the low-water mark were deleted"),
    Feature("torn-tail-dropped", "a restart found a half-written record", faults=("kill",)),
    Feature("repeated-request-answered", "a repetition was answered without executing it again"),
    Feature("writes-gathered", "several writes waited for the log together"),
    Feature("full-queue-refused", "a write was refused, as too many waited for the log"),
    Feature("version-compacted-refused", "a read at a version that is not kept any more was refused"),
    Feature("client-retried", "a client asked again, as it was not answered"),
)
"""Every mark that nodes and clients can report."""
