"""Certificates of objects under a model: made of a search, and verified.

The search visits configurations, and `verify` and `model_rules` say why these refute a history. Here they are written
down so that a reader needs only the operations and the model: a state is told as the operation that leads there from an
earlier state. They may speak of a relaxation, which leaves out what cannot matter.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from faultline.checkers.linearizability.certificates import (
    Certificate,
    Configuration,
    Configurations,
    ObjectCalls,
    Relaxed,
)
from faultline.checkers.linearizability.contradictions import breaks
from faultline.checkers.linearizability.data_types import MODEL_FACTORIES
from faultline.checkers.linearizability.generic_part import NO_HOOKS, Hooks, Part
from faultline.checkers.linearizability.generic_search import search_generic
from faultline.checkers.linearizability.generic_tables import ILLEGAL
from faultline.checkers.linearizability.replay import is_linearization, replays
from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.porcupine.model import PENDING, NondeterministicModel, Operation

__all__ = ["fault_of_object", "refute_object"]

AnyOperation = Operation[Any, Any]


def refute_object(
    subject: ObjectCalls, core: Collection[int], budget: Budget, hooks: Hooks[Any, Any, Any] = NO_HOOKS
) -> Certificate[ObjectCalls] | None:
    """Return the certificate that `subject` is illegal, by the operations in `core`; None when none was made.

    The core must hold all that can matter and was called up to the return that makes the history illegal.
    """
    relaxed = _relaxed_to(subject, core) if len(core) < len(subject.operations) else None
    operations = _relaxed_calls(subject.operations, relaxed)
    # Without the hooks that promise more than a verifier can see.
    found = search_generic(subject.model, operations, budget, Hooks(readonly=hooks.readonly))
    if not found.decision.is_illegal or not found.is_proved:
        return None
    refutation = found.refutation()
    members = _undominated(refutation.configurations)
    needed = {each.state for each in members}
    derived = refutation.derivation()
    for before, _, after in reversed(derived):
        needed.update({before} if after in needed else ())
    number, steps = {refutation.initial: 0}, list[tuple[int, int]]()
    for before, operation, after in derived:
        if after in needed:
            steps.append((number[before], operation))
            number[after] = len(number)
    members = sorted(each._replace(state=number[each.state]) for each in members)
    representatives = {class_: i for i, class_ in reversed(list(enumerate(refutation.class_of)))}
    return Certificate(
        subject,
        relaxed=relaxed,
        configurations=Configurations.of(members),
        steps=tuple(steps),
        still=tuple(sorted(representatives[class_] for class_ in refutation.still)),
    )


def _relaxed_to(subject: ObjectCalls, core: Collection[int]) -> tuple[Relaxed, ...]:
    """Return the operations in `core`, as pending ones where they return after the next that was called and matters."""
    operations, kept = subject.operations, sorted(core)
    missing = _missing(subject, kept)
    end = min((operations[i].call for i in missing), default=PENDING)
    return tuple(
        Relaxed(i, is_late=operations[i].return_ >= end)
        for i in kept
        if operations[i].return_ < end or not _changes_nothing(subject.name, operations[i])
    )


def _undominated(members: Sequence[Configuration]) -> list[Configuration]:
    """Return the members without those that another one covers with fewer operations used up."""
    alike: dict[tuple[int, int, frozenset[int]], list[Configuration]] = {}
    for each in members:
        alike.setdefault((each.rank, each.state, frozenset(each.ahead)), []).append(each)
    return [
        each
        for group in alike.values()
        for each in group
        if not any(set(other.used) < set(each.used) for other in group)
    ]


def _relaxed_calls(operations: Sequence[AnyOperation], relaxed: Sequence[Relaxed] | None) -> Sequence[AnyOperation]:
    """Return the operations that `relaxed` keeps, as they stand there."""
    if relaxed is None:
        return operations
    kept = [(operations[each.operation], each.is_late) for each in relaxed]
    return [
        Operation(each.client_id, each.input, each.call, each.output, PENDING) if is_late else each
        for each, is_late in kept
    ]


def fault_of_object(certificate: Certificate[ObjectCalls]) -> str:
    """Return what is wrong with `certificate`, in words; nothing when it holds."""
    subject = certificate.subject
    if certificate.order is not None:
        return "" if _replays(subject, certificate.order) else "its order is no linearization"
    if certificate.contradiction is not None:
        is_broken = breaks(subject.name, subject.operations, certificate.contradiction)
        return (
            ""
            if is_broken
            else f"the operations that it names do not break the rule `{certificate.contradiction.rule}`"
        )
    if certificate.relaxed is not None:
        fault = _fault_of_relaxed(subject, certificate.relaxed)
        if fault:
            return fault
    return _fault_of_set(certificate, _relaxed_calls(subject.operations, certificate.relaxed))


def _replays(subject: ObjectCalls, order: Sequence[int]) -> bool:
    if subject.name:
        return replays(subject.name, subject.operations, order)
    model = subject.model
    plain = model.to_model() if isinstance(model, NondeterministicModel) else model
    return is_linearization(plain, subject.operations, order)


def _fault_of_relaxed(subject: ObjectCalls, relaxed: Sequence[Relaxed]) -> str:
    """Return why not every linearization of `subject` is one of `relaxed`, in words; nothing when it is.

    An operation may return later or never. One may be left out that changes nothing, or was called after all had
    returned that the relaxation places, or works on another value of a set, when none that is kept reads the whole.
    """
    operations = subject.operations
    kept = [each.operation for each in relaxed]
    if any(not 0 <= i < len(operations) for i in kept) or sorted(set(kept)) != kept:
        return "its relaxation does not name operations in their order"
    if any(each.is_early or each.is_blind for each in relaxed):
        return "its relaxation makes an operation early or blind, which is for registers"
    last_return = max((operations[each.operation].return_ for each in relaxed if not each.is_late), default=-PENDING)
    missing = next((i for i in _missing(subject, kept) if operations[i].call <= last_return), None)
    return "" if missing is None else f"its relaxation leaves out operation {missing}, which may matter"


def _missing(subject: ObjectCalls, kept: Sequence[int]) -> list[int]:
    """Return the operations that are not `kept` and may help to place those that are."""
    operations, present = subject.operations, set(kept)
    inputs = [operations[i].input for i in kept] if subject.name == "set" else []
    # The values of a set are independent of each other, unless a read ties them together.
    values = {value for _, value in inputs} if inputs and all(f != "read" for f, _ in inputs) else None
    return [
        i
        for i, operation in enumerate(operations)
        if i not in present
        and not _changes_nothing(subject.name, operation)
        and (values is None or operation.input[1] in values)
    ]


def _changes_nothing(name: str, operation: AnyOperation) -> bool:
    """Return whether `operation` is known to change nothing in any state of the object `name` in which it is legal."""
    if not name:
        return False
    f, answer = operation.input[0], operation.output
    return f in MODEL_FACTORIES[name].reads or answer is False or (answer is None and f in ("dequeue", "pop"))


def _fault_of_set(certificate: Certificate[ObjectCalls], operations: Sequence[AnyOperation]) -> str:
    """Return why the configurations do not refute `operations`, in words; nothing when they do."""
    found, part = certificate.configurations, Part(certificate.subject.model, operations, NO_HOOKS)
    assert found is not None
    positions = range(len(operations))
    states = [part.machine.initial]
    for before, operation in certificate.steps:
        if not 0 <= before < len(states) or operation not in positions:
            return f"the state {len(states)} does not come from one before it"
        states.append(part.machine.next_state(states[before], part.class_of[operation]))
        if states[-1] == ILLEGAL or states[-1] in states[:-1]:
            return f"the state {len(states) - 1} is not reached, or has two numbers"
    if any(i not in positions for i in certificate.still):
        return "it calls an operation still that is none"
    members: list[Configuration] = []
    for k in range(len(found)):
        rank, state, ahead, used = found[k]
        if not 0 <= state < len(states):
            return f"member {k} of its set is no configuration of these operations"
        members.append(Configuration(rank, states[state], ahead, used))
    still = {part.class_of[i] for i in certificate.still}
    return part.refutation(still, members).fault()
