"""Features of real stores, told by the lines that their members log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from faultline.harness.feature import Feature, features_of
from faultline.harness.world.hosts.processes.log_features import LINE_BYTES_MAX, features_in_log
from faultline.registry import load_system, stores

RECORDED: dict[str, dict[str, str]] = json.loads(
    (Path(__file__).parents[2] / "data" / "store_log_lines.json").read_text("utf-8")
)
"""Lines of runs with `--faults leadership,kill`, by store and by the feature that each tells of."""

SILENT = {
    "etcd": ['{"level":"info","caller":"raft/raft.go:719","msg":"5b05f5321bd62f65 became candidate at term 3"}'],
    "zookeeper": ["[main] INFO org.apache.zookeeper.server.quorum.QuorumPeer - Local sessions disabled"],
    "redis-sentinel": ["30:X 23 Nov 2026 19:15:31.502 # +try-failover master faultline 198.18.0.11 6379"],
    "redis-cluster": ["28:M 23 Nov 2026 19:19:59.104 # Cluster state changed: ok"],
    "nats": ["[147] 2026/11/23 19:15:58.625169 [INF] JetStream cluster new metadata leader: cyrene/faultline"],
    "patroni": ["2026-11-23 19:19:20,788 INFO: no action. I am (athens), a secondary, and following a leader (cyrene)"],
    "postgresql": ["2026-11-23 19:20:21 UTC [58] LOG:  database system was interrupted"],
    "rabbitmq": ["[info] <0.567.0> rabbit on node 'rabbit@198.18.0.11' up"],
    "galera": ["2026-11-23 19:18:17 0 [Note] WSREP: Shifting OPEN -> PRIMARY (TO: 3)"],
}
"""Lines near those that tell of nothing."""

CHANGED = Feature("leader-changed", "another leader took over", log="became leader")
LOST = Feature("leader-lost", "there is no leader", log="lost leader")


def counted(folder: Path, text: bytes, skipped: int = 0) -> dict[str, int]:
    log = folder / "node.log"
    log.write_bytes(text)
    return dict(features_in_log(log, (CHANGED, LOST), skipped))


@pytest.mark.parametrize("store", stores())
def test_a_recorded_line_tells_of_its_feature_and_of_no_other(store: str) -> None:
    features = features_of(load_system(store))
    told = {name: [each.name for each in features if each.is_told_by(line)] for name, line in RECORDED[store].items()}
    assert told == {name: [name] for name in RECORDED[store]}
    assert [line for line in SILENT[store] if any(each.is_told_by(line) for each in features)] == []


@pytest.mark.parametrize("store", stores())
def test_features_on_which_a_promise_rests_were_recorded(store: str) -> None:
    features = features_of(load_system(store))
    assert {each.name for each in features if each.essential} <= set(RECORDED[store])


def test_lines_are_counted_by_the_features_they_tell_of(tmp_path: Path) -> None:
    log = b"a became leader\na lost leader\nnothing\nb became leader, and c lost leader"
    assert counted(tmp_path, log) == {"leader-changed": 2, "leader-lost": 2}


def test_what_was_logged_before_the_cluster_served_is_skipped(tmp_path: Path) -> None:
    log = b"a became leader\nthe cluster serves\nb became leader\n"
    assert counted(tmp_path, log, skipped=2) == {"leader-changed": 1}
    assert counted(tmp_path, log, skipped=1_000) == {}


def test_a_line_that_is_long_or_is_no_text_costs_no_memory_and_no_count(tmp_path: Path) -> None:
    log = b"x" * (3 * LINE_BYTES_MAX) + b"\n\xff\xfe became leader\n"
    assert counted(tmp_path, log) == {"leader-changed": 1}
    assert counted(tmp_path, log, skipped=1) == {"leader-changed": 1}


def test_a_log_that_is_not_there_tells_nothing(tmp_path: Path) -> None:
    assert features_in_log(tmp_path / "node.log", (CHANGED,), 0) == {}
