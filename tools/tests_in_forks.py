"""Tests run in forks of a process that has collected them, so that each begins from the same imported code.

A test under a mutant may change anything in its process, run for ever or end it. In a fork of its own it costs the
time of the test and some 30 ms, and nothing of it remains.
"""

from __future__ import annotations

import os
import pickle
import resource
import select
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from _pytest.runner import runtestprotocol  # plug-ins that run a test again use it too: it has no public name
from hypothesis import Phase, settings

__all__ = ["Failed", "fork", "run_item", "with_collected"]

_T = TypeVar("_T")
ROOT = Path(__file__).resolve().parents[1]
WALL_S_MAX = 120.0


class Failed(Exception):
    """A fork ended without an answer: it was killed at its limit, or the process of the test died."""


def with_collected(files: Sequence[str], action: Callable[[list[pytest.Item]], None]) -> None:
    """Collect the tests of `files`, named from the project on, and call `action` with them in place of running them.

    Raise `Failed` when the files cannot be collected. Properties are tried with the examples of CI, without shrinking.
    """
    settings.register_profile(
        "counter-witnesses",
        settings(deadline=None, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)),
        max_examples=100,
    )
    options = ["-q", "--no-header", "--no-summary", "--capture=no", "--hypothesis-profile=counter-witnesses"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    options += ["-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "faulthandler_timeout=0"]
    options += ["-o", f"pythonpath={ROOT / 'examples' / 'update_queue'}"]
    with TemporaryDirectory(prefix="faultline-forks-") as folder:
        plugin = _Loop(action)
        paths = [str(ROOT / file) for file in files]
        code = pytest.main([*options, f"--rootdir={ROOT}", f"--basetemp={folder}/tests", *paths], [plugin])
        if code != 0 or not plugin.called:
            raise Failed(f"pytest could not collect the tests: it ended with {code}.")


class _Loop:
    """A plug-in of pytest that has its own loop over the tests."""

    def __init__(self, action: Callable[[list[pytest.Item]], None]) -> None:
        self._action = action
        self.called = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Call the action with the tests; True tells pytest that they have been run."""
        if session.testsfailed:
            raise session.Failed("some tests could not be collected")
        self.called = True
        # Made here, since a fork that made the folder of all tests would remove what the others have in it.
        folders: pytest.TempPathFactory = vars(session.config)["_tmp_path_factory"]
        folders.getbasetemp()
        self._action(session.items)
        return True


def run_item(item: pytest.Item) -> bool:
    """Run one test with its fixtures; return whether it failed. A test that is skipped did not fail."""
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def fork(action: Callable[[], _T], processor_s: float) -> _T:
    """Return what `action` returns in a fork of this process. Raise `Failed` when it gives no answer in the time."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _in_the_fork(action, writing, processor_s)
    os.close(writing)
    answer, deadline_s = b"", time.monotonic() + WALL_S_MAX
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(0.0, deadline_s - time.monotonic()))[0]:
            part = pipe.read(1 << 20)
            if not part:
                break
            answer += part
    # The test may have started processes, which are in the group of the fork.
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not answer:
        raise Failed(f"no answer within {processor_s:.0f} s of processor time")
    result: _T = pickle.loads(answer)
    return result


def _in_the_fork(action: Callable[[], object], writing: int, processor_s: float) -> None:
    """Carry out `action` and write what it returns; this process ends here, whatever happens."""
    try:
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        used_s = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        limit = int(used_s + processor_s) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        answer = pickle.dumps(action())
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(answer)
    finally:
        os._exit(0)
