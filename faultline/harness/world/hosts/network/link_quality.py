"""The verdict on a link, from the fates of datagrams that were sent over it.

Shares are judged by the binomial distribution: as many datagrams are sent as it takes for a share not to stay unseen,
and the number that was hit may be six standard deviations off, so that a true link is accused less than once in ten
million times. Delays are judged by their lower bound alone: on a busy machine everything may take longer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from faultline.harness.world.faults import LinkQuality

__all__ = ["PROBE_BYTES", "ProbeResult", "judged", "probes_needed"]

PROBE_BYTES = 1_000
_HEADERS_BYTES = 28
"""The bytes that IPv4 and UDP add to each."""
_UNSEEN = 1e-7
_DEVIATIONS = 6.0
_PROBES_MIN, _PROBES_MAX = 16, 1_000
_SHARE_PROBES_MIN = 120
"""The number of probes that tell a half from a twentieth."""
_HEALTHY_PROBES = 3
_RATE_SPAN_S = 0.04
_AT_LEAST = 0.5
"""A rate is believed from this part of the time it takes: on a busy machine the first datagrams may all come late."""
_HEALTHY = LinkQuality()


@dataclass(slots=True)
class ProbeResult:
    """The fates of `sent` datagrams: the lateness of each that came; the rest are counts of datagrams.

    `overtaken` came after one that was sent later. `span_us` is the time from the first sending to the last arrival.
    """

    sent: int
    lateness_us: list[int] = field(default_factory=list)
    duplicates: int = 0
    corrupted: int = 0
    span_us: int = 0
    overtaken: int = 0


def probes_needed(quality: LinkQuality) -> int:
    """Return how many datagrams show whether a link has `quality`."""
    if quality == _HEALTHY:
        return _HEALTHY_PROBES
    shares = [quality.loss, quality.duplicate, quality.reorder, quality.corrupt]
    # Neither all nor none of so many are hit, whichever is less likely.
    counts = [
        max(math.ceil(math.log(_UNSEEN) / math.log(max(share, 1 - share))), _SHARE_PROBES_MIN)
        for share in shares
        if 0 < share < 1
    ]
    if quality.rate_kbit_per_s:
        counts.append(math.ceil(_RATE_SPAN_S / _wire_s(quality)) + 1)
    return min(max([*counts, _PROBES_MIN if not quality.rate_kbit_per_s else 2]), _PROBES_MAX)


def judged(expected: LinkQuality, seen: ProbeResult) -> LinkQuality:
    """Return `expected` when the datagrams met with it; else an estimate of the quality that they did meet with."""
    arrived = len(seen.lateness_us)
    lost = seen.sent - arrived - seen.corrupted
    early = sum(lateness < expected.delay_us for lateness in seen.lateness_us)
    as_expected = (
        _is_harmed_as(expected, seen, lost)
        and _fits(seen.duplicates, seen.sent - lost, expected.duplicate)
        and _is_reordered(expected, early, arrived, seen.overtaken)
        and _is_late_enough(expected, seen)
        and seen.span_us >= _least_span_us(expected, seen.sent - lost)
    )
    return expected if as_expected else _measured(seen, lost)


def _fits(hit: int, count: int, share: float) -> bool:
    """Return whether `hit` of `count` fits a share of `share`: some and not all, unless the share is 0 or 1."""
    if share <= 0 or share >= 1:
        return hit == (count if share >= 1 else 0)
    slack = _DEVIATIONS * math.sqrt(count * share * (1 - share)) + 1
    return 0 < hit < count and abs(hit - count * share) <= slack


def _is_harmed_as(expected: LinkQuality, seen: ProbeResult, lost: int) -> bool:
    """Return whether losses and corruptions are as expected. A packet with a corrupted header counts as lost."""
    if expected.corrupt and not expected.loss:
        return seen.corrupted > lost and _fits(seen.corrupted + lost, seen.sent, expected.corrupt)
    return _fits(lost, seen.sent, expected.loss) and _fits(seen.corrupted, seen.sent - lost, expected.corrupt)


def _is_reordered(expected: LinkQuality, early: int, arrived: int, overtaken: int) -> bool:
    """Return whether some overtake others, and not too many skip the delay. On a busy machine all may be late."""
    if not expected.reorder or not arrived:
        return early == 0
    few_enough = early <= arrived * expected.reorder or _fits(early, arrived, expected.reorder)
    return overtaken > 0 and few_enough


def _is_late_enough(expected: LinkQuality, seen: ProbeResult) -> bool:
    """Return whether some were later than the delay alone makes them, as they must be under jitter."""
    if not expected.jitter_us or not seen.lateness_us:
        return True
    return max(seen.lateness_us) >= expected.delay_us + expected.jitter_us // 8


def _least_span_us(expected: LinkQuality, passed: int) -> float:
    """Return the shortest time at the link's rate in which all datagrams pass that were not lost."""
    if not expected.rate_kbit_per_s:
        return 0.0
    return passed * _wire_s(expected) * 1e6 * _AT_LEAST


def _wire_s(quality: LinkQuality) -> float:
    return (PROBE_BYTES + _HEADERS_BYTES) * 8 / (quality.rate_kbit_per_s * 1_000)


def _measured(seen: ProbeResult, lost: int) -> LinkQuality:
    passed = max(seen.sent - lost, 1)
    return LinkQuality(
        delay_us=min(seen.lateness_us, default=0),
        jitter_us=max(seen.lateness_us, default=0) - min(seen.lateness_us, default=0),
        loss=round(lost / seen.sent, 3),
        duplicate=round(seen.duplicates / passed, 3),
        corrupt=round(seen.corrupted / passed, 3),
    )
