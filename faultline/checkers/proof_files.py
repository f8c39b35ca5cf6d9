"""Files with proofs, which `faultline check --proof` writes and `faultline verify` reads.

A proof of linearizability and one of transactions differ in what they hold; the field `format` says which one it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from faultline.harness.results import write_whole
from faultline.harness.untrusted import read_json

if TYPE_CHECKING:
    from faultline.checkers.linearizability.proof import Proof
    from faultline.checkers.transactions.proof import TransactionProof

__all__ = ["ProofFile", "read_proof"]

_MADE_BY = "Give it a file that `faultline check PATH --proof FILE` wrote."


class ProofFile(msgspec.Struct, frozen=True, tag_field="format"):
    """The common part of proofs: how they are stored."""

    def json(self) -> bytes:
        """Return the proof as JSON, which `faultline verify` reads from a file."""
        return msgspec.json.encode(self)

    def write(self, path: Path | str) -> Path:
        """Write the proof to the file `path`, which appears whole or not at all, and return its path."""
        write_whole(Path(path), self.json())
        return Path(path)

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Return the proof of this kind in the file `path`; raise UsageError when it holds none."""
        return read_json(Path(path), cls, next_step=_MADE_BY)


def read_proof(path: Path) -> Proof | TransactionProof:
    """Return the proof in the file `path`, of either kind; raise UsageError when it holds none."""
    from faultline.checkers.linearizability.proof import Proof
    from faultline.checkers.transactions.proof import TransactionProof

    proof: Proof | TransactionProof = read_json(path, Proof | TransactionProof, next_step=_MADE_BY)  # type: ignore[arg-type]
    return proof
