"""The lesson of a pattern module: the parts of its docstring, under the headings that all of them share."""

from __future__ import annotations

import ast
import re
from importlib.resources import files

import msgspec

from faultline import systems_under_test
from faultline.harness.errors import UsageError
from faultline.systems_under_test.patterns.catalogue import PATTERNS, Pattern

__all__ = ["Lesson", "lesson_of", "pattern_called"]

_HEADING = re.compile(r"^\*(?P<name>[A-Z][a-z ]+)\.\*\s*", re.MULTILINE)


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """One pattern, as its module teaches it; `promise` is its first sentence, `parts` its paragraphs by heading."""

    pattern: Pattern
    promise: str
    parts: dict[str, str]


def pattern_called(slug: str) -> Pattern:
    """Return the pattern with that name or slug.

    Raises UsageError for an unknown one, and for one not implemented yet.
    """
    import difflib

    known = {pattern.slug: pattern for pattern in PATTERNS}
    wanted = slug.lower().replace(" ", "-")
    if wanted not in known:
        near = difflib.get_close_matches(wanted, known, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise UsageError(f"There is no pattern called {slug!r}.", f"{hint}See them with `faultline list patterns`.")
    if not known[wanted].module:
        raise UsageError(
            f"{known[wanted].name} is not implemented yet.", "See which are with `faultline list patterns`."
        )
    return known[wanted]


def lesson_of(pattern: Pattern) -> Lesson:
    """Return the lesson of an implemented pattern, read from its module's source, which is not imported."""
    path = files(systems_under_test).joinpath(*f"{pattern.module.replace('.', '/')}.py".split("/"))
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    heads = list(_HEADING.finditer(docstring))
    ends = [head.start() for head in heads[1:]] + [len(docstring)]
    parts = {head["name"]: _first_paragraph(docstring[head.end() : end]) for head, end in zip(heads, ends, strict=True)}
    return Lesson(pattern=pattern, promise=_joined(docstring.partition("\n\n")[0]), parts=parts)


def _first_paragraph(text: str) -> str:
    return _joined(text.partition("\n\n")[0])


def _joined(text: str) -> str:
    return " ".join(text.split())
