"""The names of anomalies: what was seen, in one word of the field for one thing, the same in all checkers.

A name says *what happened to the data*, not which promise that breaks, as the checker says the latter: a signature is
`checker/anomaly`. So different bugs stand apart in a campaign's tables, and one bug looks alike in different workloads.

**Lost or stale.** A read that began after a write was acknowledged, and shows only what was there before it, has one of
two causes, and what comes later tells them apart. When no later read shows the write, or another one that was
acknowledged after it began, the store had it no more: `lost-write`, for elements of a set `lost-element`. When one
does, the store had it all the time, and the read was answered from old state: `stale-read`, `stale-element`. The whole
history of the key decides, above all the reads after the heal. Two cases leave it open:

- the history ends with the reads that miss the write: they have the last word, it is lost;
- another write overwrites it before enough was seen: then only the weaker name is certain, `stale-read`. What is
  enough for registers stands in `linearizability/losses.py`: the old state at two nodes, a compare-and-set built on
  the old state, or a node that goes on without the write.

**Lost write or lost update.** A lost write was acknowledged and is gone. A lost update was never there: two clients
replaced the same version, and the second did not know of the first.

**Never there.** `garbage-read` shows a value that was never written, `aborted-read` one that only operations which
definitely failed would have written, `future-read` one whose write began only after the read had ended.

**Which name, when several fit.** A checker names the gravest that the history proves for the key, in the order of the
table, and puts the findings of its gravest anomalies first, so that they sign the run.

Checkers of transactions speak of Adya's phenomena and Elle's (`transactions.anomalies`), as their results are compared
with those; the checkers `rw-*` name the same cycles in words. To one of Adya's names is added `-item` when no predicate
takes part, and `-process` or `-realtime` when the order of one client, or of real time, is part of the cycle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

__all__ = ["ANOMALIES", "AnomalyName", "gravity", "listed"]

ANOMALIES: Mapping[str, Mapping[str, str]] = {
    "Reads and writes of values": {
        "garbage-read": "a value that was never written",
        "aborted-read": "a value that only operations which definitely failed would have written (Adya's G1a)",
        "future-read": "a value whose write began only after the read had ended",
        "lost-update": "two compare-and-sets, or transactions, replaced the same version of a value (P4)",
        "lost-write": "an acknowledged write that was missed, and that nothing shows from then on",
        "resurrected-write": "a value that came back beside, or after, a write that had replaced it",
        "resurrected-key": "a key that came back after an acknowledged deletion, with nothing written since",
        "refused-cas": "a compare-and-set that was refused although its expected value was there",
        "stale-read": "an old value, also by a compare-and-set, although a newer one was acknowledged or read",
        "causal-reverse": "a write without another one that was acknowledged, or had caused it, before it began",
        "staleness-bound-exceeded": "a value older than the bound that was promised for stale reads",
        "non-linearizable": "anything else that no order of the operations explains",
    },
    "Sessions and values that only grow": {
        "read-your-writes-violated": "a session read a version older than one it had written itself, or was handed",
        "monotonic-reads-violated": "a session read a version older than one it had read before",
        "monotonic-writes-violated": "a session's write was given an older version than its write before",
        "writes-follow-reads-violated": "a session's write was given a version no newer than one it had read",
        "divergent-version": "one version of a key holds two values",
        "not-monotonic": "a number, or a list of them, that must never go back, did",
    },
    "Replicas": {
        "not-converged": "reads long after the heal that differ",
        "duplicated-sibling": "one value twice among the concurrent ones: copies taken for conflicting writes",
        "disjoint-groups": "two groups without a common member served clients at one time",
        "rival-coordinators": "views after the heal that name different coordinators or versions",
        "missing-member": "a view after the heal that lacks a node, while all are up",
        "still-refused": "a node that refuses its clients after the heal",
    },
    "Sets, queues and logs": {
        "lost-element": "an acknowledged element that is missing for good",
        "stale-element": "an acknowledged element that a read misses, and a later one shows",
        "unexpected-element": "an element whose adds had not begun, or had all definitely failed",
        "duplicated-element": "an element that is there more often than it was added",
        "lost-delivery": "an acknowledged element that never came out of a queue that was found empty",
        "unexpected-delivery": "an element came out whose enqueue had not begun, or had definitely failed",
        "duplicated-delivery": "an element that came out more often than it was put in",
        "inconsistent-offset": "two values at one offset of a log",
        "duplicated-message": "one value at two offsets of a log",
        "poll-skip": "a consumer went over offsets that hold something",
        "nonmonotonic-poll": "a consumer was given an offset that is not behind the one before",
        "nonmonotonic-send": "a producer's later message stands before its earlier one",
    },
    "Scans of ranges": {
        "missing-key": "a key that was there throughout is missing in a scan, and is seen again or overwritten later",
        "duplicated-key": "a key twice in one scan",
        "out-of-order": "a key after a higher one",
        "outside-range": "a key that the scan did not ask for",
    },
    "Watches": {
        "missed-event": "an event that another watcher got, or an acknowledged change, was not told",
        "event-out-of-order": "an event not behind the one before it, or twice",
        "foreign-event": "an event of a key that is not watched",
        "unexpected-event": "an event with a value whose write had not begun, or had failed",
        "events-disagree": "two watchers were told different things of one event",
        "wrong-state": "the state that was told, with its events, is not what a list shows",
        "watch-stalled": "long after the heal a watcher is told of nothing more",
    },
    "Locks, tokens and numbers": {
        "two-holders": "two clients held, or believed to hold, one lock at the same time",
        "release-without-hold": "a release succeeded by a client that did not hold the lock",
        "stale-write-accepted": "a write under a smaller fencing token was accepted behind one under a greater",
        "fencing-token-went-back": "a later acquire was given a smaller token",
        "duplicated-fencing-token": "two acquires were given one token",
        "duplicated-id": "an identifier that was handed out twice",
    },
    "Accounts, counters and bookings": {
        "counter-out-of-bounds": "a counter below or above what the additions around the read allow",
        "wrong-total": "accounts that add up to another total",
        "negative-balance": "an account that is overdrawn",
        "missing-account": "a read that lacks an account, or its balance",
        "unexpected-account": "a read with an account that is not known",
        "balance-out-of-bounds": "a balance that no execution of each transfer once explains",
        "split-booking": "two things that belong together have different owners, or only one of them has any",
        "double-booking": "an answer names another owner than one before it",
    },
    "Transactions, in words": {
        "intermediate-read": "a value that its own transaction went on to replace (G1b)",
        "internal": "a transaction did not see its own writes",
        "circular-information-flow": "transactions learned from each other in a circle (G1c)",
        "non-monotonic-read": "a transaction saw another one, and then read what that had overwritten",
        "non-repeatable-read": "a transaction read one key from two transactions",
        "fractured-read": "a transaction saw one write of another, and not another one",
        "causality-violation": "a transaction read what something that it knew of had overwritten",
        "conflicting-write-order": "reads each of which is possible, and which together are not",
        "read-skew": "a transaction saw part of another's effects and missed another part (G-single)",
        "long-fork": "two reads saw two writes in opposite orders (G-nonadjacent)",
        "write-skew": "two transactions each read what the other overwrote, on different objects (G2-item)",
        "serialization-cycle": "another cycle with missed writes one after the other (G2-item)",
        "no-possible-order": "a contradiction that shows only when the order of further writes is chosen",
    },
    "The run": {
        "no-recovery": "nothing is answered any more after everything was healed",
        "late-recovery": "answers came again after the heal, but later than the bound",
        "log-pattern": "a line in a node's log that tells of a panic or of damage",
    },
}
"""The meaning of each name, by subject; within the values the gravest first."""

_IN_ORDER = {name: place for place, name in enumerate(name for group in ANOMALIES.values() for name in group)}


def gravity(anomaly: str) -> int:
    """Return the position of `anomaly` in the table, by which findings are sorted; names of plug-ins come last."""
    return _IN_ORDER.get(anomaly, len(_IN_ORDER))


class AnomalyName(NamedTuple):
    """A name, what it means, and what it is about."""

    name: str
    meaning: str
    about: str


def listed() -> Iterator[AnomalyName]:
    """Yield all names, those of transactions as well, each once and in the order of the table."""
    from faultline.checkers.transactions.anomalies import MEANINGS

    for about, group in ANOMALIES.items():
        for name, meaning in group.items():
            yield AnomalyName(name, meaning, about)
    for name, meaning in MEANINGS.items():
        if name not in _IN_ORDER:
            yield AnomalyName(name, meaning, "Transactions, after Adya and Elle")
