"""The tests of some files, collected once, so that forks of this process run them from the same imported code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from _pytest.runner import runtestprotocol  # plug-ins that run a test again use it too: it has no public name
from hypothesis import Phase, settings

__all__ = ["CannotCollectError", "run_item", "with_collected"]

ROOT = Path(__file__).resolve().parents[1]


class CannotCollectError(Exception):
    """The tests of a file cannot be collected."""


def with_collected(files: Sequence[str], action: Callable[[list[pytest.Item]], None]) -> None:
    """Collect the tests of `files`, named from the project on, and call `action` with them in place of running them.

    Raise `CannotCollectError` when the files cannot be collected. Properties are tried with the examples of CI, without
    shrinking.
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
            raise CannotCollectError(f"pytest could not collect the tests: it ended with {code}.")


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
