"""Fail each write, sync and rename of a command's results in turn, and check the verdict.

    python tools/fail_every_write.py                     every point of two runs, in every way
    python tools/fail_every_write.py --every 10          each tenth point

The runs have known answers: one violates, one passes. After any failure, no verdict may be lost (a found
violation ends with 1), invented (no other run ends with 1) or improved (only a run whose files were all kept ends with
0). The files on the disk must pass the same test: `faultline check` of them. SQLite tests its input and output errors
this way (https://sqlite.org/testing.html, section 3.2).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from results_faults import MODES, Control, install

from faultline.cli.main import carry_out
from faultline.harness.judgement import Judgement

__all__ = ["RUNS", "Point", "Run", "complaints", "main", "points"]


RESULTS = "results"


@dataclass(frozen=True, slots=True)
class Run:
    """A command whose answer is known: 1 when it violates, 0 when it passes."""

    name: str
    arguments: tuple[str, ...]
    answer: int


_SMALL = ("--system", "consistent-core", "--operations", "40")

RUNS = (
    # Small, and its minimal plan is not robust, so that a robust one is kept as well.
    Run("violates", (*_SMALL, "--planted-bug", "stale-read", "--seed", "54"), 1),
    Run("passes", (*_SMALL, "--faults", "none", "--seed", "1"), 0),
)


@dataclass(frozen=True, slots=True)
class Point:
    """One experiment: call `number` of the results door, which is `what`, fails by `mode` in the command `run`."""

    run: Run
    number: int
    what: str
    mode: str

    def __str__(self) -> str:
        return f"{self.run.name}, call {self.number} ({self.what}), {self.mode}"


def points(run: Run, modes: Sequence[str] = MODES, every: int = 1) -> Iterator[Point]:
    """Yield the points of `run`, each `every`-th, in every one of `modes`."""
    with _scratch() as folder:
        control = Control(folder / "control")
        control.aim(0, "none")
        code = _in_a_child(run, folder, control)
        calls = control.calls()
        kept = [_judgement(path / "verdict.json") for path in _runs(folder)]
    assert code == run.answer, f"{run.name} ends with {code}, not {run.answer}, where nothing fails"
    assert len(kept) == 1 and kept[0] is not None, f"{run.name} leaves {kept}, where nothing fails"
    for number in range(1, len(calls) + 1, every):
        for mode in modes:
            yield Point(run, number, calls[number - 1], mode)


def complaints(point: Point) -> list[str]:
    """Return the broken promises when `point` failed: sentences, none when every promise was kept."""
    with _scratch() as folder:
        control = Control(folder / "control")
        control.aim(point.number, point.mode)
        code = _in_a_child(point.run, folder, control)
        control.aim(0, "none")
        told = [f"{point}: {told}" for told in _about_the_code(point, code)]
        for run_folder in _runs(folder):
            told += [f"{point}: {each}" for each in _about_the_disk(point, run_folder, code)]
        return told


def _runs(folder: Path) -> list[Path]:
    """Return the folders of runs in the results that a command left in `folder`."""
    return sorted((folder / RESULTS / "runs").glob("*"))


def _about_the_code(point: Point, code: int) -> Iterator[str]:
    died = point.mode == "die"
    if died and code != 137:
        yield f"the process was to die and ended with {code}"
    if died:
        return
    if code not in (0, 1, 4):
        yield f"ended with {code}, which is no code for it"
    if code == 1 and point.run.answer == 0:
        yield "a violation was invented"
    if code == 0 and point.run.answer == 1:
        yield "a violation was lost"


def _about_the_disk(point: Point, folder: Path, code: int) -> Iterator[str]:
    """Yield the broken promises of the run's folder."""
    judgement = _judgement(folder / "verdict.json")
    if judgement is not None and (judgement.verdict == "violation") != (point.run.answer == 1):
        yield f"verdict.json says {judgement.verdict}"
    if code == 0 and judgement is None:
        yield "passed, and there is no verdict"
    checked = _quietly(["check", str(folder)])
    if checked == 1 and point.run.answer == 0:
        yield "check invents a violation"
    if checked == 0 and point.run.answer == 1:
        yield "check loses the violation"
    if checked == 0 and judgement is None:
        yield "check passes a run without its verdict"
    if checked not in (0, 1, 2, 3, 4):
        yield f"check ends with {checked}"


def _judgement(path: Path) -> Judgement | None:
    """Return the verdict in the file; None when there is no file. A half one is a broken promise, and raises."""
    return msgspec.json.decode(path.read_bytes(), type=Judgement) if path.exists() else None


def _in_a_child(run: Run, folder: Path, control: Control) -> int:
    """Return the code that `run` ends with in a process of its own, with its results in `folder`."""
    child = os.fork()
    if child == 0:
        install(control)
        os._exit(_quietly(["run", *run.arguments, "--output", str(folder / RESULTS)]))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _quietly(arguments: list[str]) -> int:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return carry_out(arguments)


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="faultline-writes-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def main() -> int:
    """Try the points, print broken promises, and print the number of points."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="try each N-th point")
    arguments = parser.parse_args()
    wrong = tried = 0
    for run in RUNS:
        for point in points(run, every=arguments.every):
            tried += 1
            for complaint in complaints(point):
                wrong += 1
                print(complaint)
            if tried % 100 == 0:
                print(f"{tried} points tried", file=sys.stderr)
    print(f"{tried} points were failed: {wrong} broken promises")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
