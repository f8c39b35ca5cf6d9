"""Slate keeps the contract, its promise holds under the fault sets it bears, and its planted bug is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from slate.faults import POWER_CUTS
from slate.system import Slate

from faultline.testing import FaultConformance, SystemConformance, assert_campaign_passes, assert_run_passes


class TestSlate(SystemConformance):
    system = Slate
    workload = "register"
    bears = ("kill", "pause", "partition", "clock")


class TestPowerCuts(FaultConformance):
    package = POWER_CUTS


@pytest.mark.parametrize("faults", ["kill,pause", "partition", "power-cuts"])
def test_reads_from_the_primary_are_linearizable(faults: str) -> None:
    assert_campaign_passes(system="slate", faults=faults.split(","), seeds=20)


@pytest.mark.parametrize("faults", ["kill", "power-cuts", "power"])
def test_reads_from_the_primary_are_linearizable_behind_a_page_cache(faults: str, tmp_path: Path) -> None:
    plan = tmp_path / "page-cache.toml"
    plan.write_text(Path(Slate.planted_bugs["no-flush"].campaign).read_text() + '[weather]\ndisk = "page-cache"\n')
    assert_campaign_passes(str(plan), faults=[faults], seeds=20)


def test_the_planted_bug_is_found_and_only_the_bug() -> None:
    assert_campaign_passes(Slate.planted_bugs["no-flush"].campaign, seeds=20)
    with pytest.raises(AssertionError, match="no-flush"):
        assert_campaign_passes(Slate.planted_bugs["no-flush"].campaign, planted_bugs=["no-flush"], seeds=20)


def test_the_nearest_copy_may_be_stale() -> None:
    with pytest.raises(AssertionError, match="read"):
        assert_campaign_passes(system="slate", options={"read_from": "nearest"}, faults=["partition"], seeds=20)


@pytest.mark.parametrize("seed", range(3))
def test_a_run_of_one_seed_passes(seed: int) -> None:
    assert_run_passes(system="slate", seed=seed)
