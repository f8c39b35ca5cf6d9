"""TPC-I2 by itself: participants end a transaction alike, and a crash forgets a rollback without a promise."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.invariant import Breach
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import (
    Finished,
    ParticipantStarted,
    Promised,
)
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridTimestamp
from faultline.systems_under_test.reference.transactions.invariants import DecisionsAgree

ONE = TransactionId(1, "athens")
PROMISED, RESTARTED = Promised(ONE, {}), ParticipantStarted(BEFORE_ALL)
COMMITTED, ROLLED_BACK = Finished(ONE, HybridTimestamp(5, 0)), Finished(ONE, None)
LATER = Finished(ONE, HybridTimestamp(6, 0))


@pytest.mark.rows("TPC-I2")
@pytest.mark.parametrize(
    ("story", "accused"),
    [
        ([("athens", COMMITTED), ("byzantium", COMMITTED)], []),
        ([("athens", COMMITTED), ("byzantium", LATER)], ["byzantium"]),
        ([("athens", COMMITTED), ("byzantium", ROLLED_BACK)], ["byzantium"]),
        ([("athens", ROLLED_BACK), ("athens", COMMITTED)], ["athens"]),
        ([("athens", ROLLED_BACK), ("byzantium", RESTARTED), ("athens", COMMITTED)], ["athens"]),
        ([("athens", ROLLED_BACK), ("athens", RESTARTED), ("athens", COMMITTED), ("byzantium", COMMITTED)], []),
        ([("athens", PROMISED), ("athens", ROLLED_BACK), ("athens", RESTARTED), ("athens", COMMITTED)], ["athens"]),
        ([("athens", COMMITTED), ("athens", RESTARTED), ("byzantium", ROLLED_BACK)], ["byzantium"]),
    ],
)
def test_a_transaction_ends_alike_unless_a_crash_forgot_that_it_was_rolled_back_without_a_promise(
    story: list[tuple[str, Any]], accused: list[str]
) -> None:
    told: list[Breach] = []
    invariant = DecisionsAgree()
    for node, event in story:
        invariant.observe(1, node, event, told.append)
    assert [breach.node for breach in told] == accused
