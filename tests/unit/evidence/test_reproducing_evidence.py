"""`faultline evidence` stops when a claim is borne out, goes on when it is not, and its exit code tells which."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from faultline.cli import reproduce
from faultline.harness.verdict import Finding, Verdict
from faultline.harness.world.hosts.evidence.cases import Case, parse_case

CLAIM = 'claim = "It loses."\nexpected = "{}"\nsystem = "etcd"\nseeds = [3, 4, 5]\nanomaly = "set-full/*"\n'
LOST = (Verdict.VIOLATION, "set-full", "lost")
CRASHED = (Verdict.VIOLATION, "invariants", "node-crash")
CLEAN = (Verdict.PASS, "", "")
BROKEN = (Verdict.HARNESS_ERROR, "", "")


def outcome(
    monkeypatch: pytest.MonkeyPatch, expected: str, *came: tuple[Verdict, str, str], every: bool = False
) -> Any:
    """Return the outcome that `faultline evidence` finds for runs with these verdicts."""
    verdicts = dict(zip((3, 4, 5), came, strict=True))
    started: list[tuple[int, str]] = []

    def carry_out(request: Any, store: Path, *, shrinks: bool, hosts: str) -> Any:
        started.append((request.seed, hosts))
        verdict, checker, anomaly = verdicts[request.seed]
        findings = [Finding(checker=checker, anomaly=anomaly, sentence="It shows.")] if checker else []
        judgement = SimpleNamespace(
            seed=request.seed,
            verdict=verdict,
            findings=findings,
            counts={"invoked": 10},
            signature=f"{checker}/{anomaly}",
            sentence=f"seed {request.seed}",
        )
        return SimpleNamespace(folder=store / str(request.seed), judgement=judgement, interrupted=False)

    monkeypatch.setattr(reproduce, "carry_out", carry_out)
    case: Case = parse_case("loses", CLAIM.format(expected))
    found = reproduce.outcome_of(case, list(reproduce.runs_of(case, Path("faultline-results"), every_seed=every)))
    assert [hosts for _, hosts in started] == ["namespaces:3"] * len(started)
    assert found.tried == tuple(seed for seed, _ in started)
    return found


def test_the_first_seed_that_shows_an_expected_violation_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    found = outcome(monkeypatch, "violation", CLEAN, LOST, BROKEN)
    assert (found.tried, found.shown, found.passed, found.verdict) == ((3, 4), (4,), (3,), Verdict.PASS)
    assert (found.finding, found.sentence, found.operations) == ("set-full/lost", "seed 4", 20)
    every = outcome(monkeypatch, "violation", CLEAN, LOST, LOST, every=True)
    assert (every.tried, every.shown, every.verdict) == ((3, 4, 5), (4, 5), Verdict.PASS)


def test_a_violation_that_no_seed_shows_is_vacuous_and_an_undecided_run_a_harness_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert outcome(monkeypatch, "violation", CLEAN, CLEAN, CLEAN).verdict is Verdict.VACUOUS
    other = outcome(monkeypatch, "violation", CLEAN, CRASHED, CLEAN)
    assert (other.borne_out, other.verdict, other.finding) == (False, Verdict.HARNESS_ERROR, "invariants/node-crash")
    assert outcome(monkeypatch, "violation", CLEAN, BROKEN, CLEAN).verdict is Verdict.HARNESS_ERROR


def test_a_pass_is_asked_of_every_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    clean = outcome(monkeypatch, "pass", CLEAN, CLEAN, CLEAN)
    assert (clean.tried, clean.passed, clean.verdict) == ((3, 4, 5), (3, 4, 5), Verdict.PASS)
    accused = outcome(monkeypatch, "pass", CLEAN, LOST, CLEAN)
    assert (accused.tried, accused.verdict, accused.sentence) == ((3, 4, 5), Verdict.VIOLATION, "seed 4")
    assert outcome(monkeypatch, "pass", CLEAN, BROKEN, CLEAN).verdict is Verdict.HARNESS_ERROR
