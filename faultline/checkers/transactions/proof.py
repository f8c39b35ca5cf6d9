"""Proofs about transactions in files: the certificate of a verdict, with the transactions that it speaks of.

A proof repeats the transactions in the history's own words, so that a reader can compare them with it. It needs no
checker: `verify` alone looks at it.
"""

from __future__ import annotations

from typing import Any

from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.proof_files import ProofFile
from faultline.checkers.transactions.certificates import ProvedTransaction, TransactionCertificate
from faultline.checkers.transactions.verify import fault_of
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.verdict import CheckResult, Verdict

__all__ = ["TransactionProof", "proof_of_transactions"]


class TransactionProof(ProofFile, frozen=True, tag="faultline proof of transactions 1", tag_field="format"):
    """The proof of the verdict on one history of transactions of `kind` under `model`.

    Without a certificate, `missing` says why there is none.
    """

    history: str
    kind: str
    model: str
    transactions: tuple[ProvedTransaction, ...]
    certificate: TransactionCertificate | None = None
    missing: str = ""

    def verify(self) -> Verdict:
        """Return the verdict that is proved; raise UsageError when the certificate does not hold."""
        if self.certificate is None:
            return Verdict.UNKNOWN
        fault = fault_of(self.kind, self.model, self.transactions, self.certificate)
        if fault:
            raise UsageError(
                f"The certificate of these transactions does not hold: {fault}.",
                "Make the proof anew with `faultline check PATH --proof FILE`; report it if that one does not hold.",
            )
        return Verdict.VIOLATION if self.certificate.order is None else Verdict.PASS

    def told(self) -> str:
        """Return what the verified proof shows, in a sentence."""
        if self.certificate is None:
            return self.missing
        if self.certificate.order is not None:
            return f"The order of the transactions of {self.history} holds: they are {self.model}."
        grounds = next(
            name for name in ("cycle", "contradiction", "core") if getattr(self.certificate, name) is not None
        )
        return f"The {grounds} of transactions of {self.history} holds: they are not {self.model}."

    def figures(self) -> dict[str, Any]:
        """Return the figures of the proof, as plain data."""
        return {"transactions": len(self.transactions), "missing": self.missing}


def proof_of_transactions(
    history: History, kind: str, result: CheckResult, label: str, limit: Budget
) -> TransactionProof:
    """Return the proof of `result`, which the checker of `kind` told of `history`, called `label`."""
    from faultline.checkers.transactions.certify import certificate_of, proved_transactions
    from faultline.checkers.transactions.checker import inference_of

    model, verdict = result.detail["model"], result.verdict
    inference = inference_of(kind, model, history)
    proved = proved_transactions(inference.columns)
    if verdict not in (Verdict.PASS, Verdict.VIOLATION):
        missing = f"The verdict on {label} is {verdict.value}, which has no certificate."
        return TransactionProof(label, kind, model, proved, missing=missing)
    certificate = certificate_of(kind, model, inference, proved, result, limit)
    missing = "" if certificate else _missing(model, is_legal=verdict is Verdict.PASS)
    return TransactionProof(label, kind, model, proved, certificate, missing)


def _missing(model: str, *, is_legal: bool) -> str:
    if is_legal:
        return (
            f"No order was found in which these transactions ran one by one, and {model} without one has no "
            "certificate: the verdict rests on the checker."
        )
    return (
        f"No cycle, contradiction or core of a few shows that these transactions are not {model}: the verdict rests on "
        "the checker, which tried each order of some writes, or on options that you gave it."
    )
