"""`faultline campaign --guided`: what it takes and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from faultline.campaign.matrix import Guidance
from faultline.campaign.planfile import parse_plan, plan_from_flags
from faultline.harness.errors import UsageError

Command = Callable[..., tuple[int, str, str]]


def test_a_guided_campaign_has_a_seed_for_each_run() -> None:
    plan = plan_from_flags(systems=["quorum-register"], guided=True, runs=60, wave=20, seed=7)
    assert (plan.guided, plan.seeds, plan.runs()) == (Guidance(runs=60, wave=20), "7..66", 60)
    assert plan.universe == "drawn"
    assert len(plan.cells()) > 1


def test_a_plan_file_may_be_guided_and_flags_change_its_size() -> None:
    text = 'systems = ["quorum-register"]\nworkloads = ["read-write"]\nseeds = "100..120"\n[guided]\nruns = 30\n'
    assert parse_plan(text, "mine.toml").seeds == "100..129"
    Path("mine.toml").write_text(text, "utf-8")
    plan = plan_from_flags(plan="mine.toml", runs=10, wave=5)
    assert (plan.guided, plan.seeds) == (Guidance(runs=10, wave=5), "100..109")


def test_other_worlds_are_refused_by_name(faultline: Command) -> None:
    code, _, err = faultline("campaign", "--system", "consistent-core", "--guided", "--world", "local")
    assert code == 2
    assert "the local world cannot be guided" in err
    assert "--world simulated" in err
    assert not Path("faultline-results").exists()
    with pytest.raises(UsageError, match="the hosts world cannot be guided"):
        parse_plan('hosts = "namespaces:3"\n[guided]\nruns = 30\n', "mine.toml")


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--runs", "9"), "--runs has no effect on a campaign that is not guided."),
        (("--seed", "9"), "--seed has no effect on a campaign that is not guided."),
        (("--guided", "--seeds", "0..9"), "--seeds has no effect"),
        (("--guided", "--runs", "1"), "1 runs cannot try each of 4 cells"),
        (("--guided", "--wave", "0"), "Invalid value for '--wave'"),
    ],
)
def test_flags_that_say_nothing_are_refused(faultline: Command, flags: tuple[str, ...], complaint: str) -> None:
    code, _, err = faultline("campaign", "--system", "quorum-register", *flags)
    assert code == 2
    assert complaint in err


def test_a_guided_plan_with_an_absurd_wave_is_refused() -> None:
    with pytest.raises(UsageError, match=r"key guided\.wave: must not be 0"):
        parse_plan("[guided]\nwave = 0\n", "mine.toml")
