"""Fixtures of the command-line tests."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from real_commands import COMMAND, Command, plug_in

from faultline.cli.main import main
from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import resolve


class Ended(NamedTuple):
    """The end of a command: exit code, standard output and standard error."""

    code: int
    out: str
    err: str


@pytest.fixture
def faultline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    """Run the command in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capsys.readouterr()
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    return command


@pytest.fixture(scope="session")
def violating_seed() -> int:
    """The first seed under which the planted bug stale-read shows with the defaults of `faultline run`."""
    parts = resolve(RunRequest(system="consistent-core"))
    for seed in range(200):
        plan = make_plan(RunRequest(system="consistent-core", planted_bugs=("stale-read",), seed=seed), parts)
        if judge(run_simulated(plan, parts), parts, run_id="search").verdict is Verdict.VIOLATION:
            return seed
    raise AssertionError("stale-read showed in none of 200 seeds")


@pytest.fixture(scope="session")
def hostile_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a machine on which the hostile plug-in is installed."""
    return plug_in(tmp_path_factory.mktemp("site"))


@pytest.fixture
def command(hostile_environment: dict[str, str], tmp_path: Path) -> Iterator[Command]:
    """Starts commands in sessions of their own; afterwards none of them is left."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, hostile: str = "nowhere:nothing", **settings: object) -> subprocess.Popen[str]:
        own = hostile_environment | {"HOSTILE": hostile, "HOSTILE_BEGUN": str(tmp_path / "begun")}
        streams: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": own}
        started.append(
            subprocess.Popen([*COMMAND, *arguments], start_new_session=True, **(streams | settings))  # type: ignore[call-overload]
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()
