"""The scenes of the story: one transcript each, in the folder `scenes`, of numbered paragraphs.

    # rows: SYS-S2
    # title: Competing updates
    # What the scene is about.

    # Bob's transfer comes first, so Alice's is refused.
    # holds: LOG-I2
    # prevents: dirty-read

    transfer bob neptune 40 boston pune
    deliver
    ----
    …

A paragraph is a comment, which is the claim, and the commands below it with the output that shows the claim. `holds`
names invariants that are checked at every step of it, `prevents` planted bugs of the scene's system: with one of these
planted, this paragraph gives other output than it says. The rest of the format is that of `faultline.testing`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from faultline.harness.errors import UsageError
from faultline.testing.transcripts import Step, Transcript, read_transcript

__all__ = ["SCENES", "Paragraph", "Scene", "scene_called", "scenes"]

SCENES = Path(str(files(__package__))) / "scenes"
"""The folder of the scenes."""

_TITLE = "title"
_ORDER = "order.txt"


@dataclass(frozen=True)
class Paragraph:
    """A claim of the story, and the steps that show it."""

    number: int
    claim: str
    steps: tuple[Step, ...]
    holds: tuple[str, ...] = ()
    prevents: tuple[str, ...] = ()

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands of its steps, in order."""
        return tuple(command for step in self.steps for command in step.commands)

    @property
    def output(self) -> tuple[str, ...]:
        """The lines that the commands must give."""
        return tuple(line for step in self.steps for line in step.output)


@dataclass(frozen=True)
class Scene:
    """One scene: its title, the requirement rows that it shows, and its paragraphs."""

    name: str
    title: str
    about: str
    rows: tuple[str, ...]
    paragraphs: tuple[Paragraph, ...]

    def paragraph(self, number: int) -> Paragraph:
        """Return the paragraph with this number. Raise UsageError when there is none."""
        if not 1 <= number <= len(self.paragraphs):
            raise UsageError(
                f"The scene {self.name} has no paragraph {number}.",
                f"Its paragraphs are numbered 1 to {len(self.paragraphs)}; `faultline story {self.name}` tells them.",
            )
        return self.paragraphs[number - 1]


@cache
def scenes() -> dict[str, Scene]:
    """Return the scenes by name, in the order in which the story tells them."""
    names = (SCENES / _ORDER).read_text(encoding="utf-8").split()
    return {name: _scene(read_transcript(SCENES / f"{name}.txt")) for name in names}


def scene_called(name: str) -> Scene:
    """Return the scene. Raise UsageError when there is none of this name."""
    if name not in scenes():
        near = difflib.get_close_matches(name, scenes(), 1)
        hint = f"Did you mean {near[0]}?" if near else "`faultline story --list` lists them."
        raise UsageError(f"There is no scene {name!r}.", hint)
    return scenes()[name]


def _scene(transcript: Transcript) -> Scene:
    head, *parts = transcript.parts
    about, marks = _sentences(str(head))
    blocks: list[tuple[str, list[Step]]] = []
    for part in parts:
        if isinstance(part, str):
            blocks.append((part, []))
        else:
            blocks[-1][1].append(part)
    paragraphs = []
    for number, (comment, steps) in enumerate(blocks, start=1):
        claim, named = _sentences(comment)
        holds, prevents = (tuple(named.get(mark, "").split()) for mark in ("holds", "prevents"))
        paragraphs.append(Paragraph(number, claim, tuple(steps), holds, prevents))
    return Scene(transcript.path.stem, marks[_TITLE], about, transcript.rows, tuple(paragraphs))


def _sentences(comment: str) -> tuple[str, dict[str, str]]:
    """Return the prose of a comment and its marks, which are lines such as `# holds: LOG-I2`."""
    prose: list[str] = []
    marks: dict[str, str] = {}
    for line in comment.splitlines():
        name, colon, value = line.removeprefix("#").strip().partition(": ")
        if colon and name in (_TITLE, "rows", "holds", "prevents"):
            marks[name] = value
        else:
            prose.append(line.removeprefix("#").strip())
    return " ".join(prose), marks
