"""The page of a history checked by the port of Porcupine."""

from __future__ import annotations

import pytest
from page_reader import Page
from test_report_hostile_values import HOSTILE

from faultline.checkers.porcupine import (
    PENDING,
    Annotation,
    Model,
    Operation,
    check_operations_verbose,
    visualize_path,
)
from faultline.reports.porcupine_page import LINEARIZATIONS_MAX, OPERATIONS_MAX, PARTS_MAX
from faultline.reports.text import visible

Register = Model(
    init=lambda: 0,
    step=lambda state, given, answer: (True, given[1]) if given[0] == "put" else (answer == state, state),
    describe_operation=lambda given, answer: f"put {given[1]}" if given[0] == "put" else f"get {answer}",
    partition=lambda history: list(
        {o.client_id // 10: [p for p in history if p.client_id // 10 == o.client_id // 10] for o in history}.values()
    ),
)
ILLEGAL = [
    Operation(0, ("put", 200), 0, None, 100),
    Operation(1, ("get", None), 10, 200, 30),
    Operation(2, ("get", None), 40, 0, 90),
]


def page_of(tmp_path, history, *annotations, model=Register):
    _, information = check_operations_verbose(model, history)
    information.add_annotations(annotations)
    path = visualize_path(model, information, tmp_path / "page.html")
    return Page(path.read_text("utf-8"))


def test_an_illegal_history_lists_the_longest_partial_linearization_and_what_it_leaves_out(tmp_path):
    page = page_of(tmp_path, ILLEGAL)
    text = page.section("part-1")
    assert "3 operations; no linearization holds more than 2 of them; 1 is in none at all." in text
    assert "What the longest linearization leaves out get 0, by client 2, from 40 until 90" in " ".join(text.split())
    assert "The longest partial linearization, of 2 operations" in text
    assert "put 200, by client 0, from 0 until 100; then the state is 200" in text


def test_a_legal_history_says_so_and_shows_its_linearization(tmp_path):
    page = page_of(tmp_path, [*ILLEGAL[:2], Operation(3, ("put", 5), 50, None, PENDING)])
    assert "There is a linearization of every operation that returned." in page.text
    assert "leaves out" not in page.text


def test_bars_lead_to_linearizations_that_are_on_the_page_and_nothing_leads_outside(tmp_path):
    page = page_of(tmp_path, ILLEGAL)
    assert page.links.count("#part-1-linearization-1") == 2
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert len(page.figures()) == 1


def test_annotations_stand_in_the_figure_and_in_words(tmp_path):
    page = page_of(tmp_path, ILLEGAL, Annotation(20, "cut", end=60, tag="nemesis", details="all of it"))
    assert "cut, nemesis, from 20 until 60: all of it" in page.section("annotations")
    assert "nemesis" in "".join(page.figures()[0].itertext())


def test_the_same_check_gives_the_same_bytes(tmp_path):
    assert page_of(tmp_path, ILLEGAL).html == page_of(tmp_path, ILLEGAL).html


def test_large_histories_are_cut_and_the_page_says_so(tmp_path):
    many = [Operation(0, ("put", number), 2 * number, None, 2 * number + 1) for number in range(OPERATIONS_MAX + 50)]
    page = page_of(tmp_path, [*many, Operation(1, ("get", None), 1_000, -1, 1_001)])
    assert "51 operations further away are not drawn" in page.text
    parts = [Operation(10 * number, ("put", 1), 0, None, 1) for number in range(PARTS_MAX + 3)]
    assert "3 parts left out" in page_of(tmp_path, parts).text


def test_shorter_linearizations_are_left_out_beyond_a_bound(tmp_path):
    history = [Operation(0, ("get", None), 500, -1, 501)]
    history += [Operation(1, ("put", number), 0, None, 100) for number in range(1, 5)]
    history += [Operation(2, ("get", None), 200 + number, 1 + number % 4, 200 + number) for number in range(4)]
    page = page_of(tmp_path, history)
    assert sum("-linearization-" in name for name in page.ids) <= LINEARIZATIONS_MAX


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_value_is_shown_and_does_nothing(tmp_path, value):
    hostile = Model(
        init=lambda: value,
        step=lambda state, given, answer: (given == "fine", state),
        describe_operation=lambda given, answer: value,
        describe_state=lambda state: value,
    )
    history = [Operation(0, "fine", 0, value, 1), Operation(1, "bad", 2, value, 3)]
    note = Annotation(0, value, details=value, tag=value, text_color=value, background_color=value)
    page = page_of(tmp_path, history, note, model=hostile)
    assert len(page.scripts) == 1
    assert "alert" not in page.scripts[0]
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert len(page.html) < 1_000_000
    assert not set(page.html) & {"\x00", "\u202e", "\x1b", "\ud800"}
    assert visible(value[:40]) in page.text
