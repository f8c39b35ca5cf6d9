"""TPC-I9 by itself: what was read stays, and what a crash took back may be stored again as it was."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.invariant import Breach
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import (
    ParticipantStarted,
    SnapshotServed,
    ValueStored,
)
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp
from faultline.systems_under_test.reference.transactions.invariants import NothingBelowARead


def at(wall_us: int) -> HybridTimestamp:
    return HybridTimestamp(wall_us, 0)


ONE, OTHER = TransactionId(1, "athens"), TransactionId(2, "athens")
STORED_THEN_READ = [ValueStored(ONE, "k", at(5)), SnapshotServed("k", at(9))]
RESTARTED = ParticipantStarted(at(100))


@pytest.mark.rows("TPC-I9")
@pytest.mark.parametrize(
    ("later", "broken"),
    [
        ([ValueStored(OTHER, "k", at(10))], 0),
        ([RESTARTED, ValueStored(ONE, "k", at(5))], 0),
        ([ValueStored(OTHER, "k", at(9))], 1),
        ([RESTARTED, ValueStored(OTHER, "k", at(5))], 1),
        ([RESTARTED, ValueStored(ONE, "k", at(6))], 1),
    ],
)
def test_a_key_that_was_read_gets_nothing_new_below_that_time(later: list[Any], broken: int) -> None:
    told: list[Breach] = []
    invariant = NothingBelowARead()
    for event in [*STORED_THEN_READ, *later]:
        invariant.observe(1, "athens", event, told.append)
    assert len(told) == broken
