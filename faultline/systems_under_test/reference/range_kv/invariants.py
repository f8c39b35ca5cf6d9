"""The invariants of `range-kv`, checked on the reports of its nodes while a run goes on."""

from __future__ import annotations

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.reference.range_kv.messages import (
    KeysStored,
    RequestServed,
    SizesChecked,
    SplitProposed,
)
from faultline.systems_under_test.reference.range_kv.options import CHECKS_BETWEEN_PROPOSALS
from faultline.systems_under_test.reference.ranges.invariants import RangesTile
from faultline.systems_under_test.reference.ranges.messages import ProposalReceived

__all__ = [
    "BigPartitionsAreSplit",
    "GenerationsRule",
    "KeysLieInTheirRange",
    "SplitsAreDue",
    "range_invariants",
]

_PATIENCE_US = 1_000_000
"""The time after which a split that was proposed to a coordinator in peace is made."""


class KeysLieInTheirRange(ReportingInvariant):
    """A host stores a key only in the partition whose range it lies in."""

    id = "KRP-I2"
    statement = "Every key that a host stores lies within the range of the partition it is stored in."
    events = (KeysStored,)

    def observe(self, time_us: int, node: str, event: KeysStored, report: Report) -> None:
        """Compare the lowest and the highest key with the range."""
        for key in (event.lowest, event.highest):
            if not event.partition.range.contains(key):
                words = f"partition {event.partition.id}, which has {event.partition.range}"
                self._breach(report, time_us, node, f"{node} stored the key {key!r} in {words}.")
                return


class GenerationsRule(ReportingInvariant):
    """A host that serves a newer generation ends all older ones, on any node."""

    id = "KRP-I4"
    statement = "A request is served under the generation that its host holds, and never after a newer one was served."
    events = (RequestServed,)
    needs_order = True

    def __init__(self) -> None:
        self._newest: dict[int, tuple[int, str]] = {}

    def observe(self, time_us: int, node: str, event: RequestServed, report: Report) -> None:
        """Compare the generation of the request with that of the host, and with the newest served anywhere."""
        newest, server = self._newest.get(event.partition_id, (0, node))
        words = f"{node} served partition {event.partition_id} under generation {event.asked}"
        if event.asked != event.held:
            self._breach(report, time_us, node, f"{words}, and holds generation {event.held}.")
        elif event.held < newest:
            self._breach(report, time_us, node, f"{words} after {server} had served generation {newest}.")
        elif event.held == newest and node != server:
            self._breach(report, time_us, node, f"{words}, which {server} serves.")
        else:
            self._newest[event.partition_id] = (event.held, node)


class BigPartitionsAreSplit(ReportingInvariant):
    """No partition stays big that can be split.

    It is overdue when its host still names it some time after the coordinator has got a proposal, or at so many checks
    that a proposal was due meanwhile. The time alone says nothing: a host may check seldom, and proposals may be lost.
    """

    id = "KRP-I5"
    statement = "Some time after the last fault no partition has reached the maximum size, if it can be split."
    events = (SizesChecked, SplitProposed, ProposalReceived)

    def __init__(self) -> None:
        self._named: dict[str, dict[tuple[int, int], tuple[int, list[int]]]] = {}
        self._proposed_us: dict[tuple[str, int], int] = {}
        self._received_us: dict[tuple[int, int], list[int]] = {}

    def observe(
        self, time_us: int, node: str, event: SizesChecked | SplitProposed | ProposalReceived, report: Report
    ) -> None:
        """Remember the checks at which each was named; one that the host does not name is gone or small."""
        if isinstance(event, SplitProposed):
            self._proposed_us[node, event.partition_id] = time_us
            return
        if isinstance(event, ProposalReceived):
            self._received_us.setdefault((event.partition_id, event.generation), []).append(time_us)
            return
        before, named = self._named.get(node, {}), {}
        for partition_id, generation, size in event.due:
            _, times_us = before.get((partition_id, generation), (0, []))
            times_us.append(time_us)
            named[partition_id, generation] = (size, times_us)
        self._named[node] = named

    def finish(self, healed_us: int, end_us: int, report: Report) -> None:
        """Report a breach for each partition that has waited too long for its split."""
        for node, named in self._named.items():
            for partition, (size, times_us) in named.items():
                proposed_us = self._proposed_us.get((node, partition[0]), healed_us - 1)
                unproposed_us = [time_us for time_us in times_us if time_us > max(proposed_us, healed_us - 1)]
                since_us = [time_us for time_us in self._received_us.get(partition, ()) if time_us >= healed_us]
                if len(unproposed_us) > CHECKS_BETWEEN_PROPOSALS + 1:
                    since_us.append(unproposed_us[0])
                if since_us and times_us[-1] - min(since_us) > _PATIENCE_US:
                    sentence = f"{node} never split partition {partition[0]}, which holds {size} bytes."
                    self._breach(report, end_us, node, sentence)


class SplitsAreDue(ReportingInvariant):
    """KRP-R10: a partition is split when it has reached the maximum, and not when it has reached half of it."""

    id = "KRP-R10"
    statement = "A split is proposed for a partition whose size or load has reached the configured maximum."
    events = (SplitProposed,)

    def observe(self, time_us: int, node: str, event: SplitProposed, report: Report) -> None:
        """Compare the weight with the maximum."""
        if event.weight < event.least:
            sentence = (
                f"{node} proposed to split partition {event.partition_id} at a {event.reason} of {event.weight};"
                f" {event.least} is the maximum."
            )
            self._breach(report, time_us, node, sentence)


def range_invariants() -> list[Invariant]:
    """Return new instances, for one run."""
    return [RangesTile(), KeysLieInTheirRange(), GenerationsRule(), BigPartitionsAreSplit(), SplitsAreDue()]
