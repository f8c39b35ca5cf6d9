"""A split brain ends soon: each connected group has one coordinator, and after the heal all nodes have one."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from split_brain import measured


@pytest.mark.rows("EL-I1")
@pytest.mark.parametrize("heartbeats", ["all", "ring"])
def test_each_half_gets_one_coordinator_and_after_the_cut_there_is_one_again(heartbeats: str) -> None:
    found = [measured(nodes, seed, {"heartbeats": heartbeats}) for nodes, seed in product((4, 7, 16), range(6))]
    # The failure timeout and three heartbeats, of which a ring needs one more to report.
    assert max(each.parted_ms for each in found) <= 300 + 4 * 50
    assert max(each.healed_ms for each in found) <= 2 * 200


def test_when_no_member_claims_the_coordination_a_half_never_gets_a_coordinator() -> None:
    with pytest.raises(TimeoutError, match="no agreement"):
        measured(4, 0, {}, bugs=("claim-refused-for-a-younger",))
