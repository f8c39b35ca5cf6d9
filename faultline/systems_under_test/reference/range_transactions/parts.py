"""The parts of a node of `range-transactions` and its client."""

from __future__ import annotations

from dataclasses import dataclass

from faultline.systems_under_test.patterns.data_partitioning.transaction_participant import Participant
from faultline.systems_under_test.patterns.data_partitioning.two_phase_commit import Coordinator
from faultline.systems_under_test.reference.range_transactions.host import RangeHost
from faultline.systems_under_test.reference.range_transactions.ranges import RangeStore
from faultline.systems_under_test.reference.range_transactions.reads import RangeRequests, SnapshotExecutor
from faultline.systems_under_test.reference.range_transactions.routes import RangeRoutes
from faultline.systems_under_test.reference.range_transactions.times import BoundedTimes

__all__ = ["Parts"]


@dataclass(frozen=True, slots=True)
class Parts:
    """The classes that a node and its client are built from; a planted bug is put in front of one of them."""

    times: type[BoundedTimes] = BoundedTimes
    coordinator: type[Coordinator] = Coordinator
    participant: type[Participant] = Participant
    store: type[RangeStore] = RangeStore
    host: type[RangeHost] = RangeHost
    routes: type[RangeRoutes] = RangeRoutes
    requests: type[RangeRequests] = RangeRequests
    executor: type[SnapshotExecutor] = SnapshotExecutor
