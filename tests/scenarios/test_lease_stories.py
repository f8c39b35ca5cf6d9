"""Stories about leases, told step by step: LS-S1 to LS-S15 of the requirements. A lease lives ten seconds here."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.story.log_cluster import Client, Cluster
from faultline.systems_under_test.patterns.cluster_management.lease import DUPLICATE_LEASE, NO_LEASE, STALE_TOKEN
from faultline.systems_under_test.reference.coordination_service.system import CoordinationService
from faultline.systems_under_test.reference.leases_and_watches.messages import (
    LeaseRefreshed,
    RefreshLease,
)
from faultline.systems_under_test.reference.shared.key_commands import (
    GetLease,
    GuardedWrite,
    ListValues,
    RegisterLease,
    RevokeLease,
    SetValue,
    SetWithLease,
)

SECOND_US = 1_000_000
TTL_US = 10 * SECOND_US
SLOW = {"heartbeat_interval_ms": "250", "election_timeout_ms": "1000"}


class Service(Cluster):
    """A hand-cranked cluster of `coordination-service`."""

    system_type = CoordinationService


def led_by_athens(*planted_bugs: str, **options: str) -> tuple[Cluster, Client]:
    cluster = Service(3, planted_bugs, lease_check_ms="500", **{**SLOW, **options})
    cluster.elect("athens")
    return cluster, Client(cluster, "alice").register("athens")


def done(cluster: Cluster, client: Client, node: str, command: Any) -> Any:
    """The answer to `command` once everything is delivered."""
    number = client.ask(node, command)
    cluster.deliver()
    return client.answer_to(number)


def granted(cluster: Cluster, client: Client, node: str = "athens") -> int:
    token: int = done(cluster, client, node, RegisterLease("x", TTL_US)).value
    assert done(cluster, client, node, SetWithLease("servers/1", "there", "x")).error is None
    return token


def refresh(cluster: Cluster, node: str, token: int, number: int = 1) -> str | None:
    """Refresh the lease at `node`, and return the error of the answer; `nothing` if there is no answer."""
    cluster.hand("alice", node, RefreshLease("x", token, number))
    cluster.deliver()
    answers = [message for _, message in cluster.inbox.get("alice", []) if isinstance(message, LeaseRefreshed)]
    mine = [answer for answer in answers if answer.correlation_id == number]
    return mine[-1].error if mine else "nothing"


def leases(cluster: Cluster, node: str) -> list[str]:
    return [lease.name for lease in cluster.nodes[node].store.leases.all()]


def everywhere(cluster: Cluster, *names: str) -> bool:
    return all(leases(cluster, node) == list(names) for node in cluster.nodes)


@pytest.mark.rows("LS-S1", "LS-R1", "LS-R4", "LS-R9", "LS-R10", "LS-R20", "LS-I3", "LS-I4", "CC-R25")
def test_the_lease_of_a_dead_owner_ends_with_its_keys_on_all_servers_and_not_before_its_time() -> None:
    cluster, alice = led_by_athens()
    token = granted(cluster, alice)
    cluster.pass_time(5 * SECOND_US)
    assert refresh(cluster, "athens", token) is None
    cluster.pass_time(TTL_US)
    assert everywhere(cluster, "x") and cluster.values("athens") == {"servers/1": "there"}
    cluster.pass_time(SECOND_US)
    assert everywhere(cluster)
    assert [cluster.values(name) for name in cluster.members] == [{}, {}, {}]
    assert refresh(cluster, "athens", token, 2) == NO_LEASE
    assert cluster.broken() == []


@pytest.mark.rows("LS-S2", "LS-I2")
def test_a_lease_survives_when_one_refresh_of_two_is_lost() -> None:
    cluster, alice = led_by_athens()
    token = granted(cluster, alice)
    for number in range(1, 5):
        cluster.pass_time(TTL_US - SECOND_US)
        assert refresh(cluster, "athens", token, number) is None
    assert everywhere(cluster, "x")


@pytest.mark.rows("LS-S3", "LS-R5", "LS-R6", "LS-I1", "LS-I6")
@pytest.mark.parametrize(
    ("planted_bugs", "told"), [((), [None, DUPLICATE_LEASE]), (("duplicate-lease-granted",), [None, None])]
)
def test_of_two_registrations_on_their_way_at_once_the_first_in_the_log_wins(
    planted_bugs: tuple[str, ...], told: list[str | None]
) -> None:
    cluster, alice = led_by_athens(*planted_bugs)
    bob = Client(cluster, "bob").register("athens")
    mine, yours = alice.ask("athens", RegisterLease("x", TTL_US)), bob.ask("athens", RegisterLease("x", TTL_US))
    cluster.deliver()
    answers = [alice.answer_to(mine), bob.answer_to(yours)]
    assert [answer.error for answer in answers if answer is not None] == told
    assert ("LS-I6" in cluster.broken()) is bool(planted_bugs)


@pytest.mark.rows("LS-R5")
def test_a_name_that_is_taken_is_refused_without_an_entry_of_the_log() -> None:
    cluster, alice = led_by_athens()
    granted(cluster, alice)
    bob = Client(cluster, "bob").register("athens")
    before = len(cluster.log("athens"))
    assert done(cluster, bob, "athens", RegisterLease("x", TTL_US)).error == DUPLICATE_LEASE
    assert len(cluster.log("athens")) == before


@pytest.mark.rows("LS-S4", "LS-R23", "CC-S10", "CC-R18", "CC-I5")
def test_a_registration_whose_answer_was_lost_is_answered_with_success_by_the_next_leader() -> None:
    cluster, alice = led_by_athens()
    number = alice.ask("athens", RegisterLease("x", TTL_US))
    cluster.deliver(lambda _, target, __: target != "alice")
    cluster.drop(lambda _, target, __: target == "alice")
    cluster.heartbeat("athens")
    cluster.deliver(lambda _, target, __: target != "alice")
    cluster.kill("athens")
    cluster.elect("byzantium")
    alice.ask_again("byzantium", number, RegisterLease("x", TTL_US))
    cluster.deliver()
    answer = alice.answer_to(number)
    assert answer is not None and answer.error is None
    bob = Client(cluster, "bob").register("byzantium")
    assert done(cluster, bob, "byzantium", RegisterLease("x", TTL_US)).error == DUPLICATE_LEASE


@pytest.mark.rows("LS-S5", "LS-R21", "LS-R8", "LS-R19")
@pytest.mark.parametrize("planted_bugs", [(), ("leases-not-refreshed-by-new-leader",)])
def test_a_new_leader_gives_every_lease_a_full_time(planted_bugs: tuple[str, ...]) -> None:
    cluster, alice = led_by_athens(*planted_bugs, lease_ttl_ms="10000")
    token = granted(cluster, alice)
    cluster.pass_time(9 * SECOND_US)
    assert refresh(cluster, "athens", token) is None
    cluster.kill("athens")
    cluster.elect("byzantium")
    cluster.pass_time(3 * SECOND_US)
    kept = everywhere(cluster, "x")
    assert kept is not bool(planted_bugs)
    if kept:
        assert refresh(cluster, "byzantium", token, 2) is None
        assert cluster.broken() == []


@pytest.mark.rows("LS-S6", "LS-R21")
@pytest.mark.parametrize("planted_bugs", [(), ("new-leader-tracks-no-leases",)])
def test_the_lease_of_an_owner_that_died_with_the_leader_ends_a_full_time_after_the_election(
    planted_bugs: tuple[str, ...],
) -> None:
    cluster, alice = led_by_athens(*planted_bugs)
    granted(cluster, alice)
    cluster.kill("athens")
    cluster.elect("byzantium")
    cluster.pass_time(TTL_US - SECOND_US)
    assert everywhere(cluster, "x")
    cluster.pass_time(2 * SECOND_US)
    assert everywhere(cluster) is not bool(planted_bugs)


@pytest.mark.rows("LS-S7", "LS-R11", "LS-I5", "LS-S13", "LS-I7")
@pytest.mark.parametrize("planted_bugs", [(), ("lease-removed-before-commit",)])
def test_a_leader_that_is_cut_off_ends_no_lease(planted_bugs: tuple[str, ...]) -> None:
    cluster, alice = led_by_athens(*planted_bugs)
    granted(cluster, alice)
    cluster.cut("athens", "byzantium", "cyrene")
    clock = cluster.ports["athens"]
    clock.now_us += TTL_US + SECOND_US
    cluster.nodes["athens"].extensions[0].keeping.check()
    assert leases(cluster, "athens") == ([] if planted_bugs else ["x"])
    cluster.elect("byzantium")
    cluster.heal()
    cluster.pass_time(2 * SECOND_US)
    if not planted_bugs:
        assert everywhere(cluster, "x") and cluster.values("athens") == {"servers/1": "there"}
        assert cluster.nodes["athens"].extensions[0].keeping.tracker.expired() == []
        assert cluster.broken() == []


@pytest.mark.rows("LS-S13", "LS-R8", "LS-I7")
@pytest.mark.parametrize(("planted_bugs", "broken"), [((), []), (("tracker-never-stops",), ["LS-I7"])])
def test_a_leader_that_stepped_down_finds_no_lease_over(planted_bugs: tuple[str, ...], broken: list[str]) -> None:
    cluster, alice = led_by_athens(*planted_bugs)
    granted(cluster, alice)
    cluster.split("athens")
    cluster.elect("byzantium")
    cluster.heal()
    cluster.pass_time(SECOND_US)
    cluster.ports["athens"].now_us += TTL_US
    cluster.nodes["athens"].extensions[0].keeping.check()
    assert cluster.broken() == broken


def _inherited_expiry(cluster: Cluster, alice: Client) -> int:
    """Athens finds the lease over and tells byzantium alone of it; then it dies, and byzantium is elected."""
    token = granted(cluster, alice)
    cluster.pass_time(TTL_US - SECOND_US)
    cluster.cut("athens", "cyrene")
    cluster.ports["athens"].now_us += 2 * SECOND_US
    cluster.nodes["athens"].extensions[0].keeping.check()
    cluster.deliver(lambda source, target, _: (source, target) == ("athens", "byzantium"))
    cluster.kill("athens")
    cluster.heal()
    cluster.go_silent()
    cluster.time_out("byzantium")
    cluster.deliver(lambda _, __, message: "vote" in message.__struct_config__.tag)
    return token


@pytest.mark.rows("LS-S8", "LS-R22")
def test_a_refresh_waits_until_an_expiry_of_the_predecessor_is_decided() -> None:
    cluster, alice = led_by_athens()
    token = _inherited_expiry(cluster, alice)
    assert cluster.leads("byzantium") and leases(cluster, "byzantium") == ["x"]
    cluster.hand("alice", "byzantium", RefreshLease("x", token, 7))
    assert not cluster.inbox.get("alice", [])[-1:] or not isinstance(cluster.inbox["alice"][-1][1], LeaseRefreshed)
    cluster.deliver()
    assert cluster.inbox["alice"][-1][1] == LeaseRefreshed("x", 7, NO_LEASE)
    assert leases(cluster, "byzantium") == []


@pytest.mark.rows("LS-M13")
def test_a_leader_that_refreshes_before_its_no_op_is_applied_promises_what_its_predecessor_ends() -> None:
    cluster, alice = led_by_athens()
    token = _inherited_expiry(cluster, alice)
    node = cluster.nodes["byzantium"]
    node.extensions[0].keeping.refresh("alice", RefreshLease("x", token, 7), 0)
    cluster.deliver()
    assert LeaseRefreshed("x", 7, None) in [message for _, message in cluster.inbox["alice"]]
    assert leases(cluster, "byzantium") == []
    assert "LS-I2" in cluster.broken()


@pytest.mark.rows("LS-S9", "LS-R14", "LS-R13", "CC-R20")
@pytest.mark.parametrize(("planted_bugs", "answer"), [((), "nothing"), (("refresh-without-quorum",), None)])
def test_a_deposed_leader_acknowledges_no_refresh(planted_bugs: tuple[str, ...], answer: str | None) -> None:
    cluster, alice = led_by_athens(*planted_bugs)
    token = granted(cluster, alice)
    cluster.split("athens")
    cluster.elect("byzantium")
    assert refresh(cluster, "athens", token) == answer
    assert refresh(cluster, "cyrene", token, 2) == "not-leader"
    assert refresh(cluster, "byzantium", token, 3) is None


@pytest.mark.rows("LS-S12", "LS-R18")
@pytest.mark.parametrize(("planted_bugs", "values"), [((), {}), (("orphan-attachment",), {"k": 1})])
def test_nothing_is_stored_under_a_lease_that_has_ended(planted_bugs: tuple[str, ...], values: dict[str, int]) -> None:
    cluster, alice = led_by_athens(*planted_bugs)
    assert done(cluster, alice, "athens", SetWithLease("k", 1, "x")).error == NO_LEASE
    cluster.pass_time(SECOND_US)
    assert [cluster.values(name) for name in cluster.members] == [values] * 3


@pytest.mark.rows("LS-S12")
def test_a_key_that_is_behind_the_expiry_in_the_log_is_not_stored() -> None:
    cluster, alice = led_by_athens()
    granted(cluster, alice)
    cluster.ports["athens"].now_us += TTL_US + SECOND_US
    cluster.nodes["athens"].extensions[0].keeping.check()
    number = alice.ask("athens", SetWithLease("k", 1, "x"))
    cluster.deliver()
    answer = alice.answer_to(number)
    assert answer is not None and answer.error == NO_LEASE
    assert cluster.values("athens") == {}


@pytest.mark.rows("LS-S14", "LS-R27")
def test_a_release_that_comes_late_leaves_the_next_owner_alone() -> None:
    cluster, alice = led_by_athens()
    token = granted(cluster, alice)
    cluster.pass_time(TTL_US + SECOND_US)
    bob = Client(cluster, "bob").register("athens")
    next_token = done(cluster, bob, "athens", RegisterLease("x", TTL_US)).value
    assert next_token > token
    assert done(cluster, alice, "athens", RevokeLease("x", token)).error == NO_LEASE
    assert everywhere(cluster, "x") or leases(cluster, "athens") == ["x"]


@pytest.mark.rows("LS-R26", "LS-I4")
def test_a_plain_put_takes_a_key_from_its_lease() -> None:
    cluster, alice = led_by_athens()
    granted(cluster, alice)
    done(cluster, alice, "athens", SetValue("servers/1", "to stay"))
    cluster.pass_time(TTL_US + SECOND_US)
    assert everywhere(cluster) and cluster.values("cyrene") == {"servers/1": "to stay"}


@pytest.mark.rows("LS-S15", "LS-R19", "CC-I2")
def test_leases_survive_snapshots_and_restarts_of_all_servers_and_still_end() -> None:
    cluster, alice = led_by_athens(snapshot_every_entries="4")
    granted(cluster, alice)
    for value in range(12):
        done(cluster, alice, "athens", SetValue("other", value))
    cluster.pass_time(SECOND_US)
    assert "snapshot-taken" in cluster.marks
    for name in cluster.members:
        cluster.restart(name)
    assert all(cluster.nodes[name].store.leases.get("x").keys == ("servers/1",) for name in cluster.members)
    cluster.elect("byzantium")
    cluster.pass_time(TTL_US + 2 * SECOND_US)
    assert everywhere(cluster) and "servers/1" not in cluster.values("athens")
    assert cluster.broken() == []


@pytest.mark.rows("LS-R27", "LS-S10")
@pytest.mark.parametrize(("planted_bugs", "error"), [((), STALE_TOKEN), (("no-fencing",), None)])
def test_a_resource_refuses_the_token_of_a_former_owner(planted_bugs: tuple[str, ...], error: str | None) -> None:
    cluster, alice = led_by_athens(*planted_bugs)
    token = granted(cluster, alice)
    cluster.pass_time(TTL_US + SECOND_US)
    bob = Client(cluster, "bob").register("athens")
    later = done(cluster, bob, "athens", RegisterLease("x", TTL_US)).value
    assert done(cluster, bob, "athens", GuardedWrite("resource/x", later, "bob's")).error is None
    assert done(cluster, alice, "athens", GuardedWrite("resource/x", token, "alice's")).error == error


@pytest.mark.rows("LS-S11", "LS-R2")
def test_a_wall_clock_that_jumps_by_hours_ends_no_lease() -> None:
    cluster, alice = led_by_athens()
    granted(cluster, alice)
    cluster.ports["athens"].wall_offset_us = 7_200 * SECOND_US
    cluster.pass_time(2 * SECOND_US)
    assert everywhere(cluster, "x")


@pytest.mark.rows("LS-R24", "CC-S1", "CC-R6", "CC-R2", "CC-R5")
def test_a_lease_and_the_keys_below_a_path_can_be_looked_up_in_order() -> None:
    cluster, alice = led_by_athens()
    token = granted(cluster, alice)
    for key in ("servers/3", "servers/2", "servers2/1"):
        done(cluster, alice, "athens", SetValue(key, key))
    assert done(cluster, alice, "athens", GetLease("x")).value == {
        "ttl_us": TTL_US,
        "incarnation": token,
        "keys": ["servers/1"],
    }
    assert done(cluster, alice, "athens", GetLease("y")).value is None
    listed = done(cluster, alice, "athens", ListValues("servers")).value["values"]
    assert list(listed.items()) == [("servers/1", "there"), ("servers/2", "servers/2"), ("servers/3", "servers/3")]


@pytest.mark.rows("LS-M14", "LS-R23")
@pytest.mark.parametrize("remembers", [True, False])
def test_a_leader_that_refuses_early_without_a_look_at_its_answers_denies_an_owner_its_own_lease(
    remembers: bool,
) -> None:
    cluster, alice = led_by_athens()
    if not remembers:
        cluster.nodes["athens"].extensions[0].keeping.was_executed = lambda _: False
    number = alice.ask("athens", RegisterLease("x", TTL_US))
    cluster.deliver()
    alice.ask_again("athens", number, RegisterLease("x", TTL_US))
    cluster.deliver()
    told = [answer.error for answer in alice.answers_to(number)]
    assert told == ([None, None] if remembers else [None, DUPLICATE_LEASE])
