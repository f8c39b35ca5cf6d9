"""From a record to a judgement: run the checkers, merge their verdicts, and sum them up in one sentence."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

import msgspec

import faultline
from faultline.harness.access import access_of
from faultline.harness.checks import ask, judged_nothing, left_out, name_of
from faultline.harness.exposure import OperationsInFlight, exposure
from faultline.harness.feature import possible_features
from faultline.harness.judgement import Judgement
from faultline.harness.parts import Parts
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import is_sampled, probe
from faultline.harness.system import NodeSystem, options_changed
from faultline.harness.universe import calm_universe
from faultline.harness.verdict import CheckResult, Finding, Verdict, merge
from faultline.harness.workload import Checker

__all__ = ["CHECK_LIMIT_S", "judge", "judge_by"]

CHECK_LIMIT_S = 600.0
"""The time that one checker may take after a run. Shipped checkers answer within seconds, by their own budgets."""


def judge(record: RunRecord, parts: Parts, *, run_id: str, replay: str = "", probes: bool = False) -> Judgement:
    """Judge `record` with the checkers of `parts`, each within CHECK_LIMIT_S; otherwise as `judge_by`.

    With `probes`, measure the sensitivity of a pass if the run belongs to the sample (`faultline.harness.sensitivity`).
    """
    judgement = judge_by(parts.checkers, record, run_id=run_id, replay=replay, limit_s=CHECK_LIMIT_S)
    features = possible_features(parts.system, record.plan.options)
    judgement.exposure = exposure(record, access_of(parts.workload), (feature.name for feature in features))
    judgement.options_changed = options_changed(parts.system, record.plan.options)
    if record.plan.universe:
        judgement.universe_calm = calm_universe(record.plan, parts.system)
    judgement.statements = _statements(judgement, parts.system) or msgspec.UNSET
    judgement.summaries = _summaries(judgement, parts.system) or msgspec.UNSET
    if probes and judgement.verdict is Verdict.PASS and is_sampled(record):
        judgement.sensitivity = probe(record, parts.checkers, parts.anomalies)
    return judgement


def _statements(judgement: Judgement, system: NodeSystem) -> dict[str, str]:
    """Return what the invariants say that were broken, by their ids."""
    broken = {finding.anomaly for finding in judgement.findings}
    invariants = system.invariants() if broken else []
    return {invariant.id: invariant.statement for invariant in invariants if invariant.id in broken}


def _summaries(judgement: Judgement, system: NodeSystem) -> dict[str, str]:
    """Return what the planted bugs do, by their names, each with its pattern and its requirement rows."""
    bugs = (system.planted_bugs[name] for name in judgement.planted_bugs if name in system.planted_bugs)
    return {bug.name: f"{bug.summary} ({bug.pattern}, {bug.id})" for bug in bugs}


def judge_by(
    checkers: Iterable[Checker],
    record: RunRecord,
    *,
    run_id: str,
    replay: str = "",
    without: Mapping[str, str] | None = None,
    limit_s: float | None = None,
) -> Judgement:
    """Judge `record` with `checkers`, most important first.

    A checker that fails answers *unknown* (`faultline.harness.checks`): its failure must not cost the verdicts of the
    others. `replay` is the command that shows the run again. `without` names checkers that cannot run, each with
    the reason, half a sentence: they are *unknown*. A checker that takes more than `limit_s` seconds is ended.
    """
    due, missing = list(checkers), without or {}
    digest = record.history.digest()
    checks = [_asked_or_left_out(checker, record, missing, limit_s) for checker in due]
    if not any(not getattr(checker, "judges_the_test", False) for checker in due):
        checks.append(judged_nothing())
    errors = [*record.errors, *record.history.problems, *_changed(record, digest), *_unconfirmed(record, checks)]
    verdict = merge([check.verdict for check in checks] + [Verdict.HARNESS_ERROR] * bool(errors))
    findings = [finding for check in checks for finding in check.findings]
    plan = record.plan
    return Judgement(
        run_id=run_id,
        cell=plan.cell,
        system=plan.system,
        workload=plan.workload,
        fault_set=plan.fault_set,
        planted_bugs=plan.planted_bugs,
        options=plan.options,
        host_options=plan.host_options,
        seed=plan.seed,
        world=record.world,
        verdict=verdict,
        sentence=_beginning(verdict, record) + _sentence(verdict, checks, errors),
        signature=_signature(findings),
        findings=findings,
        checks_due=[name_of(checker) for checker in due],
        checks=checks,
        warnings=[warning for check in checks for warning in check.detail.get("warnings", ())],
        counts=_counts(record),
        overlap=_overlap(record),
        marks=record.marks,
        statistics=record.statistics,
        errors=errors,
        replay=replay,
        started_at=_started_at(record),
        interrupted=record.interrupted,
        history_sha256=digest,
        plan_sha256=plan.digest(),
        versions={"faultline": faultline.__version__, "python": platform.python_version()},
        detail={} if record.stopped_by is None else {"stopped_by": msgspec.to_builtins(record.stopped_by)},
    )


def _asked_or_left_out(
    checker: Checker, record: RunRecord, missing: Mapping[str, str], limit_s: float | None
) -> CheckResult:
    name = name_of(checker)
    return left_out(name, missing[name]) if name in missing else ask(checker, record, limit_s)


def _changed(record: RunRecord, digest: str) -> list[str]:
    """Return the problem of a history that a checker changed, because the checkers after it judged another history."""
    if record.history.digest() == digest:
        return []
    return ["A checker changed the history while it judged it, so the checkers after it judged another history."]


def _unconfirmed(record: RunRecord, checks: Iterable[CheckResult]) -> list[str]:
    """Return the problem of a run that was ended by a violation which its own checker did not find afterwards."""
    stopped = record.stopped_by
    if stopped is None:
        return []
    if any(check.checker == stopped.checker and check.verdict is Verdict.VIOLATION for check in checks):
        return []
    rows = ", ".join(map(str, stopped.rows))
    return [
        f"The run was stopped at a violation of {stopped.checker} (operations {rows}) that the check afterwards "
        "did not find. One of the two is wrong: report this as a bug of Faultline, with the run's folder."
    ]


def _beginning(verdict: Verdict, record: RunRecord) -> str:
    """Return the first words for an interrupted run: the interruption is why it tested little. A violation needs
    none."""
    if not record.interrupted or verdict in (Verdict.VIOLATION, Verdict.HARNESS_ERROR):
        return ""
    operations = len(record.history)
    return f"Interrupted after {operations:,} operation{'' if operations == 1 else 's'}. "


def _sentence(verdict: Verdict, checks: list[CheckResult], errors: list[str]) -> str:
    if verdict is Verdict.PASS:
        return f"No violation: {checks[0].sentence}"
    if verdict is Verdict.HARNESS_ERROR and errors:
        return errors[0]
    worst = next(check for check in checks if check.verdict is verdict)
    return worst.findings[0].sentence if worst.findings else worst.sentence


def _started_at(record: RunRecord) -> str:
    if not record.started_at_us:
        return ""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=record.started_at_us)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _signature(findings: list[Finding]) -> str:
    return f"{findings[0].checker}/{findings[0].anomaly}" if findings else ""


def _counts(record: RunRecord) -> dict[str, int]:
    outcomes = record.history.outcome
    counts = {"invoked": len(outcomes), "ok": outcomes.count("ok"), "fail": outcomes.count("fail")}
    return counts | {"info": len(outcomes) - counts["ok"] - counts["fail"]}


def _overlap(record: RunRecord) -> dict[str, int]:
    """Return the number of operations in flight during each kind of fault, each counted once for every fault."""
    in_flight = OperationsInFlight(record.history)
    overlap: dict[str, int] = {}
    for fault in record.faults:
        overlap[fault.kind] = overlap.get(fault.kind, 0) + in_flight.during(fault.start_us, fault.stop_us)
    return dict(sorted(overlap.items()))
