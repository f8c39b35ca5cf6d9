"""The names of nodes, and how many a cluster may have."""

from __future__ import annotations

import pytest

from faultline.harness.errors import UsageError
from faultline.harness.plan import NODE_NAMES, node_names
from faultline.harness.planning import RunRequest, make_plan
from faultline.registry import resolve


def test_after_the_cities_nodes_are_numbered_and_no_name_comes_twice() -> None:
    names = node_names(1_000)
    assert names[: len(NODE_NAMES)] == NODE_NAMES
    assert len(set(names)) == 1_000
    assert node_names(3) == NODE_NAMES[:3]


def test_a_simulated_cluster_has_up_to_a_thousand_nodes_and_a_local_one_up_to_nine() -> None:
    request = RunRequest(system="gossip", workload="metadata", nodes=1_000)
    assert len(make_plan(request, resolve(request)).nodes) == 1_000
    for nodes, world in ((1_001, "simulated"), (10, "local"), (0, "simulated")):
        refused = RunRequest(system="gossip", workload="metadata", nodes=nodes, world=world)
        with pytest.raises(UsageError, match="nodes"):
            make_plan(refused, resolve(refused))
