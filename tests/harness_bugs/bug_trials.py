"""Runs scenarios with a planted bug, each trial in a process of its own, and tells which of them fail.

    python tests/harness_bugs/bug_trials.py none            no bug, each scenario
    python tests/harness_bugs/bug_trials.py named TABLE...  each bug with the scenario that is said to catch it
    python tests/harness_bugs/bug_trials.py all TABLE...    each bug with every scenario

TABLE is the name of a table of bugs, or of one bug; without any, all bugs are tried. A hole is always tried with every
scenario. A trial is a fork of one process that has imported everything, so it costs as much as its scenarios. The
answer is one line of JSON per bug: its name, and what the scenarios that failed said.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from bug_tables import SCENARIOS, TABLES
from known_answers import Scenario, request
from planted_harness_bug import HarnessBug, plant

import faultline.cli.check
import faultline.cli.own_runs
import faultline.cli.replay
import faultline.cli.run
import faultline.cli.single_run
import faultline.reports.run_page  # noqa: F401 – all of these once, and not in each trial
from faultline.registry import resolve

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
from forks import lines_of_fork

__all__ = ["Noticed", "trial"]

Noticed = dict[str, str]
"""The message of each scenario that failed, by its name."""

ROOT = Path(__file__).resolve().parents[2]
_SILENCE_S = 60
_PLANTING = "planting"
_NO_END = "It did not end."


def trial(bug: HarnessBug | None, scenarios: Mapping[str, Scenario]) -> Noticed:
    """Return the scenarios that fail with `bug`, or on the harness as it is without one.

    Raise ValueError when the bug cannot be planted.
    """
    lines, end = lines_of_fork(lambda tell: _tried(bug, scenarios, tell), _SILENCE_S)
    told = [json.loads(line) for line in lines]
    if told[:1] and told[0][0] == _PLANTING:
        raise ValueError(told[0][1])
    noticed = {name: said for name, said in told if said is not None}
    if end:
        # It was ended in the scenario after those that have told: it hung, or the process died of the bug.
        noticed[list(scenarios)[len(told)]] = _NO_END if end == "hung" else "The process died."
    return noticed


def _tried(bug: HarnessBug | None, scenarios: Mapping[str, Scenario], tell: Callable[[str], None]) -> None:
    """Plant the bug, run the scenarios, and tell of each how it went."""
    try:
        if bug is not None:
            plant(bug)
    except Exception as error:
        tell(json.dumps([_PLANTING, f"{type(error).__name__}: {error}"]))
        return
    for name, scenario in scenarios.items():
        tell(json.dumps([name, _said(scenario)]))


def _said(scenario: Scenario) -> str | None:
    """Return a line about the failure of `scenario`; None when it passed."""
    with tempfile.TemporaryDirectory(prefix="faultline-bug-") as folder, contextlib.chdir(folder):
        try:
            scenario(Path(folder))
        except BaseException as error:
            place = traceback.extract_tb(error.__traceback__)
            own = [frame for frame in place if "harness_bugs" in frame.filename]
            said = f"{type(error).__name__}: {error}".splitlines()[0][:160]
            return f"{said} (line {own[-1].lineno})" if own else said
    return None


def _trials(which: str, names: Sequence[str]) -> Iterator[tuple[str, Noticed]]:
    if which == "none":
        yield "", trial(None, SCENARIOS) | _failing_tests(None, [bug.caught_by for bug in chosen(()) if bug.by_test])
        return
    for bug in chosen(names):
        try:
            yield bug.name, _noticed(bug, everything=which == "all" or not bug.caught_by)
        except ValueError as error:
            yield bug.name, {_PLANTING: str(error)}


def chosen(names: Sequence[str]) -> list[HarnessBug]:
    """Return the bugs of the tables, and those of their own names, that `names` has; all when it has none."""
    tables = TABLES.items()
    return [bug for table, bugs in tables for bug in bugs if not names or table in names or bug.name in names]


def _noticed(bug: HarnessBug, *, everything: bool) -> Noticed:
    noticed: Noticed = {}
    if bug.by_test:
        noticed |= _failing_tests(bug, [bug.caught_by])
    if everything:
        noticed |= trial(bug, SCENARIOS)
    elif not bug.by_test:
        noticed |= trial(bug, {bug.caught_by: SCENARIOS[bug.caught_by]})
    return noticed


def _failing_tests(bug: HarnessBug | None, tests: Sequence[str]) -> Noticed:
    """Return those of `tests` that fail with `bug`. Raise ValueError when it cannot be planted or they cannot run."""
    if not tests:
        return {}
    command = [sys.executable, __file__, "pytest", bug.name if bug else "", *dict.fromkeys(tests)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    failed = re.findall(r"^FAILED (\S+)(?: - (.*))?", done.stdout, re.MULTILINE)
    if done.returncode not in (0, 1) or bool(failed) is not bool(done.returncode):
        raise ValueError(f"pytest did not get to its end: {done.stdout[-300:]}{done.stderr[-300:]}")
    return {name.partition("[")[0]: said[:160] or "failed" for name, said in failed}


def _run_pytest(name: str, tests: Sequence[str]) -> NoReturn:
    """Plant the bug called `name`, if any, and run these tests in this process."""
    import pytest

    for bug in chosen([name]) if name else []:
        plant(bug)
    # The bug is planted in modules that are imported by now, whose own assertions pytest cannot rewrite any more.
    settings = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    sys.exit(pytest.main([*settings, *tests]))


if __name__ == "__main__":
    if sys.argv[1] == "pytest":
        _run_pytest(sys.argv[2], sys.argv[3:])
    resolve(request())
    for tried, noticed_by in _trials(sys.argv[1], sys.argv[2:]):
        print(json.dumps({"bug": tried, "noticed": noticed_by}), flush=True)
