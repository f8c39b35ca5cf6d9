"""Commands as users start them: processes of their own, signals, limits, and a plug-in that misbehaves."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PLUG_IN = Path(__file__).with_name("hostile_plug_in.py")
COMMAND = [sys.executable, "-m", "faultline"]
RUN = ("run", "--system", "hostile", "--workload", "hostile", "--faults", "none", "--operations", "60")
VIOLATING = ("--planted-bug", "stale-read", "--faults", "leadership", "--operations", "200", "--no-shrink")
PATIENCE_S = 120
POINTS = """
[faultline.systems]
hostile = hostile_plug_in:HostileSystem
[faultline.workloads]
hostile = hostile_plug_in:HostileWorkload
"""


Command = Callable[..., subprocess.Popen[str]]


def plug_in(folder: Path) -> dict[str, str]:
    """Install the hostile plug-in in `folder`; the environment of a machine that has it.

    No byte code is written: Python 3.11 cuts it short without an error where a limit on the size of files is in force,
    and every later command would find the half of it.
    """
    shutil.copy(PLUG_IN, folder)
    info = folder / "hostile_plug_in-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hostile-plug-in\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    return os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in err, err
    return process.returncode, out or "", err


def begun(tmp_path: Path) -> None:
    """Wait until the plug-in waits for a signal."""
    until((tmp_path / "begun").exists, "the plug-in never waited")


def until(condition: Callable[[], object], otherwise: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, otherwise
        time.sleep(0.02)


def worker_of(process: subprocess.Popen[str]) -> int:
    """The child of the supervisor."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    until(children.read_text, "there is no child")
    return int(children.read_text().split()[0])


def is_dead(process: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return True


def closed_pipe() -> int:
    """The writing end of a pipe without a reader."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def files_of_at_most(size_bytes: int) -> Callable[[], None]:
    import resource

    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, size_bytes))


def signal_again(process: subprocess.Popen[str]) -> bool:
    """Send the signal anew: until the first one is old enough it counts as the same."""
    os.kill(process.pid, signal.SIGTERM)
    return False
