"""Finds the blocks of commands in the documents and runs those that say they can be run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Block", "Ran", "blocks_of", "complaints_about", "run_block"]

FENCE = re.compile(
    r"(?:^<!--(?P<comment>(?:(?!-->).)*)-->\n)?^```(?P<kind>console|sh)\n(?P<text>.*?)^```$", re.M | re.S
)
PYTHON = re.compile(
    r"^<!--(?P<comment>\s*run\b(?:(?!-->).)*)-->\n^```(?P<kind>python)\n(?P<text>.*?)^```$", re.M | re.S
)
"""Blocks of Python are run where a comment says so; the others are parts of programs."""
PRINTED = "# → "
"""The beginning of a line in a block of Python that says what the block prints."""
REPOSITORY = Path(__file__).resolve().parents[2]
COMMENT = re.compile(r"\s*run(?:, exit (?P<exit>\d+))?\s*$")
ELSEWHERE = re.compile(r"\s*run elsewhere: \S.*", re.S)


@dataclass(frozen=True)
class Block:
    """One block: the line it begins on, its kind, its text, and what the comment above it says."""

    line: int
    kind: str
    text: str
    comment: str | None

    @property
    def is_run_elsewhere(self) -> bool:
        """True when the comment says that the block is not run here, and names the place where it is."""
        return bool(self.comment and ELSEWHERE.fullmatch(self.comment))

    @property
    def expected_exit(self) -> int | None:
        """The code the last command must end with; None when the comment does not say that the block is run."""
        match = COMMENT.fullmatch(self.comment or "")
        return int(match["exit"] or 0) if match else None

    @property
    def script(self) -> str:
        """The text for the shell; of a console block, the lines after `$ ` with their continuations."""
        if self.kind == "sh":
            return self.text
        if self.kind == "python":
            return f"python - <<'END_OF_BLOCK'\n{self.text}END_OF_BLOCK\n"
        taken, continued = [], False
        for line in self.text.splitlines():
            if continued or line.startswith("$ "):
                taken.append(line if continued else line[2:])
                continued = line.endswith("\\")
        return "\n".join(taken)

    @property
    def shown_output(self) -> list[str]:
        """The lines of output that a block shows; `…` stands for lines, or part of a line, left out."""
        if self.kind == "sh":
            return []
        if self.kind == "python":
            return [line.removeprefix(PRINTED) for line in self.text.splitlines() if line.startswith(PRINTED)]
        script = set(self.script.splitlines())
        lines = [line for line in self.text.splitlines() if not line.startswith("$ ") and line not in script]
        return [line.strip() for line in lines if line.strip() not in ("", "…")]


@dataclass(frozen=True)
class Ran:
    """The exit code of a block, and everything that it printed."""

    exit_code: int
    output: str


def blocks_of(markdown: str) -> list[Block]:
    """All blocks of commands in a document, in order, with the blocks of Python that are run."""
    matches = sorted([*FENCE.finditer(markdown), *PYTHON.finditer(markdown)], key=lambda match: match.start())
    return [
        Block(markdown.count("\n", 0, match.start("kind")) + 1, match["kind"], match["text"], match["comment"])
        for match in matches
    ]


def run_block(block: Block, folder: Path) -> Ran:
    """Run a block in `folder`, as a user would with the environment of these tests on the PATH.

    `FAULTLINE_REPOSITORY` is where this repository is.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "COLUMNS": "120", "FAULTLINE_REPOSITORY": str(REPOSITORY)}
    done = subprocess.run(
        ["bash", "-uo", "pipefail", "-c", block.script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return Ran(done.returncode, done.stdout)


def complaints_about(block: Block, ran: Ran) -> list[str]:
    """Return a complaint for each difference between the exit code and output of a block and those in the document."""
    complaints = []
    if ran.exit_code != block.expected_exit:
        complaints.append(f"line {block.line}: ended with {ran.exit_code}, not {block.expected_exit}:\n{ran.output}")
    printed = " ".join(ran.output.split())
    complaints += [
        f"line {block.line}: does not print {line!r}, but:\n{ran.output}"
        for line in block.shown_output
        if not _pattern(line).search(printed)
    ]
    return complaints


def _pattern(shown: str) -> re.Pattern[str]:
    return re.compile(".*?".join(re.escape(" ".join(part.split())) for part in shown.split("…")))
