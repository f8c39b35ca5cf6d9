"""Processes, clocks, packets, and the final heal: they bite, they prove it, they end."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.plan import PlannedFault
from faultline.harness.world.faults import ALL_CAPABILITIES, LinkQuality
from faultline.nemesis import NEMESES, heal_everything

ACTIONS = {
    "partition": "cut",
    "kill": "kill",
    "rolling-restart": "kill",
    "pause": "pause",
    "clock-step": "step_clock",
    "clock-strobe": "step_clock",
    "clock-drift": "drift_clock",
    "packet-loss": "degrade",
    "packet-delay": "degrade",
    "packet-duplicate": "degrade",
    "packet-reorder": "degrade",
    "packet-corrupt": "degrade",
    "packet-rate": "degrade",
    "connection-kill": "kill_connections",
    "connection-reset": "reset_connections",
    "link-down": "take_link_down",
    "freeze": "freeze",
    "cpu-squeeze": "squeeze_cpu",
    "memory-squeeze": "squeeze_memory",
    "power-off": "power_off",
    "disk-full": "strike_disk",
    "disk-read-only": "strike_disk",
    "disk-stall": "strike_disk",
    "fsync-fail": "fail_syncs",
    "disk-corrupt": "damage_disk",
    "disk-lost-write": "damage_disk",
    "disk-misdirect": "damage_disk",
    "disk-lying-fsync": "let_syncs_lie",
}
ONCE = ("connection-kill",)
"""The kinds of faults that happen once and do not last."""
NODE_WITHOUT_LINK = "ephesus"
TARGETS = ("leader", "follower", "one", "minority", "majority", "all", "ephesus", "rack", "half-the-racks", "rack-2")


def start(port: Any, kind: str, target: str = "one", at_us: int = 0, **argument: Any) -> Any:
    return NEMESES[kind].start(port, PlannedFault(kind, at_us, 1, target, argument), 3)


def test_every_kind_is_tried_here() -> None:
    assert set(NEMESES) == set(ACTIONS)


@pytest.mark.parametrize("kind", NEMESES)
@pytest.mark.parametrize("target", TARGETS)
def test_a_fault_bites_proves_it_and_ends_without_a_trace(port: Any, kind: str, target: str) -> None:
    nemesis = NEMESES[kind]
    injection = start(port, kind, target)
    assert nemesis.verify(port, injection) is None
    assert port.is_healthy() == (kind in ONCE)
    assert injection.nodes
    assert injection.description
    for count in range(3):
        nemesis.tick(port, injection, count)
    nemesis.stop(port, injection)
    assert port.is_healthy()
    nemesis.stop(port, injection)
    assert port.is_healthy()


@pytest.mark.parametrize("kind", NEMESES)
def test_a_fault_that_does_not_bite_is_told(port: Any, kind: str) -> None:
    port.deaf.add(ACTIONS[kind])
    assert NEMESES[kind].verify(port, start(port, kind)) is not None


@pytest.mark.parametrize("kind", NEMESES)
def test_a_kind_needs_only_capabilities_that_exist(kind: str) -> None:
    assert NEMESES[kind].needs <= set(ALL_CAPABILITIES)
    assert NEMESES[kind].kind == kind
    assert NEMESES[kind].summary


def test_the_leader_is_killed_and_restarted(port: Any) -> None:
    injection = start(port, "kill", "leader")
    assert port.dead == {"byzantium"}
    assert "killed byzantium" in injection.description
    NEMESES["kill"].stop(port, injection)
    assert not port.dead


def test_a_kill_within_a_kill_brings_back_only_its_own(port: Any) -> None:
    first = start(port, "kill", "minority")
    down = set(port.dead)
    second = start(port, "kill", "all", at_us=5)
    assert len(port.dead) == 5
    NEMESES["kill"].stop(port, second)
    assert port.dead == down
    NEMESES["kill"].stop(port, first)
    assert not port.dead


def test_a_node_that_is_down_is_not_paused_but_another_one(port: Any) -> None:
    port.dead = {"byzantium"}
    injection = start(port, "pause", "leader")
    assert len(port.paused) == 1
    assert port.paused.isdisjoint(port.dead)
    assert "no leader was up" in injection.description


def test_when_no_node_is_up_no_node_is_hit_and_that_is_said(port: Any) -> None:
    port.dead = set(port.nodes)
    injection = start(port, "pause", "one")
    assert injection.nodes == ()
    assert "no node was up" in injection.description
    assert NEMESES["pause"].verify(port, injection) is None
    NEMESES["pause"].stop(port, injection)
    assert port.dead == set(port.nodes)


def test_a_named_node_that_is_down_is_not_replaced(port: Any) -> None:
    port.dead = {"athens"}
    injection = start(port, "kill", "athens")
    assert injection.nodes == ()
    assert "athens was not up" in injection.description


def test_a_paused_node_that_was_killed_meanwhile_is_left_dead(port: Any) -> None:
    injection = start(port, "pause", "athens")
    port.dead, port.paused = {"athens"}, set()
    NEMESES["pause"].stop(port, injection)
    assert port.dead == {"athens"}


def test_a_strobe_goes_back_and_forth(port: Any) -> None:
    injection = start(port, "clock-strobe", "athens", delta_us=-300_000)
    offsets = [port.clock_offset_us("athens")]
    for count in range(4):
        NEMESES["clock-strobe"].tick(port, injection, count)
        offsets.append(port.clock_offset_us("athens"))
    assert offsets == [-300_000, 0, -300_000, 0, -300_000]
    assert NEMESES["clock-strobe"].tick_us > 0


def test_a_step_is_proved_by_its_distance_not_by_the_clock_being_wrong(port: Any) -> None:
    port.offsets_us = {"athens": 900_000}
    port.deaf.add("step_clock")
    problem = NEMESES["clock-step"].verify(port, start(port, "clock-step", "athens", delta_us=900_000))
    assert problem is not None
    assert "moved by 0 us" in problem


@pytest.mark.parametrize(
    ("kind", "argument", "quality"),
    [
        ("packet-loss", {"loss": 0.4}, LinkQuality(loss=0.4)),
        ("packet-delay", {"delay_us": 7_000, "jitter_us": 30}, LinkQuality(delay_us=7_000, jitter_us=30)),
        ("packet-duplicate", {"duplicate": 0.9}, LinkQuality(duplicate=0.9)),
        ("packet-reorder", {"reorder": 0.1, "delay_us": 9_000}, LinkQuality(reorder=0.1, delay_us=9_000)),
        ("packet-corrupt", {"corrupt": 0.3}, LinkQuality(corrupt=0.3)),
        ("packet-rate", {"rate_kbit_per_s": 64}, LinkQuality(rate_kbit_per_s=64)),
    ],
)
def test_packets_fare_as_the_arguments_say(
    port: Any, kind: str, argument: dict[str, Any], quality: LinkQuality
) -> None:
    start(port, kind, "athens", **argument)
    assert set(port.degraded.values()) == {quality}
    assert set(port.degraded) == {link for link in links(port) if "athens" in link}


def links(port: Any) -> list[tuple[str, str]]:
    return [(one, other) for one in port.nodes for other in port.nodes if one != other]


def test_a_packet_fault_within_another_leaves_it_as_it_was(port: Any) -> None:
    first = start(port, "packet-loss", "athens")
    before = dict(port.degraded)
    second = start(port, "packet-delay", "all", at_us=5)
    assert NEMESES["packet-delay"].verify(port, second) is None
    NEMESES["packet-delay"].stop(port, second)
    assert port.degraded == before
    NEMESES["packet-loss"].stop(port, first)
    assert port.is_healthy()


def test_connections_are_killed_between_the_target_and_the_rest_only(port: Any) -> None:
    injection = start(port, "connection-kill", "leader")
    assert set(injection.links) == {link for link in links(port) if "byzantium" in link}
    assert injection.description == "killed 8 connections of byzantium"


def test_where_no_connection_is_open_none_is_killed_and_that_is_said(port: Any) -> None:
    port.connections = lambda link: frozenset()
    injection = start(port, "connection-kill", "leader")
    assert port.killed == 0 and injection.nodes == injection.links == ()
    assert injection.description == "no connection of byzantium was open"
    assert NEMESES["connection-kill"].verify(port, injection) is None


def test_connections_that_outlive_their_kill_are_named(port: Any) -> None:
    port.deaf.add("kill_connections")
    problem = NEMESES["connection-kill"].verify(port, start(port, "connection-kill", "athens"))
    assert problem == "still open from athens to byzantium: athens-byzantium-0"


def test_a_cluster_of_one_has_no_links_to_reset_connections_on(lone_port: Any) -> None:
    problem = NEMESES["connection-reset"].verify(lone_port, start(lone_port, "connection-reset", "all"))
    assert problem is not None and "cluster of one node" in problem


def test_a_link_down_within_another_brings_up_only_its_own(port: Any) -> None:
    first = start(port, "link-down", "minority")
    before = set(port.down)
    second = start(port, "link-down", "all", at_us=5)
    NEMESES["link-down"].stop(port, second)
    assert port.down == before
    NEMESES["link-down"].stop(port, first)
    assert not port.down


def wreck(port: Any) -> None:
    port.resets, port.down = {("delphi", "athens")}, {NODE_WITHOUT_LINK}
    port.cuts = {("athens", "byzantium"), ("cyrene", "delphi")}
    port.degraded = {("athens", "cyrene"): LinkQuality(loss=0.5)}
    port.dead, port.paused = {"athens"}, {"cyrene", "delphi"}
    port.offsets_us, port.rates_ppm = {"byzantium": 5_000_000}, {"athens": 100_000}
    port.frozen, port.shares, port.limits = {"delphi"}, {"cyrene": 0.1}, {"ephesus": 4096}


def test_a_frozen_node_is_described_with_the_means(port: Any) -> None:
    assert start(port, "freeze", "leader").description == "froze byzantium by a test"


def test_a_squeeze_that_is_another_than_asked_for_is_told(port: Any) -> None:
    injection = start(port, "cpu-squeeze", "athens", share=0.05)
    assert injection.description == "left athens 5 % of a processor"
    port.shares["athens"] = 0.5
    assert NEMESES["cpu-squeeze"].verify(port, injection) == "athens has 50 % of a processor instead of 5 %"


def test_a_node_that_was_killed_for_want_of_memory_is_started_again(port: Any) -> None:
    injection = start(port, "memory-squeeze", "athens", headroom_kib=512)
    assert port.limits == {"athens": 512 * 1024} and "512 KiB more memory" in injection.description
    port.dead = {"athens"}
    NEMESES["memory-squeeze"].stop(port, injection)
    assert port.is_healthy()


def test_the_final_heal_undoes_whatever_was_done(port: Any) -> None:
    wreck(port)
    assert heal_everything(port) == []
    assert port.is_healthy()
    assert heal_everything(port) == []


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        ("restore", "athens->byzantium is still cut"),
        ("degrade", "athens->cyrene is still degraded"),
        ("admit_connections", "connections over delphi->athens are still reset"),
        ("bring_link_up", "the link of ephesus is still down"),
        ("restart", "athens does not run"),
        ("resume", "cyrene is still paused"),
        ("thaw", "delphi is still frozen"),
        ("lift_squeezes", "cyrene is still squeezed"),
        ("reset_clock", "wall clock of byzantium is 5000000 us off"),
    ],
)
def test_the_final_heal_tells_what_would_not_heal(port: Any, action: str, problem: str) -> None:
    wreck(port)
    port.deaf.add(action)
    assert any(problem in told for told in heal_everything(port))


def test_the_final_heal_leaves_alone_what_the_world_cannot_break(port: Any) -> None:
    port.capabilities = frozenset({"kill"})
    port.cuts = {("athens", "byzantium")}
    port.dead = {"athens"}
    assert heal_everything(port) == []
    assert port.cuts
    assert not port.dead


def test_all_hosts_lose_power_in_one_stroke(port: Any) -> None:
    strokes: list[tuple[str, ...]] = []
    port.power_off = strokes.append
    start(port, "power-off", "all")
    assert strokes == [port.nodes]


def test_a_host_that_booted_meanwhile_is_not_booted_again(port: Any) -> None:
    injection = start(port, "power-off", "athens")
    port.power_on("athens")
    port.dead = {"athens"}
    NEMESES["power-off"].stop(port, injection)
    assert port.dead == {"athens"}


def test_the_heal_gives_power_back_before_it_looks_at_anything_on_the_hosts(port: Any) -> None:
    start(port, "disk-full", "athens")
    start(port, "power-off", "all")
    assert heal_everything(port) == [] and port.is_healthy()


@pytest.mark.parametrize(("action", "complaint"), [("power_on", "has no power"), ("mend_disk", "is still stalled")])
def test_a_host_that_does_not_heal_is_told(port: Any, action: str, complaint: str) -> None:
    start(port, "power-off" if action == "power_on" else "disk-stall", "cyrene")
    port.deaf = {action}
    port.disk_state = lambda node: port.disks.get(node, "well")
    assert any("cyrene" in problem and complaint in problem for problem in heal_everything(port))
