"""`faultline story`: a story that holds ends with 0, one that a planted bug breaks with 1, and bad changes with 2."""

from __future__ import annotations

import pytest

from faultline.story.scenes import scenes


def test_the_whole_story_holds(faultline):
    ended = faultline("story", "--brief")
    paragraphs = sum(len(scene.paragraphs) for scene in scenes().values())
    assert ended.code == 0
    assert ended.out.splitlines()[-1] == f"{len(scenes())} scenes, {paragraphs} paragraphs: every paragraph holds."
    assert all(scene.title in ended.out for scene in scenes().values())


def test_a_scene_is_told_with_its_commands_their_output_and_its_links(faultline):
    ended = faultline("story", "competing-updates")
    assert ended.code == 0
    assert "[3] Bob asks Neptune to move 40 from Boston to Pune." in ended.out
    assert "    > transfer bob neptune 40 boston pune\n    > settle\n    neptune → bob: #2 ok\n" in ended.out
    assert "    checked throughout: LDR-I1, LOG-I2\n" in ended.out
    assert "    breaks with: faultline story competing-updates --plant dirty-read\n" in ended.out


def test_a_planted_bug_shows_which_paragraph_breaks_and_how(faultline):
    ended = faultline("story", "committed-by-a-quorum", "--plant", "vote-for-any-log")
    assert ended.code == 1
    assert "Committed by a quorum, with the bug vote-for-any-log" in ended.out
    assert "    - saturn → jupiter: pre-vote refused in generation 1\n" in ended.out
    assert "LDR-I3: " in ended.out
    assert "committed-by-a-quorum: paragraph 3 breaks" in ended.out


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("--leave-out", "3"), "without paragraph 3"),
        (("--instead", "3", "transfer bob neptune 20 boston pune; settle"), "with `transfer bob neptune 20"),
    ],
)
def test_a_changed_paragraph_breaks_the_one_that_rests_on_it(faultline, change, says):
    ended = faultline("story", "competing-updates", *change)
    assert ended.code == 0
    assert says in ended.out
    assert "This paragraph was changed by you." in ended.out
    assert "competing-updates: paragraph 4 breaks.\n" in ended.out


def test_a_change_that_breaks_nothing_ends_with_0(faultline):
    ended = faultline("story", "deposed-leader", "--plant", "vote-for-any-log")
    assert (ended.code, ended.out.splitlines()[-2]) == (0, "deposed-leader: every paragraph holds.")


def test_a_scene_is_told_on_processes_that_are_counted(faultline):
    ended = faultline("story", "lost-response", "--world", "local", "--brief")
    assert ended.code == 0
    assert "lost-response: every paragraph holds." in ended.out
    assert "on processes of their own, 3 in all, 1 of them killed by a crash" in ended.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("competing-update",), "Did you mean competing-updates?"),
        (("--plant", "dirty-read"), "A change needs the scene that it changes."),
        (("two-files", "--plant", "dirty-read"), "has no planted bug 'dirty-read'"),
        (("two-files", "--leave-out", "7"), "Its paragraphs are numbered 1 to 5"),
        (("two-files", "--leave-out", "2", "--plant", "logs-nothing"), "A scene takes one change at a time."),
    ],
)
def test_a_change_that_cannot_be_made_is_refused_with_a_next_step(faultline, arguments, says):
    ended = faultline("story", *arguments)
    assert ended.code == 2
    assert says in ended.err


def test_the_list_names_each_scene_with_its_system(faultline):
    ended = faultline("story", "--list")
    assert ended.code == 0
    assert [line.split()[0] for line in ended.out.splitlines()] == list(scenes())
    assert "location-files" in ended.out
