"""The planted bugs of `consistent-core` in leases and watches: what each is, and how it shows."""

from __future__ import annotations

from functools import partial

from faultline.systems_under_test.reference.shared.planted_bugs import planted

__all__ = ["SERVICE_MUTANTS"]


_lease_bug = partial(planted, pattern="lease", campaign="leases")
_watch_bug = partial(planted, pattern="state-watch", campaign="watches")

SERVICE_MUTANTS = (
    _lease_bug(
        "follower-expires-leases",
        "LS-M1",
        "every server ends leases by its own clock, without the log",
        "servers that have applied the same entries hold different leases",
        "LS-I5",
        "LS-I6",
    ),
    _lease_bug(
        "duplicate-lease-granted",
        "LS-M2",
        "whether a name is taken is looked up when the request comes, not when its entry is applied",
        "of two requests on their way at once both are granted",
        "LS-I6",
        "leased-lock",
    ),
    _lease_bug(
        "lease-removed-before-commit",
        "LS-M3",
        "a leader ends a lease that is over at once, and tells the log about it afterwards",
        "a leader that is cut off shows a lease as gone that the others hold",
        "LS-I5",
        "LS-I6",
        "LS-I2",
    ),
    _lease_bug(
        "leases-not-refreshed-by-new-leader",
        "LS-M4",
        "a new leader counts leases from their grants, of which alone it knows",
        "leases that were refreshed in time end right after an election",
        "LS-I2",
        "leased-lock",
        campaign="long-leases",
    ),
    _lease_bug(
        "new-leader-tracks-no-leases",
        "LS-M5",
        "a new leader counts the time of the leases that it grants, not of those it finds",
        "the lease of a dead owner never ends, and owners that are alive are told that theirs is gone",
        "LS-I3",
        "availability",
    ),
    _lease_bug(
        "tracker-never-stops",
        "LS-M6",
        "a leader that steps down goes on looking for leases that are over",
        "a server that does not lead proposes expiries",
        "LS-I7",
    ),
    _lease_bug(
        "wall-clock-lease-expiry",
        "LS-M7",
        "the leader counts the time of leases by its wall clock",
        "a step of the clock ends leases early, or makes them live on",
        "LS-I2",
        "LS-I3",
        campaign="lease-clocks",
    ),
    _lease_bug(
        "lease-unit-mix-up",
        "LS-M8",
        "a time to live in microseconds is taken for nanoseconds",
        "leases end at once",
        "LS-I2",
    ),
    _lease_bug(
        "refresh-without-quorum",
        "LS-M9",
        "a leader answers refreshes without asking whether it still leads",
        "an owner on the side of a deposed leader believes in a lease that the next one ends",
        "LS-I2",
        "leased-lock",
        campaign="short-leases",
    ),
    _lease_bug(
        "lease-counted-from-receipt",
        "LS-M9",
        "an owner counts from the moment at which the answer came, and trusts it to the end",
        "an owner whose request or answer was late believes in a lease that has ended",
        "leased-lock",
        campaign="short-leases",
        lease_margin_percent="0",
    ),
    _lease_bug(
        "attached-on-the-leader-only",
        "LS-M10",
        "only the leader notes which keys belong to a lease",
        "after a leader change the keys of a lease stay when it ends",
        "LS-I5",
        "watches",
        campaign="watches",
    ),
    _lease_bug(
        "orphan-attachment",
        "LS-M11",
        "a key that is to be attached to a lease that is over is stored all the same",
        "a key whose writer was refused is there, and never goes",
        "watches",
        campaign="watches",
        lease_ttl_ms="150",
        lease_check_ms="20",
    ),
    _lease_bug(
        "silent-expiry",
        "LS-M15",
        "keys that go with their lease make no event",
        "watchers take keys for present that lists do not show",
        "watches",
        campaign="watches",
    ),
    _lease_bug(
        "no-fencing",
        "LS-R27",
        "a guarded resource accepts every token",
        "a write of a former owner that was on its way is accepted after one of the next owner",
        "leased-lock",
    ),
    _watch_bug(
        "watch-starts-live",
        "WA-M2",
        "a watch that is set again gets what happens from then on, not what it missed",
        "events between two connections are missing",
        "watches",
    ),
    _watch_bug(
        "position-before-events",
        "WA-M3",
        "a client notes how far it got before its user's queue has taken the events",
        "events that found the queue full are missing",
        "watches",
        campaign="slow-watchers",
    ),
    _watch_bug(
        "history-by-equal-key",
        "WA-M4",
        "what was missed is looked up by the path itself, not by what is below it",
        "replay has nothing for a watch on a parent",
        "watches",
    ),
    _watch_bug(
        "replay-to-all",
        "WA-M5, WA-I4",
        "a replay goes to everybody who watches the path, and clients take whatever comes",
        "a watcher is told of old events again",
        "watches",
    ),
    _watch_bug(
        "history-on-the-leader-only",
        "WA-M7",
        "only the leader keeps events",
        "events are missing after a leader change",
        "watches",
    ),
    _watch_bug(
        "notify-at-append",
        "WA-M8",
        "watchers are told of a change when it is appended, not when it is applied",
        "watchers are told of a change that is never committed, or differently from others",
        "watches",
    ),
    _watch_bug(
        "replay-behind-live",
        "WA-M9",
        "what was missed is looked up, and sent later as complete up to then",
        "events in between are missing",
        "watches",
    ),
    _watch_bug(
        "plain-prefix",
        "WA-M11, CC-M9",
        "a path stands for every key that begins like it",
        "who watches or lists `servers` is shown `servers2/1`",
        "watches",
    ),
    _watch_bug(
        "resume-by-index",
        "WA-M13",
        "a watch is resumed behind the entry of its last event, whatever else that entry changed",
        "of several keys that went with a lease some are never told",
        "watches",
        campaign="slow-watchers",
    ),
    _watch_bug(
        "silent-eviction",
        "WA-M14",
        "what is not kept any more is passed over without a word",
        "events are missing, and no gap was announced",
        "watches",
        campaign="slow-watchers",
    ),
    _watch_bug(
        "watches-not-reset",
        "WA-M16",
        "a client sets its watches once, and not again at the next leader",
        "after a leader change a watcher is told of nothing, for ever",
        "watches",
    ),
)
"""All of them."""
