"""Help says what an option is when it is left out, and says it truly."""

from __future__ import annotations

import click
import pytest

from faultline.campaign.matrix import CampaignPlan
from faultline.cli.campaign import command as campaign
from faultline.cli.check import command as check
from faultline.cli.run import command as run

NOTHING_TO_SHOW = {"--option", "--host-option", "--hosts", "--json", "--help"}
"""Options that are nothing at all when left out."""


def shown(verb: click.Command, name: str) -> str:
    """The help of one option as it is printed, on one line."""
    context = verb.make_context("faultline", [], resilient_parsing=True)
    option = next(each for each in verb.params if name in each.opts)
    _, text = option.get_help_record(context) or ("", "")
    return " ".join(text.split())


@pytest.mark.parametrize("verb", [run, campaign, check], ids=["run", "campaign", "check"])
def test_help_shows_the_default_of_every_option_that_has_one(verb: click.Command) -> None:
    names = {
        option.opts[0] for option in verb.params if isinstance(option, click.Option) and not option.hidden
    } - NOTHING_TO_SHOW
    assert len(names) >= 4
    assert [name for name in sorted(names) if "[default: " not in shown(verb, name)] == []


@pytest.mark.parametrize("field", ["seeds", "nodes", "workers", "operations", "world"])
def test_the_defaults_in_the_help_of_campaigns_are_those_of_a_plan(field: str) -> None:
    assert shown(campaign, f"--{field}").endswith(f"[default: the plan's, else {getattr(CampaignPlan(), field)}].")
