"""Certificates of random objects, and everything that is wrong with a changed one: what `verify_certificates` asks of
sets, queues, stacks, locks, mutexes and counters.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence

from fuzz_objects import model_of, random_object_history
from msgspec.structs import replace

from faultline.checkers.linearizability.certificates import (
    Certificate,
    Configuration,
    Configurations,
    Contradiction,
    ObjectCalls,
    Relaxed,
)
from faultline.checkers.linearizability.contradictions import RULES
from faultline.checkers.linearizability.monitors.decision import decide, hooks_for
from faultline.checkers.linearizability.object_certificates import refute_object
from faultline.checkers.linearizability.verifier import fault_of
from faultline.checkers.porcupine import UNLIMITED, check_operations

__all__ = ["complaints_about_object"]

GUESSES = 30
"""The contradictions that are claimed of each legal history."""

ObjectCertificate = Certificate[ObjectCalls]


def complaints_about_object(seed: int, kind: str, counts: Counter[str]) -> list[str]:
    """Return what is wrong with the certificate of the history of `seed`, in words; `counts` counts what was done."""
    history, rng = random_object_history(kind, seed), random.Random(seed)
    subject = ObjectCalls(model_of(kind), history, kind)
    decision = decide(kind, history, UNLIMITED)
    if decision.is_legal is not check_operations(subject.model, history):
        return ["the port of Porcupine decides otherwise"]
    if decision.is_legal:
        counts["orders"] += 1
        made: ObjectCertificate = Certificate(subject, order=decision.order)
        changed = [*_orders(subject, decision.order), *_guesses(subject, rng)]
    else:
        found = decision.certificate or refute_object(subject, decision.core, UNLIMITED, hooks_for(kind))
        if found is None:
            return ["it is illegal and has no certificate"]
        made = found
        counts["sets" if made.contradiction is None else "contradictions"] += 1
        changed = [*_contradictions(made), *_sets(made, rng), *_derivations(made)]
    if fault := fault_of(made):
        return [f"its certificate is refused: {fault}"]
    counts["corrupted certificates"] += len(changed)
    return [f"a certificate is accepted with {what}" for what, each in changed if not fault_of(each)]


def _orders(subject: ObjectCalls, order: Sequence[int]) -> Iterator[tuple[str, ObjectCertificate]]:
    """Yield orders that lack a completed operation, or hold one twice or one that there is not."""
    for i in order:
        if subject.operations[i].return_ != float("inf"):
            yield f"operation {i} missing", Certificate(subject, order=[j for j in order if j != i])
        yield f"operation {i} twice", Certificate(subject, order=[*order, i])
    for i in (-1, len(subject.operations)):
        yield f"operation {i} in its order", Certificate(subject, order=[*order, i])


def _guesses(subject: ObjectCalls, rng: random.Random) -> Iterator[tuple[str, ObjectCertificate]]:
    """Yield contradictions that are claimed of a legal history."""
    rules = [rule for name, rule in RULES if name == subject.name]
    for _ in range(GUESSES if rules else 0):
        size = min(rng.randint(1, 3), len(subject.operations))
        named = tuple(rng.sample(range(len(subject.operations)), size))
        claimed = Contradiction(rng.choice(rules), named)
        yield f"{claimed} of a legal history", Certificate(subject, contradiction=claimed)


def _contradictions(made: ObjectCertificate) -> Iterator[tuple[str, ObjectCertificate]]:
    """Yield contradictions whose rule is of another object, or which name operations that there are not, or none."""
    yield "no grounds", replace(made, contradiction=None, configurations=None)
    yield "an order too", replace(made, order=())
    if made.contradiction is None:
        return
    yield "a relaxation", replace(made, relaxed=(Relaxed(0),))
    yield "a step", replace(made, steps=((0, 0),))
    yield "a still operation", replace(made, still=(0,))
    rule, named = made.contradiction.rule, made.contradiction.operations
    others = sorted({name for _, name in RULES} - {name for kind, name in RULES if kind == made.subject.name})
    for other in ("", *others):
        yield f"the rule {other!r}", replace(made, contradiction=Contradiction(other, named))
    for changed in ((), (*named, named[0]), (*named, -1), (-1, *named[1:]), (len(made.subject.operations), *named[1:])):
        yield f"the operations {changed}", replace(made, contradiction=Contradiction(rule, changed))


def _sets(made: ObjectCertificate, rng: random.Random) -> Iterator[tuple[str, ObjectCertificate]]:
    """Yield sets that differ in one field of one member.

    A member that claims to have used fewer pending operations says more, and may be right; so may another `still`.
    """
    found = made.configurations
    if found is None:
        return
    members = [found[k] for k in range(len(found))]
    k = rng.randrange(len(members))
    size = len(made.subject.operations)

    def with_member(*changed: Configuration) -> ObjectCertificate:
        return replace(made, configurations=Configurations.of([*members[:k], *changed, *members[k + 1 :]]))

    yield "no members", replace(made, configurations=Configurations.of([]))
    yield f"member {k} missing", with_member()
    member = members[k]
    for rank in (member.rank - 1, member.rank + 1, size, -1):
        yield f"rank {rank} in member {k}", with_member(member._replace(rank=rank))
    for state in {-1, *range(len(made.steps) + 2)} - {member.state}:
        yield f"state {state} in member {k}", with_member(member._replace(state=state))
    for gone in member.ahead:
        ahead = tuple(i for i in member.ahead if i != gone)
        yield f"operation {gone} not ahead in member {k}", with_member(member._replace(ahead=ahead))
    for added in (-1, size, *member.ahead[:1]):
        yield f"operation {added} ahead in member {k}", with_member(member._replace(ahead=(*member.ahead, added)))
        yield f"operation {added} used in member {k}", with_member(member._replace(used=(*member.used, added)))


def _derivations(made: ObjectCertificate) -> Iterator[tuple[str, ObjectCertificate]]:
    """Yield sets of which a state comes from nowhere, or that keep operations that there are not, or none."""
    if made.configurations is None:
        return
    size = len(made.subject.operations)
    yield f"operation {size} still", replace(made, still=(*made.still, size))
    for number, (before, operation) in enumerate(made.steps):
        for step in ((number + 1, operation), (-1, operation), (before, size), (before, -1)):
            steps = (*made.steps[:number], step, *made.steps[number + 1 :])
            yield f"state {number + 1} by {step}", replace(made, steps=steps)
    if made.steps:
        yield "no last state", replace(made, steps=made.steps[:-1])
    if made.relaxed is not None:
        yield "nothing kept", replace(made, relaxed=())
        for i, each in enumerate(made.relaxed):
            for other in (replace(each, operation=size), replace(each, operation=-1), replace(each, is_blind=True)):
                relaxed = (*made.relaxed[:i], other, *made.relaxed[i + 1 :])
                yield f"{other} kept", replace(made, relaxed=relaxed)
