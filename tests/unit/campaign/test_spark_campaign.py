"""Whole campaigns on a real Spark session, with a world of a few operations."""

from __future__ import annotations

from collections.abc import Iterator

import campaign_fakes
import pytest
from campaign_fakes import fake_engine, fake_plan

from faultline.campaign.pipeline import run_campaign
from faultline.campaign.spark import spark_session
from faultline.campaign.summary import CampaignResult, Progress
from faultline.harness.verdict import Verdict

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(campaign_fakes)
    with spark_session("local[2]", tmp_path_factory.mktemp("spark")) as running:
        yield running
    cloudpickle.unregister_pickle_by_value(campaign_fakes)


@pytest.fixture(scope="module")
def seen() -> list[Progress]:
    return []


@pytest.fixture(scope="module")
def finished(session: object, tmp_path_factory: pytest.TempPathFactory, seen: list[Progress]) -> CampaignResult:
    store = tmp_path_factory.mktemp("store")
    return run_campaign(
        fake_plan(), store=store, master="local[2]", session=session, engine=fake_engine(), progress=seen.append
    )


def test_a_campaign_counts_every_run_and_says_what_was_violated(finished: CampaignResult) -> None:
    print(*finished.sentences, *finished.warnings, sep="\n")
    assert finished.verdict is Verdict.VIOLATION
