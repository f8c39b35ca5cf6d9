"""The features of leases and of watches."""

from __future__ import annotations

from faultline.systems_under_test.system import Feature

__all__ = ["LEASE_FEATURES", "WATCH_FEATURES"]

_SERVICES = {"services": "on"}

LEASE_FEATURES = (
    Feature("lease-expired", "a lease ended, as its owner had not refreshed it", needs=_SERVICES),
    Feature("lease-revoked", "an owner gave its lease back", needs=_SERVICES),
    Feature("lease-refreshed", "an owner lengthened its lease", needs=_SERVICES),
    Feature("refresh-refused", "an owner was told that its lease is over", needs=_SERVICES),
    Feature("lease-lost", "an owner found by its own clock that its lease is over", needs=_SERVICES),
    Feature("duplicate-lease-refused-early", "a lease was refused at once, as it is taken", needs=_SERVICES),
    Feature(
        "guarded-write-refused", "the token of a former owner was refused", needs={"services": "on", "fencing": "on"}
    ),
)

WATCH_FEATURES = (
    Feature("watch-set", "a watcher was given the state from which it is told of changes", needs=_SERVICES),
    Feature("watch-resumed", "a watcher went on at another server", needs=_SERVICES),
    Feature("events-replayed", "a watcher was told what it had missed", needs=_SERVICES),
    Feature("watch-batch-missed", "a watcher noticed that events were missing, and asked again", needs=_SERVICES),
    Feature("watch-gap-announced", "a watcher was told that events are no longer kept", needs=_SERVICES),
    Feature("slow-watcher-cancelled", "a watcher was cut off, as it took events too late", needs=_SERVICES),
    Feature("silent-watcher-forgotten", "the watches of a client without a sign of life were dropped", needs=_SERVICES),
)
