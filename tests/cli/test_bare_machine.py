"""On a host that can make no bare machine, tools/bare_machine.sh says why in a sentence, and starts nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BASE_COMMANDS = ("bash", "dirname", "grep", "sed", "sort")
SOURCE = "deb http://packages.example/debian bookworm main"


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A folder to serve as the whole PATH: a root user, Debian's sources, and an unshare that says its arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in BASE_COMMANDS:
        (folder / name).symlink_to(Path("/bin", name).resolve())
    add(folder, "id", "echo 0")
    add(folder, "git", "true")
    add(folder, "debootstrap", "true")
    add(folder, "apt-get", f"echo '{SOURCE}'; echo 'deb http://packages.example/debian trixie main'")
    add(folder, "unshare", 'echo "unshare $*"')
    return folder


def add(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/bash\n{script}\n")
    (folder / name).chmod(0o755)


def bare_machine(commands: Path, *arguments: str, args: str = "") -> subprocess.CompletedProcess[str]:
    outline = commands.parent / "repository"
    (outline / "tools").mkdir(parents=True, exist_ok=True)
    for file in ("tools/bare_machine.sh", "README.md"):
        shutil.copy(ROOT / file, outline / file)
    command = ["/bin/bash", str(outline / "tools" / "bare_machine.sh"), *arguments]
    environment = {"PATH": str(commands), "ARGS": args}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_both_commands_of_the_readme_are_run_in_namespaces_that_end_with_the_script(commands: Path) -> None:
    done = bare_machine(commands)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("unshare --mount --pid ") and "--kill-child" in done.stdout
    assert done.stdout.endswith("--in-namespaces make demo make test\n")


def test_one_of_the_commands_can_be_named(commands: Path) -> None:
    assert bare_machine(commands, "--only", "test", args="tests/tidy").stdout.endswith("--in-namespaces make test\n")


@pytest.mark.parametrize(
    "arguments", [["--only"], ["--only", "clean"], ["--only", ""], ["demo"], ["--only", "demo", "x"]]
)
def test_other_arguments_are_a_usage_error(commands: Path, arguments: list[str]) -> None:
    done = bare_machine(commands, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: tools/bare_machine.sh [--only demo|test]" in done.stderr


def test_arguments_for_make_need_the_command_that_they_are_for(commands: Path) -> None:
    done = bare_machine(commands, args="tests/tidy")
    assert (done.returncode, done.stdout) == (2, "") and "--only" in done.stderr


def test_someone_who_is_not_root_is_told_so(commands: Path) -> None:
    add(commands, "id", "echo 1000")
    done = bare_machine(commands)
    assert (done.returncode, done.stdout) == (4, "") and "only root" in done.stderr


def test_a_machine_without_debootstrap_is_told_how_to_get_it(commands: Path) -> None:
    (commands / "debootstrap").unlink()
    done = bare_machine(commands)
    assert (done.returncode, done.stdout) == (4, "") and "apt-get install debootstrap" in done.stderr


def test_a_machine_whose_apt_has_no_debian_12_is_told_so(commands: Path) -> None:
    add(commands, "apt-get", "echo 'deb http://packages.example/debian trixie main'")
    done = bare_machine(commands)
    assert (done.returncode, done.stdout) == (4, "") and "no source of Debian bookworm" in done.stderr


def test_what_is_not_committed_is_said_to_be_left_out(commands: Path) -> None:
    add(commands, "git", "echo ' M README.md'")
    assert "what is not committed is left out" in bare_machine(commands).stdout
