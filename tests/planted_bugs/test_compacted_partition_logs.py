"""Partitions whose logs are cut short all the time pass the campaigns in which their hosts die and they move."""

from __future__ import annotations

import pytest
from campaign_runs import requests, sentences_of_failures


@pytest.mark.slow
@pytest.mark.parametrize("campaign", ["partition-durability", "partition-moves", "range-moves"])
def test_partitions_with_short_logs_pass_the_campaigns_that_catch_their_bugs(campaign: str) -> None:
    assert sentences_of_failures(requests(campaign, 1, snapshot_every_entries="7")) == []


@pytest.mark.slow
def test_transactions_with_short_logs_pass_the_campaign_that_catches_their_bugs() -> None:
    short = {"snapshot_every_entries": "20", "segment_size_bytes": "512", "transactions_remembered": "100"}
    assert sentences_of_failures(requests("bank", 2, **short)) == []
