"""The watch over a run: what ends a run, and what a wrong or broken incremental checker does to its verdict."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import msgspec
import pytest

from faultline.cli.single_run import carry_out
from faultline.harness.incremental import incremental_checkers
from faultline.harness.judge import judge
from faultline.harness.plan import Plan
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import resolve
from faultline.reports.terminal import run_lines
from faultline.systems_under_test.patterns.data_replication import replicated_log

REQUEST = RunRequest(
    system="consistent-core", faults=("partition", "kill"), seed=1, planted_bugs=("stale-read",), stop_at_violation=True
)


def ran(request, **changes):
    parts = replace(resolve(request), **changes)
    record = run_simulated(make_plan(request, parts), parts)
    return record, judge(record, parts, run_id="r")


def first_violating(request):
    for seed in range(40):
        record, judgement = ran(msgspec.structs.replace(request, seed=seed))
        if record.stopped_by is not None:
            return record, judgement
    raise AssertionError("no seed shows the planted bug")


@pytest.mark.slow
def test_a_run_stops_at_its_first_violation_heals_and_is_judged_by_the_ordinary_checkers():
    record, judgement = first_violating(REQUEST)
    whole, _ = ran(msgspec.structs.replace(REQUEST, seed=record.plan.seed, stop_at_violation=msgspec.UNSET))
    assert judgement.verdict is Verdict.VIOLATION
    assert judgement.signature.startswith("linearizability/")
    assert judgement.errors == []
    last = max(index for index in record.history.complete_index)
    assert record.history.complete_index[record.stopped_by.rows[-1]] == last, "no operation completed after it"
    assert record.history.faults[-1].f == "heal"
    assert len(record.history) < len(whole.history)
    assert all(fault.applied is None for fault in record.faults), "faults that were not due yet are not missed"
    lines = run_lines(record, judgement)
    assert any("was stopped at" in line for line in lines)
    assert not any("floor" in line for line in lines)
    shared = [line for line in record.history.to_jsonl().splitlines() if b'"nemesis"' not in line]
    assert [line for line in whole.history.to_jsonl().splitlines() if b'"nemesis"' not in line][: len(shared)] == shared


@pytest.mark.slow
def test_a_run_that_stops_is_the_same_to_the_byte_each_time():
    record, _ = first_violating(REQUEST)
    again, _ = ran(msgspec.structs.replace(REQUEST, seed=record.plan.seed))
    assert again.history.to_jsonl() == record.history.to_jsonl()
    assert again.stopped_by == record.stopped_by


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["register", "read-write"])
def test_a_legal_run_is_the_same_with_and_without_the_watch(workload):
    for seed in range(6):
        request = msgspec.structs.replace(REQUEST, planted_bugs=(), workload=workload, seed=seed)
        record, _ = ran(request)
        plain, _ = ran(msgspec.structs.replace(request, stop_at_violation=msgspec.UNSET))
        assert record.stopped_by is None
        assert record.history.to_jsonl() == plain.history.to_jsonl()


def test_a_plan_without_the_field_keeps_its_digest_and_one_with_it_has_another():
    parts = resolve(REQUEST)
    plain = make_plan(msgspec.structs.replace(REQUEST, stop_at_violation=msgspec.UNSET), parts)
    stopping = make_plan(REQUEST, parts)
    encoded = msgspec.json.encode(plain)
    assert b"stop_at_violation" not in encoded
    assert plain.digest() == hashlib.sha256(encoded).hexdigest() != stopping.digest()
    assert msgspec.json.decode(msgspec.json.encode(stopping), type=Plan) == stopping


class _Incremental:
    """A checker of registers whose incremental twin answers, or raises, at operation 20."""

    name = "linearizability"

    def __init__(self, checker, answer):
        self._checker, self._answer = checker, answer

    def check(self, history, run):
        return self._checker.check(history, run)

    def incremental(self):
        return self

    def invoke(self, row, operation):
        pass

    def complete(self, row, outcome):
        return self._answer(row) if row == 20 else ()


def with_incremental(answer):
    request = msgspec.structs.replace(REQUEST, planted_bugs=())
    first, *others = resolve(request).checkers
    return ran(request, checkers=(_Incremental(first, answer), *others))


def test_a_stop_that_the_check_afterwards_does_not_confirm_is_a_harness_error():
    record, judgement = with_incremental(lambda row: (3, row))
    assert record.stopped_by.rows == (3, 20)
    assert judgement.verdict is Verdict.HARNESS_ERROR
    assert "operations 3, 20" in judgement.sentence


def test_an_incremental_checker_that_raises_is_told_and_the_run_goes_on():
    def fails(row):
        raise ValueError("a bug of the plug-in")

    record, judgement = with_incremental(fails)
    assert record.stopped_by is None
    assert len(record.history) >= len(record.plan.operations)
    assert judgement.verdict is Verdict.HARNESS_ERROR
    assert "a bug of the plug-in" in judgement.sentence
    assert judgement.checks[0].verdict is Verdict.PASS


WATCHED = [
    *(("consistent-core", each) for each in ("register", "read-write", "set", "sequential", "counter", "unique-ids")),
    *(("paxos-kv", each) for each in ("register", "set", "counter", "transfer")),
    *(("quorum-register", "read-write"), ("partitioned-kv", "register"), ("range-kv", "register")),
    ("transactional-kv", "bank"),
    *(("consistent-core", "sessions"), ("coordination-service", "locks")),
    *(("consistent-core", "append"), ("transactional-kv", "txn-append"), ("transactional-kv", "write-skew")),
    *(("follower-reads", each) for each in ("follower-reads", "read-your-writes")),
    ("consistent-core", "bounded-staleness"),
    *(("coordination-service", "watches"), ("timestamped-kv", "causal-pairs"), ("transactional-kv", "long-fork")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("system", "workload"), WATCHED)
def test_runs_of_correct_systems_are_watched_and_never_stop(system, workload):
    for seed in range(3):
        request = RunRequest(
            system=system, workload=workload, seed=seed, faults=("partition", "kill"), stop_at_violation=True
        )
        assert incremental_checkers(resolve(request).checkers)
        record, judgement = ran(request)
        assert record.stopped_by is None
        assert judgement.errors == []
        assert judgement.verdict is Verdict.PASS


STOPPED_EARLY = {
    "follower-reads": RunRequest(
        system="follower-reads",
        workload="follower-reads",
        options={"read_from": "follower", "follower_reads": "session"},
        faults=("leadership",),
        planted_bugs=("stamp-ignored",),
    ),
    "watches": RunRequest(
        system="coordination-service",
        workload="watches",
        faults=("leadership",),
        planted_bugs=("watch-starts-live",),
        seed=1,
    ),
    "causal-pairs": RunRequest(
        system="timestamped-kv",
        workload="causal-pairs",
        faults=("clock",),
        planted_bugs=("ignore-request-stamp",),
        seed=2,
    ),
    "long-fork": RunRequest(
        system="transactional-kv",
        workload="long-fork",
        options={"read_only": "snapshot"},
        faults=("kill", "partition"),
        planted_bugs=("clock-ignores-reads",),
        seed=8,
    ),
    "transfers": RunRequest(
        system="consistent-core",
        workload="transfer",
        faults=("retries",),
        planted_bugs=("new-number-per-retry",),
        seed=4,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("checker", STOPPED_EARLY)
def test_a_planted_bug_ends_a_run_early_and_the_check_of_the_shorter_history_confirms_it(checker):
    record, judgement = ran(msgspec.structs.replace(STOPPED_EARLY[checker], stop_at_violation=True))
    assert record.stopped_by.checker == checker
    assert len(record.history) < len(record.plan.operations) / 2
    assert judgement.errors == []
    assert judgement.signature.startswith(f"{checker}/")
    clean, judgement = ran(msgspec.structs.replace(STOPPED_EARLY[checker], stop_at_violation=True, planted_bugs=()))
    assert clean.stopped_by is None
    assert judgement.verdict is Verdict.PASS


@pytest.mark.slow
@pytest.mark.parametrize("is_broken", [True, False])
def test_followers_that_show_another_order_end_a_run_early(monkeypatch, is_broken):
    if is_broken:
        monkeypatch.setattr(replicated_log, "quorum_index", max)
    request = RunRequest(
        system="follower-reads",
        workload="sequential",
        options={"read_from": "follower", "follower_reads": "plain"},
        faults=("leadership",),
        seed=3,
        beyond_promise=True,
        stop_at_violation=True,
    )
    record, judgement = ran(request)
    assert judgement.errors == []
    assert (record.stopped_by is not None and record.stopped_by.checker == "causal-reverse") is is_broken
    assert (judgement.signature == "causal-reverse/causal-reverse") is is_broken


def test_the_command_line_says_when_no_check_judges_while_the_run_goes_on(tmp_path, capsys):
    for workload, is_told in (("cart", True), ("append", False)):
        request = msgspec.structs.replace(REQUEST, workload=workload, planted_bugs=(), faults=(), operations=10)
        carry_out(request, tmp_path, shrinks=False)
        assert ("--stop-at-violation has no effect" in capsys.readouterr().err) is is_told
