"""Proofs in files: the certificates of all keys of a history, with the operations that they speak of.

A proof says what each key's operations were in the history's own words, so that a reader can compare them with it, and
everything else is derived from them again when it is verified. It needs no engine: `verify` alone looks at it. What it
trusts besides is the reading of the rows (`operations`), and for strings the texts that matter (`engine.texts`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import msgspec

from faultline.checkers.linearizability.certificates import Certificate, Configuration, Configurations, Relaxed
from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.linearizability.descriptions import model_named
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.engine.registers import columns_of
from faultline.checkers.linearizability.engine.texts import text_columns
from faultline.checkers.linearizability.kv import KvOperation
from faultline.checkers.linearizability.operations import (
    AVOID,
    INFINITY,
    OBSERVE,
    SWAP,
    WRITE,
    FailedCas,
    RegisterOperation,
    canonical,
)
from faultline.checkers.linearizability.verify import fault_of
from faultline.checkers.porcupine.budget import Budget
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.verdict import Verdict, merge

__all__ = ["MODELS_WITH_PROOFS", "Proof", "ProvedKey", "ProvedOperation", "proof_of", "verdict_of"]

MODELS_WITH_PROOFS = ("register", "cas-register", "kv")
"""The models whose verdicts have certificates."""

_KINDS = {"read": OBSERVE, "refused-cas": AVOID, "write": WRITE, "cas": SWAP}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_TEXT_KINDS = ("get", "put", "append")
_TIME_MAX = INFINITY - 1


class ProvedOperation(msgspec.Struct, frozen=True, array_like=True):
    """One operation: `value` is what it saw or put, for a compare-and-set both. A pending one has no `return_`.

    `row` is its row in the history; a read of the state and a compare-and-set of a value by itself are both `read`.
    """

    f: Literal["read", "refused-cas", "write", "cas", "get", "put", "append"]
    value: Any
    call: int
    return_: int | None
    row: int


class ProvedKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """One key and its certificate: an order, or configurations, of a relaxation if there is one."""

    key: str | None
    operations: tuple[ProvedOperation, ...]
    order: tuple[int, ...] | None = None
    relaxed: tuple[Relaxed, ...] | None = None
    configurations: tuple[Configuration, ...] | None = None


class Proof(msgspec.Struct, frozen=True, tag="faultline proof 1", tag_field="format"):
    """The proof of the verdict on one history under `model`; the keys `undecided` have no certificate."""

    history: str
    model: Literal["register", "cas-register", "kv"]
    keys: tuple[ProvedKey, ...]
    undecided: tuple[str | None, ...] = ()


def proof_of(history: History, model: str, label: str, failed_cas: FailedCas, budget: Budget) -> Proof:
    """Return the proof of the verdict on `history`, called `label`; raise UsageError for a model that has none."""
    if model not in MODELS_WITH_PROOFS:
        raise UsageError(
            f"There are no certificates for the model `{model}`.",
            f"Check without --proof, or choose one of {', '.join(MODELS_WITH_PROOFS)} with --model.",
        )
    data_type = model_named(model).data_type(failed_cas)
    keys: list[ProvedKey] = []
    undecided: list[str | None] = []
    for key, rows in history.rows_by_key().items():
        calls = data_type.calls(history, rows)
        decision = data_type.decide(calls, budget)
        proved = _proved(key, calls, decision)
        if proved is None:
            undecided.append(key)
        else:
            keys.append(proved)
    return Proof(label, _known(model), tuple(keys), tuple(undecided))


def _known(model: str) -> Any:
    return model


def _proved(key: str | None, calls: Sequence[Any], decision: Decision) -> ProvedKey | None:
    """Return the key with its certificate; None when it was not decided, or no certificate could be made."""
    told = tuple(map(_told, calls))
    certificate = decision.certificate
    if decision.is_legal:
        columns = _columns(told)
        place = {row: position for position, row in enumerate(columns.row)}
        return ProvedKey(key, told, order=tuple(place[told[i].row] for i in decision.order))
    if certificate is None or certificate.configurations is None:
        return None
    members = certificate.configurations
    return ProvedKey(
        key,
        told,
        relaxed=certificate.relaxed,
        configurations=tuple(members[k] for k in range(len(members))),
    )


def _told(call: RegisterOperation | KvOperation) -> ProvedOperation:
    return_ = None if call.return_ == INFINITY else call.return_
    if isinstance(call, KvOperation):
        return ProvedOperation(_known(call.f), call.text, call.call, return_, call.row)
    demand, produce = _plain(call.demand), _plain(call.produce)
    value = {OBSERVE: demand, AVOID: demand, WRITE: produce}.get(call.kind, [demand, produce])
    return ProvedOperation(_known(_NAMES[call.kind]), value, call.call, return_, call.row)


def _plain(value: Hashable) -> Any:
    """Return the JSON value for which `operations.canonical` stands in."""
    return msgspec.json.decode(value.removeprefix(b"json:")) if isinstance(value, bytes) else value


def _columns(operations: Sequence[ProvedOperation]) -> Columns:
    """Return operations of one key as columns, whose rows are those of the history."""
    if all(each.f in _TEXT_KINDS for each in operations):
        texts = (
            KvOperation(each.f, each.value, each.call, INFINITY if each.return_ is None else each.return_, each.row)
            for each in operations
        )
        return text_columns([(None, list(texts))])
    calls = list(map(_register_operation, operations))
    columns = columns_of(calls)
    columns.row = type(columns.row)("q", (call.row for call in calls))
    return columns


def _register_operation(told: ProvedOperation) -> RegisterOperation:
    kind, return_ = _KINDS[told.f], INFINITY if told.return_ is None else told.return_
    demand = produce = None
    if kind == SWAP:
        demand, produce = map(canonical, told.value)
    elif kind == WRITE:
        produce = canonical(told.value)
    else:
        demand = canonical(told.value)
    return RegisterOperation(kind, demand, produce, told.call, return_, told.row)


def verdict_of(proof: Proof) -> Verdict:
    """Return the verdict that `proof` proves; raise UsageError when a certificate does not hold."""
    verdicts: list[Verdict] = [Verdict.UNKNOWN for _ in proof.undecided]
    names = [*(each.key for each in proof.keys), *proof.undecided]
    if len(set(names)) < len(names):
        raise _refused(None, "it names a key twice")
    for each in proof.keys:
        fault = _fault_of_operations(each.operations, proof.model) or fault_of(_certificate(each))
        if fault:
            raise _refused(each.key, fault)
        verdicts.append(Verdict.PASS if each.order is not None else Verdict.VIOLATION)
    return merge(verdicts) if verdicts else Verdict.VACUOUS


def _certificate(proved: ProvedKey) -> Certificate:
    members = proved.configurations
    configurations = None if members is None else Configurations.of(members)
    return Certificate(_columns(proved.operations), proved.order, proved.relaxed, configurations)


def _fault_of_operations(operations: Sequence[ProvedOperation], model: str) -> str:
    """Return what is wrong with the operations themselves, in words; the verifier trusts what is checked here."""
    known = _TEXT_KINDS if model == "kv" else tuple(_KINDS)
    if len({each.row for each in operations}) < len(operations):
        return "it names a row twice"
    for each in operations:
        if each.f not in known:
            return f"`{each.f}` in row {each.row} is no operation of the model `{model}`"
        if model == "kv" and not isinstance(each.value, str):
            return f"the value in row {each.row} is no text"
        if each.f == "cas" and not (isinstance(each.value, list) and len(each.value) == 2):
            return f"the compare-and-set in row {each.row} has no two values"
        if each.f == "cas" and canonical(each.value[0]) == canonical(each.value[1]):
            return f"the compare-and-set in row {each.row} changes nothing and must be a read"
        end = _TIME_MAX if each.return_ is None else each.return_
        if not 0 <= each.row <= _TIME_MAX or not 0 <= each.call <= end <= _TIME_MAX:
            return f"the times of row {each.row} are none"
        if each.return_ is None and each.f in ("read", "refused-cas", "get"):
            return f"row {each.row} saw something although it never returned"
    return ""


def _refused(key: str | None, fault: str) -> UsageError:
    whose = "The certificate" if key is None else f"The certificate of {key}"
    return UsageError(
        f"{whose} does not hold: {fault}.",
        "The proof was damaged or made up: check the history again with --proof.",
    )
