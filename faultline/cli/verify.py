"""`faultline verify`: verify the proof of a verdict, without the history and without a search."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from faultline.cli.output import json_line, say
from faultline.cli.sealed_outcome import Sealed

if TYPE_CHECKING:
    from faultline.checkers.linearizability.proof import Proof
    from faultline.checkers.transactions.proof import TransactionProof

__all__ = ["command"]


@click.command("verify")
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(path: Path, as_json: bool) -> Sealed:
    """Verify the proof in FILE, which `faultline check --proof` wrote.

    A key that is linearizable has an order, which is replayed. One that is not has a set of configurations, each of
    which is looked at once, or operations that break a rule, which is looked up. Transactions have an order as well, or
    a cycle, steps that break a rule, or a few of them that have no order. The verdict is the one that the certificates
    prove.

    Ends with 1 when a key or the transactions are a violation, else with 3 when a certificate is missing or there is
    nothing to prove, 0 when all conform to the model; with 2 when a certificate does not hold.
    """
    proof = _proof_in(path)
    verdict = proof.verify()
    if as_json:
        about = {"file": str(path), "history": proof.history, "model": proof.model, "verdict": verdict}
        say(json_line(about | proof.figures()))
    else:
        say(f"{path}: {verdict.value}: {proof.told()}")
    return Sealed(verdict=verdict.value, checks_due=(str(path),), checks_ran=(str(path),))


def _proof_in(path: Path) -> Proof | TransactionProof:
    """Return the proof in the file, of either kind; raise UsageError when it holds none."""
    from faultline.checkers.linearizability.proof import Proof
    from faultline.checkers.proof_files import NO_PROOF, Header
    from faultline.checkers.transactions.proof import TransactionProof
    from faultline.harness.untrusted import read_json

    header = read_json(path, Header, next_step=NO_PROOF)
    is_of_transactions = header.format == TransactionProof.__struct_config__.tag
    return TransactionProof.read(path) if is_of_transactions else Proof.read(path)
