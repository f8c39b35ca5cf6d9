"""Proofs in files: the certificates of all keys of a history, with the operations that they speak of.

A proof says what each key's operations were in the history's own words, so that a reader can compare them with it, and
everything else is derived from them again when it is verified. It needs no engine: `verifier` alone looks at it. It
trusts besides the reading of the operations (`told`), and for strings the texts that matter (`engine.texts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from faultline.checkers.common.words import counted
from faultline.checkers.linearizability.certificates import (
    Certificate,
    Configuration,
    Configurations,
    Contradiction,
    Relaxed,
)
from faultline.checkers.linearizability.descriptions import MODELS, model_named
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.operations import FailedCas
from faultline.checkers.linearizability.told import ProvedOperation, fault_of_operations, subject_of, told
from faultline.checkers.linearizability.verifier import fault_of
from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.proof_files import ProofFile
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.verdict import Verdict, merge

__all__ = ["Proof", "ProvedKey", "proof_of"]

_NUMBER_MAX = (1 << 31) - 1


class ProvedKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """One key and its certificate, whose fields are those of `certificates.Certificate`."""

    key: str | None
    operations: tuple[ProvedOperation, ...]
    order: tuple[int, ...] | None = None
    relaxed: tuple[Relaxed, ...] | None = None
    configurations: tuple[Configuration, ...] | None = None
    steps: tuple[tuple[int, int], ...] = ()
    still: tuple[int, ...] = ()
    contradiction: Contradiction | None = None

    @classmethod
    def of(cls, key: str | None, operations: tuple[ProvedOperation, ...], certificate: Certificate[Any]) -> ProvedKey:
        """Return `certificate` with its operations."""
        members = certificate.configurations
        return cls(
            key,
            operations,
            None if certificate.order is None else tuple(certificate.order),
            certificate.relaxed,
            None if members is None else tuple(members[k] for k in range(len(members))),
            certificate.steps,
            certificate.still,
            certificate.contradiction,
        )

    def has_numbers_too_large(self) -> bool:
        """Return whether a configuration holds a number that the columns of `Configurations` have no room for."""
        members = self.configurations or ()
        return any(abs(number) > _NUMBER_MAX for each in members for number in (*each[:2], *each.ahead, *each.used))

    def certificate(self, model: str) -> Certificate[Any]:
        """Return the certificate, of the operations as they are read again under `model`."""
        return Certificate(
            subject_of(self.operations, model),
            self.order,
            self.relaxed,
            None if self.configurations is None else Configurations.of(self.configurations),
            self.steps,
            self.still,
            self.contradiction,
        )


class Proof(ProofFile, frozen=True, tag="faultline proof 2", tag_field="format"):
    """The proof of the verdict on one history under `model`; the keys `undecided` have no certificate."""

    history: str
    model: str
    keys: tuple[ProvedKey, ...]
    undecided: tuple[str | None, ...] = ()

    def verify(self) -> Verdict:
        """Return the verdict that is proved; raise UsageError when a certificate does not hold."""
        if self.model not in MODELS:
            raise _refused(None, f"there is no model `{self.model}`")
        verdicts: list[Verdict] = [Verdict.UNKNOWN for _ in self.undecided]
        names = [*(each.key for each in self.keys), *self.undecided]
        if len(set(names)) < len(names):
            raise _refused(None, "it names a key twice")
        for each in self.keys:
            if each.has_numbers_too_large():
                raise _refused(each.key, "a configuration names an operation or a state that there is not")
            fault = fault_of_operations(each.operations, self.model) or fault_of(each.certificate(self.model))
            if fault:
                raise _refused(each.key, fault)
            verdicts.append(Verdict.PASS if each.order is not None else Verdict.VIOLATION)
        return merge(verdicts) if verdicts else Verdict.VACUOUS

    def told(self) -> str:
        """Return what the verified proof shows, in a sentence."""
        keys, illegal = len(self.keys), self._illegal()
        told = f"{counted(keys, 'certificate')} of {self.history} {'holds' if keys == 1 else 'hold'}"
        found = f"; {counted(illegal, 'key')} not linearizable" if illegal else ""
        missing = f"; {counted(len(self.undecided), 'key')} without one" if self.undecided else ""
        return f"{told}{found}{missing}."

    def figures(self) -> dict[str, Any]:
        """Return the figures of the proof, as plain data."""
        return {"keys": len(self.keys), "illegal_keys": self._illegal(), "undecided": list(self.undecided)}

    @property
    def missing(self) -> str:
        """The sentence that says which certificates are missing; nothing when none is."""
        keys = ", ".join("the only key" if key is None else key for key in self.undecided)
        return f"No certificate was made of {keys} within the budget." if keys else ""

    def _illegal(self) -> int:
        return sum(key.order is None for key in self.keys)


def proof_of(history: History, model: str, label: str, failed_cas: FailedCas, budget: Budget) -> Proof:
    """Return the proof of the verdict on `history`, called `label`."""
    data_type = model_named(model).data_type(failed_cas)
    keys: list[ProvedKey] = []
    undecided: list[str | None] = []
    for key, rows in history.rows_by_key().items():
        calls = data_type.calls(history, rows)
        decision = data_type.decide(calls, budget)
        operations = tuple(map(told, calls))
        certificate: Certificate[Any] | None
        if decision.is_legal:
            certificate = Certificate(None, order=_in_subject(operations, model, decision.order))
        else:
            certificate = data_type.certificate(calls, decision, budget)
        if certificate is None:
            undecided.append(key)
        else:
            keys.append(ProvedKey.of(key, operations, certificate))
    return Proof(label, model, tuple(keys), tuple(undecided))


def _in_subject(operations: Sequence[ProvedOperation], model: str, order: Sequence[int]) -> tuple[int, ...]:
    """Return `order`, positions in `operations`, as positions in the subject, which may leave operations out."""
    subject = subject_of(operations, model)
    if not isinstance(subject, Columns):
        return tuple(order)
    place = {row: position for position, row in enumerate(subject.row)}
    return tuple(place[operations[i].row] for i in order)


def _refused(key: str | None, fault: str) -> UsageError:
    whose = "The certificate" if key is None else f"The certificate of {key}"
    return UsageError(
        f"{whose} does not hold: {fault}.",
        "The proof was damaged or made up: check the history again with --proof.",
    )
