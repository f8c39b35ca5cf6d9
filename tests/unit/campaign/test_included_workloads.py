"""The campaign of a system leaves out a workload whose promise another one includes, and only there."""

from __future__ import annotations

import pytest

from faultline.campaign.default_campaign import usual_workloads
from faultline.registry import load_system


@pytest.mark.parametrize(
    ("system", "present", "absent"),
    [
        ("consistent-core", {"read-write"}, {"dependent-writes", "causal-writes", "moved-sessions"}),
        ("follower-reads", {"causal-writes", "moved-sessions"}, {"dependent-writes"}),
        ("timestamped-kv", {"causal-writes", "causal-pairs"}, {"dependent-writes", "moved-sessions"}),
        ("transactional-kv", {"txn-register"}, {"lost-update"}),
    ],
)
def test_a_workload_is_left_out_where_one_that_includes_it_is_promised(
    system: str, present: set[str], absent: set[str]
) -> None:
    names = set(usual_workloads(load_system(system)))
    assert present <= names
    assert not absent & names
