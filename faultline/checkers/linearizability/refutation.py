"""Refuting a key that an engine found illegal: from its bare word to a certificate that was verified.

An engine is clever and may be wrong, so its refusal alone is no verdict. The forward frontier (`engine.proofs`) makes
the set of configurations that shows it, and `verify`, or its twin in the kernel, verifies the set. Where the engine
named operations that contradict each other, these and what supplies them are tried first: few operations have a small
set, also among clients so many that the frontier of all of them is out of reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from faultline.checkers.linearizability.certificates import Certificate, Relaxed, relaxed_columns
from faultline.checkers.linearizability.decision import Decision, Legality
from faultline.checkers.linearizability.engine.columns import APPEND, Columns
from faultline.checkers.linearizability.engine.frontier import Frontier
from faultline.checkers.linearizability.engine.proofs import LOOKS_MAX, fault_of_refutation, frontier
from faultline.checkers.linearizability.operations import AVOID, OBSERVE, SWAP, WRITE
from faultline.checkers.linearizability.value_rules import fault_of_relaxation
from faultline.checkers.porcupine.budget import UNLIMITED, Budget
from faultline.harness.errors import HarnessError

__all__ = ["Refutation", "certify", "refute", "refute_relaxed"]

SUPPLIERS_MAX = 200
"""The largest relaxation that is tried."""

FEW = 24
"""The largest relaxation that is tried before the whole key, whose frontier tells more: what was possible when."""

LOOKS_FOR_A_STEP = 5
"""The looks at configurations that cost about as much as one step of the search."""


class Refutation(NamedTuple):
    """A verified certificate that a key is illegal.

    `furthest` is the number of the first return that makes the key illegal; None when the certificate is that of a
    relaxation, which may become illegal later than the key.
    """

    certificate: Certificate[Columns]
    furthest: int | None


def certify(columns: Columns, found: Decision, budget: Budget) -> tuple[Decision, int | None]:
    """Return what an engine `found` of the one key in `columns`, with a certificate if it is illegal and one was made.

    With it comes the first return that makes the key illegal, where that is known. A key that a search gave up may have
    a certificate too, and is then illegal.
    """
    if found.is_legal:
        return found, None
    refutation = refute(columns, found.core, budget) if found.is_illegal else _refute_undecided(columns, budget)
    if refutation is None:
        return found, None
    certificate = refutation.certificate
    illegal = replace(found, legality=Legality.ILLEGAL, certificate=certificate, is_confirmed=True)
    return illegal, refutation.furthest


def refute(columns: Columns, core: Sequence[int] = (), budget: Budget = UNLIMITED) -> Refutation | None:
    """Return the refutation of the one key in `columns`, which an engine found illegal, naming `core`.

    None when the frontier was given up. Raises HarnessError when the frontier finds the key legal, or when the verifier
    refuses the certificate: then one of the three is wrong.
    """
    relaxations = list(_with_suppliers(columns, core)) if core else []
    few = [relaxed for relaxed in relaxations if len(relaxed) <= FEW]
    found = _first_refuted(columns, few, budget)
    if found is not None:
        return found
    reached = frontier(columns, budget)
    if reached.legality is Legality.LEGAL:
        raise HarnessError(
            "The engine and the frontier disagree about one key, so one of them is wrong.",
            "Report this as a bug of Faultline, with the history.",
        )
    if reached.legality is Legality.ILLEGAL:
        return _refutation(columns, reached)
    return _first_refuted(columns, relaxations[len(few) :], budget)


def _first_refuted(columns: Columns, relaxations: Iterable[Sequence[Relaxed]], budget: Budget) -> Refutation | None:
    found = (refute_relaxed(columns, relaxed, budget) for relaxed in relaxations)
    return next((each for each in found if each is not None), None)


def _refutation(columns: Columns, reached: Frontier) -> Refutation:
    certificate = Certificate(columns, configurations=reached.configurations)
    return Refutation(_verified(certificate, columns, reached), reached.furthest)


def _refute_undecided(columns: Columns, budget: Budget) -> Refutation | None:
    """Return the refutation of the one key in `columns`, which a search gave up; None when it is none, or not decided.

    The frontier goes by return instead of by hope, so it may end where a search does not. Its looks are cheaper.
    """
    looks_max = LOOKS_MAX if budget.steps_max is None else min(LOOKS_MAX, LOOKS_FOR_A_STEP * budget.steps_max)
    reached = frontier(columns, budget, looks_max=looks_max)
    return _refutation(columns, reached) if reached.legality is Legality.ILLEGAL else None


def refute_relaxed(columns: Columns, relaxed: Sequence[Relaxed], budget: Budget = UNLIMITED) -> Refutation | None:
    """Return the refutation of a relaxation of the key; None when that is legal, or the frontier was given up."""
    part = relaxed_columns(columns, relaxed)
    reached = frontier(part, budget)
    if reached.legality is not Legality.ILLEGAL:
        return None
    certificate = Certificate(columns, relaxed=tuple(relaxed), configurations=reached.configurations)
    return Refutation(_verified(certificate, part, reached), None)


def _verified(certificate: Certificate[Columns], part: Columns, reached: Frontier) -> Certificate[Columns]:
    fault = "" if certificate.relaxed is None else fault_of_relaxation(certificate.subject, certificate.relaxed)
    fault = fault or fault_of_refutation(part, reached.configurations)
    if fault:
        raise HarnessError(
            f"The certificate that a key is not linearizable does not hold: {fault}.",
            "Report this as a bug of Faultline, with the history.",
        )
    return certificate


def _with_suppliers(columns: Columns, core: Sequence[int]) -> Iterator[list[Relaxed]]:
    """Yield relaxations that keep `core`, and more and more of what supplies the values that it demands.

    A compare-and-set that supplies one demands a value itself; those at the end of such a chain are made blind. A
    failed compare-and-set demands any other value, and an append changes any, so then there is no small relaxation.
    """
    if any(columns.kind[i] in (AVOID, APPEND) for i in core):
        return
    by_produce: dict[int, list[int]] = {}
    for i, kind in enumerate(columns.kind):
        if kind == APPEND:
            return
        if kind >= WRITE:
            by_produce.setdefault(columns.produce[i], []).append(i)
    kept, last, links, tried = set(core), list(core), 0, 1
    while last and len(kept) <= SUPPLIERS_MAX:
        wanted = {columns.demand[i] for i in last if columns.kind[i] in (OBSERVE, SWAP)}
        last = [i for value in sorted(wanted) for i in by_produce.get(value, ()) if i not in kept]
        kept.update(last)
        links += 1
        # Chains are followed one, two, four links and so on, so that all tries together cost no more than the last two.
        if links == tried or not last:
            blind = set(last)
            yield [Relaxed(i, is_blind=i in blind and columns.kind[i] == SWAP) for i in sorted(kept)]
            tried *= 2
