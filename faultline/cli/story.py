"""`faultline story`: chapters 1 and 2 as scenes on real nodes, and what breaks when a reader changes one thing."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from faultline.cli.output import say
from faultline.cli.sealed_outcome import Sealed

if TYPE_CHECKING:
    from faultline.story.in_processes import Processes
    from faultline.story.scenes import Paragraph, Scene
    from faultline.story.telling import Change, Told

__all__ = ["command"]

_WIDTH = 100


@click.command("story")
@click.argument("scene", required=False)
@click.option("--list", "listed", is_flag=True, help="List the scenes instead.")
@click.option("--plant", "planted_bug", default="", metavar="BUG", help="Plant a bug in the nodes of SCENE.")
@click.option("--leave-out", type=int, metavar="N", help="Leave paragraph N of SCENE out.")
@click.option("--instead", type=(int, str), metavar="N COMMANDS", help="Commands, by `;`, in place of paragraph N.")
@click.option(
    "--world",
    type=click.Choice(["simulated", "local"]),
    default="simulated",
    show_default=True,
    help="Whether nodes live in this process, or each in one of its own, on real files.",
)
@click.option("--brief", is_flag=True, help="Print the paragraphs without their commands and output.")
def command(
    scene: str | None,
    listed: bool,
    planted_bug: str,
    leave_out: int | None,
    instead: tuple[int, str] | None,
    world: str,
    brief: bool,
) -> Sealed | int:
    """Tell the story of chapters 1 and 2, or one SCENE of it, step by step on real nodes.

    Each paragraph is a claim; its commands run, and their output must be what the paragraph says. One thing may be
    changed, to see which paragraph breaks. Ends with 0 when every paragraph holds, and with 1 when one does not; with
    0 also when a paragraph that was changed breaks others.
    """
    from faultline.story.in_processes import Processes
    from faultline.story.scenes import scene_called, scenes

    change = _change(scene, planted_bug, leave_out, instead)
    chosen = list(scenes().values()) if scene is None else [scene_called(scene)]
    if listed:
        say("\n".join(line for each in chosen for line in _listing(each)))
        return 0
    processes = Processes() if world == "local" else None
    broken = [number for each in chosen for number in _tell(each, change, processes, brief)]
    if scene is None:
        paragraphs = sum(len(each.paragraphs) for each in chosen)
        say(f"{len(chosen)} scenes, {paragraphs} paragraphs: {_ending(broken)}")
    if processes is not None:
        say(_played_by(processes))
    if change.paragraph:
        return 0  # What the reader broke accuses no node.
    return Sealed(verdict="violation" if broken else "pass", checks_due=("story",), checks_ran=("story",))


def _change(scene: str | None, planted_bug: str, leave_out: int | None, instead: tuple[int, str] | None) -> Change:
    from faultline.harness.errors import UsageError
    from faultline.story.telling import Change

    given = [bool(planted_bug), leave_out is not None, instead is not None]
    if sum(given) > 1:
        raise UsageError("A scene takes one change at a time.", "Give one of --plant, --leave-out and --instead.")
    if any(given) and scene is None:
        raise UsageError("A change needs the scene that it changes.", "Name it: `faultline story --list` lists them.")
    if instead is not None:
        commands = tuple(filter(None, map(str.strip, instead[1].split(";"))))
        return Change(paragraph=instead[0], commands=commands)
    return Change(planted_bug=planted_bug, paragraph=0 if leave_out is None else leave_out)


def _listing(scene: Scene) -> Iterator[str]:
    from faultline.story.telling import system_of

    yield f"{scene.name:<24} {scene.title} ({len(scene.paragraphs)} paragraphs, {system_of(scene)})"


def _played_by(processes: Processes) -> str:
    return (
        f"Every paragraph was told on processes of their own, {processes.started} in all, {processes.crashed} of them"
        " killed by a crash. The scenes decided the order of messages, timers and clocks."
    )


def _tell(scene: Scene, change: Change, processes: Processes | None, brief: bool) -> list[int]:
    """Tell one scene and return the numbers of the paragraphs that do not hold."""
    from faultline.story.telling import tell

    said = change.words()
    say(f"{scene.title}{f', {said}' if said else ''}\n{'=' * len(scene.title)}")
    say("\n".join([*_wrapped(scene.about), ""]))
    broken: list[int] = []
    for told in tell(scene, change, processes):
        if not told.holds:
            broken.append(told.paragraph.number)
        say("\n".join([*_told_lines(scene, told, brief), ""]))
        untold = len(scene.paragraphs) - told.paragraph.number
        if told.stopped and untold:
            say(f"The scene cannot go on, and its last {untold} paragraphs are not told.")
    say(f"{scene.name}: {_ending(broken)}\n")
    return broken


def _ending(broken: list[int]) -> str:
    if not broken:
        return "every paragraph holds."
    others = f", and after it {', '.join(map(str, broken[1:]))}" if len(broken) > 1 else ""
    return f"paragraph {broken[0]} breaks{others}."


def _told_lines(scene: Scene, told: Told, brief: bool) -> Iterator[str]:
    paragraph = told.paragraph
    mark = f"[{paragraph.number}]"
    yield from textwrap.wrap(
        paragraph.claim, _WIDTH, initial_indent=f"{mark} ", subsequent_indent=" " * (len(mark) + 1)
    )
    if told.changed:
        yield "    This paragraph was changed by you."
    if not told.holds:
        yield "    THIS BREAKS."
    if not brief or not told.holds:
        yield from _indented(f"> {line}" for line in ([] if told.changed else paragraph.commands))
        yield from _indented(_compared(told))
    yield from _indented(told.broken)
    if told.stopped:
        yield f"    stopped at {told.stopped}"
    yield from _links(scene, paragraph)


def _compared(told: Told) -> Iterator[str]:
    """Yield the lines that were given; where they differ, the expected ones with `-` and the given ones with `+`."""
    import difflib

    if told.holds or told.changed:
        yield from told.lines
        return
    for line in difflib.ndiff(told.paragraph.output, told.lines):
        if not line.startswith("?"):
            yield line


def _links(scene: Scene, paragraph: Paragraph) -> Iterator[str]:
    if paragraph.holds:
        yield f"    checked throughout: {', '.join(paragraph.holds)}"
    for bug in paragraph.prevents:
        yield f"    breaks with: faultline story {scene.name} --plant {bug}"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH)
