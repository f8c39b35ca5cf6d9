"""From an illegal register history to the few operations that prove it.

First the history is cut where it becomes illegal: at the first return, in order of returns, by which its operation
cannot have been linearized. What was open then may still happen, or not. The rest is `minimise`d, and the port of
Porcupine has the last word on what remains (or, when that is too hard for it, on the prefix): every step was a
relaxation, so what it refuses, it would refuse in full.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from faultline.checkers.linearizability.minimise import ShrinkBudget, minimise
from faultline.checkers.linearizability.models import referee_operations, register_model
from faultline.checkers.linearizability.operations import (
    AVOID,
    BEGINNING,
    INFINITY,
    OBSERVE,
    SWAP,
    WRITE,
    RegisterOperation,
)
from faultline.checkers.linearizability.search import SearchResult, decide, illegal_prefix, search
from faultline.checkers.porcupine import Budget, CheckResult, check_single
from faultline.harness.errors import HarnessError

__all__ = ["RegisterEvidence", "likely_cores", "register_evidence", "relaxations"]


@dataclass(frozen=True, slots=True)
class RegisterEvidence:
    """A confirmed core.

    `core` holds the operations as far as they constrain, in order of call; `refused` is the first of them, in order of
    returns, that cannot be placed; `order` is the longest way the others can be placed before it, `state` where that
    ends; `longest_prefix` counts the completed operations of the whole history before the first that cannot be placed.
    """

    core: tuple[RegisterOperation, ...]
    refused: RegisterOperation
    order: tuple[RegisterOperation, ...]
    state: Hashable
    longest_prefix: int
    is_minimal: bool


def register_evidence(
    operations: Sequence[RegisterOperation], found: SearchResult, initial: Hashable, budget: Budget
) -> RegisterEvidence | None:
    """The evidence for what `search` `found` illegal, confirmed by the referee; None when there is none.

    What the search could not decide may still be shown illegal, if the trouble is close to where the search stopped.
    """
    shrinking, guessing = ShrinkBudget(budget), ShrinkBudget(budget)

    def is_illegal(candidate: Sequence[RegisterOperation], within: ShrinkBudget = shrinking) -> bool:
        checked = decide(candidate, initial, within.next())
        return within.proves_illegal(checked.result, checked.steps)

    prefix = illegal_prefix(operations, found.furthest)
    likely = next((guess for guess in likely_cores(prefix) if is_illegal(guess, guessing)), None)
    if likely is None and found.result is not CheckResult.ILLEGAL:
        return None
    core, is_minimal = minimise(likely or prefix, is_illegal, relaxations)
    if not (_is_confirmed(core, initial, _CORE_BUDGET) or _is_confirmed(prefix, initial, budget)):
        return None
    is_complete = is_minimal and not shrinking.is_spent
    final = search(core, initial, budget)
    refused = sorted((operation for operation in core if operation.return_ != INFINITY), key=_by_return)[final.furthest]
    return RegisterEvidence(tuple(core), refused, tuple(final.order), final.state, found.furthest, is_complete)


_CORE_BUDGET = Budget(50_000)
"""What the referee may spend on a core. A large one with many optional operations can be harder than its prefix."""


def _is_confirmed(operations: Sequence[RegisterOperation], initial: Hashable, budget: Budget) -> bool:
    """Whether the port of Porcupine also refuses `operations`; raises HarnessError when it accepts them."""
    result = check_single(register_model(initial), referee_operations(operations), budget).result
    if result is CheckResult.OK:
        raise HarnessError(
            "The two linearizability searches disagree about the same few operations, so one of them is wrong.",
            f"Report this as a bug of Faultline, with the operations: {operations!r}.",
        )
    return result is CheckResult.ILLEGAL


def _by_return(operation: RegisterOperation) -> int:
    return operation.return_


def likely_cores(prefix: Sequence[RegisterOperation]) -> Iterator[list[RegisterOperation]]:
    """Strong relaxations of an illegal prefix that may still be illegal, smallest first.

    Trouble is mostly local: what the last operation saw contradicts what happened shortly before. So only a few of the
    latest completions are kept as they are; others stay, free, only as far as they can supply a value that is demanded.
    """
    latest = sorted((operation for operation in prefix if operation.return_ != INFINITY), key=_by_return, reverse=True)
    for size in _GUESS_SIZES:
        if size < len(latest):
            refused = latest[0]
            near = [operation for operation in latest[:size] if operation.kind != AVOID or refused.kind == AVOID]
            same = [operation for operation in latest[size:] if operation.produce == refused.demand]
            yield _with_suppliers([*near, *same], prefix)


_GUESS_SIZES = (4, 16, 64, 256)


def _with_suppliers(kept: Sequence[RegisterOperation], prefix: Sequence[RegisterOperation]) -> list[RegisterOperation]:
    """`kept`, and of the rest of `prefix`, freed, what may supply a demanded value, directly or through others.

    A failed compare-and-set among `kept` demands any other value, so then every write stays.
    """
    rows = {operation.row for operation in kept}
    by_produce: dict[Hashable, list[RegisterOperation]] = {}
    for operation in prefix:
        if operation.kind >= WRITE and operation.row not in rows:
            by_produce.setdefault(operation.produce, []).append(operation._replace(call=BEGINNING, return_=INFINITY))
    wanted = [operation.demand for operation in kept if operation.kind in (OBSERVE, SWAP)]
    if any(operation.kind == AVOID for operation in kept):
        wanted += by_produce
    suppliers: list[RegisterOperation] = []
    while wanted:
        found = by_produce.pop(wanted.pop(), [])
        suppliers += found
        wanted += [operation.demand for operation in found if operation.kind == SWAP]
    return sorted([*kept, *suppliers], key=lambda operation: operation.row)


def relaxations(operation: RegisterOperation, among: Sequence[RegisterOperation]) -> list[RegisterOperation | None]:
    """Sound ways to make `operation` constrain less, strongest first; empty when it constrains nothing any more."""
    if operation.kind in (OBSERVE, AVOID):
        return [None]
    weaker: list[RegisterOperation | None] = []
    if not _is_of_use(operation, among):
        weaker.append(None)
    free = operation._replace(call=BEGINNING, return_=INFINITY)
    steps = (free, operation._replace(return_=INFINITY), operation._replace(call=BEGINNING))
    weaker += [step for step in dict.fromkeys(steps) if step != operation]
    return weaker


def _is_of_use(operation: RegisterOperation, among: Sequence[RegisterOperation]) -> bool:
    """Whether the effect of `operation` may be what makes another one of `among` legal.

    One that demands its value is; and so is any failed compare-and-set, which needs some other value than its own.
    """
    return any(
        other.kind == AVOID or (other.kind != WRITE and other.demand == operation.produce)
        for other in among
        if other is not operation
    )
