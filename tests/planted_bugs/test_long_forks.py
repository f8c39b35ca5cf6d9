"""Long forks: snapshots of transactional-kv agree on the order of two writes, and with a planted bug they do not."""

from __future__ import annotations

import pytest
from campaign_runs import judged, requests, sentences_of_failures


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_all_snapshots_see_the_writes_of_a_pair_in_one_order(isolation: str) -> None:
    assert sentences_of_failures(requests("long-forks", 2, isolation=isolation)) == []


def test_a_node_whose_clock_ignores_reads_lets_two_readers_see_two_writes_in_opposite_orders() -> None:
    anomalies = {
        finding.anomaly
        for request in requests("long-forks", 12, ("clock-ignores-reads",))
        for finding in judged(request).findings
    }
    assert "long-fork" in anomalies
