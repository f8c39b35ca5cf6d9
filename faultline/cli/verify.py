"""`faultline verify`: verify the proof of a verdict, without the history and without a search."""

from __future__ import annotations

from pathlib import Path

import click

from faultline.cli.output import json_line, say
from faultline.cli.sealed_outcome import Sealed

__all__ = ["command"]


@click.command("verify")
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(path: Path, as_json: bool) -> Sealed:
    """Verify the proof in FILE, which `faultline check --proof` wrote.

    A key that is linearizable has an order, which is replayed. One that is not has a set of configurations, each of
    which is looked at once, or operations that break a rule, which is looked up. The verdict is the one that the
    certificates prove.

    Ends with 1 when a key is a violation, else with 3 when a key has no certificate or there is none, 0 when all keys
    are linearizable; with 2 when a certificate does not hold.
    """
    from faultline.checkers.linearizability.proof import Proof

    proof = Proof.read(path)
    verdict = proof.verify()
    illegal = sum(key.order is None for key in proof.keys)
    if as_json:
        about = {"file": str(path), "history": proof.history, "model": proof.model, "verdict": verdict}
        figures = {"keys": len(proof.keys), "illegal_keys": illegal, "undecided": list(proof.undecided)}
        say(json_line(about | figures))
    else:
        say(f"{path}: {verdict.value}: {_sentence(len(proof.keys), illegal, len(proof.undecided), proof.history)}")
    return Sealed(verdict=verdict.value, checks_due=(str(path),), checks_ran=(str(path),))


def _sentence(keys: int, illegal: int, undecided: int, history: str) -> str:
    from faultline.checkers.common.words import counted

    told = f"{counted(keys, 'certificate')} of {history} {'holds' if keys == 1 else 'hold'}"
    found = f"; {counted(illegal, 'key')} not linearizable" if illegal else ""
    missing = f"; {counted(undecided, 'key')} without one" if undecided else ""
    return f"{told}{found}{missing}."
