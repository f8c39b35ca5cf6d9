"""From an illegal register history to the few operations that show it.

First the history is cut where it becomes illegal: at the first return, in order of returns, by which its operation
cannot have been linearized. Operations open at that moment may still happen, or not. The rest is `minimise`d. Every
step was a relaxation, so a certificate for the core that remains is one for the whole history, and where that has a
certificate the core needs none.

A core may be large: among few values every write of one that was seen must stay, since it may be the one. Then a *cut*
tells more: the values that the register can have held when the operation returned, which the frontier knows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from faultline.checkers.linearizability.certificates import Relaxed
from faultline.checkers.linearizability.cuts import CORE_MAX, cut_of, evidence_of_cut
from faultline.checkers.linearizability.data_type import Evidence
from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.linearizability.engine.registers import columns_of
from faultline.checkers.linearizability.minimise import ShrinkBudget, minimise
from faultline.checkers.linearizability.operations import (
    AVOID,
    BEGINNING,
    INFINITY,
    OBSERVE,
    SWAP,
    WRITE,
    RegisterOperation,
)
from faultline.checkers.linearizability.refutation import refute_relaxed
from faultline.checkers.linearizability.search import decide, illegal_prefix, search
from faultline.checkers.porcupine.budget import Budget

__all__ = ["likely_cores", "register_evidence", "relaxations"]


_GUESS_MAX = 64
"""The largest guess that is made smaller where the history has a cut to tell."""


def register_evidence(
    operations: Sequence[RegisterOperation], found: Decision, initial: Hashable, budget: Budget
) -> Evidence[RegisterOperation] | None:
    """Return the evidence for a register that `search` `found` illegal, or None when no certificate could be made.

    A register that was not decided may still be shown illegal, if the trouble is close to where the search stopped.
    """
    shrinking, guessing = ShrinkBudget(budget), ShrinkBudget(budget)
    cut = _cut(operations, found)

    def is_illegal(candidate: Sequence[RegisterOperation], within: ShrinkBudget = shrinking) -> bool:
        return within.proves_illegal(decide(candidate, initial, within.next()))

    prefix = illegal_prefix(operations, found.furthest)
    # A guess that is illegal spares the minimisation most of its checks: it begins with a few operations, not with all.
    guesses = (guess for guess in likely_cores(prefix) if cut is None or len(guess) <= _GUESS_MAX)
    likely = next((guess for guess in guesses if is_illegal(guess, guessing)), None)
    if likely is None and cut is not None and len(prefix) > _GUESS_MAX:
        return cut
    if likely is None and not found.is_illegal:
        return None
    core, is_minimal = minimise(likely or prefix, is_illegal, relaxations)
    if cut is not None and len(core) > CORE_MAX:
        return cut
    if found.certificate is None and not _is_certified(operations, core, initial, budget):
        return None
    is_complete = is_minimal and not shrinking.is_spent
    final = search(core, initial, budget)
    refused = sorted((operation for operation in core if operation.return_ != INFINITY), key=_by_return)[final.furthest]
    order = tuple(core[position] for position in final.order)
    return Evidence(tuple(core), refused, found.furthest, is_complete, order, accused=refused.row)


def _is_certified(
    operations: Sequence[RegisterOperation], core: Sequence[RegisterOperation], initial: Hashable, budget: Budget
) -> bool:
    """Return whether `core`, which was made of `operations` by relaxations, has a certificate."""
    position = {operation.row: i for i, operation in enumerate(operations)}
    relaxed = [
        Relaxed(
            position[kept.row],
            kept.call != operations[position[kept.row]].call,
            kept.return_ != operations[position[kept.row]].return_,
        )
        for kept in sorted(core, key=lambda kept: position[kept.row])
    ]
    return refute_relaxed(columns_of(operations, initial), relaxed, budget) is not None


def _cut(operations: Sequence[RegisterOperation], found: Decision) -> Evidence[RegisterOperation] | None:
    """Return the cut at which the frontier ended as evidence; None when no certificate speaks of all operations."""
    cut = cut_of(found)
    if cut is None:
        return None
    returning = sorted((operation for operation in operations if operation.return_ != INFINITY), key=_by_return)
    return evidence_of_cut(operations, returning[found.furthest], cut)


def _by_return(operation: RegisterOperation) -> int:
    return operation.return_


def likely_cores(prefix: Sequence[RegisterOperation]) -> Iterator[list[RegisterOperation]]:
    """Yield strong relaxations of an illegal prefix that may still be illegal, smallest first.

    Trouble is mostly local: the value that the last operation saw contradicts what happened shortly before. So only a
    few of the latest completions are kept as they are; others stay, free, only as far as they can supply a value that
    is demanded.
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
    """Return `kept`, and of the rest of `prefix`, freed, what may supply a demanded value, directly or through others.

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
    """Return sound ways to make `operation` constrain less, strongest first; none when it constrains nothing."""
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
    """Return whether the effect of `operation` may be what makes another one of `among` legal.

    An operation that demands its value may be; and so may any failed compare-and-set, which needs some other value.
    """
    return any(
        other.kind == AVOID or (other.kind != WRITE and other.demand == operation.produce)
        for other in among
        if other is not operation
    )
