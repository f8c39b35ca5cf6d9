"""Bugs planted in `gossip` are caught in their campaigns; the correct system converges there, in every variant."""

from __future__ import annotations

import pytest
from campaign_runs import assert_caught, requests, sentences_of_failures

from faultline.registry import load_system

PLANTED_BUGS = load_system("gossip").planted_bugs
CAMPAIGNS = sorted({planted_bug.campaign for planted_bug in PLANTED_BUGS.values()})
VARIANTS: tuple[dict[str, str], ...] = (
    {},
    {"exchange": "full"},
    {"exchange": "digest"},
    {"exchange": "checksum"},
    {"detector": "swim"},
    {"detector": "phi-accrual"},
    {"detector": "heartbeats"},
    {"detector": "lifeguard"},
    {"peers": "least-contacted"},
)
SEEDS_MAX = 100


@pytest.mark.parametrize("name", sorted(PLANTED_BUGS))
def test_a_bug_planted_in_gossip_is_caught_in_its_campaign(name: str) -> None:
    assert_caught(PLANTED_BUGS[name], SEEDS_MAX)


@pytest.mark.rows("GO-S4", "GO-I1", "GO-I2", "GO-I4")
@pytest.mark.parametrize("options", VARIANTS, ids=lambda options: "-".join(options.values()) or "default")
def test_every_variant_of_gossip_converges_after_the_faults(options: dict[str, str]) -> None:
    failures = [sentence for name in CAMPAIGNS for sentence in sentences_of_failures(requests(name, 2, **options))]
    assert failures == []
