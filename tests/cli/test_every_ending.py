"""Every ending that docs/reference/exit-codes.md lists is provoked, and ends with the code that stands there."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from real_commands import RUN, VIOLATING, Command, begun, closed_pipe, ended, files_of_at_most, signal_again, until

pytestmark = pytest.mark.real

PAGE = Path(__file__).parents[2] / "docs/reference/exit-codes.md"
AS_WITHOUT = 0
"""The code of an ending of which the page says `as without`: that of the run, which passes here."""


def endings() -> dict[str, int]:
    """The rows of the page's table."""
    table = PAGE.read_text("utf-8").partition("## Every ending")[2]
    rows = re.findall(r"^\| (.+?) \| (\d+|as without) \|$", table, re.MULTILINE)
    return {ending: AS_WITHOUT if code == "as without" else int(code) for ending, code in rows}


class Stage:
    """The means to provoke an ending: a folder to work in, a command to start, a seed that violates."""

    def __init__(self, command: Command, folder: Path, seed: int) -> None:
        self.command = command
        self.folder = folder
        self.violates = (*RUN, *VIOLATING, "--seed", str(seed))

    def code(self, *arguments: str, **settings: object) -> int:
        """The code with which the command ends."""
        return ended(self.command(*arguments, **settings))[0]

    def run_folder(self, *arguments: str) -> Path:
        """The folder of the run that `arguments` make."""
        self.code(*arguments)
        (folder,) = (self.folder / "faultline-results/runs").iterdir()
        return folder

    def hostile(self, deed: str) -> int:
        """The code of a run in which the plug-in does `deed`."""
        return self.code(*RUN, hostile=deed)

    def signalled(self, number: int, send: Callable[[int, int], None] = os.kill) -> int:
        """The code of a run that gets a signal in the midst of it."""
        process = self.command(*RUN, hostile="client:wait")
        begun(self.folder)
        send(process.pid, number)
        return ended(process)[0]


def a_mixed_check(stage: Stage) -> int:
    (stage.folder / "no-history.edn").write_text("{:type :invoke")
    return stage.code("check", "no-history.edn", str(stage.run_folder(*stage.violates)))


def a_run_without_its_verdict(stage: Stage) -> int:
    folder = stage.run_folder(*RUN)
    (folder / "verdict.json").unlink()
    return stage.code("check", str(folder))


def a_campaign_without_runs(stage: Stage) -> int:
    (stage.folder / "campaign" / "runs").mkdir(parents=True)
    (stage.folder / "campaign" / "plan.json").write_text('{"seeds": "0..1"}')
    return stage.code("check", "campaign")


def a_violation_that_is_denied(stage: Stage) -> int:
    folder = stage.run_folder(*RUN)
    verdict = folder / "verdict.json"
    verdict.write_text(verdict.read_text().replace('"verdict": "pass"', '"verdict": "violation"', 2))
    return stage.code("check", str(folder))


def a_replay_that_differs(stage: Stage) -> int:
    folder = stage.run_folder(*RUN)
    history = folder / "history.jsonl"
    history.write_bytes(history.read_bytes().replace(b'"ok"', b'"info"', 1))
    return stage.code("replay", str(folder))


def a_full_history(stage: Stage) -> int:
    folder = stage.run_folder(*stage.violates)
    limit = files_of_at_most((folder / "run.json").stat().st_size + 64)
    return stage.code(*stage.violates, preexec_fn=limit)


def into_a_full_disk(stage: Stage, *arguments: str) -> int:
    with open("/dev/full", "w") as full:
        return stage.code(*arguments, stdout=full)


def no_plan(stage: Stage) -> int:
    (stage.folder / "plan.toml").write_text("seeds = [")
    return stage.code("campaign", "--plan", "plan.toml")


def no_history(stage: Stage) -> int:
    (stage.folder / "no-history.edn").write_text("{:type :invoke")
    return stage.code("check", "no-history.edn")


def in_the_way(stage: Stage) -> int:
    (stage.folder / "in-the-way").write_text("a file")
    return stage.code(*RUN, "--output", "in-the-way/below")


def two_signals(stage: Stage) -> int:
    process = stage.command(*RUN, hostile="client:stand-still")
    begun(stage.folder)
    until(lambda: process.poll() is not None or signal_again(process), "it did not end")
    return ended(process)[0]


def any_violation(stage: Stage) -> int:
    (stage.folder / "plan.toml").write_text('[expected]\n"*" = "violation"\n')
    return stage.code("campaign", "--plan", "plan.toml")


def a_name_that_is_taken(stage: Stage) -> int:
    (stage.folder / "faultline-results/campaigns/nightly").mkdir(parents=True)
    return stage.code("campaign", "--seeds", "0..1", "--name", "nightly")


def a_campaign_that_lost_its_verdicts(stage: Stage) -> int:
    folder = stage.folder / "faultline-results/campaigns/nightly"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text("{}")
    (folder / "journal.json").write_text("{}")
    return stage.code("campaign", "conclude", str(folder))


def on_unnamed_hosts(stage: Stage) -> int:
    folder = stage.run_folder(*RUN)
    stored = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(stored | {"world": "hosts", "hosts": "ssh:theirs.toml"}))
    return stage.code("replay", str(folder))


def a_proof(stage: Stage) -> str:
    """The name of the proof that a stale read is a violation."""
    writes = [
        f"{{:type :{kind}, :f :write, :value {value}, :process 0}}" for value in (4, 5) for kind in ("invoke", "ok")
    ]
    read = ["{:type :invoke, :f :read, :value nil, :process 1}", "{:type :ok, :f :read, :value 4, :process 1}"]
    (stage.folder / "stale.edn").write_text("\n".join([*writes, *read]))
    stage.code("check", "stale.edn", "--proof", "proof.json")
    return "proof.json"


def a_proof_that_does_not_hold(stage: Stage) -> int:
    proof = stage.folder / a_proof(stage)
    proof.write_text(proof.read_text().replace('["write",5', '["write",4'))
    return stage.code("verify", proof.name)


def a_silent_pipe(stage: Stage) -> int:
    os.mkfifo(stage.folder / "pipe")
    return stage.code("check", "pipe")


def without_java(stage: Stage) -> int:
    return stage.code("campaign", "--seeds", "0..1", env=os.environ | {"JAVA_HOME": str(stage.folder)})


POWER = ("power", "--mutants", "1", "--runs", "1", "--system")
SCENE = ("story", "competing-updates")


def a_measurement_that_is_interrupted(stage: Stage) -> int:
    process = stage.command(*POWER, "hostile", hostile="client:wait")
    begun(stage.folder)
    process.send_signal(signal.SIGINT)
    return ended(process)[0]


VACUOUS = ("run", "--faults", "kill", "--duration", "3", "--operations", "1", "--workers", "2")
CONTRADICTION = ("run", "--planted-bug", "wall-clock-lease", "--option", "read_mode=log")

PROVOKED: dict[str, Callable[[Stage], int]] = {
    "a run passes": lambda stage: stage.code(*RUN),
    "a verb that judges nothing has done its work": lambda stage: stage.code("list", "systems"),
    "the power of a campaign is measured, however low it is": lambda stage: stage.code(*POWER, "quorum-register"),
    "a changed paragraph of the story breaks another": lambda stage: stage.code(*SCENE, "--leave-out", "3"),
    "a reader closes the pipe before all is printed; the verdict stands": lambda stage: stage.code(
        *RUN, stdout=closed_pipe()
    ),
    "the page of a run cannot be written; the verdict stands": lambda stage: stage.code(
        *RUN, preexec_fn=files_of_at_most(20_000)
    ),
    "a run violates": lambda stage: stage.code(*stage.violates),
    "a run violates, and its history cannot be written": a_full_history,
    "a run violates, and standard output is full": lambda stage: into_a_full_disk(stage, *stage.violates),
    "one of several files violates, another cannot be read": a_mixed_check,
    "a simulated run is replayed and violates again": lambda stage: stage.code(
        "replay", str(stage.run_folder(*stage.violates))
    ),
    "a proof of a violation is verified": lambda stage: stage.code("verify", a_proof(stage)),
    "an exploration comes to a schedule that violates": lambda stage: stage.code(
        "explore", "--system", "paxos-kv", "--planted-bug", "local-read"
    ),
    "a run accuses the unchanged program while the power is measured": lambda stage: stage.code(
        *POWER, "hostile", hostile="timer:raise"
    ),
    "a planted bug breaks a paragraph of the story": lambda stage: stage.code(*SCENE, "--plant", "dirty-read"),
    "an unknown name": lambda stage: stage.code("run", "--system", "consistent-cor"),
    "flags that contradict each other": lambda stage: stage.code(*CONTRADICTION),
    "a file that is no history": no_history,
    "a proof of which a certificate does not hold": a_proof_that_does_not_hold,
    "a folder that is no run": lambda stage: stage.code("replay", "nowhere"),
    "a plan that is no plan": no_plan,
    'a plan that expects "violation", whichever it is': any_violation,
    "a store that is an address": lambda stage: stage.code(*RUN, "--output", "s3a://bucket/store"),
    "a campaign's name that is taken": a_name_that_is_taken,
    "a guided campaign in another world than the simulated one": lambda stage: stage.code(
        "campaign", "--system", "consistent-core", "--guided", "--world", "local"
    ),
    "a folder that lost the verdicts of its campaign is concluded": a_campaign_that_lost_its_verdicts,
    "a run on hosts is replayed without `--hosts`": on_unnamed_hosts,
    "a pipe that stays silent": a_silent_pipe,
    "a mutant that the system does not have": lambda stage: stage.code(*POWER, "quorum-register", "--mutant", "none"),
    "a run whose faults met no operation (*vacuous*)": lambda stage: stage.code(*VACUOUS),
    "a campaign of which no run entered a [feature](campaign-plan.md#floors) that the promise rests on": lambda stage: (
        stage.code("campaign", "--faults", "partition", "--operations", "3", "--seeds", "0..24")
    ),
    "a workload without a checker of its own": lambda stage: stage.hostile("no-checkers:"),
    "a checker that raises, calls `sys.exit` or returns nonsense": lambda stage: max(
        map(stage.hostile, ("checker:raise", "checker:exit-0", "answer:none"))
    ),
    "a checker that never ends": lambda stage: stage.hostile("checker:loop"),
    "an exploration that a limit ends": lambda stage: stage.code("explore", "--schedules", "2"),
    "a stored run without its verdict": a_run_without_its_verdict,
    "a stored campaign of which runs are missing": a_campaign_without_runs,
    "a client that raises, or gives what is no outcome": lambda stage: min(
        map(stage.hostile, ("client:raise", "outcome:object"))
    ),
    "a plug-in calls `os._exit`": lambda stage: stage.hostile("client:os-exit-0"),
    "a segmentation fault": lambda stage: stage.hostile("client:segfault"),
    "the work is killed": lambda stage: stage.hostile("client:kill"),
    "a run that never ends": lambda stage: stage.hostile("client:loop"),
    "work that no signal reaches": lambda stage: stage.hostile("client:stand-still"),
    "the store cannot be written": in_the_way,
    "a limit on the size of files": lambda stage: stage.code(*RUN, preexec_fn=files_of_at_most(1_000)),
    "standard output is full": lambda stage: into_a_full_disk(stage, *RUN),
    "a replay that comes out differently": a_replay_that_differs,
    "a stored violation that the checkers deny now": a_violation_that_is_denied,
    "a campaign where there is no Java": without_java,
    "an error that was not expected": lambda stage: stage.hostile("generator:raise"),
    "SIGHUP": lambda stage: stage.signalled(signal.SIGHUP),
    "SIGINT": lambda stage: stage.signalled(signal.SIGINT),
    "SIGTERM": lambda stage: stage.signalled(signal.SIGTERM),
    "a signal to the whole group": lambda stage: stage.signalled(signal.SIGTERM, os.killpg),
    "a second signal": two_signals,
    "a measurement of the power is interrupted": a_measurement_that_is_interrupted,
}


def test_every_ending_of_the_page_is_provoked_and_no_other() -> None:
    assert list(endings()) == list(PROVOKED)


@pytest.mark.parametrize("ending", PROVOKED)
def test_an_ending_has_the_code_of_the_page(ending: str, command: Command, tmp_path: Path, violating_seed: int) -> None:
    assert PROVOKED[ending](Stage(command, tmp_path, violating_seed)) == endings()[ending]
