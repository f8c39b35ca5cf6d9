"""Runs that judge a system by more than it promises are refused at planning, with the reason and what to do instead."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from faultline.campaign.planfile import load_plan, shipped_plans
from faultline.harness.commands import run_command
from faultline.harness.errors import UsageError
from faultline.harness.plan import Plan
from faultline.harness.planning import RunRequest, make_plan
from faultline.registry import resolve


def refusal(**asked: Any) -> UsageError:
    request = RunRequest(operations=2, **asked)
    with pytest.raises(UsageError) as refused:
        make_plan(request, resolve(request))
    return refused.value


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"options": {"read_mode": "stale"}}, "any server answers reads at once"),
        (
            {"faults": ("lost-writes",)},
            "a disk that loses writes that it answered or puts writes in the place of other",
        ),
        ({"faults": ("lying-fsync",)}, "a disk that answers an fsync without syncing"),
        ({"system": "quorum-kv", "workload": "siblings", "faults": ("corruption",)}, "changes data that were stored"),
        ({"options": {"flush_policy": "never"}, "faults": ("corruption",)}, "loses what it had acknowledged"),
        ({"system": "follower-reads"}, "followers answer, and may be behind"),
        ({"system": "range-transactions", "workload": "booking", "faults": ("clocks",)}, "further from the true time"),
        (
            {"system": "transactional-kv", "workload": "booking", "options": {"read_only": "snapshot"}},
            "a slow clock misses new values",
        ),
        ({"options": {"flush_policy": "never"}, "faults": ("kill",)}, "loses what it had acknowledged"),
        ({"options": {"flush_policy": "never"}, "faults": ("fsync",)}, "loses what it had acknowledged"),
        ({"options": {"flush_policy": "never"}, "faults": ("data-centre",)}, "loses what it had acknowledged"),
        ({"options": {"read_mode": "leader-lease"}, "faults": ("runaway-clocks",)}, "no leader's lease has a margin"),
        (
            {"system": "coordination-service", "workload": "locks", "options": {"fencing": "off"}},
            "takes the writes of former owners",
        ),
        (
            {"system": "coordination-service", "workload": "locks", "faults": ("runaway-clocks",)},
            "no lease has a margin for clocks",
        ),
        (
            {
                "system": "coordination-service",
                "workload": "locks",
                "options": {"lease_margin_percent": "5"},
                "faults": ("clocks",),
            },
            "too small for clocks that drift",
        ),
        (
            {
                "system": "follower-reads",
                "workload": "bounded-staleness",
                "options": {"follower_reads": "bounded"},
                "faults": ("runaway-clocks",),
            },
            "no bound on the age of an answer",
        ),
        ({"system": "quorum-register", "workload": "read-write", "options": {"write_back": "off"}}, "see less than"),
        ({"system": "quorum-kv", "workload": "read-write"}, "a key is no register"),
        ({"system": "quorum-kv", "workload": "siblings", "options": {"read_repair": "off"}}, "replicas that missed it"),
        ({"system": "gossip", "workload": "read-write"}, "with what it has heard so far"),
        ({"system": "timestamped-kv", "workload": "read-write"}, "no write waits for clocks to agree"),
        (
            {
                "system": "timestamped-kv",
                "workload": "causal-pairs",
                "options": {"wait": "write"},
                "faults": ("clocks",),
            },
            "puts clocks further apart",
        ),
        ({"system": "transactional-kv", "workload": "write-skew", "options": {"isolation": "snapshot"}}, "each miss"),
        ({"system": "transactional-kv", "workload": "predicates", "options": {"isolation": "snapshot"}}, "each miss"),
        ({"system": "emergent-leader", "workload": "membership", "options": {"join_attempts": "5"}}, "gives up"),
        (
            {"system": "emergent-leader", "workload": "membership", "options": {"seeds": "4"}, "nodes": 5},
            "all have met",
        ),
        (
            {
                "system": "emergent-leader",
                "workload": "membership",
                "options": {"seeds": "7", "join_timeout_ms": "400"},
                "nodes": 7,
                "faults": (),
            },
            "late in a run",
        ),
        (
            {"system": "emergent-leader", "workload": "membership", "options": {"failure_timeout_ms": "1200"}},
            "groups need longer to find and join each other",
        ),
        (
            {"system": "gossip", "workload": "metadata", "options": {"client_timeout_ms": "4000"}},
            "may still wait for its write",
        ),
        (
            {"system": "quorum-register", "workload": "read-write", "faults": ("kill",), "weather": {"stale": "0.01"}},
            "executes one that comes again",
        ),
        (
            {"system": "quorum-kv", "workload": "siblings", "faults": ("power",), "weather": {"stale": "0.01"}},
            "executes one that comes again",
        ),
        (
            {"system": "quorum-register", "workload": "read-write", "faults": ("fsync",), "weather": {"stale": "0.01"}},
            "executes one that comes again",
        ),
        (
            {
                "system": "transactional-kv",
                "workload": "txn-append",
                "options": {"transactions_remembered": "3"},
                "faults": ("power",),
                "weather": {"stale": "0.01"},
            },
            "a stale message may be of a transaction that is forgotten",
        ),
        *(
            (
                {
                    "system": system,
                    "workload": "bank",
                    "options": {"transactions_remembered": "3"},
                    "faults": faults,
                    "weather": weather,
                },
                "a message that comes again may be of a transaction that is forgotten",
            )
            for system in ("transactional-kv", "range-transactions")
            for faults, weather in (((), {"duplicate": "0.1"}), (("packet",), {}))
        ),
        (
            {"system": "gossip", "workload": "metadata", "faults": ("disk",), "weather": {"stale": "0.01"}},
            "executes a stale one again",
        ),
        (
            {"system": "quorum-kv", "workload": "siblings", "faults": ("kill",), "weather": {"duplicate": "0.1"}},
            "executes one that comes again",
        ),
        (
            {"system": "gossip", "workload": "metadata", "faults": ("kill",), "weather": {"stale": "0.01"}},
            "executes a stale one again",
        ),
        ({"system": "partitioned-kv", "options": {"late_nodes": "1"}}, "fewer than minimum_cluster_size=3"),
        ({"system": "coordinated-kv", "faults": ("fast-node",), "nodes": 6}, "no lease has a margin"),
    ],
)
def test_what_gives_the_promise_up_is_refused_with_the_reason(asked: dict[str, Any], reason: str) -> None:
    refused = refusal(**{"system": "consistent-core", **asked})
    assert reason in refused.message
    assert "--beyond-promise" in refused.next_step


def test_a_refusal_names_the_option_with_which_the_promise_holds() -> None:
    assert "With wait=write it does." in refusal(system="timestamped-kv", workload="read-write").next_step


def test_reads_from_followers_are_judged_by_what_they_promise() -> None:
    options = {"read_from": "follower", "follower_reads": "session"}
    request = RunRequest(system="follower-reads", workload="follower-reads", options=options, operations=2)
    assert make_plan(request, resolve(request)).workload == "follower-reads"


def test_keys_are_linearizable_under_clocks_that_no_lease_bears_where_no_lease_is_used() -> None:
    request = RunRequest(system="coordination-service", faults=("runaway-clocks",), operations=2)
    assert make_plan(request, resolve(request)).workload == "register"


@pytest.mark.parametrize(("remembered", "stale"), [("3", "0"), ("1000", "0.01")])
def test_transactions_may_be_forgotten_or_messages_be_stale(remembered: str, stale: str) -> None:
    request = RunRequest(
        system="transactional-kv",
        workload="txn-append",
        options={"transactions_remembered": remembered},
        faults=(),
        weather={"stale": stale},
        operations=2,
    )
    assert make_plan(request, resolve(request)).weather.stale == float(stale)


@pytest.mark.parametrize("system", ["quorum-register", "quorum-kv"])
@pytest.mark.parametrize(("faults", "stale"), [(("kill",), "0"), (("pause",), "0.01")])
def test_a_leaderless_store_promises_to_bear_restarts_or_stale_messages(
    system: str, faults: tuple[str, ...], stale: str
) -> None:
    workload = {"quorum-register": "read-write", "quorum-kv": "siblings"}[system]
    request = RunRequest(system=system, workload=workload, faults=faults, weather={"stale": stale}, operations=2)
    assert make_plan(request, resolve(request)).weather.stale == float(stale)


def test_what_is_not_promised_can_be_asked_for_and_the_command_says_so() -> None:
    request = RunRequest(
        system="consistent-core", options={"read_mode": "stale"}, operations=2, beyond_promise=True, faults=()
    )
    assert make_plan(request, resolve(request)).options["read_mode"] == "stale"
    assert "--beyond-promise" in run_command(request)


def test_a_workload_that_needs_siblings_is_refused_by_stores_that_answer_with_one_value() -> None:
    refused = refusal(system="paxos-kv", workload="siblings")
    assert "its answers do not have the form siblings" in refused.message
    assert "list workloads" in refused.next_step


@pytest.mark.parametrize("name", shipped_plans())
def test_shipped_plans_ask_for_no_more_than_is_promised_where_they_expect_no_anomaly(name: str) -> None:
    plan = load_plan(name)
    for cell in plan.cells():
        request = plan.request(cell, 0)
        assert request.beyond_promise is bool(cell.expected)
        make_plan(request, resolve(request))


@pytest.mark.parametrize(
    ("options", "isolation"),
    [
        ({}, "strict-serializable"),
        ({"isolation": "repeatable-read"}, "strong-snapshot-isolation"),
        ({"isolation": "read-committed"}, "read-committed"),
        ({"read_from": "any"}, "snapshot-isolation"),
    ],
)
def test_a_workload_of_conditions_is_judged_by_the_isolation_that_the_options_set(
    options: dict[str, str], isolation: str
) -> None:
    def planned(workload: str) -> Plan:
        request = RunRequest(system="postgresql", world="hosts", workload=workload, options=options, operations=2)
        return make_plan(request, resolve(request))

    assert planned("predicates").isolation == isolation
    assert planned("write-skew").isolation is msgspec.UNSET
