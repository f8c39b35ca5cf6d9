"""Transcripts of any system: what the player of `faultline.testing` prints, refuses and checks."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from faultline.registry import load_system
from faultline.testing import TranscriptPlayer, check_transcript
from faultline.testing.transcripts import CommandError

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "test-a-node-by-hand.md"


def player() -> TranscriptPlayer:
    return TranscriptPlayer(load_system("consistent-core"))


def test_a_story_that_gives_other_output_than_it_says_fails_with_the_difference(tmp_path: Path) -> None:
    story = tmp_path / "story.txt"
    story.write_text("cluster 3\nshow marks\n----\nsome mark\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"(?s)story.txt gives other output than it says.*-some mark.*\+none"):
        check_transcript(story, player().execute)
    check_transcript(story, player().execute, rewrite=True)
    check_transcript(story, player().execute)


def test_messages_and_events_of_any_system_have_words() -> None:
    play = player()
    play.execute("cluster 3")
    play.execute("pass 1s")
    assert play.execute("show status")[0].startswith("athens: ")
    play.execute("crash athens")
    assert play.execute("show status athens") == ["athens: down"]


def test_a_command_needs_a_system_and_a_cluster() -> None:
    with pytest.raises(CommandError, match="the player was given no system"):
        TranscriptPlayer().execute("cluster 3")
    with pytest.raises(CommandError, match="the first command is `cluster 3`"):
        player().execute("heal")


def test_every_command_stands_on_the_page_as_its_docstring_says_it() -> None:
    rows = []
    for name, method in vars(TranscriptPlayer).items():
        if name.startswith("do_"):
            usage, _, told = inspect.cleandoc(method.__doc__).partition("\n\n")
            rows.append(f"| `{usage}` | {' '.join(told.split()).removesuffix('.')} |")
    page = PAGE.read_text(encoding="utf-8").replace("\\|", "|")
    assert [row for row in rows if row not in page] == []
