"""A waiting request has exactly one fate under every order of events, and a quorum is one of distinct replicas."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.systems_under_test.patterns.data_replication.quorum import majority
from faultline.systems_under_test.patterns.data_replication.request_waiting_list import (
    EXPIRATION_US,
    RequestWaitingList,
    WriteQuorumCallback,
    WriteResult,
)
from faultline.testing.fake_ports import FakePorts

STEPS = st.lists(
    st.tuples(st.sampled_from(["response", "error", "sweep", "wait"]), st.integers(0, 6)), min_size=1, max_size=60
)


class Fate:
    """A callback that counts what becomes of it."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_response(self, response: object) -> None:
        self.told.append("response")

    def on_error(self, error: Exception) -> None:
        self.told.append(type(error).__name__)


def play(waiting: RequestWaitingList[int, str], clock: FakePorts, steps: list[tuple[str, int]]) -> None:
    for step, key in steps:
        if step == "response":
            waiting.handle_response(key, "stored")
        elif step == "error":
            waiting.handle_error(key, ConnectionRefusedError())
        elif step == "sweep":
            waiting.expire()
        else:
            clock.now_us += EXPIRATION_US // 3
    clock.now_us += EXPIRATION_US + 1
    waiting.expire()


@pytest.mark.rows("RWL-I3", "RWL-I4", "RWL-R14", "RWL-R18")
@given(steps=STEPS)
def test_each_key_has_exactly_one_fate_and_after_the_last_sweep_nothing_waits(steps: list[tuple[str, int]]) -> None:
    clock = FakePorts()
    waiting: RequestWaitingList[int, str] = RequestWaitingList(clock)
    fates = [Fate() for _ in range(7)]
    for key, fate in enumerate(fates):
        waiting.add(key, fate)
    play(waiting, clock, steps)
    assert [len(fate.told) for fate in fates] == [1] * 7
    assert len(waiting) == 0


@pytest.mark.rows("RWL-I1", "RWL-I2", "RWL-R8", "RWL-R10")
@given(replicas=st.integers(1, 7), steps=STEPS)
def test_a_client_hears_once_and_of_success_only_after_a_quorum_of_distinct_replicas(
    replicas: int, steps: list[tuple[str, int]]
) -> None:
    clock = FakePorts()
    waiting: RequestWaitingList[int, str] = RequestWaitingList(clock)
    replies: list[WriteResult] = []
    answered: set[int] = set()
    callback = WriteQuorumCallback(replicas, 1, lambda _, result: replies.append(result))

    class Noting:
        def __init__(self, key: int) -> None:
            self.key = key

        def on_response(self, response: object) -> None:
            answered.add(self.key)
            callback.on_response(response)

        def on_error(self, error: Exception) -> None:
            callback.on_error(error)

    for key in range(replicas):
        waiting.add(key, Noting(key))
    play(waiting, clock, steps)
    enough = len(answered) >= majority(replicas)
    assert replies == [WriteResult.SUCCESS if enough else WriteResult.UNKNOWN]
