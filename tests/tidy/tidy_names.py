"""The names of docs/voice.md: no coined word, and no person in the place of an actor.

A name is that of a file, or an identifier in Python or C. A name of a test is a claim, and a claim names its actor.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path, PurePosixPath

from tidy_sources import CODE_FOLDERS, ROOT, Source

__all__ = [
    "PERSONS",
    "complaints_about_coined_names",
    "complaints_about_persons_in_names",
    "named_files",
]

# Put together from halves, so that this file does not complain about itself.
PERSONS = ("no" + "body", "every" + "body", "some" + "body", "any" + "body", "who" + "ever")
"""The words that stand for an actor without naming one."""

_PERSON = re.compile("|".join(PERSONS), re.IGNORECASE)
_C_SUFFIXES = (".c", ".h")
_COINED = frozenset({"deeds", "lack", "stillness", "squeezing", "minder", "keeper", "welcomes"})
_SKIPPED_FOLDERS = frozenset({"__pycache__", "generated"})


def complaints_about_coined_names(source: Source) -> list[str]:
    """Complain about modules and top-level names made of words that this project coined."""
    names = [source.path.removesuffix(".py").rsplit("/", 1)[-1]]
    names += [
        node.name
        for node in source.tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [
        f"{source.path}: {name} has a coined word; docs/reference/glossary.md has the field's own"
        for name in names
        if _COINED & set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.replace("ZooKeeper", "")).lower().split("_"))
    ]


def complaints_about_persons_in_names(path: str, text: str) -> list[str]:
    """Complain about a file, and about each identifier in its `text`, whose name holds one of `PERSONS`.

    Text that is neither Python nor C has no identifiers.
    """
    complaints = [f"{path}: the file's name holds a person; name the actor"] if _PERSON.search(path) else []
    first_lines: dict[str, int] = {}
    # Reading tokens is slow, and few texts hold such a word at all.
    for line, name in _identifiers(path, text) if _PERSON.search(text) else ():
        if _PERSON.search(name):
            first_lines.setdefault(name, line)
    return complaints + [f"{path}:{line}: {name} holds a person; name the actor" for name, line in first_lines.items()]


def named_files(root: Path = ROOT) -> Iterator[str]:
    """Yield the path of each file whose name is the project's choice, sorted by folder."""
    for folder in (*CODE_FOLDERS, "docs"):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and not _SKIPPED_FOLDERS & set(path.parts):
                yield path.relative_to(root).as_posix()


def _identifiers(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each identifier; comments of C files count, as they name its macros."""
    suffix = PurePosixPath(path).suffix
    if suffix == ".py":
        for token in tokenize.generate_tokens(StringIO(text).readline):
            if token.type == tokenize.NAME:
                yield token.start[0], token.string
    elif suffix in _C_SUFFIXES:
        for number, line in enumerate(text.splitlines(), 1):
            yield from ((number, name) for name in re.findall(r"\w+", line))
