"""Transcripts: a story as a text file of commands and the output that each is expected to give.

    # rows: LOG-S3
    # What the story is about, in a sentence or two.

    cluster 3
    elect athens
    ----
    athens leads generation 1

    show log athens
    ----
    athens: 1/1 no-op

A step is one command or several, a line `----`, and the output up to the next empty line. Lines that begin with `#` are
for the reader, except that the first may name the requirement rows that the story shows. (The format is that of the
data-driven tests of CockroachDB and of etcd's Raft library.) `TranscriptPlayer` carries the commands out.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

__all__ = [
    "CommandError",
    "Execute",
    "Step",
    "Transcript",
    "TranscriptError",
    "check_transcript",
    "parse_transcript",
    "read_transcript",
]

SEPARATOR = "----"
ROWS = "# rows:"

Execute = Callable[[str], list[str]]
"""Carry out one command and return the lines it prints. Raise `CommandError` when it cannot be carried out."""


class CommandError(Exception):
    """A command that cannot be carried out: unknown, or with arguments that make no sense."""


class TranscriptError(Exception):
    """A defect of a transcript file, with its place."""


@dataclass(frozen=True)
class Step:
    """Commands and the output they are expected to give together. `line` is the number of the first command's line."""

    line: int
    commands: tuple[str, ...]
    output: tuple[str, ...]
    separated: bool = True

    def text(self) -> str:
        """Return the step as the file holds it."""
        return "\n".join([*self.commands, SEPARATOR, *self.output])


@dataclass(frozen=True)
class Transcript:
    """One file: steps, and between them the lines for the reader."""

    path: Path
    parts: tuple[Step | str, ...]

    @property
    def steps(self) -> list[Step]:
        """The steps, in order."""
        return [part for part in self.parts if isinstance(part, Step)]

    @property
    def rows(self) -> tuple[str, ...]:
        """The requirement rows that the file says it shows."""
        first = self.parts[0] if self.parts else ""
        if isinstance(first, Step) or not first.startswith(ROWS):
            return ()
        return tuple(first.splitlines()[0].removeprefix(ROWS).split())

    def text(self) -> str:
        """Return the whole file."""
        return "\n\n".join(part.text() if isinstance(part, Step) else part for part in self.parts) + "\n"

    def run(self, execute: Execute) -> Transcript:
        """Return the same commands with the output that they give. Raise TranscriptError where one fails."""
        return replace(self, parts=tuple(self._run(part, execute) for part in self.parts))

    def _run(self, part: Step | str, execute: Execute) -> Step | str:
        if isinstance(part, str):
            return part
        output: list[str] = []
        for offset, command in enumerate(part.commands):
            try:
                output += execute(command)
            except (CommandError, AssertionError) as error:
                raise TranscriptError(f"{self.path.name}:{part.line + offset}: `{command}`: {error}") from error
        return replace(part, output=tuple(output) or ("ok",), separated=True)


def check_transcript(path: Path, execute: Execute, *, rewrite: bool = False) -> None:
    """Raise AssertionError with the difference when the commands in `path` give other output than the file says.

    With `rewrite` the file is written anew instead, with the output that the commands give.
    """
    expected = read_transcript(path)
    given = expected.run(execute)
    if rewrite:
        path.write_text(given.text(), encoding="utf-8")
        return
    lines = expected.text().splitlines(), given.text().splitlines()
    difference = "\n".join(difflib.unified_diff(*lines, "expected", "given", lineterm=""))
    if difference:
        raise AssertionError(f"{path.name} gives other output than it says:\n{difference}")


def read_transcript(path: Path) -> Transcript:
    """Return the transcript in the file `path`."""
    return parse_transcript(path, path.read_text(encoding="utf-8"))


def parse_transcript(path: Path, text: str) -> Transcript:
    """Return the transcript that `text` holds. Raise TranscriptError for a comment among commands."""
    return Transcript(path, tuple(_part(path, *paragraph) for paragraph in _paragraphs(text)))


def _paragraphs(text: str) -> Iterator[tuple[int, list[str]]]:
    lines: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        if line.strip():
            lines.append(line.rstrip())
        elif lines:
            yield number - len(lines), lines
            lines = []


def _part(path: Path, number: int, lines: list[str]) -> Step | str:
    if all(line.startswith("#") for line in lines):
        return "\n".join(lines)
    commands = lines[: lines.index(SEPARATOR)] if SEPARATOR in lines else lines
    for offset, command in enumerate(commands):
        if command.startswith("#"):
            where = f"{path.name}:{number + offset}"
            raise TranscriptError(f"{where}: a comment stands in a paragraph of its own, not among commands")
    return Step(number, tuple(commands), tuple(lines[len(commands) + 1 :]), SEPARATOR in lines)
