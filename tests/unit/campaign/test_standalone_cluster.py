"""A campaign on a real Spark cluster that loses a worker in the middle gives what one on this machine gives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from standalone_cluster import StandaloneCluster, standalone_cluster

from faultline.campaign.aggregate import TABLES
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.pipeline import run_campaign
from faultline.campaign.summary import CampaignResult, Progress

pytestmark = [pytest.mark.spark, pytest.mark.real, pytest.mark.slow]

PLAN = CampaignPlan(
    name="cluster",
    fault_sets=(("leadership",),),
    planted_bugs=((), ("stale-read",)),
    seeds="0..19",
    seeds_per_task=4,
    keep_per_signature=2,
)


def tables(result: CampaignResult) -> dict[str, list[dict[str, Any]]]:
    """All result tables, without the words that say where the campaign was kept."""
    found = {name: pq.read_table(result.folder / "tables" / f"{name}.parquet").to_pylist() for name in TABLES}
    for rows in found.values():
        for row in rows:
            row.pop("replay", None)
    return found


def pages(result: CampaignResult) -> dict[str, str]:
    """The pages of all violating runs that were kept, and of their minimal runs, likewise."""
    root = result.folder
    return {
        str(path.relative_to(root)): path.read_text("utf-8").replace(str(root), "CAMPAIGN")
        for path in root.glob("runs/**/report.html")
    }


class Striking:
    """Watches a campaign: kills a worker in the middle, and looks for the secret on command lines."""

    def __init__(self, cluster: StandaloneCluster) -> None:
        self.struck_at = 0
        self.seen_on_command_lines = False
        self._cluster = cluster

    def __call__(self, progress: Progress) -> None:
        if progress.phase == "running" and progress.finished and not self.struck_at:
            self.struck_at = progress.finished
            self.seen_on_command_lines = any(self._cluster.secret.encode() in line for line in command_lines())
            self._cluster.kill_worker(0)


def command_lines() -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes())
        except OSError:
            continue
    return found


def test_a_cluster_that_loses_a_worker_gives_the_same_tables_and_pages_as_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = run_campaign(PLAN, store=tmp_path / "here", master="local[2]", name="c")
    (tmp_path / "cluster").mkdir()
    with standalone_cluster(tmp_path / "cluster") as cluster:
        for name, value in cluster.environment.items():
            monkeypatch.setenv(name, value)
        strike = Striking(cluster)
        there = run_campaign(PLAN, store=tmp_path / "there", master=cluster.master, name="c", progress=strike)
    assert 0 < strike.struck_at < 40
    assert not strike.seen_on_command_lines
    assert (there.verdict, there.exit_code) == (here.verdict, here.exit_code)
    assert tables(there) == tables(here)
    assert pages(there) == pages(here) != {}
    assert any("minimal" in name for name in pages(there))
    written = b"".join(path.read_bytes() for path in there.folder.rglob("*") if path.is_file())
    assert cluster.secret.encode() not in written
    assert not any(str(tmp_path).encode() in line for line in command_lines() if b"java" in line), os.getpid()
