"""Files with proofs, which `faultline check --proof` writes and `faultline verify` reads.

A proof of linearizability and one of transactions differ in what they hold; the field `format` says which one it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

import msgspec

from faultline.harness.results import write_whole
from faultline.harness.untrusted import read_json

__all__ = ["NO_PROOF", "Header", "ProofFile"]

NO_PROOF = "Give it a file that `faultline check PATH --proof FILE` wrote."
"""The next step for a file that holds no proof."""


class Header(msgspec.Struct, frozen=True):
    """The field that says which kind of proof a file holds."""

    format: str = ""


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
        return read_json(Path(path), cls, next_step=NO_PROOF)
