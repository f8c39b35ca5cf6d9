"""The story of chapters 1 and 2: each paragraph goes as it says, and breaks with each bug that it says it prevents.

`pytest tests/scenarios --rewrite-transcripts` writes down what the scenes give, as for the other transcripts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from faultline.harness.errors import UsageError
from faultline.story.scenes import SCENES, Scene, scene_called, scenes
from faultline.story.telling import Change, planted_bugs_of, player_of, tell
from faultline.systems_under_test.patterns.requirement_rows import load_requirements
from faultline.testing.transcripts import check_transcript, read_transcript

ALL = list(scenes().values())
PREVENTED = [
    (scene, paragraph.number, bug) for scene in ALL for paragraph in scene.paragraphs for bug in paragraph.prevents
]


def broken(scene: Scene, change: Change) -> list[int]:
    """Return the numbers of the paragraphs that do not hold under the change."""
    return [told.paragraph.number for told in tell(scene, change) if not told.holds]


@pytest.mark.parametrize(
    "scene", [pytest.param(scene, id=scene.name, marks=pytest.mark.rows(*scene.rows)) for scene in ALL]
)
def test_a_scene_goes_as_it_says(scene: Scene, request: pytest.FixtureRequest) -> None:
    player = player_of(scene)
    path = SCENES / f"{scene.name}.txt"
    check_transcript(path, player.execute, rewrite=request.config.getoption("--rewrite-transcripts"))
    player.finish()
    assert broken(scene, Change()) == []


@pytest.mark.parametrize(("scene", "number", "bug"), PREVENTED, ids=[f"{s.name}-{n}-{bug}" for s, n, bug in PREVENTED])
def test_a_paragraph_is_the_first_that_breaks_with_a_bug_that_it_prevents(scene: Scene, number: int, bug: str) -> None:
    assert broken(scene, Change(planted_bug=bug))[0] == number


@pytest.mark.parametrize(("scene", "number", "bug"), PREVENTED, ids=[f"{s.name}-{n}-{bug}" for s, n, bug in PREVENTED])
def test_the_options_that_a_bug_brings_do_not_break_the_paragraph_without_it(
    scene: Scene, number: int, bug: str
) -> None:
    told = tell(with_options(scene, planted_bugs_of(scene)[bug].options), Change())
    assert all(next(told).holds for _ in range(number))


def with_options(scene: Scene, options: Mapping[str, str]) -> Scene:
    """Return the scene with these options in its clusters, where they have none of the name."""

    def changed(command: str) -> str:
        added = [f"{name}={value}" for name, value in options.items() if f" {name}=" not in command]
        return " ".join([command, *added]) if command.startswith("cluster ") else command

    paragraphs = [
        replace(each, steps=tuple(replace(step, commands=tuple(map(changed, step.commands))) for step in each.steps))
        for each in scene.paragraphs
    ]
    return replace(scene, paragraphs=tuple(paragraphs))


def test_each_scene_prevents_a_bug_and_names_rows_and_invariants_that_exist() -> None:
    known = {row for pattern in load_requirements().values() for row in pattern.rows}
    for scene in ALL:
        held = {row for paragraph in scene.paragraphs for row in paragraph.holds}
        assert held and held <= known, scene.name
        assert set(scene.rows) <= known, scene.name
        assert any(paragraph.prevents for paragraph in scene.paragraphs), scene.name


def test_what_a_paragraph_says_is_checked_throughout_is_an_invariant_of_its_system() -> None:
    for scene in ALL:
        player = player_of(scene)
        player.execute(scene.paragraphs[0].commands[0])
        checked = {invariant.id for invariant in player.cluster.invariants}
        assert {row for paragraph in scene.paragraphs for row in paragraph.holds} <= checked, scene.name


def test_every_file_of_the_folder_is_told_and_every_paragraph_has_a_claim_and_commands() -> None:
    assert {path.stem for path in SCENES.glob("*.txt")} == {*scenes(), "order"}
    for scene in ALL:
        assert scene.about and scene.rows
        assert all(paragraph.claim.endswith((".", "?")) and paragraph.commands for paragraph in scene.paragraphs)
        assert all(step.separated for step in read_transcript(SCENES / f"{scene.name}.txt").steps)


def test_a_paragraph_that_is_left_out_breaks_the_one_that_rests_on_it() -> None:
    # Bob's transfer is left out, so Alice's finds 50 widgets in Boston, and is done.
    scene = scene_called("competing-updates")
    told = list(tell(scene, Change(paragraph=3)))
    assert [each.paragraph.number for each in told if not each.holds] == [4]
    assert told[2].changed and told[2].lines == ()
    assert told[3].lines[-1] == "saturn: boston 20, philadelphia 38, london 50, pune 75; 183 in all"


@pytest.mark.parametrize(
    ("name", "number", "commands", "breaks"),
    [
        ("paused-leader", 2, (), 3),
        ("five-nodes", 4, (), 5),
        ("out-of-order", 2, (), 3),
        ("many-partitions", 2, (), 4),
        ("key-ranges", 4, (), 5),
        ("leases", 4, (), 5),
        ("watches", 2, (), 3),
        ("data-cluster", 4, (), 6),
        ("eight-planets", 3, (), 5),
        # Saturn says something that Jupiter has not heard when Neptune asks it.
        ("seed-node", 3, ("say saturn load 7", "gossip saturn neptune", "settle"), 4),
        ("oldest-member", 3, (), 4),
    ],
)
def test_a_paragraph_that_is_changed_breaks_a_later_one(
    name: str, number: int, commands: tuple[str, ...], breaks: int
) -> None:
    assert broken(scene_called(name), Change(paragraph=number, commands=commands))[0] == breaks


def test_other_commands_in_place_of_a_paragraph_are_carried_out() -> None:
    scene = scene_called("competing-updates")
    told = list(tell(scene, Change(paragraph=3, commands=("transfer bob neptune 20 boston pune", "settle"))))
    assert told[2].lines == ("neptune → bob: #2 ok",)
    assert [each.paragraph.number for each in told if not each.holds] == [4]


def test_a_scene_that_cannot_go_on_says_at_which_command() -> None:
    told = list(tell(scene_called("two-failures"), Change(paragraph=4)))
    assert told[-1].paragraph.number == 5
    assert told[-1].stopped == "`time-out neptune`: neptune is down; `restart neptune` starts it"


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("competing-updates", Change(planted_bug="logs-nothing"), "has no planted bug 'logs-nothing'"),
        ("two-files", Change(planted_bug="dirty-read"), "location-files, which plays the scene two-files"),
        ("two-files", Change(paragraph=99), "has no paragraph 99"),
        ("two-file", Change(), "There is no scene 'two-file'"),
    ],
)
def test_a_change_that_a_scene_does_not_allow_is_refused(name: str, change: Change, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        list(tell(scene_called(name), change))
