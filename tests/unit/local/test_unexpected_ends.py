"""A node that ends of its own is the system's fault; a host that is lost from sight is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from faultline.harness.world.local.run import RealRun


@pytest.mark.parametrize(
    ("unreachable", "crashes", "errors"),
    [
        (None, ["athens ended of its own with code -1: no space left"], []),
        ("n1 broke", [], ["The harness lost sight of athens, which may have ended or not: n1 broke"]),
    ],
)
def test_a_lost_host_is_an_error_of_the_harness_and_no_violation(
    unreachable: str | None, crashes: list[str], errors: list[str]
) -> None:
    process = SimpleNamespace(unreachable=lambda: unreachable, log_tail=lambda: "no space left")
    cluster = SimpleNamespace(unexpected_exits=lambda: [("athens", -1)], processes={"athens": process})
    run: Any = SimpleNamespace(cluster=cluster, crashes=[], errors=[], _now_us=lambda: 7)
    RealRun._watch_nodes(run)
    assert [breach.sentence for breach in run.crashes] == crashes
    assert run.errors == errors
