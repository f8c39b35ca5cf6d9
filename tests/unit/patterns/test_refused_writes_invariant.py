"""The invariant VVC-R8: an update that one replica refused is taken by no other."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.systems_under_test.reference.quorum_kv.invariants import RefusedWritesAreTakenNowhere
from faultline.systems_under_test.reference.quorum_kv.messages import WriteRefused, WriteTaken

TAKEN = WriteTaken(key="k1", client="client-0", update=1)
REFUSED = WriteRefused(key="k1", client="client-0", update=1)


def breaches(*events: tuple[str, WriteRefused | WriteTaken]) -> int:
    invariant, told = RefusedWritesAreTakenNowhere(), list[Any]()
    for time_us, (node, event) in enumerate(events):
        invariant.observe(time_us, node, event, lambda *told_now: told.append(told_now))
    return len(told)


def test_a_stale_repetition_of_an_update_that_the_replica_has_taken_may_be_refused_there() -> None:
    assert breaches(("athens", TAKEN), ("athens", REFUSED)) == 0


@pytest.mark.parametrize("other", ["athens", "byzantium"])
def test_an_update_that_was_refused_may_not_be_taken_afterwards(other: str) -> None:
    assert breaches(("athens", REFUSED), (other, TAKEN)) == 1


def test_an_update_that_another_replica_has_taken_may_not_be_refused() -> None:
    assert breaches(("athens", TAKEN), ("byzantium", REFUSED)) == 1
