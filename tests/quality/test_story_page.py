"""The page of the story: each line points to something that is there, and each bug has a recorded run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from faultline.story.location_files import LocationFiles
from faultline.story.scenes import scenes
from faultline.story.telling import system_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def story_page(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import story_page

    yield story_page
    sys.modules.pop("story_page")


def test_every_line_names_paragraphs_a_test_or_a_reason_that_exist_and_every_scene_is_named(story_page: Any) -> None:
    assert story_page.faults(story_page.load_chapters()) == []


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("two-files 1 9", "paragraphs (1, 9) of the scene two-files, which has 5"),
        ("two-file 1", "paragraphs (1,) of the scene two-file, which has 0"),
        ("tests/scenarios/test_nothing.py", "which is neither a reason nor a file"),
        ("no-reason", "which is neither a reason nor a file"),
    ],
)
def test_a_line_that_names_what_is_not_there_is_found(story_page: Any, where: str, says: str) -> None:
    chapters = story_page.load_chapters()
    wrong = story_page.Section(1, "Nothing", [("No such paragraph", where)])
    found = story_page.faults(msgspec.structs.replace(chapters, sections=[*chapters.sections, wrong]))
    assert len(found) == 1 and says in found[0]


def test_a_scene_that_no_paragraph_of_the_book_names_is_found(story_page: Any) -> None:
    chapters = story_page.load_chapters()
    kept = [section for section in chapters.sections if "Gossip" not in section.title]
    found = story_page.faults(msgspec.structs.replace(chapters, sections=kept))
    assert "no paragraph of the book names the scene eight-planets" in found


def test_a_paragraph_of_the_book_without_a_line_is_found(story_page: Any) -> None:
    chapters = story_page.load_chapters()
    begins = chapters.sections[0].paragraphs[0][0]
    assert story_page.without_line(chapters, f"{begins} digital world.\n\n*No* line says this.") == [
        "No line says this."
    ]


def test_every_bug_that_a_paragraph_prevents_has_a_recorded_run_that_finds_it(story_page: Any) -> None:
    from bug_evidence import read_records

    records = read_records()
    without = {
        (scene.name, bug)
        for scene in scenes().values()
        for paragraph in scene.paragraphs
        for bug in paragraph.prevents
        if not story_page.link_of_bug(scene, bug, records)
    }
    # The server with its files is driven by no campaign, so that the scene is the only record of its bugs.
    assert {system_of(scenes()[scene]) for scene, _ in without} == {LocationFiles.name}
