"""Kill runs, campaigns and checks at random moments, and check their verdicts.

    python tools/kill_at_random.py --trials 100 --seed 1

Each trial starts a command as a user does, sends SIGKILL or SIGTERM to its supervisor, to its worker or to the whole
group after a random share of the time that the command takes, and waits until every process of it is gone. The answers
are known: some of the runs violate, the others pass. Afterwards no finished verdict may be lost, invented or improved,
the exit code must be true, and `faultline campaign conclude` must give the tables of the finished units. The moments
and processes to kill follow from `--seed`; the step of the work that is struck depends on the machine.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from faultline.campaign.summary import CampaignSummary
from faultline.harness.judgement import Judgement
from faultline.harness.verdict import Verdict

__all__ = ["main"]

COMMAND = (sys.executable, "-m", "faultline")
PATIENCE_S = 180.0
BUG = "stale-read"
RUN = ("run", "--system", "consistent-core", "--no-shrink")
_CALM = ("--universe", "calm")
CAMPAIGN = ("campaign", "--system", "consistent-core", "--faults", "leadership", *_CALM, "--master", "local[2,4]")
CHECKED_RUNS = 12


@dataclass(frozen=True, slots=True)
class Trial:
    """One kill: the command, the signal, the process, and the share of its usual time."""

    number: int
    verb: str
    violates: bool
    signal: int
    whom: str
    share: float

    def __str__(self) -> str:
        answer = "violating" if self.violates else "passing"
        name = signal.Signals(self.signal).name
        return f"trial {self.number}: {answer} {self.verb}, {name} to the {self.whom} after {self.share:.0%}"


def main() -> int:
    """Carry out the trials, print broken promises, and print how many kills struck a living process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="faultline-kills-"))
    try:
        wrong, struck = _carry_out(_trials(arguments.trials, arguments.seed), folder)
    finally:
        shutil.rmtree(folder)
    told = ", ".join(f"{verb} {count}" for verb, count in sorted(struck.items()))
    print(f"{arguments.trials} kills, seed {arguments.seed}; struck while it ran: {told}; broken promises: {wrong}")
    return 1 if wrong else 0


def _trials(count: int, seed: int) -> Iterator[Trial]:
    drawn = random.Random(seed)
    for number in range(count):
        yield Trial(
            number,
            drawn.choice(("run", "run", "campaign", "check")),
            drawn.random() < 0.5,
            drawn.choice((signal.SIGKILL, signal.SIGTERM)),
            drawn.choice(("supervisor", "worker", "group")),
            drawn.random(),
        )


def _carry_out(trials: Iterator[Trial], folder: Path) -> tuple[int, Counter[str]]:
    usual_s = {key: _usual_s(folder / "usual", *key) for key in _kinds()}
    wrong, struck = 0, Counter[str]()
    for trial in trials:
        stage = folder / str(trial.number)
        arguments = _arguments(trial.verb, trial.violates, stage, folder / "usual")
        code = _killed(trial, arguments, usual_s[trial.verb, trial.violates])
        if code is None:
            continue
        struck[trial.verb] += 1
        for complaint in [*_about_the_code(trial, code), *_about_what_is_left(trial, stage)]:
            wrong += 1
            print(f"{trial}: {complaint}", flush=True)
        shutil.rmtree(stage, ignore_errors=True)
    return wrong, struck


def _kinds() -> list[tuple[str, bool]]:
    return [(verb, violates) for verb in ("run", "campaign", "check") for violates in (True, False)]


def _arguments(verb: str, violates: bool, stage: Path, usual: Path) -> tuple[str, ...]:
    bug = ("--planted-bug", BUG) if violates else ()
    if verb == "run":
        return (*RUN, *bug, "--seed", "7" if violates else "1", "--output", str(stage))
    if verb == "campaign":
        return (*CAMPAIGN, *bug, "--seeds", "0..59", "--name", "killed", "--output", str(stage))
    return ("check", *(str(path) for path in sorted(usual.glob("runs/*")) if (BUG in path.name) == violates))


def _usual_s(usual: Path, verb: str, violates: bool) -> float:
    """Return the time of the command when it is left alone; this also makes the runs that are checked."""
    for seed in range(CHECKED_RUNS if verb == "run" else 0):
        bug = ("--planted-bug", BUG) if violates else ()
        _code(*RUN, *bug, "--seed", str(seed), "--output", str(usual))
    began_s = time.monotonic()
    code = _code(*_arguments(verb, violates, usual / f"{verb}-{violates}", usual))
    assert code == (1 if violates else 0), f"{verb} ends with {code} where nothing kills it"
    return time.monotonic() - began_s


def _code(*arguments: str) -> int:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, check=False, timeout=PATIENCE_S).returncode


def _killed(trial: Trial, arguments: tuple[str, ...], usual_s: float) -> int | None:
    """Return the code of the command that the trial kills; None when it had ended by itself."""
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        process.wait(trial.share * usual_s)
        return None
    except subprocess.TimeoutExpired:
        pass
    worker = _worker_of(process.pid)
    if trial.whom == "group":
        os.killpg(process.pid, trial.signal)
    else:
        os.kill(worker if trial.whom == "worker" and worker else process.pid, trial.signal)
    code = process.wait(PATIENCE_S)
    _wait_until_gone(worker)
    return code


def _worker_of(supervisor: int) -> int:
    try:
        return int(Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()[0])
    except (OSError, IndexError):
        return 0


def _wait_until_gone(session: int) -> None:
    """Wait until no process of the worker's session is left: a killed driver's Java process takes some seconds."""
    from faultline.cli.supervision import session_of

    deadline_s = time.monotonic() + PATIENCE_S
    while session and (left := session_of(session)):
        assert time.monotonic() < deadline_s, f"processes {left} are left"
        time.sleep(0.1)


def _about_the_code(trial: Trial, code: int) -> Iterator[str]:
    if code == 1 and not trial.violates:
        yield "a violation was invented"
    if code == 0 and trial.violates:
        yield "a violation was lost"
    # A shell calls both 143: in its first milliseconds an interpreter ends by the signal itself.
    if code not in (0, 1, 4, 143, -signal.SIGTERM, -signal.SIGKILL):
        yield f"ended with {code}"
    if code == -signal.SIGKILL and trial.signal != signal.SIGKILL:
        yield "the supervisor was killed by another"


def _about_what_is_left(trial: Trial, stage: Path) -> Iterator[str]:
    paths = [path for path in sorted(stage.rglob("verdict.json")) if path.parent.name not in ("minimal", "robust")]
    verdicts = [_judgement(path) for path in paths]
    for judgement in verdicts:
        if judgement.verdict is Verdict.VIOLATION and BUG not in judgement.cell:
            yield f"{judgement.run_id} invents a violation"
    if trial.verb == "run":
        yield from _about_runs(trial, stage, verdicts)
    if trial.verb == "campaign":
        yield from _about_campaign(stage, verdicts)


def _about_runs(trial: Trial, stage: Path, verdicts: list[Judgement]) -> Iterator[str]:
    for judgement in verdicts:
        if trial.violates and judgement.verdict is Verdict.PASS:
            yield f"{judgement.run_id} improves its verdict"
    for folder in stage.glob("runs/*"):
        checked = _code("check", str(folder))
        if checked == (0 if trial.violates else 1) or checked not in (0, 1, 2, 3):
            yield f"check of what is left ends with {checked}"
        if checked == 0 and not verdicts:
            yield "check passes a run without its verdict"


def _about_campaign(stage: Path, verdicts: list[Judgement]) -> Iterator[str]:
    """Yield whether the tables that `conclude` makes have exactly the verdicts that are on the disk."""
    folder = stage / "campaigns" / "killed"
    if not (folder / "plan.json").is_file():
        return
    found = Counter(judgement.verdict.value for judgement in verdicts)
    for _ in range(2):
        code = _code("campaign", "conclude", str(folder))
        if code not in ((1,) if found["violation"] else (0, 3, 4, 130, 143)):
            yield f"conclude ends with {code}, where {dict(found)} are on the disk"
        rows = pq.read_table(folder / "tables" / "runs.parquet")
        if Counter(rows["verdict"].to_pylist()) != found:
            yield f"the table of runs has {Counter(rows['verdict'].to_pylist())}, where {found} are on the disk"
        summary = msgspec.json.decode((folder / "campaign.json").read_bytes(), type=CampaignSummary)
        if summary.finished != sum(found.values()):
            yield f"campaign.json tells of {summary.finished} runs, where {sum(found.values())} finished"
        if summary.verdict is Verdict.PASS and summary.finished < summary.scheduled:
            yield "campaign.json passes a part of a campaign"


def _judgement(path: Path) -> Judgement:
    """Return the verdict in the file. Half a file is a broken promise, and raises."""
    return msgspec.json.decode(path.read_bytes(), type=Judgement)


if __name__ == "__main__":
    sys.exit(main())
