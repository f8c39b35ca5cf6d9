"""What an importer returns, and what all of them need."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faultline.checkers.linearizability.explain import Clock
from faultline.checkers.linearizability.kv import kv_operations, referee_kv
from faultline.checkers.linearizability.models import referee_operations
from faultline.checkers.linearizability.operations import register_operations
from faultline.checkers.porcupine import Operation
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.operation import Operation as Invocation
from faultline.harness.outcome import Outcome

__all__ = ["EventRecorder", "ImportedHistory", "malformed", "read_lines"]


@dataclass(frozen=True, slots=True)
class ImportedHistory:
    """A history with the model it was made for and the clock its sentences should tell."""

    history: History
    model: str
    clock: Clock = "events"

    def operations(self) -> list[list[Operation[Any, Any]]]:
        """The operations for the port of Porcupine, key by key."""
        parts = self.history.rows_by_key().values()
        if self.model == "kv":
            return [list(referee_kv(kv_operations(self.history, rows))) for rows in parts]
        return [list(referee_operations(register_operations(self.history, rows))) for rows in parts]


class EventRecorder:
    """Builds a history from numbered lines, of which each is the beginning or the end of a process's operation."""

    def __init__(self, path: Path) -> None:
        self.history = History()
        self._path = path
        self._open: dict[int, int] = {}

    def invoke(self, number: int, process: int, f: str, key: str | None, value: Any) -> None:
        """An invocation on line `number`. A process has one operation at a time."""
        if process in self._open:
            raise malformed(self._path, number, f"process {process} invokes while its operation before is still open")
        self._open[process] = self.history.invoke(Invocation(process, f, key, value), number, process, "")

    def complete(self, number: int, process: int, f: str, outcome: Outcome) -> None:
        """A completion on line `number`."""
        row = self._open.pop(process, None)
        if row is None or self.history.f[row] != f:
            raise malformed(self._path, number, f"process {process} completes a {f} that it did not invoke")
        self.history.complete(row, outcome, number)


def read_lines(path: Path) -> list[tuple[int, str]]:
    """The lines of a text file that are not blank, with their numbers from 1."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", "Name a file that holds a history.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a text file in UTF-8.", "Name a file that holds a history.") from error
    return [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]


def malformed(path: Path, number: int, cause: str) -> UsageError:
    """The error of a line that cannot be understood."""
    return UsageError(f"{path}, line {number}: {cause}.", "Check the file, and that --format names its format.")
