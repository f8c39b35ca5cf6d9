"""Checks of a system's behaviour: its clients tell the truth, and its runs can be repeated. Each claim is tried in
runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec

from faultline.harness.history import History, Row
from faultline.harness.plan import Plan, PlannedFault
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Verdict
from faultline.harness.world.message_codec import MessageCodec, WireError
from faultline.testing.probes import Counted, HalfDeaf, Overheard
from faultline.testing.problem import Check
from faultline.testing.system_subject import SystemSubject
from faultline.testing.two_processes import digests_elsewhere, digests_of

__all__ = ["SYSTEM_BEHAVIOUR"]

Found = Iterator[tuple[str, str, str]]

_UNKNOWN_FUNCTION = "no-such-function"
_ROUGH = ("all",)
_DEAF_OPERATIONS = 300
_DOWN_US = 150_000
_HASH_SEED = "4242"


def _about(plan: Plan) -> str:
    return f"seed {plan.seed}, faults {'+'.join(plan.fault_set) or 'none'}"


def _crashes(record: RunRecord) -> list[str]:
    return [breach.sentence for breach in record.breaches if breach.invariant == "node-crash"]


def _unknown_functions_are_refused(subject: SystemSubject) -> Found:
    record = subject.run(subject.one_operation(_UNKNOWN_FUNCTION, 1))
    where = subject.place("client")
    advice = 'Call done(fail("unsupported-operation")) for a function not in `functions`, before anything is sent.'
    for trouble in [*record.errors, *_crashes(record)]:
        yield f"asked for {_UNKNOWN_FUNCTION!r}: {trouble}", where, advice
    if not record.errors and record.history.outcome[0] != "fail":
        yield f"asked for {_UNKNOWN_FUNCTION!r}, the client says {record.history.outcome[0]!r}", where, advice


def _operations_end_once(subject: SystemSubject) -> Found:
    where = f"{subject.place('client')}, {{}}"
    for seed, faults in product(range(subject.seeds), (_ROUGH, ("kill",))):
        plan = subject.plan(seed, faults)
        plan = msgspec.structs.replace(plan, end_us=plan.end_us * 4)
        counted = Counted(subject.make())
        record = subject.run(plan, counted)
        for error in record.errors:
            advice = "A client must not raise: an error is an outcome, `info` unless it is certain."
            yield error, where.format(_about(plan)), advice
        for operation, outcomes in counted.completions:
            if len(outcomes) != 1:
                ends = "never ends" if not outcomes else f"ends {len(outcomes)} times"
                advice = "Call `done` once: with the first answer, or when the client's own timeout is over."
                yield f"{operation.f} of process {operation.process} {ends}", where.format(_about(plan)), advice


def _silence_is_unknown(subject: SystemSubject) -> Found:
    where = subject.place("client")
    for seed in range(2 * subject.seeds):
        probe = HalfDeaf(subject.make())
        plan = subject.plan(seed, operations=_DEAF_OPERATIONS)
        history = subject.run(plan, probe).history
        for operation, outcome in probe.unheard:
            if outcome.kind == "ok":
                advice = "Without an answer the outcome is unknown: end with info(...) when the client's time is over."
                yield f"{operation.f} was sent, no answer ever came, and the client says ok", where, advice
        for row, reader in _ghosts(history, subject.reads):
            yield (
                f"{row.f} of {row.value!r} was sent, no answer came, the client said fail ({row.error}), and {reader.f}"
                f" at {reader.complete_us / 1e6:.3f} s returned it",
                f"{where}, seed {seed}",
                "Without an answer the outcome is unknown: end with info(...) after a timeout, not with fail.",
            )


def _failures_are_certain(subject: SystemSubject) -> Found:
    for seed in range(subject.seeds):
        plan = subject.plan(seed, _ROUGH)
        history = subject.run(plan).history
        for row, reader in _ghosts(history, subject.reads):
            yield (
                f"{row.f} of {row.value!r} to {row.key} was called a failure ({row.error}), and {reader.f} at"
                f" {reader.complete_us / 1e6:.3f} s returned it",
                f"{subject.place('client')}, {_about(plan)}",
                f"Call {row.error!r} info: an error is definite only when the operation can never take effect.",
            )


def _ghosts(history: History, reads: tuple[str, ...]) -> Iterator[tuple[Row, Row]]:
    """Yield failed operations whose value, which no other operation wrote, was read, each with its reader."""
    rows = list(history.rows())
    changes = [row for row in rows if row.f not in reads]
    maybe = {(row.key, repr(_written(row))) for row in changes if row.outcome != "fail"}
    for row in changes:
        if row.outcome != "fail" or row.value is None or (row.key, repr(_written(row))) in maybe:
            continue
        seen = (one for one in rows if one.outcome == "ok" and one.f in reads and one.key == row.key)
        reader = next((one for one in seen if _shows(one.result, _written(row))), None)
        if reader is not None:
            yield row, reader


def _written(row: Row) -> Any:
    return row.value[-1] if row.f == "cas" and isinstance(row.value, list) else row.value


def _shows(result: Any, value: Any) -> bool:
    return bool(result == value) or (isinstance(result, list) and value in result)


def _one_seed_is_one_run(subject: SystemSubject) -> Found:
    plans = [subject.plan(0), *(subject.plan(seed, _ROUGH, 60) for seed in (1, 2))]
    digests = [digests_of(plan, subject.parts(plan.fault_set)) for plan in plans]
    again = [digests_of(plan, subject.parts(plan.fault_set)) for plan in plans]
    advice = (
        "Take time and chance from the ports only, and depend neither on class variables nor on the order of a set."
    )
    for plan, first, second in zip(plans, digests, again, strict=True):
        if first != second:
            yield "the same seed gives another history the second time", f"{subject.place()}, {_about(plan)}", advice
            return
    elsewhere = digests_elsewhere(plans, subject.parts(_ROUGH), _HASH_SEED)
    for plan, here, there in zip(plans, digests, elsewhere, strict=True):
        if here != there:
            where = f"{subject.place()}, {_about(plan)}"
            yield f"another process (PYTHONHASHSEED={_HASH_SEED}) gets another history", where, advice
            return


def _restarts_recover(subject: SystemSubject) -> Found:
    plan = subject.plan(3)
    middle_us = (plan.operations[0].at_us + plan.heal_us) // 2
    faults = [PlannedFault("kill", at_us, _DOWN_US, "all") for at_us in (middle_us, middle_us + 4 * _DOWN_US)]
    record = subject.run(subject.with_faults(plan, *faults))
    where = f"{subject.place('node')}, seed {plan.seed}, all nodes killed for {_DOWN_US // 1000} ms, twice"
    for crash in _crashes(record):
        yield (
            crash,
            where,
            "Let `start` recover from every state that a crash leaves on disk, also from a torn last write.",
        )
    history = record.history
    asked = [row for row, at_us in enumerate(history.invoke_us) if at_us >= plan.heal_us]
    if asked and not any(history.outcome[row] == "ok" for row in asked):
        yield (
            f"none of {len(asked)} operations after the restarts succeeded",
            where,
            "A node is built anew from its storage at every start: let it restore its role and its peers.",
        )


def _messages_survive_the_wire(subject: SystemSubject) -> Found:
    system = subject.make()
    overheard = Overheard(system)
    subject.run(subject.plan(4, _ROUGH), overheard)
    codec = MessageCodec(system.messages)
    for message in overheard.heard.values():
        name = type(message).__name__
        if type(message) not in system.messages:
            yield (
                f"{name} is sent and not declared",
                subject.place(),
                "Add it to `messages`; real nodes could not read it.",
            )
            continue
        try:
            arrived = codec.decode(msgspec.msgpack.encode(message))
        except (WireError, TypeError) as error:
            yield (
                f"{name} cannot cross the network: {error}",
                subject.place(),
                "Send plain data: numbers, texts, lists.",
            )
            continue
        if arrived != message:
            advice = "Give its fields types (tuple[int, ...] rather than Any): a tuple in an Any arrives as a list."
            yield f"{message!r} arrives as {arrived!r}", subject.place(), advice


def _the_promise_holds(subject: SystemSubject) -> Found:
    for faults in [(), *((name,) for name in subject.bears)]:
        for seed in range(subject.seeds):
            plan = subject.plan(seed, faults)
            judgement = subject.judged(plan)
            if judgement.verdict is not Verdict.PASS:
                yield (
                    f"{judgement.verdict.value}: {judgement.sentence}",
                    f"{subject.place()}, {_about(plan)}",
                    f"Repeat it with `{subject.replay(plan)}`, once the package is installed.",
                )


def _everything_it_does_succeeds(subject: SystemSubject) -> Found:
    asked: dict[str, int] = {}
    answered: dict[str, int] = {}
    errors: dict[str, str] = {}
    for seed in range(subject.seeds):
        record = subject.run(subject.plan(seed))
        for trouble in [*record.errors, *_crashes(record)]:
            yield trouble, f"{subject.place('node')}, seed {seed}, calm", "Fix the code that raised."
            return
        for row in record.history.rows():
            asked[row.f] = asked.get(row.f, 0) + 1
            answered[row.f] = answered.get(row.f, 0) + (row.outcome == "ok")
            if row.error:
                errors[row.f] = row.error
    for f, count in asked.items():
        if not answered[f]:
            yield (
                f"{f} never succeeded in {count} calm attempts; the last answer was {errors.get(f, 'none')!r}",
                subject.place("client"),
                f"Let the nodes carry out {f!r} and answer, and the client end it with ok(value).",
            )


SYSTEM_BEHAVIOUR: tuple[Check[SystemSubject], ...] = (
    Check("every function of the workload succeeds in calm runs", _everything_it_does_succeeds),
    Check("unknown functions are refused with a definite outcome", _unknown_functions_are_refused),
    Check("each operation ends exactly once", _operations_end_once),
    Check("an operation without an answer is not called done or failed", _silence_is_unknown),
    Check("an operation that is called a failure never takes effect", _failures_are_certain),
    Check("one seed is one run, in every process", _one_seed_is_one_run),
    Check("a cluster that was killed and restarted serves again", _restarts_recover),
    Check("messages survive the wire", _messages_survive_the_wire),
    Check("the promise holds in calm runs and under the fault sets that the system bears", _the_promise_holds),
)
