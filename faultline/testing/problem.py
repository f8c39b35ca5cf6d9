"""The problems that a conformance check reports: the broken claim, the error, its place, and the remedy.

A check is a function that yields the problems that it finds in a subject. An exception of the plug-in is a problem like
any other, at the line of the plug-in that raised it: a kit must not end in a traceback of its own.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

import faultline
from faultline.harness.errors import UsageError

__all__ = ["Check", "Problem", "examine", "place_of"]

Subject = TypeVar("Subject")
Found = Iterator[tuple[str, str, str]]
"""The error, its place, and the remedy."""

_OURS = str(Path(faultline.__file__).parent)
_PROBLEMS_SHOWN = 3


class Problem(msgspec.Struct, frozen=True):
    """One broken claim: `what` is wrong, `where` (a file and line, or a run), and the remedy."""

    claim: str
    what: str
    where: str
    next_step: str

    def __str__(self) -> str:
        lines = [
            f"Not so: {self.claim}.",
            f"  what:  {self.what}",
            f"  where: {self.where}",
            f"  do:    {self.next_step}",
        ]
        return "\n".join(lines)


class Check(Generic[Subject]):
    """A claim about every plug-in of a kind, and the function that searches for contradictions."""

    def __init__(self, claim: str, find: Callable[[Subject], Found]) -> None:
        self.claim = claim
        self.find = find

    def problems(self, subject: Subject) -> list[Problem]:
        """Return the contradictions of the claim in order; an exception of the subject is the last of them."""
        found: list[Problem] = []
        try:
            for what, where, next_step in self.find(subject):
                found.append(Problem(self.claim, what, where, next_step))
                if len(found) == _PROBLEMS_SHOWN:
                    break
        except UsageError as error:
            found.append(Problem(self.claim, error.message, _raised_at(error), error.next_step or "Read the message."))
        except Exception as error:
            found.append(Problem(self.claim, f"{type(error).__name__}: {error}", _raised_at(error), _MEND))
        return found


_MEND = "Fix the code that raised; the kit calls the plug-in only as the harness would."


def examine(checks: Iterable[Check[Subject]], subject: Subject) -> list[Problem]:
    """Return the problems of all `checks`."""
    return [problem for check in checks for problem in check.problems(subject)]


def place_of(subject: Any, attribute: str = "") -> str:
    """Return where `subject` (a class, a function or an instance), or an attribute of it, is defined."""
    owner = subject if inspect.isclass(subject) or inspect.isroutine(subject) else type(subject)
    name = f"{owner.__qualname__}.{attribute}" if attribute else owner.__qualname__
    target = inspect.unwrap(getattr(owner, attribute, owner)) if attribute else owner
    for candidate in (target, owner):
        try:
            line = inspect.getsourcelines(candidate)[1]
            return f"{name} ({inspect.getsourcefile(candidate)}:{line})"
        except (TypeError, OSError):
            continue
    return f"{name} ({owner.__module__})"


def _raised_at(error: BaseException) -> str:
    """Return the innermost line outside Faultline; the innermost of all when there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    foreign = [frame for frame in frames if not frame.filename.startswith(_OURS)]
    frame = (foreign or list(frames))[-1]
    return f"{frame.name} ({frame.filename}:{frame.lineno})"
