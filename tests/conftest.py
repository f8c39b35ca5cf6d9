"""The surroundings of all tests: a scratch working directory, Hypothesis profiles, and seeds that are always printed.

pytest-randomly shuffles the tests and prints its seed in the header; `pytest --randomly-seed=SEED` gives the same
order again. Hypothesis prints the decorator that reproduces a failing example.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

ROOT = Path(__file__).resolve().parents[1]

# On a busy machine the first example of a property can be slow to make, which says nothing about the code; and wall
# time is not what these tests are about, so there are no deadlines.
COMMON = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow], max_examples=100)

# In CI the examples are the same every time: a red run then says something about the change, not about luck.
# On a developer's machine they differ each time, and failing ones are kept and tried first.
settings.register_profile("ci", COMMON, derandomize=True, database=None)
settings.register_profile("local", COMMON, database=DirectoryBasedExampleDatabase(ROOT / ".hypothesis" / "examples"))
settings.register_profile("thorough", settings.get_profile("local"), max_examples=5_000)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite-transcripts`: see tests/scenarios/test_transcripts.py."""
    parser.addoption(
        "--rewrite-transcripts", action="store_true", help="write down what the transcripts give, to be read as text"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose the profile: `--hypothesis-profile` when given, else by whether this is CI."""
    if not config.getoption("--hypothesis-profile", default=None):
        settings.load_profile("ci" if os.environ.get("CI") else "local")
    # A shell's background job begins with SIGINT ignored, what nohup starts with SIGHUP ignored, and every process that
    # a test starts would inherit that.
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def pytest_report_header() -> str:
    """The Hypothesis profile in force, beside the seed of the order that pytest-randomly prints."""
    return f"hypothesis profile in force: {settings.get_current_profile_name()}"


@pytest.fixture(autouse=True)
def scratch_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test works in a folder of its own: no default store and no Spark warehouse lands in the repository."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
