"""The effects of a degraded link on its packets, and the signs of one in the datagrams that passed it."""

from __future__ import annotations

import struct

import pytest

from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.hosts.namespaces.emulated_link import (
    EmulatedLink,
    PacketCounters,
    Treatment,
    with_flipped_bit,
)
from faultline.harness.world.hosts.namespaces.packet_queue import queue_rules
from faultline.harness.world.hosts.network.link_quality import PROBE_BYTES, ProbeResult, judged, probes_needed
from faultline.harness.world.hosts.network.links import NoLinkQualities

MS = 1_000_000


def treated(quality: LinkQuality, count: int, *, gap_ns: int = 0) -> tuple[PacketCounters, list[Treatment]]:
    link = EmulatedLink(3, "n1", "n2")
    link.degrade(quality)
    return link.counters, [link.treat(1_000, number * gap_ns) for number in range(count)]


def test_a_healthy_link_passes_everything_at_once() -> None:
    counters, treatments = treated(LinkQuality(), 50, gap_ns=MS)
    assert treatments == [Treatment(number * MS) for number in range(50)]
    assert counters == PacketCounters(seen=50)


def test_shares_are_lost_repeated_and_corrupted() -> None:
    counters, treatments = treated(LinkQuality(loss=0.3, duplicate=0.2, corrupt=0.1), 2_000)
    assert 500 < counters.lost < 700 and counters.lost == sum(not one.copies for one in treatments)
    assert 200 < counters.duplicated < 360 and counters.duplicated == sum(one.copies == 2 for one in treatments)
    assert 90 < counters.corrupted < 190 and counters.corrupted == sum(one.flip is not None for one in treatments)


def test_draws_depend_on_seed_link_and_number_only() -> None:
    quality = LinkQuality(loss=0.5)
    assert treated(quality, 100)[1] == treated(quality, 100)[1]
    other = EmulatedLink(3, "n2", "n1")
    other.degrade(quality)
    assert [other.treat(1_000, 0) for _ in range(100)] != treated(quality, 100)[1]


def test_delay_and_jitter_keep_the_order() -> None:
    counters, treatments = treated(LinkQuality(delay_us=20_000, jitter_us=10_000), 200, gap_ns=MS // 10)
    due = [one.due_ns for one in treatments]
    assert due == sorted(due) and counters.delayed == 200 and not counters.reordered
    assert all(20 * MS <= at - number * MS // 10 <= 30 * MS for number, at in enumerate(due))


def test_reordered_packets_skip_the_delay_and_overtake() -> None:
    counters, treatments = treated(LinkQuality(delay_us=20_000, reorder=0.3), 1_000)
    early = [one for one in treatments if one.due_ns == 0]
    assert len(early) == counters.reordered and 220 < len(early) < 380
    assert {one.due_ns for one in treatments} == {0, 20 * MS}


def test_a_rate_sends_one_after_the_other_and_loses_what_would_wait_too_long() -> None:
    counters, treatments = treated(LinkQuality(rate_kbit_per_s=800), 250)
    passed = [one.due_ns for one in treatments if one.copies]
    assert passed == [number * 10 * MS for number in range(1, 201)]
    assert counters.lost == 50


def test_the_harness_own_probes_are_treated_but_not_counted() -> None:
    link = EmulatedLink(3, "n1", "n2")
    link.degrade(LinkQuality(loss=1.0))
    assert link.treat(100, 0, probe=True) == Treatment(0, copies=0)
    assert link.counters == PacketCounters()


def udp(payload: bytes) -> bytes:
    return b"\x45\0" + struct.pack("!H", 28 + len(payload)) + b"\0" * 5 + b"\x11" + b"\0" * 10 + b"\0" * 8 + payload


def tcp(payload: bytes) -> bytes:
    head = b"\0" * 12 + b"\x60" + b"\0" * 11
    return b"\x45\0" + struct.pack("!H", 44 + len(payload)) + b"\0" * 5 + b"\x06" + b"\0" * 10 + head + payload


@pytest.mark.parametrize(("packet", "start"), [(udp(b"word"), 28), (tcp(b"word"), 44)])
def test_one_bit_flips_behind_the_headers(packet: bytes, start: int) -> None:
    changed = {with_flipped_bit(packet, chosen) for chosen in range(32)}
    assert len(changed) == 32
    for one in changed:
        assert one[:start] == packet[:start]
        assert (int.from_bytes(one[start:], "big") ^ int.from_bytes(packet[start:], "big")).bit_count() == 1


def test_where_nothing_is_behind_the_headers_the_checksum_is_spoilt() -> None:
    packet = tcp(b"")
    for chosen in range(40):
        changed = with_flipped_bit(packet, chosen)
        assert changed != packet and changed[:36] == packet[:36] and changed[38:] == packet[38:]


def test_rules_hand_over_exactly_the_packets_of_degraded_links() -> None:
    rules = queue_rules({("n2", "n1"): 5, ("n1", "n2"): 4})
    assert rules.splitlines() == [
        "*mangle",
        "-A FORWARD -m physdev --physdev-in n1 --physdev-out n2 -j NFQUEUE --queue-num 4 --queue-bypass",
        "-A FORWARD -m physdev --physdev-in n2 --physdev-out n1 -j NFQUEUE --queue-num 5 --queue-bypass",
        "COMMIT",
    ]
    assert queue_rules({}) == "*mangle\nCOMMIT\n"


def seen(quality: LinkQuality, count: int) -> ProbeResult:
    """Return the result of `count` probes on an emulated link of `quality`."""
    link = EmulatedLink(5, "n1", "n2")
    link.degrade(quality)
    result = ProbeResult(count)
    latest_ns = 0
    for _ in range(count):
        treatment = link.treat(PROBE_BYTES + 28, 0, probe=True)
        result.overtaken += treatment.due_ns < latest_ns
        latest_ns = max(latest_ns, treatment.due_ns)
        result.span_us = max(result.span_us, treatment.due_ns // 1_000)
        if treatment.flip is not None:
            result.corrupted += treatment.copies
        elif treatment.copies:
            result.lateness_us.append(treatment.due_ns // 1_000)
            result.duplicates += treatment.copies - 1
    return result


QUALITIES = [
    LinkQuality(),
    LinkQuality(loss=0.05),
    LinkQuality(loss=0.5),
    LinkQuality(loss=1.0),
    LinkQuality(duplicate=0.2),
    LinkQuality(delay_us=20_000),
    LinkQuality(delay_us=100_000, jitter_us=50_000),
    LinkQuality(delay_us=20_000, reorder=0.3),
    LinkQuality(corrupt=0.1),
    LinkQuality(rate_kbit_per_s=1_000),
]


@pytest.mark.parametrize("quality", QUALITIES, ids=str)
def test_a_link_is_known_by_its_probes_and_taken_for_no_other(quality: LinkQuality) -> None:
    assert judged(quality, seen(quality, probes_needed(quality))) == quality
    for expected in QUALITIES[1:]:
        # Three probes do not show what a healthy link is not, and slowness is judged by its lower bound.
        slow = expected.delay_us + expected.rate_kbit_per_s and not expected.reorder
        slower = slow and quality.delay_us > expected.delay_us
        if expected != quality and not slower:
            assert judged(expected, seen(quality, probes_needed(expected))) != expected, expected


def test_another_quality_does_not_let_packets_wait_for_those_of_the_last() -> None:
    link = EmulatedLink(3, "n1", "n2")
    link.degrade(LinkQuality(delay_us=60_000_000, rate_kbit_per_s=1))
    assert link.treat(100, 0).due_ns > 60_000 * MS
    link.degrade(LinkQuality(delay_us=5_000))
    assert link.treat(100, MS) == Treatment(6 * MS)


def test_a_link_expected_healthy_is_seen_to_lose_repeat_or_spoil_everything() -> None:
    for bad in (LinkQuality(loss=1.0), LinkQuality(duplicate=1.0), LinkQuality(corrupt=1.0)):
        assert judged(LinkQuality(), seen(bad, 3)) != LinkQuality()


def test_what_is_seen_instead_is_told_in_numbers() -> None:
    result = judged(LinkQuality(loss=0.5), seen(LinkQuality(delay_us=7_000), 30))
    assert (result.loss, result.delay_us, result.jitter_us) == (0.0, 7_000, 0)


def test_a_delay_may_be_longer_on_a_busy_machine_but_never_shorter() -> None:
    expected = LinkQuality(delay_us=20_000)
    late, early = ProbeResult(3, [20_000, 900_000, 30_000]), ProbeResult(3, [20_000, 19_999, 30_000])
    assert judged(expected, late) == expected != judged(expected, early)


def test_disorder_is_seen_in_the_order_also_when_all_are_late() -> None:
    expected = LinkQuality(delay_us=5_000, reorder=0.3)
    late = [9_000] * 120
    assert judged(expected, ProbeResult(120, late, overtaken=40)) == expected
    assert judged(expected, ProbeResult(120, late, overtaken=0)) != expected
    assert judged(expected, ProbeResult(120, [1_000] * 120, overtaken=40)) != expected, "nothing is delayed"


def test_corruption_may_hit_a_header_and_lose_the_packet_but_a_loss_is_no_corruption() -> None:
    expected = LinkQuality(corrupt=0.2)
    assert judged(expected, ProbeResult(120, [0] * 96, corrupted=23)) == expected
    assert judged(expected, ProbeResult(120, [0] * 96, corrupted=0)) != expected
    assert judged(expected, ProbeResult(120, [0] * 50, corrupted=23)) != expected


def test_links_that_cannot_be_degraded_say_why() -> None:
    links = NoLinkQualities("the kernel has no packet queues")
    assert set(links.refusals) == {"loss", "delay", "duplicate", "reorder", "corrupt", "rate"}
    with pytest.raises(Exception, match="cannot be degraded: the kernel has no packet queues"):
        links.degrade([("n1", "n2")], LinkQuality(loss=0.1))
    links.degrade([("n1", "n2")], LinkQuality())
    assert links.qualities([("n1", "n2")]) == {("n1", "n2"): LinkQuality()}
