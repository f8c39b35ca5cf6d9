"""The plug-in that pytest finds by itself: seeds as a parameter, a folder for reports, and where the reports are.

    def test_reads_are_fresh(faultline_seed, faultline_output):
        assert_run_passes(system="my-store", seed=faultline_seed, output=faultline_output)

`faultline_seed` makes one test of each seed: those of `--faultline-seeds` (0..9), or of `@pytest.mark.faultline_seeds`.
`faultline_output` is the folder of `--faultline-output`, else one of pytest's own. Runs that fail are listed at the end
with report and replay line, which stand in the JUnit file too. `-p no:faultline` does without all this.

Nothing but pytest is imported here until a test asks for it: plug-ins are loaded in every run of every user.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

__all__ = [
    "faultline_output",
    "pytest_addoption",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_runtest_makereport",
    "pytest_terminal_summary",
]

_SEEDS = "0..9"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options `--faultline-seeds` and `--faultline-output`."""
    group = parser.getgroup("faultline")
    group.addoption("--faultline-seeds", metavar="A..B", default=_SEEDS, help="seeds of faultline_seed [0..9]")
    # --faultline-store is its former name.
    names = ("--faultline-output", "--faultline-store")
    group.addoption(*names, metavar="DIR", default=None, help="folder that keeps runs that fail")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "faultline_seeds(A..B): the seeds of faultline_seed in this test")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test for each seed."""
    if "faultline_seed" not in metafunc.fixturenames:
        return
    from faultline.campaign.matrix import parse_seeds
    from faultline.harness.errors import UsageError

    marker = metafunc.definition.get_closest_marker("faultline_seeds")
    text = str(marker.args[0]) if marker and marker.args else metafunc.config.getoption("--faultline-seeds")
    try:
        seeds = parse_seeds(text)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
    metafunc.parametrize("faultline_seed", seeds, ids=[f"seed-{seed}" for seed in seeds])


@pytest.fixture
def faultline_output(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the folder in which runs that fail are kept: `--faultline-output`, else a folder of this test."""
    chosen = request.config.getoption("--faultline-output")
    if not chosen:
        return tmp_path / "faultline-results"
    from faultline.harness.store import store_folder

    return request.config.invocation_params.dir / store_folder(chosen)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note where the report of a failed run is."""
    error = call.excinfo.value if call.excinfo is not None else None
    if type(error).__name__ == "RunFailed":
        for name in ("report", "replay"):
            item.user_properties.append((f"faultline-{name}", getattr(error, name)))
    return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the reports of failed runs."""
    failed = [dict(report.user_properties) for report in terminalreporter.stats.get("failed", [])]
    found = [properties for properties in failed if "faultline-report" in properties]
    if found:
        terminalreporter.section("faultline: reports of runs that failed")
    for properties in found:
        terminalreporter.line(properties["faultline-report"])
        terminalreporter.line(f"  {properties['faultline-replay']}")
