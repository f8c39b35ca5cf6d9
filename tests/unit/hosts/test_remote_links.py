"""The commands that make links bad on other machines, and the reading of their answers."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.errors import HarnessError
from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.hosts.machines.connection import CommandResult
from faultline.harness.world.hosts.network.firewall_loss import loss_rules
from faultline.harness.world.hosts.network.link_quality import judged
from faultline.harness.world.hosts.network.netem import Netem, netem_options, shaping
from faultline.harness.world.hosts.network.remote_qualities import RemoteQualities
from faultline.harness.world.hosts.network.station_probe import results_of

THERE, BACK = ("n1", "n2"), ("n2", "n1")
NUMBERS = {"n1": 0, "n2": 1}
MS_NS = 1_000_000


@pytest.mark.parametrize(
    ("quality", "words"),
    [
        (LinkQuality(delay_us=50_000, jitter_us=7_000), "delay 53500us 3500us"),
        (LinkQuality(loss=0.05, duplicate=0.5), "loss 5% duplicate 50%"),
        (LinkQuality(delay_us=20_000, reorder=0.3), "delay 20000us 0us reorder 30%"),
        (LinkQuality(corrupt=0.125), "corrupt 12.5%"),
        (LinkQuality(rate_kbit_per_s=256), "rate 256kbit"),
    ],
)
def test_netem_is_told_the_quality_in_its_own_words(quality: LinkQuality, words: str) -> None:
    assert netem_options(quality) == f"netem limit 100000 {words}"


def test_each_peer_has_a_class_of_its_own_and_the_rest_none() -> None:
    lines = shaping("eth7", {"10.0.0.3": LinkQuality(loss=0.5), "10.0.0.2": LinkQuality(corrupt=0.5)}).splitlines()
    assert lines[0] == "qdisc add dev eth7 root handle fa17: htb default 1"
    assert [line for line in lines if "netem" in line] == [
        "qdisc add dev eth7 parent fa17:10 netem limit 100000 corrupt 50%",
        "qdisc add dev eth7 parent fa17:11 netem limit 100000 loss 50%",
    ]
    assert [line.partition("u32 ")[2] for line in lines if "filter" in line] == [
        "match ip tos 0xf8 0xfc flowid fa17:1",
        "match ip dst 10.0.0.2/32 flowid fa17:10",
        "match ip dst 10.0.0.3/32 flowid fa17:11",
    ]


def test_a_host_loses_a_share_of_what_comes_from_each_address() -> None:
    rules = loss_rules({"10.0.0.2": 0.5, "10.0.0.1": 0.00001})
    first, second = (line.strip() for line in rules.splitlines() if "numgen" in line)
    assert first == "ip saddr 10.0.0.1 numgen random mod 100000 < 1 counter drop"
    assert second == "ip saddr 10.0.0.2 numgen random mod 100000 < 50000 counter drop"
    assert "numgen" not in loss_rules({})


def way(me: int, *ways_ns: int, last: int = 0) -> dict[str, Any]:
    return {
        "me": me,
        "way_ns": list(ways_ns),
        "duplicates": 0,
        "corrupted": 0,
        "overtaken": 0,
        "first": 0,
        "last": last,
    }


def test_clocks_that_differ_are_told_from_delays_by_the_way_back() -> None:
    expected = {THERE: LinkQuality(delay_us=30_000), BACK: LinkQuality()}
    ahead_ns = 5_000 * MS_NS
    reports = {
        "n2": {0: way(0, *(ahead_ns + (31 + extra) * MS_NS for extra in range(16)))},
        "n1": {1: way(1, *(-ahead_ns + MS_NS for _ in range(3)))},
    }
    results = results_of(expected, reports, NUMBERS, shares_clock=False)
    assert results[THERE].lateness_us[0] == 31_000 and results[BACK].lateness_us[0] == 1_000
    assert judged(expected[THERE], results[THERE]) == expected[THERE]


def test_a_delay_that_is_not_there_is_missed_in_the_sum_of_both_ways() -> None:
    expected = {THERE: LinkQuality(delay_us=30_000), BACK: LinkQuality()}
    reports = {"n2": {0: way(0, *[MS_NS] * 16)}, "n1": {1: way(1, *[MS_NS] * 3)}}
    for shares_clock in (True, False):
        results = results_of(expected, reports, NUMBERS, shares_clock=shares_clock)
        assert judged(expected[THERE], results[THERE]) != expected[THERE]


def test_a_host_that_counted_nothing_has_lost_everything() -> None:
    results = results_of({THERE: LinkQuality()}, {"n2": {}}, NUMBERS, shares_clock=True)
    assert judged(LinkQuality(), results[THERE]).loss == 1.0


class Hosts:
    """A fleet whose hosts answer as they are told, and note what was run on them."""

    def __init__(self, answer: Any) -> None:
        self.hosts = dict.fromkeys(("n1", "n2"), self)
        self.address, self.name, self.host = "10.0.0.9", "n1", self
        self.answer = answer
        self.commands: list[str] = []

    def attempt(self, action: Any) -> dict[str, Any]:
        return {"n1": action(self), "n2": action(self)}

    each = attempt

    def __getitem__(self, name: str) -> Hosts:
        return self

    def run(self, command: str, **_: Any) -> CommandResult:
        self.commands.append(command)
        exit_code, stdout = self.answer(command)
        return CommandResult(host="n1", command=command, exit_code=exit_code, stdout=stdout, stderr=b"not there")


def qualities(answer: Any) -> RemoteQualities:
    return RemoteQualities(Hosts(answer), shares_clock=True)  # type: ignore[arg-type]  # a stand-in


def test_the_best_means_is_chosen_that_every_host_has() -> None:
    assert qualities(lambda _: (0, b"")).means == "netem on the sending hosts"
    without_netem = qualities(lambda command: (1 if "netem" in command else 0, b""))
    assert without_netem.means == "nftables on the receiving hosts"
    assert set(without_netem.refusals) == {"delay", "duplicate", "reorder", "corrupt", "rate"}
    assert "it has no netem (not there), and nftables can only lose packets" in without_netem.refusals["delay"]
    nothing = qualities(lambda _: (1, b""))
    assert nothing.means == "" and len(nothing.refusals) == 6


def test_what_the_means_cannot_do_is_refused_and_nothing_is_done() -> None:
    links = qualities(lambda command: (1 if "netem" in command else 0, b""))
    with pytest.raises(HarnessError, match="cannot be degraded: on n1, it has no netem"):
        links.degrade([THERE], LinkQuality(loss=0.5, delay_us=5))


def test_a_foreign_queueing_discipline_on_a_device_is_left_there() -> None:
    def answer(command: str) -> tuple[int, bytes]:
        if "route get" in command:
            return 0, b"10.0.0.9 dev eth7 src 10.0.0.1"
        return 0, b"qdisc tbf 8001: root refcnt 2 rate 1Mbit"

    hosts = Hosts(answer)
    with pytest.raises(HarnessError, match="eth7 has a queueing discipline of its own: qdisc tbf 8001"):
        Netem(hosts).apply({THERE: LinkQuality(loss=0.5)})  # type: ignore[arg-type]  # a stand-in
    assert not [command for command in hosts.commands if "batch" in command]
