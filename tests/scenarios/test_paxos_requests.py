"""One client request that reaches two nodes of paxos-kv, or one node twice: it is executed once."""

from __future__ import annotations

from paxos_driver import PaxosCluster

from faultline.harness.outcome import CAS_MISMATCH
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse


def test_a_request_that_reaches_two_nodes_is_executed_once() -> None:
    cluster = PaxosCluster(3)
    for node in ("athens", "cyrene"):
        cluster.cas("client-1", node, None, "alice")
    cluster.deliver()
    cluster.pass_time(200_000)
    assert cluster.answers("client-1") == [ClientResponse(1), ClientResponse(1)]
    assert cluster.read("byzantium") == "alice"


def late_copy_of_a_failed_compare_and_set(*planted_bugs: str) -> PaxosCluster:
    """c keeps a copy of a compare-and-set that failed at a, until the register has the value it expects."""
    cluster = PaxosCluster(3, planted_bugs)
    cluster.cas("client-1", "athens", "anna", "alice")
    cluster.deliver()
    assert cluster.answers("client-1") == [ClientResponse(1, CAS_MISMATCH)]
    cluster.put("client-2", "athens", "anna")
    cluster.deliver()
    cluster.cas("client-1", "cyrene", "anna", "alice")
    cluster.deliver()
    return cluster


def test_a_compare_and_set_that_failed_stays_failed_when_a_copy_of_it_comes_later() -> None:
    cluster = late_copy_of_a_failed_compare_and_set()
    assert cluster.answers("client-1") == [ClientResponse(1, CAS_MISMATCH)] * 2
    assert cluster.read("byzantium") == "anna"


def test_without_duplicate_detection_a_failed_compare_and_set_takes_effect_after_all() -> None:
    cluster = late_copy_of_a_failed_compare_and_set("no-duplicate-detection")
    assert cluster.read("byzantium") == "alice"


def test_a_late_copy_of_an_older_request_is_neither_executed_nor_answered() -> None:
    cluster = PaxosCluster(3)
    cluster.put("client-1", "athens", "first", 1)
    cluster.deliver()
    cluster.put("client-1", "athens", "second", 2)
    cluster.deliver()
    cluster.put("client-1", "cyrene", "first", 1)
    cluster.deliver()
    assert cluster.answers("client-1") == [ClientResponse(1), ClientResponse(2)]
    assert cluster.read("byzantium") == "second"
