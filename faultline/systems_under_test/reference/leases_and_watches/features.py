"""The features of leases and of watches."""

from __future__ import annotations

from faultline.systems_under_test.system import Feature

__all__ = ["LEASE_FEATURES", "WATCH_FEATURES"]

LEASE_FEATURES = (
    Feature("lease-expired", "a lease ended, as its owner had not refreshed it"),
    Feature("lease-revoked", "an owner gave its lease back"),
    Feature("lease-refreshed", "an owner lengthened its lease"),
    Feature("refresh-refused", "an owner was told that its lease is over"),
    Feature("lease-lost", "an owner found by its own clock that its lease is over"),
    Feature("duplicate-lease-refused-early", "a lease was refused at once, as it is taken"),
    Feature("guarded-write-refused", "the token of a former owner was refused", needs={"fencing": "on"}),
)

WATCH_FEATURES = (
    Feature("watch-set", "a watcher was given the state from which it is told of changes"),
    Feature("watch-resumed", "a watcher went on at another server"),
    Feature("events-replayed", "a watcher was told what it had missed"),
    Feature("watch-batch-missed", "a watcher noticed that events were missing, and asked again"),
    Feature("watch-gap-announced", "a watcher was told that events are no longer kept"),
    Feature("slow-watcher-cancelled", "a watcher was cut off, as it took events too late"),
    Feature("silent-watcher-forgotten", "the watches of a client without a sign of life were dropped"),
)
