"""Contrast, computed from the tokens of the style sheet, in both themes; and signs that do not rely on colour."""

from __future__ import annotations

import re

import pytest

from faultline.reports.legend import FAULT_FAMILIES, STATUSES, fault_family, status
from faultline.reports.page import asset
from faultline.reports.svg import hatch_definitions

TEXT = ("text", "quiet", "link", "violation", "info-text", "fault-text")
TEXT_ON_PAGE_ONLY = ("ok",)
GRAPHICS = ("ok", "info", "fail", "violation", "fault", "axis")
THEMES = ("light", "dark")


def tokens(theme: str) -> dict[str, str]:
    blocks = re.findall(r":root \{(.*?)\}", asset("report.css"), flags=re.DOTALL)
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[THEMES.index(theme)]))


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_the_measure_of_contrast_agrees_with_its_definition() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", TEXT)
@pytest.mark.parametrize("ground", ["page", "panel"])
def test_text_can_be_read(theme: str, name: str, ground: str) -> None:
    colours = tokens(theme)
    assert contrast(colours[name], colours[ground]) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", TEXT_ON_PAGE_ONLY)
def test_the_sign_of_a_pass_can_be_read(theme: str, name: str) -> None:
    assert contrast(tokens(theme)[name], tokens(theme)["page"]) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", GRAPHICS)
def test_graphics_can_be_seen(theme: str, name: str) -> None:
    assert contrast(tokens(theme)[name], tokens(theme)["page"]) >= 3


def test_both_themes_define_the_same_tokens_and_every_colour_used_is_one() -> None:
    assert set(tokens("light")) == set(tokens("dark"))
    used = set(re.findall(r"var\(--([\w-]+)\)", asset("report.css")))
    assert used == set(tokens("light"))
    rules = asset("report.css").split("* { box-sizing", 1)[1]
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgba?\(|hsl", rules)


def test_no_two_statuses_share_a_sign_or_a_word() -> None:
    assert len({status.glyph for status in STATUSES}) == len(STATUSES) == len({status.word for status in STATUSES})


def test_no_two_families_of_faults_share_a_hatch_or_a_sign() -> None:
    paths = re.findall(r'<path d="([^"]+)"', hatch_definitions("test"))
    assert len(set(paths)) == len(FAULT_FAMILIES) == len({family.begin for family in FAULT_FAMILIES})


@pytest.mark.parametrize(
    ("kind", "family"),
    [
        ("partition", "partition"), ("kill", "kill"), ("pause", "pause"), ("clock-step", "clock"),
        ("clock-strobe", "clock"),
        ("clock-drift", "clock"), ("packet-loss", "packet"), ("packet-delay", "packet"), ("packet-duplicate", "packet"),
        ("disk-full", "other"),
    ],
)  # fmt: skip
def test_every_nemesis_has_its_family(kind: str, family: str) -> None:
    assert fault_family(kind).name == family


def test_an_unknown_status_is_shown_as_not_known() -> None:
    assert (status("half-done").glyph, status("half-done").word) == ("?", "half-done")
