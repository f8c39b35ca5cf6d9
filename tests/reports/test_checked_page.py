"""The page of a history that was checked under a model by name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs
from page_reader import Page
from test_report_hostile_values import HOSTILE

from faultline.checkers import Operation, check
from faultline.checkers.drawing import checked_page
from faultline.reports.checked_page import FINDINGS_MAX
from faultline.reports.porcupine_page import OPERATIONS_MAX
from faultline.reports.text import visible

WRITE = Operation(0, ("write", "x", 1), 0, None, 1)
LOST = Operation(1, ("read", "x", None), 2, None, 3)


def page_of(model, operations):
    return Page(check(model, operations).html())


def test_a_finding_is_told_drawn_listed_and_argued():
    page = page_of("register", [WRITE, LOST])
    text = " ".join(page.section("finding-1").split())
    assert page.headings == ["register: violation", "lost-write"]
    assert "1. client 0 wrote 1 to x" in text
    assert "2. client 1 read nothing from x" in text
    assert "the state is 1, and 2 cannot be next" in text
    (figure,) = page.figures()
    assert "client 0" in "".join(figure.itertext())


def test_the_operation_that_cannot_be_next_stands_out_and_the_others_do_not():
    page = page_of("register", [WRITE, LOST])
    classes = [attributes.get("class") for tag, attributes in page.tags if tag == "g"]
    assert classes == ["operation ok", "operation ok telling"]


def test_a_history_without_findings_is_drawn_up_to_a_bound():
    many = [Operation(0, ("write", "x", at), at, None, at + 0.5) for at in range(OPERATIONS_MAX + 7)]
    page = page_of("register", many)
    assert "7 operations after these are not drawn." in page.text
    assert sum(tag == "g" for tag, _ in page.tags) == OPERATIONS_MAX
    assert "not drawn" not in page_of("register", many[:9]).text


@pytest.mark.parametrize(("more", "said"), [(0, False), (3, True)])
def test_findings_beyond_a_bound_are_counted(more, said):
    checked = check("register", [WRITE, LOST]).checked.history
    many = structs.replace(checked.result, findings=checked.result.findings * (FINDINGS_MAX + more))
    page = Page(checked_page(replace(checked, result=many)))
    assert ("3 findings left out." in page.text) is said
    assert page.headings.count("lost-write") == FINDINGS_MAX


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_value_is_shown_and_does_nothing(value):
    write = Operation(0, ("write", value, value), 0, None, 1)
    page = page_of("register", [write, Operation(1, ("read", value, None), 2, value + "2", 3)])
    assert len(page.scripts) == 1
    assert "alert" not in page.scripts[0]
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert not set(page.html) & {"\x00", "\u202e", "\x1b", "\ud800"}
    assert visible(value[:40]) in page.text
