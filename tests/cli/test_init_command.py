"""`faultline init`: a skeleton says what is missing, where, and passes once that is filled in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from faultline.cli.main import cli, perform
from faultline.harness.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]

CARRY_OUT = """now = self.values.get(request.key)
        if request.f == "read":
            return Answer(request.number, now)
        if request.f == "cas" and now != request.old:
            return Answer(request.number, error="cas-mismatch")
        self.ports.storage.append(LOG, f"{request.key} {request.value};".encode())
        self.ports.storage.fsync(LOG)
        self.values[request.key] = request.value
        return Answer(request.number)"""

RECOVER = """whole, _, torn = self.ports.storage.read(LOG).rpartition(b";")
        for entry in filter(None, whole.decode().split(";")):
            key, value = entry.split()
            self.values[key] = int(value)
        if torn:
            self.ports.storage.truncate(LOG, len(whole) + bool(whole))"""

RECEIVE = """from faultline.harness.outcome import ok

        outcome = ok(message.value, source) if message.error is None else OUTCOMES.outcome(message.error, source)
        self.end(message.number, outcome)
"""


def fill_in(folder: Path, number: int) -> None:
    """Write at the marked place of that number what an author would write."""
    node, client = folder / "my_store" / "node.py", folder / "my_store" / "client.py"
    if number == 1:
        raised = 'raise NotImplementedError(f"FILL IN 1 in my_store/node.py: carry out {request.f}")'
        replace(node, raised, CARRY_OUT)
    elif number == 2:
        replace(node, "self.values = {}\n\n    def status", RECOVER + "\n\n    def status")
    else:
        comment = "Until then every operation ends as info: timeout.\n"
        replace(client, comment, f"{comment}        {RECEIVE}")


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file.name}"
    file.write_text(text.replace(old, new))


CLAIMS = "succeeds or bears"
"""The claims that an unfinished store breaks first; running all of them at each step would only take longer."""


def run_tests(folder: Path, site: Path, chosen: str = CLAIMS) -> str:
    """The output of the skeleton's own tests, from its sources, with the entry points that pip installed."""
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-W",
            "error",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
            "-k",
            chosen,
            "tests",
        ],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(site), str(ROOT)])},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return ran.stdout + ran.stderr


def install(folder: Path, site: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--root-user-action=ignore"]
    options = ["--disable-pip-version-check", "--no-build-isolation", "--target", str(site), str(folder)]
    subprocess.run([*pip, *options], check=True, capture_output=True, timeout=240)


@pytest.mark.slow
def test_the_kit_says_what_is_missing_until_the_last_place_is_filled_in(tmp_path: Path) -> None:
    written = CliRunner().invoke(cli, ["init", "store", "my-store", "--into", str(tmp_path)])
    assert written.exit_code == 0 and "three places to fill in" in written.output
    folder, site = tmp_path / "my-store", tmp_path / "site"
    install(folder, site)
    empty = run_tests(folder, site)
    assert "FILL IN 1 in my_store/node.py: carry out write" in empty
    fill_in(folder, 1)
    silent = run_tests(folder, site)
    assert "calm attempts; the last answer was 'timeout'" in silent and "FILL IN 1" not in silent
    fill_in(folder, 3)
    forgetful = run_tests(folder, site)
    assert "the promise holds in calm runs and under the fault sets that the system bears" in forgetful
    assert "violation: " in forgetful and "calm attempts" not in forgetful
    fill_in(folder, 2)
    complete = run_tests(folder, site, chosen="")
    assert "failed" not in complete and " passed" in complete, complete


def test_a_skeleton_for_reads_and_writes_names_no_compare_and_set(tmp_path: Path) -> None:
    assert perform(["init", "store", "plain", "--workload", "read-write", "--into", str(tmp_path)]) == 0
    client = (tmp_path / "plain" / "plain" / "client.py").read_text()
    assert 'FUNCTIONS = ("read", "write",)' in client
    assert "class PlainClient" in client


COMMAND = 'return ["/opt/my-store/bin/my-store", "--listen", place.address, "--data", place.data_folder]'
STATUS = """import socket

        with socket.create_connection((address, self.client_port), timeout_s):
            return NodeStatus(role="leader", generation=1)"""


@pytest.mark.slow
def test_the_tests_of_an_adapter_say_what_is_missing_until_it_is_filled_in(tmp_path: Path) -> None:
    written = CliRunner().invoke(cli, ["init", "adapter", "my-store", "--into", str(tmp_path)])
    assert written.exit_code == 0 and "an adapter with three places to fill in" in written.output
    folder = tmp_path / "my-store"
    system = folder / "my_store" / "system.py"
    missing = "FILL IN {} in my_store/system.py: {}."
    command, status = missing.format(1, "the command line of a member"), missing.format(2, "ask a member for its role")
    empty = run_tests(folder, tmp_path, chosen="")
    assert command in empty and status in empty and "5 passed" in empty
    # The skeleton raises at each place that it leaves to its author; this is what an author writes there.
    replace(system, f'raise NotImplementedError("{command}")', COMMAND)
    replace(system, f'raise NotImplementedError("{status}")', STATUS)
    assert "7 passed" in run_tests(folder, tmp_path, chosen="")
    assert "FILL IN 3" in (folder / "my_store" / "client.py").read_text(), "what a client asks takes a store to test"


@pytest.mark.parametrize("kind", ["store", "adapter"])
def test_every_file_of_a_skeleton_is_python_that_ruff_accepts(kind: str, tmp_path: Path) -> None:
    perform(["init", kind, "my-store", "--into", str(tmp_path)])
    rules = ["--config", str(ROOT / "pyproject.toml"), "--ignore", "I001"]
    ran = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", *rules, str(tmp_path / "my-store")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("My_Store", "A store cannot be called 'My_Store'"),
        ("../up", "A store cannot be called"),
        ("paxos-kv", "There is a system called paxos-kv already"),
        ("taken", "exists already, and nothing was written"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(name: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(UsageError, match=told):
        perform(["init", "store", name, "--into", str(tmp_path)])
    assert not list((tmp_path / "taken").iterdir())
