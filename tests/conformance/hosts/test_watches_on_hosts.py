"""Watches of real stores on three hosts: streams that break are taken up again, and nothing is missed or repeated."""

from __future__ import annotations

from pathlib import Path

import pytest
from namespace_fixtures import on_namespaces
from store_runs import run_store

from faultline.harness.plan import PlannedFault
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Verdict
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts

pytestmark = [pytest.mark.real, pytest.mark.slow]

MS = 1_000


def events_told(record: RunRecord) -> int:
    history = record.history
    told = [item for f, result in zip(history.f, history.result) if f == "drain" and result for item in result["items"]]
    return sum(item[0] == "event" for item in told)


@on_namespaces
def test_watches_of_etcd_survive_the_death_of_their_members(hosts: NamespaceHosts, tmp_path: Path) -> None:
    faults = [PlannedFault("kill", 500 * MS, 700 * MS, "leader"), PlannedFault("pause", 1_900 * MS, 900 * MS, "leader")]
    result = run_store(hosts, tmp_path, "etcd", faults, workload="watches", options={"history_s": "1"}, duration_s=4.0)
    if result is None:
        return
    record, judgement = result
    assert judgement.verdict is Verdict.PASS, judgement.sentence
    history = record.history
    assert events_told(record) > 20
    assert {f for f, outcome in zip(history.f, history.outcome) if outcome == "ok"} >= {
        "put", "delete", "acquire", "attach", "abandon", "watch", "drain", "list",
    }  # fmt: skip


@on_namespaces
def test_watches_of_nats_survive_the_death_of_a_follower(hosts: NamespaceHosts, tmp_path: Path) -> None:
    faults = [PlannedFault("kill", 500 * MS, 1_000 * MS, "follower")]
    result = run_store(
        hosts, tmp_path, "nats", faults, workload="key-watches", options={"history": "64"}, duration_s=3.0
    )
    if result is None:
        return
    record, judgement = result
    # Who follows is asked of a busy server, so the kill may come too late to strike anything: no finding is meant.
    assert [finding.sentence for finding in judgement.findings] == []
    assert events_told(record) > 20
