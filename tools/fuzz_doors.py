"""From bytes to exit codes: damaged and rewritten inputs at every door, each of which must end with an exit code.

    python tools/fuzz_doors.py --inputs 1000000
    python tools/fuzz_doors.py --doors replay,run-folder --inputs 20000 --first 500000

Input number N of a door is a function of the door and N. Three of four are damaged (`door_mutations`), the fourth is a
rewritten history whose verdict is known (`door_rewrites`). Commands are carried out in this process, and every
so often in one of their own. A finding is

- an error that is no FaultlineError or usage error of click,
- an exit code that is none of 0 to 4, or another in a process of its own,
- more than five seconds of processor time,
- exit code 0 for a history that violates, or 1 for one that does not.

Findings are printed with the door and the number, their files are kept in `--keep`, and the program ends with 1.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import gc
import io
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import click
from door_mutations import mutated
from door_rewrites import KnownHistory, rewritten, with_other_spelling
from doors import DOORS, Door, door_named, knock, known_histories, seeds_of, with_another_column, with_other_layout

from faultline.harness.errors import FaultlineError

__all__ = ["Answer", "Knock", "Tally", "answered", "knock_number", "knocks", "main", "placed"]

CODES = range(5)
SECONDS_MAX = 5.0
HANGS_AFTER_S = 30.0
_FAILED_ITSELF = "itself failed: "
_DAMAGED = 0.75
_OF_RUNS = ("run-folder", "campaign-folder", "parquet")
_REPORTED_EVERY = 50_000


class Knock(NamedTuple):
    """One input of a door; `allowed` are its possible exit codes."""

    door: Door
    number: int
    files: dict[str, bytes]
    allowed: frozenset[int]


class Answer(NamedTuple):
    """The result: the exit code, -1 for a crash; the error in that, if any; processor time."""

    code: int
    wrong: str
    seconds: float


class Hung(BaseException):
    """An input took too long."""


@dataclass
class Tally:
    """The results of all inputs."""

    codes: dict[str, Counter[int]] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")
    in_processes: int = 0

    def add(self, knock_: Knock, answer: Answer) -> None:
        """Count an answer."""
        name = f"{knock_.door.name} {knock_.number}"
        self.codes.setdefault(knock_.door.name, Counter())[answer.code] += 1
        self.slowest = max(self.slowest, (answer.seconds, name))
        if answer.wrong:
            self.findings.append(f"{name}: {answer.wrong}")


def knock_number(door: Door, number: int) -> Knock:
    """Return input `number` of `door`."""
    rng = random.Random(f"{door.name} {number}")
    seeds = seeds_of(door)
    if rng.random() > _DAMAGED:
        known = [each for each in known_histories() if _has_format(door, each)]
        if known:
            return _rewritten(rng, door, number, rng.choice(known))
        if door.name in _OF_RUNS:
            return _reworded(rng, door, number, rng.randrange(len(seeds)))
    files = dict(rng.choice(seeds))
    targets = [target for target in door.targets if fnmatch.filter(files, target)]
    target = rng.choice(fnmatch.filter(sorted(files), rng.choice(targets)))
    if target.endswith(".parquet") and rng.random() < 0.6:
        files[target] = with_another_column(rng, files[target])
    else:
        files[target] = mutated(rng, files[target], [seed[target] for seed in seeds if target in seed])
    return Knock(door, number, files, _allowed(door, files, target))


def _has_format(door: Door, known: KnownHistory) -> bool:
    return door.name in ("auto", *known.formats) or (door.name == "faultline-jsonl")


def _rewritten(rng: random.Random, door: Door, number: int, known: KnownHistory) -> Knock:
    name = rng.choice(known.formats) if door.name == "auto" else door.name
    text = rewritten(rng, known, {"faultline-jsonl": "faultline"}.get(name, name))
    return Knock(door, number, {door.targets[0]: text}, frozenset({1} if known.violates else {0, 3}))


def _reworded(rng: random.Random, door: Door, number: int, place: int) -> Knock:
    """Return a run, or runs, with the same history rewritten; the first seed of each door violates."""
    files = dict(seeds_of(door)[place])
    target = door.targets[0]
    files[target] = (with_other_layout if target.endswith(".parquet") else with_other_spelling)(rng, files[target])
    return Knock(door, number, files, frozenset({0, 3} if place and door.name != "campaign-folder" else {1}))


def _allowed(door: Door, files: dict[str, bytes], target: str) -> frozenset[int]:
    """Return the allowed exit codes: damage to files beside a violating history never makes it pass.

    A campaign holds a violating run twice, in its folder and with all others in Parquet. `conclude` goes by
    its rows and verdicts alone, so damage to these may change what it finds.
    """
    if door.name == "conclude":
        return frozenset(CODES) - (set() if target.endswith((".parquet", "verdict.json")) else {0})
    violates = files == seeds_of(door)[0] | {target: files[target]}
    is_evidence = door.name == "run-folder" and target.endswith("history.jsonl")
    if door.name in ("run-folder", "campaign-folder") and violates and not is_evidence:
        return frozenset(CODES) - {0}
    return frozenset(CODES)


def knocks(doors: Sequence[Door], first: int, inputs: int) -> Iterator[Knock]:
    """Yield `inputs` inputs, of one door after the other by their weights, from number `first` of each."""
    turns = [(door, turn) for door in doors for turn in range(door.weight)]
    for place in range(inputs):
        door, turn = turns[place % len(turns)]
        yield knock_number(door, first + place // len(turns) * door.weight + turn)


def placed(knock_: Knock, folder: Path) -> None:
    """Write the files of `knock_` below `folder`, and remove those of an earlier input of the same kind."""
    for root in {Path(name).parts[0] for name in knock_.files if "/" in name}:
        shutil.rmtree(folder / root, ignore_errors=True)
    for name, data in knock_.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def answered(knock_: Knock, folder: Path) -> Answer:
    """Open the door, whose files are in `folder`, and judge the result."""
    if not _is_harmless(knock_):
        return Answer(2, "", 0.0)
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    begun = time.process_time()
    wrong = ""
    signal.signal(signal.SIGVTALRM, _hung)
    signal.setitimer(signal.ITIMER_VIRTUAL, HANGS_AFTER_S)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = knock(knock_.door, folder)
    except FaultlineError as error:
        code = error.exit_code
        wrong = "" if error.message else "an error without a message"
    except click.ClickException:
        code = 2
    except Hung:
        code, wrong = -1, f"still at work after {HANGS_AFTER_S} s"
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        code, wrong = -1, _crash(error)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    seconds = time.process_time() - begun
    said.flush()
    text = said.buffer.getvalue().decode()
    if not wrong and _FAILED_ITSELF in text:
        wrong = f"crash in a checker: {text[max(0, text.index(_FAILED_ITSELF) - 60) :][:300]!r}"
    if not wrong and seconds > SECONDS_MAX:
        wrong = f"{seconds:.1f} s"
    if not wrong and code not in knock_.allowed:
        wrong = f"exit code {code} instead of {sorted(knock_.allowed)}: {text[:300]!r}"
    return Answer(code, wrong, seconds)


def _is_harmless(knock_: Knock) -> bool:
    """Return whether the input starts no real process: a damaged plan that names hosts is left out."""
    return knock_.door.name != "replay" or b'"simulated"' in knock_.files["run/run.json"]


def _crash(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "faultline/" in frame.filename]
    place = f"{frames[-1].filename.rpartition('faultline/')[2]}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} at {place}: {str(error)[:120]!r}"


def in_a_process(knock_: Knock, folder: Path, expected: int) -> str:
    """Return the error of the command in a process of its own; '' when it ends with `expected` and one sentence."""
    command = [sys.executable, "-m", "faultline", *knock_.door.command]
    ended = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    if b"Traceback" in ended.stderr:
        return f"a traceback: {ended.stderr[-300:]!r}"
    return "" if ended.returncode == expected else f"exit code {ended.returncode} in a process, {expected} without"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 when there was a finding."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first input of each door")
    parser.add_argument("--doors", default="", help="names, separated by commas; all of them by default")
    parser.add_argument("--process-every", type=int, default=2_000, help="how often a real process is asked too")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="when to end, however many there were")
    parser.add_argument("--keep", type=Path, help="folder for the files of findings")
    asked = parser.parse_args(arguments)
    doors = [door_named(name) for name in asked.doors.split(",")] if asked.doors else list(DOORS)
    tally = tallied(doors, asked)
    print(report(tally))
    return 1 if tally.findings else 0


def tallied(doors: Sequence[Door], asked: argparse.Namespace) -> Tally:
    """Knock with the requested number of inputs."""
    tally, before, began = Tally(), Path.cwd(), time.monotonic()
    knocks_of_all = knocks(doors, asked.first, asked.inputs)
    gc.freeze()  # Imported modules stay; the collector would spend a tenth of the time on them.
    with tempfile.TemporaryDirectory(prefix="faultline-doors-") as scratch:
        os.chdir(scratch)
        try:
            for place, knock_ in enumerate(knocks_of_all):
                if time.monotonic() - began > asked.seconds:
                    break
                if place and place % _REPORTED_EVERY == 0:
                    print(report(tally), file=sys.stderr, flush=True)
                _one(tally, knock_, Path(scratch), is_sample=place % asked.process_every == asked.process_every - 1)
                if (
                    asked.keep
                    and tally.findings
                    and tally.findings[-1].startswith(f"{knock_.door.name} {knock_.number}:")
                ):
                    placed(knock_, before / asked.keep / f"{knock_.door.name}-{knock_.number}")
        except KeyboardInterrupt:
            print("Interrupted; so far:", flush=True)
        finally:
            os.chdir(before)
    return tally


def _one(tally: Tally, knock_: Knock, folder: Path, *, is_sample: bool) -> None:
    placed(knock_, folder)
    answer = answered(knock_, folder)
    if is_sample and knock_.door.command and not answer.wrong and _is_harmless(knock_):
        tally.in_processes += 1
        answer = answer._replace(wrong=in_a_process(knock_, folder, answer.code))
    tally.add(knock_, answer)
    if answer.wrong:
        print(tally.findings[-1], flush=True)


def _hung(_signal: int, _frame: object) -> None:
    raise Hung


def report(tally: Tally) -> str:
    """Return the results of all inputs, door by door."""
    lines = [f"{'door':16} {'inputs':>9} {'0':>8} {'1':>8} {'2':>8} {'3':>8} {'4':>8} {'crashes':>8}"]
    for name, codes in tally.codes.items():
        lines.append(f"{name:16} {sum(codes.values()):>9,} " + " ".join(f"{codes[code]:>8,}" for code in (*CODES, -1)))
    total = sum(sum(codes.values()) for codes in tally.codes.values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    lines.append(f"{total:,} inputs, {tally.in_processes:,} of them in processes too; {len(tally.findings):,} findings")
    lines.append(f"slowest: {tally.slowest[0]:.2f} s ({tally.slowest[1]}); most memory: {peak} MiB")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
