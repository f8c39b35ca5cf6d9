"""The invariants of `transactional-kv`, checked on what its nodes report while a run goes on."""

from __future__ import annotations

import msgspec

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import Finished

__all__ = ["DecisionsAgree", "transactional_kv_invariants"]

Events = tuple[type[msgspec.Struct], ...]


class DecisionsAgree(ReportingInvariant):
    """TPC-I2, on how transactions ended at participants: a participant hears of a decision after it was durable."""

    id = "TPC-I2"
    statement = "A transaction ends alike at all participants: committed under one time, or rolled back; for ever."
    events: Events = (Finished,)

    def __init__(self) -> None:
        self._ends: dict[TransactionId, tuple[str, Finished]] = {}

    def observe(self, time_us: int, node: str, event: Finished, report: Report) -> None:
        """Compare with how it ended elsewhere, or here before."""
        first, end = self._ends.setdefault(event.id, (node, event))
        if end.time != event.time:
            sentence = f"Transaction {event.id} {_told(end)} at {first} and {_told(event)} at {node}."
            self._breach(report, time_us, node, sentence)


def _told(end: Finished) -> str:
    return "was rolled back" if end.time is None else f"was committed under {end.time.wall_us}.{end.time.ticks}"


def transactional_kv_invariants() -> list[Invariant]:
    """Fresh instances, for one run."""
    return [DecisionsAgree()]
