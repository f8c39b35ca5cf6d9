"""The options of a run: settings behind `tuning`, the options of planted bugs, and options of older versions."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.errors import UsageError
from faultline.harness.options import MovedAway, all_options, effective_options, tuning_settings, tuning_text
from faultline.registry import load_system

CORE = load_system("consistent-core")


def in_force(asked: dict[str, str], *planted_bugs: str) -> dict[str, str]:
    return effective_options(CORE, asked, planted_bugs)


def test_defaults_leave_tuning_empty() -> None:
    assert in_force({})["tuning"] == ""
    assert set(in_force({})) == set(CORE.options)


@pytest.mark.parametrize(
    "asked",
    [
        {"tuning": "segment_size_bytes:256,in_flight_max:1"},
        {"segment_size_bytes": "256", "in_flight_max": "1"},
        {"segment_size_bytes": "256", "tuning": "in_flight_max:1"},
        {"tuning": "segment_size_bytes:256,in_flight_max:1,snapshots_retained:2"},
    ],
)
def test_a_setting_is_the_same_under_its_own_name_and_in_tuning(asked: dict[str, str]) -> None:
    assert in_force(asked) == in_force({"tuning": "in_flight_max:1,segment_size_bytes:256"})
    assert in_force(asked)["tuning"] == "in_flight_max:1,segment_size_bytes:256"


def test_options_in_force_stay_in_force_when_a_stored_plan_gives_them_again() -> None:
    once = in_force({"segment_size_bytes": "256", "pre_vote": "off"})
    assert in_force(once) == once


def test_a_planted_bug_brings_its_settings_and_others_stay() -> None:
    options = in_force({"tuning": "segment_size_bytes:256"}, "commit-old-generation")
    assert tuning_settings(options["tuning"]) == {"batch_entries_max": "1", "segment_size_bytes": "256"}


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"tuning": "segment_size_bytes"}, "has 'segment_size_bytes', which is no setting"),
        ({"tuning": "segment_size_bytes:"}, "no setting"),
        ({"tuning": ":256"}, "no setting"),
        ({"tuning": "in_flight_max:1,in_flight_max:1"}, "in_flight_max twice"),
        ({"tuning": "segment_size:256"}, "no setting called 'segment_size'"),
        ({"tuning": "read_mode:log"}, "no setting called 'read_mode'"),
        ({"tuning": "segment_size_bytes:small"}, "whole number"),
        ({"tuning": "in_flight_max:1", "in_flight_max": "2"}, "in_flight_max is 2 as an option of its own, and 1"),
    ],
)
def test_tuning_that_cannot_be_used_is_refused(asked: dict[str, str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as refusal:
        in_force(asked)
    assert refusal.value.next_step


def test_a_setting_that_a_planted_bug_needs_cannot_be_asked_for_with_another_value() -> None:
    with pytest.raises(UsageError, match="needs batch_entries_max=1, but batch_entries_max=2"):
        in_force({"tuning": "batch_entries_max:2"}, "commit-old-generation")


def test_a_former_option_is_accepted_with_its_default_and_refused_with_another_value() -> None:
    assert in_force({"saved_responses_max": "5"}) == in_force({})
    with pytest.raises(UsageError, match="no option saved_responses_max any more") as refusal:
        in_force({"saved_responses_max": "6"})
    assert refusal.value.next_step == "Leave it out: it is always 5."


@pytest.mark.parametrize(
    ("asked", "planted_bugs", "system", "given_up"),
    [
        ({"services": "on"}, (), "coordination-service", "services"),
        ({"services": "on", "regions": "1"}, (), "coordination-service", "regions"),
        ({"lease_ttl_ms": "700"}, (), "coordination-service", "services"),
        ({"read_from": "nearest"}, (), "follower-reads", "lease_ttl_ms"),
        ({}, ("no-fencing",), "coordination-service", "read_from"),
        ({}, ("stamp-ignored",), "follower-reads", "services"),
    ],
)
def test_an_option_or_a_bug_of_another_system_is_refused_with_that_system(
    asked: dict[str, str], planted_bugs: tuple[str, ...], system: str, given_up: str
) -> None:
    with pytest.raises(MovedAway, match=system) as moved:
        in_force(asked, *planted_bugs)
    assert moved.value.system == system
    assert given_up in moved.value.given_up


def test_what_a_system_gave_away_is_there_in_the_system_that_is_named() -> None:
    core: Any = CORE
    for name, option in core.former_options.items():
        if option.system:
            assert (name in load_system(option.system).options) is option.is_kept
    for name, system in core.former_planted_bugs.items():
        assert name in load_system(system).planted_bugs


def test_a_stored_plan_that_names_each_former_option_with_its_default_is_the_plan_of_today() -> None:
    core: Any = CORE
    assert in_force({name: option.default for name, option in core.former_options.items()}) == in_force({})


def test_a_system_without_tuning_has_no_such_option() -> None:
    with pytest.raises(UsageError, match="no option called 'tuning'"):
        effective_options(load_system("gossip"), {"tuning": "fanout:2"}, ())


@pytest.mark.parametrize("name", ["consistent-core", "coordinated-kv", "transactional-kv"])
def test_settings_behind_tuning_are_no_options_as_well(name: str) -> None:
    system: Any = load_system(name)
    assert "tuning" not in all_options(system)
    assert set(system.tuning) <= set(all_options(system))
    assert not set(system.tuning) & set(system.options)


def test_a_text_of_settings_reads_back() -> None:
    settings = {"segment_size_bytes": "256", "in_flight_max": "1"}
    assert tuning_settings(tuning_text(settings)) == settings
    assert tuning_settings("") == {}
