"""The result of a check: the verdict, the operations behind it, and its picture."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from faultline.checkers.porcupine.model import Operation
from faultline.harness.verdict import CheckResult, Finding, Verdict

if TYPE_CHECKING:
    from faultline.checkers.linearizability.proof import Proof
    from faultline.checkers.transactions.proof import TransactionProof

__all__ = ["Checked", "Result"]


class Checked(Protocol):
    """The operations that findings name by number, and the ways to show them."""

    def operations(self, finding: Finding) -> tuple[Operation[Any, Any], ...]:
        """Return the operations of a finding, in order of their calls."""

    def explanation(self) -> Iterator[str]:
        """Yield the lines that explain the findings, or say what is known of an undecided history."""

    def page(self) -> str:
        """Return the picture as one HTML page."""

    def certificate(self) -> Proof | TransactionProof:
        """Return the certificates of all keys or of the transactions; raise UsageError when the history has none."""


class Result(CheckResult, frozen=True, kw_only=True):
    """The result of `check`, a `CheckResult` that can show itself.

    It is true only for a pass: neither an undecided history nor one that tests nothing is one. `print` shows the
    verdict with the operations behind it; so does a notebook, as a picture.
    """

    model: str
    checked: Checked

    def __bool__(self) -> bool:
        return self.verdict is Verdict.PASS

    def __str__(self) -> str:
        return "\n".join([f"{self.verdict.value}: {self.sentence}", *self.checked.explanation()])

    def __repr__(self) -> str:
        return f"<Result of {self.model}: {self.verdict.value}: {self.sentence}>"

    def _repr_html_(self) -> str:
        # A frame of its own: the page has a style sheet for all of itself, which must not reach the notebook.
        return f'<iframe srcdoc="{html.escape(self.html())}" width="100%" height="480" frameborder="0"></iframe>'

    @property
    def evidence(self) -> tuple[Operation[Any, Any], ...]:
        """The operations that show the first finding, in order of their calls; empty when there is no finding."""
        return self.checked.operations(self.findings[0]) if self.findings else ()

    @property
    def certificate(self) -> Proof | TransactionProof:
        """The certificates of all keys, or that of the transactions, which are made when asked for: the history is
        decided again.

        Raise UsageError for one that was not judged under a model by name, for linearizability or as transactions on
        lists or registers.
        """
        return self.checked.certificate()

    def html(self) -> str:
        """Return the picture as one HTML page, which needs no other file."""
        return self.checked.page()

    def write_html(self, path: Path | str) -> Path:
        """Write the picture to the file `path`, which appears whole or not at all, and return its path."""
        from faultline.checkers.drawing import write_page

        return write_page(path, self.html())
