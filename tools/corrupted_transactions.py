"""Certificates of random transactions, and everything that is wrong with a changed one: what `verify_certificates` asks
of lists and registers.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec
from fuzz_transactions import random_history
from msgspec.structs import replace
from transaction_oracle import LEVELS, keeps

from faultline.checkers.porcupine.budget import UNLIMITED
from faultline.checkers.transactions.certificates import Place, TransactionCertificate
from faultline.checkers.transactions.checker import check_transactions
from faultline.checkers.transactions.proof import TransactionProof, proof_of_transactions
from faultline.checkers.transactions.verify import fault_of
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, OutcomeKind

__all__ = ["KINDS", "complaints_about_transactions"]

KINDS = {"lists": "list-append", "registers": "rw-register"}


def complaints_about_transactions(seed: int, name: str, counts: Counter[str]) -> list[str]:
    """Return what is wrong with the certificate of the history of `seed`, in words; `counts` counts what was done."""
    kind, level, rng = KINDS[name], LEVELS[seed % len(LEVELS)], random.Random(seed)
    history = random_history(seed, kind)
    is_kept, proof = keeps(history, level), _proof(history, kind, level)
    made = proof.certificate
    counts[f"{'kept' if is_kept else 'broken'}, {_grounds(made)}"] += 1
    if made is None:
        return [] if is_kept else ["it is broken and has no certificate"]
    if (made.order is not None) is not is_kept:
        return [f"it is {'kept' if is_kept else 'broken'}, and its certificate says otherwise"]
    if fault := fault_of(kind, level, proof.transactions, made):
        return [f"its certificate is refused: {fault}"]
    complaints = []
    for what, changed in _corruptions(made, len(proof.transactions)):
        counts["corrupted certificates"] += 1
        if not fault_of(kind, level, proof.transactions, changed):
            complaints.append(f"a certificate is accepted with {what}")
    # A certificate of a history that differs in one answer may hold of this one too: then it says what is so.
    for other in _neighbours(history, rng):
        theirs = _proof(other, kind, level).certificate
        counts["certificates of others"] += theirs is not None
        if theirs is not None and (theirs.order is not None) is not is_kept:
            counts["certificates of others that claim the contrary"] += 1
            if not fault_of(kind, level, proof.transactions, theirs):
                complaints.append(f"it is {'kept' if is_kept else 'broken'}, and {theirs} is accepted")
    return complaints


def _proof(history: History, kind: str, level: str) -> TransactionProof:
    return proof_of_transactions(history, kind, check_transactions(history, kind, level), "it", UNLIMITED)


def _grounds(made: TransactionCertificate | None) -> str:
    return next(iter(msgspec.to_builtins(made)), "") if made is not None else "without a certificate"


def _neighbours(history: History, rng: random.Random) -> Iterator[History]:
    """Yield histories of which one read answers otherwise."""
    reads = [
        (row, s, body[1])
        for row in range(len(history))
        for s, body in enumerate(history.result[row] or ())
        if body[0] == "r"
    ]
    for row, s, key in rng.sample(reads, min(2, len(reads))):
        answers = [each[2] for result in history.result for each in result or () if each[:2] == ["r", key]]
        yield _with_answer(history, row, s, rng.choice(answers))


def _with_answer(history: History, row: int, step: int, answer: Any) -> History:
    changed = History()
    events = sorted(
        [(history.invoke_index[r], False, r) for r in range(len(history))]
        + [(history.complete_index[r], True, r) for r in range(len(history)) if history.outcome[r]]
    )
    for index, is_end, r in events:
        if not is_end:
            changed.invoke(Operation(history.process[r], "txn", None, history.value[r]), index, history.worker[r], "")
            continue
        result = [list(each) for each in history.result[r] or ()]
        if r == row:
            result[step][2] = answer
        outcome = cast("OutcomeKind", history.outcome[r])
        changed.complete(r, Outcome(outcome, result if outcome == "ok" else None), index)
    return changed


def _corruptions(made: TransactionCertificate, size: int) -> Iterator[tuple[str, TransactionCertificate]]:
    """Yield certificates with a field that cannot be right, each with the difference in words."""
    yield "no grounds", TransactionCertificate()
    if made.order is not None:
        yield "a core too", replace(made, core=(0,))
        for t in (*made.order[:1], -1, size):
            yield f"transaction {t} again", replace(made, order=(*made.order, t))
        return
    yield "an order too", replace(made, order=())
    if made.core is not None:
        for t in (made.core[0], -1, size):
            yield f"transaction {t} again", replace(made, core=(*made.core, t))
        for gone in made.core if len(made.core) == 1 else ():
            yield f"transaction {gone} missing", replace(made, core=())
    if made.contradiction is not None:
        rule, because = made.contradiction.rule, made.contradiction.because
        yield "another rule", replace(made, contradiction=replace(made.contradiction, rule="no-such-rule"))
        for changed in _places(because, size):
            yield f"{rule} by {changed}", replace(made, contradiction=replace(made.contradiction, because=changed))
    for number, edge in enumerate(made.cycle or ()):
        assert made.cycle is not None
        others = [replace(edge, source=t) for t in (-1, size)]
        others += [replace(edge, kind=kind) for kind in ("ww", "wr", "rw") if edge.because and kind != edge.kind]
        others += [replace(edge, because=changed) for changed in _places(edge.because, size)]
        for other in others:
            yield f"{other}", replace(made, cycle=(*made.cycle[:number], other, *made.cycle[number + 1 :]))


def _places(because: Sequence[Place], size: int) -> Iterator[tuple[Place, ...]]:
    """Yield other steps than those: one more, one less, or one that there is not."""
    yield (*because, (0, 0)) if len(because) < 2 else (*because, *because)
    if because:
        yield tuple(because[:-1])
    for number, (t, s) in enumerate(because):
        for place in ((t, -1), (t, 99), (-1, s), (size, s)):
            yield (*because[:number], place, *because[number + 1 :])
