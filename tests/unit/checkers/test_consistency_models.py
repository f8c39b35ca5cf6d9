"""The hierarchy of models is complete, cited, and free of names that nothing else knows."""

from __future__ import annotations

import pytest

from faultline.checkers.transactions.anomalies import IMPLIES, MEANINGS, implied, meaning, severity
from faultline.checkers.transactions.models import (
    ALIASES,
    FORBIDS,
    STRONGER_THAN,
    canonical,
    forbidden_by,
    orders_for,
    ruled_out,
    weaker_models,
)
from faultline.harness.errors import UsageError


def test_every_edge_of_the_hierarchy_has_a_citation() -> None:
    for sources in (*STRONGER_THAN.values(), *FORBIDS.values()):
        assert all(len(source.citation) > 3 for source in sources)


def test_no_model_is_stronger_than_itself() -> None:
    for model, sources in STRONGER_THAN.items():
        assert all(model not in weaker_models(source.name) for source in sources)


def test_every_forbidden_anomaly_can_be_found_or_follows_from_one_that_can() -> None:
    findable = implied([*MEANINGS, *IMPLIES])
    for sources in FORBIDS.values():
        assert {source.name for source in sources} - findable <= {"G-MSR"}


def test_every_alias_leads_to_a_model_that_exists() -> None:
    assert all(canonical(alias) == model for alias, model in ALIASES.items())
    with pytest.raises(UsageError, match="no consistency model"):
        canonical("eventual")


@pytest.mark.parametrize(
    ("anomaly", "weakest"),
    [
        ("G0", ["read-uncommitted"]),
        ("G1a", ["read-committed"]),
        ("G-single-item", ["consistent-view", "repeatable-read"]),
        ("G-nonadjacent-item", ["repeatable-read", "snapshot-isolation"]),
        ("G2-item", ["repeatable-read"]),
        ("G2", ["serializable"]),
        ("G2-item-realtime", ["strict-serializable"]),
        ("G-single-item-process", ["strong-session-snapshot-isolation"]),
        ("lost-update", ["cursor-stability", "update-atomic"]),
    ],
)
def test_the_weakest_models_that_an_anomaly_rules_out(anomaly: str, weakest: list[str]) -> None:
    assert sorted(ruled_out([anomaly]).weakest) == sorted(weakest)


def test_a_missed_effect_rules_out_forward_consistent_view_by_its_own_name_as_well() -> None:
    assert "G-SIb" in implied(["G-single"])
    assert "G-SIb" in forbidden_by("forward-consistent-view")
    assert {"forward-consistent-view", "snapshot-isolation"} <= set(ruled_out(["G-SIb"]).weakest) | set(
        ruled_out(["G-SIb"]).also
    )


def test_only_models_that_speak_of_orders_need_them() -> None:
    assert orders_for("serializable") == (False, False)
    assert orders_for("strong-session-serializable") == (True, False)
    assert orders_for("PL-SS") == (True, True)


def test_every_anomaly_has_a_meaning_and_a_place_among_the_others() -> None:
    assert "real time" in meaning("G-single-item-realtime")
    assert severity("G0") < severity("G2") < severity("G0-process") < severity("G0-realtime")
