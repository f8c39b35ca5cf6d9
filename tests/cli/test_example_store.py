"""The store in examples/ is a package of its own: installed beside Faultline it is found, runs, and its tests pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "slate"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the example, with its entry points."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run(
        [*pip, "--no-build-isolation", "--root-user-action=ignore", "--target", str(folder), str(EXAMPLE)],
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
def test_the_examples_own_tests_pass(site: Path, tmp_path: Path) -> None:
    (tmp_path / "test_slate.py").write_text((EXAMPLE / "tests" / "test_slate.py").read_text())
    ran = run(site, "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "test_slate.py", folder=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.slow
def test_the_command_line_finds_what_the_example_provides(site: Path, tmp_path: Path) -> None:
    listed = run(site, "faultline.cli", "list", "systems", folder=tmp_path).stdout
    assert "[slate.system:Slate]" in listed
    assert "power-cuts" in run(site, "faultline.cli", "list", "faults", folder=tmp_path).stdout
    clean = run(site, "faultline.cli", "run", "--system", "slate", "--faults", "power-cuts", folder=tmp_path)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    stale = run(
        site, "faultline.cli", "run", "--system", "slate", "--option", "read_from=nearest", "--faults", "partition",
        "--seed", "1", folder=tmp_path,
    )  # fmt: skip
    assert stale.returncode == 1, stale.stdout + stale.stderr
    assert "stale" in stale.stdout or "although" in stale.stdout
