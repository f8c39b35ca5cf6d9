"""Options of a system: declared once as annotated fields, listed, and read from text."""

from __future__ import annotations

from typing import Annotated, ClassVar

import pytest

from faultline.harness.errors import UsageError
from faultline.harness.options import TUNING
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.reference.shared.settings import (
    Choice,
    Milliseconds,
    Number,
    OptionalMilliseconds,
    Settings,
    Switch,
    Text,
    kinds_of,
    options_of,
    tuning_of,
)


class _Kettle(Settings, frozen=True):
    system: ClassVar[str] = "kettle"

    cups: Annotated[int, Number(2), "how many cups"]
    refills: Annotated[int, Number(0, least=0), "how many refills"]
    boils_us: Annotated[int, Milliseconds(300), "how long it boils"]
    rest_us: Annotated[int | None, OptionalMilliseconds(50), "how long it rests; 0 is not at all"]
    tea: Annotated[str, Choice(("green", "black")), "which tea"]
    milk: Annotated[str, Choice(("none", "some"), default="some"), "how much milk"]
    lid: Annotated[bool, Switch(), "with the lid on"]
    whistle: Annotated[bool, Switch(is_on=False), "with a whistle"]
    label: Annotated[str, Text("mine"), "the label"]

    def check(self) -> None:
        if self.refills > self.cups:
            raise UsageError("There are more refills than cups.", "Lower refills.")


def test_what_is_left_out_has_its_default() -> None:
    assert _Kettle.read({}) == _Kettle(
        cups=2,
        refills=0,
        boils_us=300_000,
        rest_us=50_000,
        tea="green",
        milk="some",
        lid=True,
        whistle=False,
        label="mine",
    )


def test_equal_options_give_one_record_and_each_class_its_own() -> None:
    class Other(_Kettle, frozen=True):
        pass

    assert _Kettle.read({"cups": "3"}) is _Kettle.read({"cups": "3"})
    assert type(Other.read({"cups": "3"})) is Other


def test_what_is_given_is_read_by_its_kind() -> None:
    given = {"cups": "3", "boils_ms": "5", "rest_ms": "0", "tea": "black", "lid": "off", "whistle": "on", "label": "x"}
    settings = _Kettle.read(given)
    assert (settings.cups, settings.boils_us, settings.rest_us) == (3, 5_000, None)
    assert (settings.tea, settings.lid, settings.whistle, settings.label) == ("black", False, True, "x")


def test_the_listed_options_tell_defaults_choices_and_summaries_in_the_order_of_the_fields() -> None:
    options = options_of(_Kettle)
    assert list(options) == ["cups", "refills", "boils_ms", "rest_ms", "tea", "milk", "lid", "whistle", "label"]
    assert options["boils_ms"] == OptionDescription(default="300", summary="how long it boils")
    assert options["milk"] == OptionDescription(default="some", choices=("none", "some"), summary="how much milk")
    assert options["whistle"] == OptionDescription(default="off", choices=("off", "on"), summary="with a whistle")
    assert options["label"] == OptionDescription(default="mine", summary="the label", is_text=True)


def test_the_listed_defaults_read_as_the_settings_without_options() -> None:
    assert _Kettle.read({name: option.default for name, option in options_of(_Kettle).items()}) == _Kettle.read({})


def test_kinds_are_told_by_field() -> None:
    assert kinds_of(_Kettle)["boils_us"] == (Milliseconds(300), "how long it boils")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"cup": "3"}, "kettle has no option 'cup'. Did you mean cups? It has cups, refills, "),
        ({"sugar": "3"}, "kettle has no option 'sugar'. It has cups, refills, "),
        ({"cups": "0"}, "Option cups must be a whole number from 1, not '0'. The default is 2."),
        ({"cups": "two"}, "Option cups must be a whole number from 1, not 'two'."),
        ({"cups": "²"}, "Option cups must be a whole number from 1, not '²'."),
        ({"refills": "-1"}, "Option refills must be a whole number from 0, not '-1'."),
        ({"boils_ms": "0"}, "Option boils_ms must be a whole number from 1, not '0'."),
        ({"tea": "white"}, "Option tea cannot be 'white'. Choose one of green, black."),
        ({"lid": "ajar"}, "Option lid cannot be 'ajar'. Choose one of on, off."),
        ({"refills": "9"}, "There are more refills than cups. Lower refills."),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_would_be_allowed(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        _Kettle.read(given)
    assert str(refused.value).startswith(sentence)


class _Tuned(Settings, frozen=True):
    system: ClassVar[str] = "tuned"

    cups: Annotated[int, Number(2), "how many cups"]
    boils_us: Annotated[int, Milliseconds(300), "how long it boils", TUNING]
    refills: Annotated[int, Number(0, least=0), "how many refills", TUNING]


def test_a_field_behind_tuning_is_listed_there_and_not_among_the_options() -> None:
    assert list(options_of(_Tuned)) == ["cups", "tuning"]
    assert list(tuning_of(_Tuned)) == ["boils_ms", "refills"]
    assert options_of(_Tuned)["tuning"].is_text
    assert tuning_of(_Kettle) == {}


@pytest.mark.parametrize("given", [{"tuning": "boils_ms:5"}, {"boils_ms": "5"}, {"tuning": "", "boils_ms": "5"}])
def test_a_field_behind_tuning_is_read_from_there_or_under_its_own_name(given: dict[str, str]) -> None:
    assert _Tuned.read(given) == _Tuned(cups=2, boils_us=5_000, refills=0)


@pytest.mark.parametrize(
    ("text", "complaint"), [("boils_ms:soon", "whole number"), ("boils:5", "no option 'boils'"), ("5", "no setting")]
)
def test_settings_that_cannot_be_read_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        _Tuned.read({"tuning": text})
