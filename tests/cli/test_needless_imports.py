"""No verb needs Spark, the library for SSH or pandas unless it uses them: each is carried out without them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from faultline.cli.main import cli

WITHOUT = ("pyspark", "py4j", "paramiko", "pandas")
SCRIPT = f"""
import sys
for name in {WITHOUT!r}:
    sys.modules[name] = None
from faultline.cli.main import main
main(sys.argv[1:])
"""
STORED = "faultline-results/runs/stored"
SHRUNK = "faultline-results/runs/shrunk"

VERBS: dict[str, tuple[tuple[str, ...], int]] = {
    "run": (("--faults", "none", "--operations", "20", "--duration", "0.5"), 0),
    "explore": (("--schedules", "2"), 3),
    "check": ((f"{STORED}/history.jsonl",), 1),
    "verify": (("proof.json",), 1),
    "replay": ((STORED,), 1),
    "shrink": ((STORED,), 1),
    "causes": ((SHRUNK, "--runs", "8"), 1),
    "list": (("planted-bugs",), 0),
    "show": (("write-ahead-log",), 0),
    "story": (("two-files",), 0),
    "init": (("store", "my-store"), 0),
    "power": (("--system", "quorum-register", "--list"), 0),
    "evidence": ((), 0),
    "doctor": ((), 4),
}
"""For each verb arguments that need none of these, and its exit code; the doctor reports that they are missing."""

USERS = {"campaign", "demo"}
"""The verbs that are about Spark."""


def without_libraries(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Carry out a command in `folder`, where importing one of the libraries fails."""
    command = [sys.executable, "-c", SCRIPT, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, violating_seed: int) -> Path:
    """A folder with a stored run that violates."""
    folder = tmp_path_factory.mktemp("commands")
    violating = ("--planted-bug", "stale-read", "--seed", str(violating_seed), "--no-shrink")
    ended = without_libraries(folder, "run", *violating)
    assert ended.returncode == 1, ended.stderr
    (run,) = (folder / STORED).parent.iterdir()
    run.rename(folder / STORED)
    shutil.copytree(folder / STORED, folder / SHRUNK)
    assert without_libraries(folder, "shrink", SHRUNK).returncode == 1
    assert without_libraries(folder, "check", f"{STORED}/history.jsonl", "--proof", "proof.json").returncode == 1
    return folder


def test_each_verb_is_carried_out_without_them_or_is_about_spark() -> None:
    assert set(cli.list_commands(click.Context(cli))) == VERBS.keys() | USERS


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_uses_neither_spark_nor_ssh_imports_neither(verb: str, folder: Path) -> None:
    arguments, code = VERBS[verb]
    ended = without_libraries(folder, verb, *arguments)
    assert ended.returncode == code, ended.stdout[-500:] + ended.stderr
    assert "ModuleNotFoundError" not in ended.stderr


@pytest.mark.slow
def test_the_doctor_names_the_libraries_that_are_missing(folder: Path) -> None:
    assert "without pyspark, paramiko" in without_libraries(folder, "doctor").stdout
