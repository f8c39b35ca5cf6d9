"""The packages in examples/ stand by themselves: stores that are installed beside Faultline are found and run.

PySyncObj itself is not installed here, so that its runs on hosts end where a host is asked for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from faultline.harness.world.hosts.namespaces.requirements import missing_requirements

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ("slate", "pysyncobj")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the examples, with their entry points."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run(
        [
            *pip,
            "--no-build-isolation",
            "--root-user-action=ignore",
            "--target",
            str(folder),
            *(str(ROOT / "examples" / name) for name in EXAMPLES),
        ],
        check=True,
        capture_output=True,
        timeout=240,
    )
    return folder


def run(site: Path, *command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-m", *command],
        env=os.environ | {"PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_own_tests_pass(name: str, site: Path, tmp_path: Path) -> None:
    file = f"test_{name}.py"
    (tmp_path / file).write_text((ROOT / "examples" / name / "tests" / file).read_text())
    ran = run(site, "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", file, folder=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.slow
def test_the_tests_of_the_update_queue_between_threads_pass() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(ROOT / "examples" / "update_queue")]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " passed" in ran.stdout


@pytest.mark.slow
def test_the_command_line_finds_what_the_example_provides(site: Path, tmp_path: Path) -> None:
    listed = run(site, "faultline", "list", "systems", folder=tmp_path).stdout
    assert "[slate.system:Slate]" in listed
    assert "power-cuts" in run(site, "faultline", "list", "faults", folder=tmp_path).stdout
    clean = run(site, "faultline", "run", "--system", "slate", "--faults", "power-cuts", folder=tmp_path)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    stale = run(
        site, "faultline", "run", "--system", "slate", "--option", "read_from=nearest", "--faults", "partition",
        "--seed", "1", folder=tmp_path,
    )  # fmt: skip
    assert stale.returncode == 1, stale.stdout + stale.stderr
    assert "stale" in stale.stdout or "although" in stale.stdout


@pytest.mark.slow
def test_a_store_that_exists_is_found_and_refused_where_it_cannot_run(site: Path, tmp_path: Path) -> None:
    listed = run(site, "faultline", "list", "systems", folder=tmp_path).stdout
    assert "[on hosts only] [registers.system:PySyncObj]" in listed
    refused = run(site, "faultline", "run", "--system", "pysyncobj", folder=tmp_path)
    assert refused.returncode == 2 and "Use --hosts namespaces:3." in refused.stderr
    contradicted = run(
        site, "faultline", "run", "--system", "pysyncobj", "--option", "journal=maybe",
        "--hosts", "namespaces:3", folder=tmp_path,
    )  # fmt: skip
    assert contradicted.returncode == 2 and "on, off" in contradicted.stderr


@pytest.mark.real
@pytest.mark.slow
def test_hosts_without_what_the_store_needs_are_named_with_its_own_words(site: Path, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nexec python3 -S -I "$@"\n')
    python.chmod(0o755)
    arguments = ["--system", "pysyncobj", "--option", f"python={python}", "--hosts", "namespaces:3"]
    ran = run(site, "faultline", "run", *arguments, "--faults", "none", folder=tmp_path)
    assert ran.returncode == 4, ran.stdout + ran.stderr
    if not missing_requirements():
        assert "No module named 'pysyncobj'" in ran.stderr
