"""Features that systems declare: which can be entered, which must be, and what tells of those of a real store."""

from __future__ import annotations

import pytest

from faultline.harness.feature import Feature, due_features, possible_features

SPLIT = Feature("split", "a partition was split", unless={"split_by": "nothing"})
WATCHED = Feature("watched", "a watch was set", needs={"services": "on"})
CHANGED = Feature("changed", "another leader took over", essential=True, faults=("kill", "partition"))
ELECTED = Feature("elected", "a leader was elected", essential=True)


class Declaring:
    features = (SPLIT, WATCHED, CHANGED, ELECTED)


def test_a_feature_is_possible_with_the_options_it_needs_and_without_those_that_prevent_it() -> None:
    assert possible_features(Declaring(), {"services": "on", "split_by": "size"}) == Declaring.features
    assert possible_features(Declaring(), {"services": "off", "split_by": "nothing"}) == (CHANGED, ELECTED)


def test_a_feature_can_need_a_setting_behind_tuning() -> None:
    class Tuned:
        features = (Feature("reconnected", "", needs={"wire": "channel"}),)

    assert possible_features(Tuned(), {"tuning": "in_flight_max:1,wire:channel"}) == Tuned.features
    assert possible_features(Tuned(), {"tuning": ""}) == ()


def test_a_system_that_declares_nothing_has_no_features() -> None:
    assert possible_features(object(), {}) == ()


@pytest.mark.parametrize(
    ("fault_set", "due"), [((), [ELECTED]), (("pause",), [ELECTED]), (("pause", "kill"), [CHANGED, ELECTED])]
)
def test_an_essential_feature_is_due_where_faults_lead_to_it(fault_set: tuple[str, ...], due: list[Feature]) -> None:
    assert list(due_features(Declaring(), {}, fault_set)) == due


def test_an_essential_feature_is_not_due_where_the_options_prevent_it() -> None:
    class Single:
        features = (Feature("changed", "", unless={"copies": "1"}, essential=True),)

    assert due_features(Single(), {"copies": "1"}, ()) == ()
    assert len(due_features(Single(), {"copies": "3"}, ())) == 1


def test_no_line_tells_of_a_feature_without_a_rule() -> None:
    assert not ELECTED.is_told_by("a leader was elected")
    assert Feature("elected", "", log="became leader at term").is_told_by("57 became leader at term 3\n")
