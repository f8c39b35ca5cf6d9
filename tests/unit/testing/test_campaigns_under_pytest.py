"""Tests that users of pytest write: runs and campaigns that pass, or fail with report and replay line."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from faultline.harness.errors import UsageError
from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import resolve
from faultline.testing import assert_campaign_passes, assert_run_passes
from faultline.testing.campaigns import RunFailed

ROOT = Path(__file__).resolve().parents[3]

TESTS = """
import pytest
from faultline.testing import assert_run_passes

def test_one_run_of_each_seed(faultline_seed, faultline_output):
    assert_run_passes(system="consistent-core", seed=faultline_seed, output=faultline_output)

@pytest.mark.faultline_seeds("7")
def test_a_bug_is_told(faultline_seed, faultline_output):
    planted_bugs = ["stale-read"]
    assert_run_passes(system="consistent-core", seed=faultline_seed, planted_bugs=planted_bugs, output=faultline_output)
"""


def test_a_campaign_of_a_correct_system_passes() -> None:
    assert_campaign_passes("leadership", seeds=5)
    assert_campaign_passes(system="paxos-kv", faults=["partition"], seeds=3)


def test_a_run_that_fails_is_kept_with_its_report_and_its_replay_line(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=r"consistent-core\+stale-read/register/leadership, seed 7\) did not") as raised:
        assert_campaign_passes("leadership", planted_bugs=["stale-read"], first_seed=7, seeds=1, output=tmp_path)
    assert Path(raised.value.report).is_file()
    assert raised.value.replay.startswith("faultline replay ")
    assert "read" in str(raised.value)


def _is_vacuous(seed: int) -> bool:
    request = RunRequest(system="gossip", workload="metadata", faults=("kill",), operations=3, seed=seed)
    parts = resolve(request)
    return judge(run_simulated(make_plan(request, parts), parts), parts, run_id="").verdict is Verdict.VACUOUS


def test_a_run_that_tested_nothing_counts_for_nothing_and_fails_where_all_are_so(tmp_path: Path) -> None:
    vacuous = next(seed for seed in range(200) if _is_vacuous(seed) and not _is_vacuous(seed + 1))
    about = {"system": "gossip", "workload": "metadata", "faults": ["kill"], "operations": 3, "first_seed": vacuous}
    with pytest.raises(RunFailed, match="all runs are vacuous"):
        assert_campaign_passes(**about, seeds=1, output=tmp_path)
    assert_campaign_passes(**about, seeds=2, output=tmp_path)


def test_what_cannot_be_asked_for_is_refused() -> None:
    with pytest.raises(UsageError, match="has no run"):
        assert_campaign_passes("leadership", seeds=0)
    with pytest.raises(UsageError, match="Neither a campaign nor a system"):
        assert_campaign_passes()
    with pytest.raises(UsageError, match="Did you mean leadership"):
        assert_campaign_passes("leadershi")
    with pytest.raises(UsageError, match="There is no system"):
        assert_run_passes(system="nowhere", seed=0)


def _metadata(folder: Path) -> None:
    """The entry points of pyproject.toml as an installed package would have them."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    info = folder / "faultline_under_test-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faultline-under-test\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[pytest11]\n" + "".join(f"{n} = {v}\n" for n, v in points.items()))


def _pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_store.py").write_text(TESTS)
    site = folder / "site"
    if not site.exists():
        _metadata(site)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", *arguments, str(folder)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("side_by_side", [(), ("--numprocesses", "2")], ids=["in-a-row", "under-xdist"])
def test_pytest_makes_one_test_of_each_seed_and_lists_the_reports_of_failures(
    tmp_path: Path, side_by_side: tuple[str, ...]
) -> None:
    kept = ("--faultline-output", "kept", "--junitxml", "junit.xml")
    ran = _pytest(tmp_path, "--faultline-seeds", "3..5", *kept, *side_by_side)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "1 failed, 3 passed" in ran.stdout
    assert "faultline: reports of runs that failed" in ran.stdout
    (report,) = (tmp_path / "kept" / "runs").glob("*stale-read*/report.html")
    assert str(report) in ran.stdout
    assert "faultline-replay" in (tmp_path / "junit.xml").read_text()


def test_seeds_that_are_none_are_refused_by_pytest(tmp_path: Path) -> None:
    ran = _pytest(tmp_path, "--faultline-seeds", "many")
    assert ran.returncode != 0
    assert "Seeds 'many' are not a range of seeds" in ran.stdout + ran.stderr


def test_the_plug_in_imports_nothing_heavy() -> None:
    code = "import sys, faultline.pytest_plugin; print(*sorted(m for m in sys.modules if m.startswith('faultline')))"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == ["faultline", "faultline.exports", "faultline.pytest_plugin"]
