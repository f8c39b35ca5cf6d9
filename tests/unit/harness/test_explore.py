"""Exploration runs every schedule within its bounds once: the toy's numbers are known by counting."""

from __future__ import annotations

import itertools
import math

import pytest
from toy_exploration import Toy, explored

from faultline.harness.explore import Bounds
from faultline.harness.verdict import Verdict

ALL = 99


def one_each(senders: str, target: str = "a") -> dict[str, dict[str, int]]:
    return {sender: {target: 1} for sender in senders}


def schedules_of_independent(messages: int, delays: int, behind: int) -> int:
    """Return the number of orders of `messages` in which at most `delays` have earlier ones after them, at most
    `behind` each: the coefficients of the product of 1 + min(behind, i) z, for i below `messages` (Stirling numbers of
    the first kind where nothing bounds `behind`)."""
    coefficients = [1]
    for later in range(messages):
        ways = min(behind, later)
        shifted = [0, *(ways * each for each in coefficients)]
        coefficients = [a + b for a, b in itertools.zip_longest(coefficients, shifted, fillvalue=0)]
    return sum(coefficients[: delays + 1])


@pytest.mark.parametrize("behind", [1, 2, ALL])
@pytest.mark.parametrize("delays", [0, 1, 2, 3])
def test_independent_messages_have_the_orders_that_the_formula_counts_each_once(delays, behind):
    toy = Toy(one_each("bcde"))
    found = explored(toy, "abcde", Bounds(delays=delays, behind=behind))
    assert found.complete
    assert found.schedules == len(set(toy.orders)) == schedules_of_independent(4, delays, behind)


def test_without_bounds_all_permutations_are_run():
    toy = Toy(one_each("bcdef"))
    found = explored(toy, "abcdef", Bounds(delays=5, behind=5))
    assert found.schedules == len(set(toy.orders)) == math.factorial(5)
    assert {order[0] for order in toy.orders} == set(itertools.permutations([f"{name}0" for name in "bcdef"]))


def test_messages_of_one_link_stay_in_order_and_each_interleaving_is_run_once():
    toy = Toy({"b": {"a": 2}, "c": {"a": 2}, "d": {"a": 1}})
    found = explored(toy, "abcd", Bounds(delays=ALL, behind=ALL))
    assert found.schedules == len(set(toy.orders)) == math.factorial(5) // (2 * 2)
    assert all(order[0].index("b0") < order[0].index("b1") for order in toy.orders)


def test_orders_of_different_nodes_are_combined_and_not_interleaved():
    toy = Toy({"b": {"a": 1}, "c": {"a": 1}, "d": {"a": 1}, "e": {"f": 1}, "g": {"f": 1}})
    found = explored(toy, "abcdefg", Bounds(delays=ALL, behind=ALL))
    assert found.schedules == len(set(toy.orders)) == math.factorial(3) * math.factorial(2)


def test_a_crash_is_tried_before_every_event_of_every_node():
    # Each of three senders has a timer, and the receiver three messages.
    found = explored(Toy(one_each("bcd")), "abcd", Bounds(delays=0, crashes=1))
    assert found.schedules == found.runs == 1 + 3 + 3
    # A sender that crashed sets its timer anew, so that a second crash finds one event more or one less.
    twice = explored(Toy(one_each("b")), "ab", Bounds(delays=0, crashes=2))
    assert twice.schedules == len({*crash_places(2)})


def crash_places(crashes: int) -> list[tuple[str, ...]]:
    """Return the crashes of one sender and one receiver: the sender's before its timer, which it sets again, then the
    receiver's before the message."""
    return [("b",) * count + end for count in range(crashes + 1) for end in ((), ("a",)) if count + len(end) <= crashes]


def test_crashes_and_late_messages_are_combined():
    toy = Toy(one_each("bc"))
    found = explored(toy, "abc", Bounds(delays=ALL, behind=ALL, crashes=1))
    # Both orders, with no crash or one before either timer or either message.
    assert found.schedules == math.factorial(2) * (1 + 2 + 2)


def test_a_violation_ends_the_exploration_with_the_fewest_decisions():
    usual = Toy(one_each("bcd"))
    explored(usual, "abcd", Bounds(delays=0))
    reversed_order = usual.orders[0][0][::-1]
    toy = Toy(one_each("bcd"), broken=reversed_order)
    found = explored(toy, "abcd", Bounds(delays=3))
    assert found.verdict is Verdict.VIOLATION
    assert found.violation is not None
    assert len(found.violation.late or ()) == 2
    assert toy.orders[-1][0] == reversed_order


def test_an_exploration_that_a_limit_ends_is_no_pass():
    links = one_each("bcd")
    every = explored(Toy(links), "abcd", Bounds(delays=3))
    limited = explored(Toy(links), "abcd", Bounds(delays=3), goes_on=lambda runs: runs < every.runs - 1)
    assert (every.verdict, every.complete) == (Verdict.PASS, True)
    assert (limited.verdict, limited.complete, limited.runs) == (Verdict.UNKNOWN, False, every.runs - 1)


def test_an_interrupted_exploration_tells_what_it_came_to():
    links = one_each("bcd")
    every = explored(Toy(links), "abcd", Bounds(delays=3))

    def interrupting(runs: int) -> bool:
        if runs == every.runs - 1:
            raise KeyboardInterrupt
        return True

    cut = explored(Toy(links), "abcd", Bounds(delays=3), goes_on=interrupting)
    assert (cut.verdict, cut.complete, cut.runs, cut.waiting) == (Verdict.UNKNOWN, False, every.runs - 1, 1)


def test_states_are_counted_once_however_many_schedules_pass_them():
    usual = explored(Toy(one_each("bcd")), "abcd", Bounds(delays=0))
    found = explored(Toy(one_each("bcd")), "abcd", Bounds(delays=ALL, behind=ALL))
    assert usual.states == 3 + 3
    # At least each sequence of one, two and three messages; fewer than all that the six schedules pass.
    assert 3 + 6 + 6 < found.states < found.schedules * usual.states
