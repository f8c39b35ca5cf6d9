"""On a machine whose /tmp is read-only, and with a space in the name of the store, verdicts come all the same."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

READ_ONLY = """
for folder in /tmp /var/tmp; do
  mount --bind "$folder" "$folder" && mount -o remount,bind,ro "$folder" || exit 90
done
if touch /tmp/written 2>/dev/null; then exit 91; fi
cd "$1" && shift && exec "$@"
"""

STALE = ("--planted-bug", "stale-read", "--seed", "7")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a space in its name, outside of the folders that are read-only."""
    with tempfile.TemporaryDirectory(prefix="faultline test ", dir="/dev/shm") as name:
        yield Path(name)


def ends(folder: Path, *arguments: str) -> int:
    """The exit code of the command where nothing but `folder` can be written to."""
    command = ["unshare", "--mount", "/bin/sh", "-c", READ_ONLY, "sh", str(folder)]
    done = subprocess.run(
        [*command, sys.executable, "-m", "faultline", *arguments], capture_output=True, text=True, check=False
    )
    # Mounts take the right to administer the machine, which a user who is not root may lack.
    if done.returncode == 90 or "Operation not permitted" in done.stderr:
        pytest.skip("this user may not make a folder read-only")
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


@pytest.mark.real
def test_runs_checks_and_replays_need_no_folder_for_temporary_files(folder: Path) -> None:
    assert ends(folder, "run", *STALE) == 1
    (run,) = (folder / "faultline-results" / "runs").iterdir()
    assert ends(folder, "check", str(run)) == 1
    assert ends(folder, "replay", str(run)) == 1


@pytest.mark.spark
def test_a_campaign_keeps_its_temporary_files_in_its_own_folder(folder: Path) -> None:
    assert ends(folder, "campaign", "--planted-bug", "stale-read", "--faults", "leadership", "--seeds", "7..8") == 1
