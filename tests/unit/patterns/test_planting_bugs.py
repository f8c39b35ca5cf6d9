"""Planted bugs declared as decorated classes: their records, and the classes that come of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from faultline.harness.errors import UsageError
from faultline.harness.system import PlantedBug
from faultline.systems_under_test.reference.shared.planted_bugs import NoParts, PlantedBugs


class _Scale:
    def weigh(self, grams: int) -> int:
        return grams


class _Till:
    def total(self, prices: list[int]) -> int:
        return sum(prices)


def _round(cents: int) -> int:
    return cents


@dataclass(frozen=True)
class _Inner:
    till: type[_Till] = _Till


@dataclass(frozen=True)
class _Shop:
    scale: type[_Scale] = _Scale
    spare: type[_Scale] = _Scale
    tills: Mapping[str, type[_Till]] = field(default_factory=lambda: {"cash": _Till, "card": _Till})
    back: _Inner = _Inner()
    rounding: Callable[[int], int] = _round


class _Customer:
    def asks(self) -> str:
        return "bread"


BUGS = PlantedBugs("shop", _Shop, pattern="fair-trade", campaign="market", caught_by=("honesty",))
_CARDS = BUGS.group(campaign="cards", options={"pays": "card"})


@BUGS.plant("heavy-thumb", "SHOP-M1", part=("scale", "spare"))
class _HeavyThumb(_Scale):
    """A scale adds the weight of a thumb.

    Shows as: bread weighs
    more than it did.
    """

    def weigh(self, grams: int) -> int:
        return super().weigh(grams) + 20


@BUGS.plant("doubled", "SHOP-M2", part="scale", caught_by=("honesty", "SHOP-I1"), worlds=("simulated",), why_not="none")
class _Doubled(_Scale):
    """IOUs are weighed twice.

    Shows as: all weighs double
    """

    def weigh(self, grams: int) -> int:
        return 2 * super().weigh(grams)


@_CARDS.plant("card-fee", "SHOP-M3", part="tills.card")
class _CardFee(_Till):
    """Cards pay a fee.

    Shows as: a card pays more
    """

    def total(self, prices: list[int]) -> int:
        return super().total(prices) + 1


@BUGS.also("card-fee", part="client")
class _AsksForCards(_Customer):
    def asks(self) -> str:
        return super().asks() + " by card"


@BUGS.plant("rounds-down", "SHOP-M8", part="tills.*", replaces=True)
class _RoundsDown(_Till):
    """Every till forgets the cents.

    Shows as: prices end in two zeros
    """

    def total(self, prices: list[int]) -> int:
        return super().total(prices) // 100 * 100


@BUGS.plant("free", "SHOP-M4", summary="what is sold costs nothing", part="back.till", replaces=True)
class _Free:
    """Nothing costs anything.

    Shows as: the till is empty
    """


@BUGS.plant("rounds-up", "SHOP-M5", part="rounding")
def _round_up(cents: int) -> int:
    """Cents are rounded up.

    Shows as: prices end in zero
    """
    return -(-cents // 10) * 10


def test_the_record_is_told_by_the_docstring_and_what_bugs_have_in_common() -> None:
    assert BUGS.planted_bugs["heavy-thumb"] == PlantedBug(
        name="heavy-thumb",
        pattern="fair-trade",
        id="SHOP-M1",
        summary="a scale adds the weight of a thumb",
        shows_as="bread weighs more than it did",
        campaign="market",
        caught_by=("honesty",),
    )


def test_a_bug_may_say_what_differs_from_what_is_common() -> None:
    doubled, card_fee = BUGS.planted_bugs["doubled"], BUGS.planted_bugs["card-fee"]
    assert (doubled.caught_by, doubled.worlds, doubled.why_not) == (("honesty", "SHOP-I1"), ("simulated",), "none")
    assert (card_fee.campaign, card_fee.options, card_fee.pattern) == ("cards", {"pays": "card"}, "fair-trade")


def test_a_record_may_have_a_summary_of_its_own() -> None:
    assert BUGS.planted_bugs["free"].summary == "what is sold costs nothing"


def test_a_capital_that_begins_an_abbreviation_stays() -> None:
    assert BUGS.planted_bugs["doubled"].summary == "IOUs are weighed twice"


def test_records_stand_in_the_order_of_the_file_also_those_of_groups() -> None:
    assert list(BUGS.planted_bugs) == ["heavy-thumb", "doubled", "card-fee", "rounds-down", "free", "rounds-up"]


def test_without_bugs_all_parts_are_the_correct_ones() -> None:
    assert BUGS.parts(()) == _Shop()
    assert BUGS.client(_Customer, ()) is _Customer


def test_a_class_is_put_in_front_of_each_part_it_names_and_nothing_else_changes() -> None:
    parts = BUGS.parts({"heavy-thumb"})
    assert (parts.scale().weigh(100), parts.spare().weigh(100)) == (120, 120)
    assert parts.tills == _Shop().tills
    assert _Shop().scale().weigh(100) == 100


def test_bugs_of_one_part_can_be_combined_in_any_order() -> None:
    one, other = BUGS.parts(["heavy-thumb", "doubled"]), BUGS.parts(["doubled", "heavy-thumb"])
    assert one.scale().weigh(100) == other.scale().weigh(100) == 220


def test_an_entry_of_a_mapping_and_a_part_of_a_part_can_be_changed() -> None:
    parts = BUGS.parts({"card-fee", "free"})
    assert (parts.tills["card"]().total([5]), parts.tills["cash"]().total([5])) == (6, 5)
    assert parts.back.till is _Free


def test_all_entries_of_a_mapping_can_be_changed_at_once() -> None:
    assert {name: till().total([150]) for name, till in BUGS.parts({"rounds-down"}).tills.items()} == {
        "cash": 100,
        "card": 100,
    }


def test_a_function_takes_the_place_of_the_correct_one() -> None:
    assert BUGS.parts({"rounds-up"}).rounding(11) == 20


def test_a_bug_may_take_changes_in_several_places_also_in_the_client() -> None:
    assert BUGS.client(_Customer, {"card-fee"})().asks() == "bread by card"
    assert BUGS.client(_Customer, {"free"}) is _Customer
    assert BUGS.node(_Customer, {"card-fee"}) is _Customer


def test_a_system_without_parts_has_bugs_in_its_node_and_its_client() -> None:
    bugs = PlantedBugs("stall", NoParts, pattern="fair-trade", campaign="market", caught_by=("honesty",))

    @bugs.plant("asks-for-cake", "SHOP-M9", part="node")
    class _AsksForCake(_Customer):
        """A customer asks for cake.

        Shows as: there is no bread
        """

        def asks(self) -> str:
            return "cake"

    assert bugs.node(_Customer, {"asks-for-cake"})().asks() == "cake"
    assert bugs.client(_Customer, {"asks-for-cake"}) is _Customer
    assert bugs.parts({"asks-for-cake"}) == NoParts()


@pytest.mark.parametrize(
    ("name", "hint"),
    [("doubles", "Did you mean doubled? It has heavy-thumb, doubled, "), ("zzz", "It has heavy-thumb, doubled, ")],
)
def test_an_unknown_bug_is_refused_with_the_nearest_name(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"shop has no planted bug {name!r}. {hint}")):
        BUGS.parts({name})


def test_a_bug_that_does_not_say_how_it_shows_is_refused_where_it_is_written() -> None:
    def vague() -> None:
        """Something is wrong."""

    with pytest.raises(AssertionError, match="of the planted bug vague has no paragraph `Shows as"):
        BUGS.plant("vague", "SHOP-M6", part="rounding")(vague)


def test_two_bugs_of_one_name_are_refused_where_they_are_written() -> None:
    with pytest.raises(AssertionError, match="shop has two planted bugs free"):
        BUGS.plant("free", "SHOP-M7", part="rounding")


def test_bugs_of_several_modules_are_joined_in_the_order_of_the_modules() -> None:
    other = PlantedBugs("shop", _Shop, pattern="fair-trade", campaign="market", caught_by=("honesty",))
    other.plant("card-fee-again", "SHOP-M10", part="tills.card")(_CardFee)
    joined = BUGS.with_those_of(other)
    assert list(joined.planted_bugs) == [*BUGS.planted_bugs, "card-fee-again"]
    assert joined.parts({"card-fee-again", "heavy-thumb"}).tills["card"]().total([5]) == 6
    assert joined.client(_Customer, {"card-fee"})().asks() == "bread by card"
    with pytest.raises(AssertionError, match="shop has two planted bugs card-fee-again"):
        joined.with_those_of(other)
