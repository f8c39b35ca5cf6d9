"""Registers judged while operations come and go: what is certain when, and what may be forgotten."""

from __future__ import annotations

import random

import pytest

from faultline.checkers.incremental.frontier import FrontierRegister, Request, TooManyConfigurations
from faultline.checkers.incremental.registers import EVENTS_KEPT, IncrementalRegisters
from faultline.checkers.linearizability import LinearizabilityChecker
from faultline.checkers.linearizability.operations import WRITE
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, fail, info, ok


class Clients:
    """Clients of one checker: `begin` gives the row of an operation, `end` tells whether a violation is certain."""

    def __init__(self, checker=None):
        self.checker = checker or IncrementalRegisters()
        self.rows = 0

    def begin(self, f, value=None, key="k"):
        self.checker.invoke(self.rows, Operation(self.rows, f, key, value))
        self.rows += 1
        return self.rows - 1

    def end(self, row, outcome):
        return self.checker.complete(row, outcome)

    def do(self, f, value=None, answer=None, key="k"):
        return self.end(self.begin(f, value, key), ok(answer))


def test_a_stale_read_is_certain_when_it_returns():
    clients = Clients()
    assert not clients.do("write", 1)
    assert not clients.do("write", 2)
    assert clients.do("read", answer=1)[-1] == 2


def test_a_read_that_began_before_the_newer_write_may_return_the_older_value():
    clients = Clients()
    clients.do("write", 1)
    read = clients.begin("read")
    clients.do("write", 2)
    assert not clients.end(read, ok(1))
    assert not clients.do("read", answer=2)


def test_a_value_that_no_write_has_put_is_certain_at_once():
    clients = Clients()
    assert clients.do("read", answer=7) == (0,)


def test_a_value_of_a_write_that_failed_is_certain_when_the_failure_is_known():
    clients = Clients()
    write = clients.begin("write", 1)
    assert not clients.do("read", answer=1)
    assert clients.end(write, fail("refused"))[-1] == write


def test_a_crashed_write_may_take_effect_late_or_never():
    clients = Clients()
    crashed = clients.begin("write", 1)
    assert not clients.end(crashed, info("timeout"))
    assert not clients.do("read")
    assert not clients.do("write", 2)
    assert not clients.do("read", answer=1)
    assert clients.do("read", answer=2), "the crashed write took effect after the other, and only once"


def test_two_reads_that_overlap_neither_write_cannot_see_the_values_in_both_orders():
    clients = Clients()
    writes = [clients.begin("write", 1), clients.begin("write", 2)]
    assert not clients.do("read", answer=1)
    assert not clients.do("read", answer=2)
    assert clients.do("read", answer=1)
    assert writes == [0, 1]


def test_a_compare_and_set_that_succeeded_on_a_value_that_is_gone_is_certain():
    clients = Clients()
    clients.do("write", 1)
    clients.do("write", 2)
    assert clients.do("cas", [1, 3])


def test_a_refused_compare_and_set_is_an_observation_only_where_the_checker_takes_it_for_one():
    for failed_cas, certain in (("observe", True), ("ignore", False)):
        clients = Clients(IncrementalRegisters(failed_cas))
        clients.do("write", 1)
        assert bool(clients.end(clients.begin("cas", [1, 2]), fail(CAS_MISMATCH))) is certain


def test_a_compare_and_set_amid_open_operations_takes_over_what_the_zones_knew():
    clients = Clients()
    clients.do("write", 1)
    read = clients.begin("read")
    write = clients.begin("write", 2)
    assert not clients.do("read", answer=2)
    assert not clients.do("cas", [2, 3])
    assert not clients.end(write, ok())
    assert not clients.end(read, ok(1))
    assert clients.do("read", answer=2)


def test_true_and_one_are_different_values():
    clients = Clients()
    clients.do("write", 1)
    assert clients.do("read", answer=True)


def test_keys_are_judged_apart():
    clients = Clients()
    clients.do("write", 1, key="a")
    assert clients.do("read", answer=1, key="b")


def test_a_function_that_the_model_does_not_know_leaves_its_key_to_the_check_afterwards():
    clients = Clients()
    clients.do("append", 1)
    assert not clients.do("read", answer=9)
    assert clients.checker.left == ["k"]
    assert clients.do("read", answer=9, key="other")


def test_a_frontier_above_its_budget_leaves_its_key_to_the_check_afterwards():
    clients = Clients(IncrementalRegisters(configurations_max=10))
    clients.do("cas", [None, 0])
    for value in range(1, 8):
        clients.begin("write", value)
    assert not clients.do("read", answer=1)
    assert clients.checker.left == ["k"]
    assert not clients.do("read", answer=99)


def test_a_frontier_above_its_budget_says_so():
    frontier = FrontierRegister([None], configurations_max=3)
    for row in range(4):
        frontier.invoke(row, Request(WRITE, produce=row))
    with pytest.raises(TooManyConfigurations):
        frontier.changed(3)


def test_a_repeated_value_after_too_many_events_without_a_quiet_moment_leaves_its_key():
    clients = Clients()
    clients.begin("read")
    for value in range(EVENTS_KEPT):
        clients.do("write", value)
    clients.begin("write", EVENTS_KEPT - 1)
    assert clients.checker.left == ["k"]


def test_a_value_may_be_written_again_once_no_read_can_return_the_first():
    clients = Clients()
    for _ in range(3 * EVENTS_KEPT):
        for value in (1, 2, 3):
            assert not clients.do("write", value)
            assert not clients.do("read", answer=value)
    assert clients.checker.left == []
    assert clients.do("read", answer=2)


@pytest.mark.parametrize("has_cas", [False, True])
def test_what_is_kept_does_not_grow_with_the_history(has_cas):
    rng = random.Random(4)
    clients, state, sizes = Clients(), None, []
    under_way = {}
    for number in range(1, 6000):
        client = rng.randrange(8)
        if client in under_way:
            row, outcome = under_way.pop(client)
            assert not clients.end(row, outcome)
        elif has_cas and rng.random() < 0.3:
            under_way[client] = clients.begin("cas", [state, number]), ok()
            state = number
        elif rng.random() < 0.5:
            under_way[client] = clients.begin("write", number), ok()
            state = number
        else:
            under_way[client] = clients.begin("read"), ok(state)
        sizes.append(clients.checker.size)
    assert clients.checker.left == []
    assert max(sizes[3000:]) <= 2 * max(sizes[1000:2000])


def test_only_models_of_registers_have_an_incremental_twin():
    assert isinstance(LinearizabilityChecker().incremental(), IncrementalRegisters)
    assert LinearizabilityChecker("kv").incremental() is None
    assert LinearizabilityChecker("queue").incremental() is None
