"""The invariants of `quorum-register`, checked on what its nodes report while a run goes on.

The reports of several nodes are compared in the order in which they were made; the simulated world has one order.
"""

from __future__ import annotations

from collections.abc import Sequence

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.reference.quorum_register.messages import (
    AnswersCompleted,
    CopyStored,
    Stamp,
    StoreCompleted,
)
from faultline.systems_under_test.reference.shared.leaderless_node import waiting_invariants

__all__ = [
    "CompletedStoresAreOnAQuorum",
    "NothingIsDecidedByTooFew",
    "QuorumsShareAMember",
    "StampsNameOneValue",
    "quorum_register_invariants",
]


class CompletedStoresAreOnAQuorum(ReportingInvariant):
    """QRM-I2, RWL-I2: a write quorum of distinct replicas has taken each copy that a coordinator calls stored."""

    id = "QRM-I2"
    statement = "A store is acknowledged only when a write quorum of distinct replicas has taken it or a newer one."
    events = (CopyStored, StoreCompleted)
    needs_order = True

    def __init__(self) -> None:
        self._newest: dict[str, dict[str, Stamp]] = {}

    def observe(self, time_us: int, node: str, event: CopyStored | StoreCompleted, report: Report) -> None:
        """Remember the newest copy of each replica; count those as new as an acknowledged one."""
        copies = self._newest.setdefault(event.key, {})
        if isinstance(event, CopyStored):
            copies[node] = event.stamp
            return
        holders = sorted(replica for replica, stamp in copies.items() if stamp >= event.stamp)
        if len(holders) < event.needed:
            sentence = (
                f"{node} took a value of {event.key} as stored when only {', '.join(holders) or 'no replica'} had it, "
                f"and {event.needed} replicas are needed."
            )
            self._breach(report, time_us, node, sentence)


class StampsNameOneValue(ReportingInvariant):
    """Stamps are unique: two copies with one stamp are the same value."""

    id = "unique-stamps"
    statement = "Two copies with the same stamp hold the same value."
    events = (CopyStored,)

    def __init__(self) -> None:
        self._checksums: dict[tuple[str, Stamp], int] = {}

    def observe(self, time_us: int, node: str, event: CopyStored, report: Report) -> None:
        """Remember the first value of each stamp; compare later ones with it."""
        checksum = self._checksums.setdefault((event.key, event.stamp), event.checksum)
        if checksum != event.checksum:
            sentence = f"{node} took a value of {event.key} whose stamp {event.stamp.counter} of {event.stamp.node} "
            sentence += "stood for another value before."
            self._breach(report, time_us, node, sentence)


class QuorumsShareAMember(ReportingInvariant):
    """QRM-I1: the replicas of a first phase meet those of each second phase, at any time and any node.

    The register needs no more of its quorums: two writes that share no replica still get different stamps from a
    common one. With options whose quorums do not overlap this is broken by design.
    """

    id = "QRM-I1"
    statement = "The replicas that answered a question share a member with those of every acknowledged store."
    events = (AnswersCompleted, StoreCompleted)

    def __init__(self) -> None:
        self._asked: dict[str, dict[tuple[str, ...], str]] = {}
        self._stored: dict[str, dict[tuple[str, ...], str]] = {}

    def observe(self, time_us: int, node: str, event: AnswersCompleted | StoreCompleted, report: Report) -> None:
        """Compare a quorum that was not seen before with all of the other kind."""
        is_store = type(event) is StoreCompleted
        own, others = (self._stored, self._asked) if is_store else (self._asked, self._stored)
        quorum = tuple(sorted(set(event.replicas)))
        known = own.setdefault(event.key, {})
        if quorum in known:
            return
        known[quorum] = node
        for other, decider in others.get(event.key, {}).items():
            if not set(quorum) & set(other):
                did, theirs = ("stored", "asked") if is_store else ("asked", "stored")
                sentence = (
                    f"{node} {did} with {_listed(quorum)}, and {decider} {theirs} with {_listed(other)}:"
                    f" quorums of {event.key} that share no replica."
                )
                self._breach(report, time_us, node, sentence)
                return


class NothingIsDecidedByTooFew(ReportingInvariant):
    """QRM-I3: a node that hears from fewer than a quorum of distinct replicas acknowledges nothing."""

    id = "QRM-I3"
    statement = "A node goes on only when a quorum of distinct replicas has answered it."
    events = (AnswersCompleted, StoreCompleted)

    def observe(self, time_us: int, node: str, event: AnswersCompleted | StoreCompleted, report: Report) -> None:
        """Count the distinct replicas."""
        quorum = sorted(set(event.replicas))
        if len(quorum) < event.needed:
            sentence = (
                f"{node} went on with an operation on {event.key} when {_listed(quorum)} had answered,"
                f" and {event.needed} replicas are needed."
            )
            self._breach(report, time_us, node, sentence)


def _listed(replicas: Sequence[str]) -> str:
    return ", ".join(replicas) or "no replica"


def quorum_register_invariants() -> list[Invariant]:
    """Return fresh instances of all invariants, for one run."""
    return [
        CompletedStoresAreOnAQuorum(),
        StampsNameOneValue(),
        QuorumsShareAMember(),
        NothingIsDecidedByTooFew(),
        *waiting_invariants(),
    ]
