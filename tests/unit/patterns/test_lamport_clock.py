"""Lamport clocks: what follows has the larger number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.systems_under_test.patterns.distributed_time.lamport_clock import FIRST_TIME, LamportClock


@pytest.mark.rows("LMC-R1", "LMC-R3", "LMC-S1")
def test_a_client_carries_the_stamp_of_one_server_to_the_next():
    blue, green, client = LamportClock(), LamportClock(), LamportClock()
    client.update_to(blue.tick(client.latest_time))
    assert client.latest_time == 2
    client.update_to(green.tick(client.latest_time))
    assert client.latest_time == 3


@pytest.mark.rows("LMC-S2")
def test_a_server_that_is_ahead_takes_the_client_along():
    green, blue, client = LamportClock(10), LamportClock(), LamportClock()
    client.update_to(green.tick(client.latest_time))
    assert client.latest_time == 11
    assert blue.tick(client.latest_time) == 12


@pytest.mark.rows("LMC-R5", "LMC-S3")
def test_strangers_on_two_servers_may_get_equal_stamps():
    assert LamportClock().tick(FIRST_TIME) == LamportClock().tick(FIRST_TIME) == 2


@pytest.mark.rows("LMC-S7", "LMC-R3")
def test_a_late_answer_does_not_take_the_clock_back():
    client = LamportClock()
    client.update_to(9)
    client.update_to(4)
    assert client.latest_time == 9


@pytest.mark.rows("LMC-R10")
def test_a_generation_clock_is_a_lamport_clock_of_elections():
    athens, byzantium = LamportClock(0), LamportClock(0)
    first = athens.tick(athens.latest_time)
    byzantium.update_to(first)
    assert byzantium.tick(byzantium.latest_time) > first


STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=60)


@given(STEPS)
@pytest.mark.rows("LMC-R4", "LMC-I1", "LMC-I2", "LMC-I3", "LMC-I4")
def test_whatever_clients_do_what_happened_before_has_the_smaller_stamp(steps):
    servers = [LamportClock() for _ in range(3)]
    clients = [LamportClock() for _ in range(3)]
    causes: list[set[int]] = [set() for _ in clients]
    stamps: list[int] = []
    last_of = [0, 0, 0]
    for client, server in steps:
        before = clients[client].latest_time
        stamp = servers[server].tick(before)
        assert stamp > before
        assert stamp > last_of[server]
        assert all(stamps[cause] < stamp for cause in causes[client])
        last_of[server] = stamp
        clients[client].update_to(stamp)
        assert clients[client].latest_time >= before
        causes[client].add(len(stamps))
        stamps.append(stamp)
