"""The voice of docs/voice.md, as far as a machine can hold it.

python tests/tidy/tidy_voice.py faultline/checkers docs      what is still to be rewritten there, a line each
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from io import StringIO
from itertools import pairwise
from pathlib import Path

from tidy_names import PERSONS, complaints_about_coined_names, complaints_about_persons_in_names
from tidy_sources import ROOT, TEXT_SUFFIXES, Source

__all__ = [
    "COMPLEXITY_WITHOUT_COMMENT_MAX",
    "complaints_about_first_words",
    "complaints_about_short_docstrings",
    "complaints_about_uncommented_complexity",
    "complaints_about_unexplained_exceptions",
    "complaints_about_words",
]

COMPLEXITY_WITHOUT_COMMENT_MAX = 10
DOCSTRING_WORDS_MIN = 3

# A hyphen after the word makes it part of a recorded name, such as that of a planted bug.
_WORDS = re.compile(rf"\b(?:{'|'.join(PERSONS)}|what\s+(?:there\s+is|is\s+there))\b(?!-)", re.IGNORECASE)
_AUXILIARIES = "Are|Can|Could|Did|Do|Does|Has|Have|Is|May|Must|Should|Was|Were|Will|Would"
_PREPOSITIONS = "After|At|Before|By|During|For|From|In|Of|On|Since|To|Under|Until|With|Within"
_CLAUSE = re.compile(
    r"(?:What(?:ever)?|Who(?:m|se|ever)?|Whether|How(?:ever)?|Where|When|Which|Why|See)\b"
    rf"|(?:{_PREPOSITIONS})\s+(?:what|whom?|whose|whether|how|where|when|which)\b"
    rf"|(?:{_AUXILIARIES})\b[^.?!]*\?"
)
"""The beginning of a docstring that is a question: direct, indirect, or after a preposition (*After how many* …)."""
_SUPPRESSION = re.compile(r"#\s*(type: ignore|noqa)\b(?:\[[^]]*\]|:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?[\s#–]*(.*)")
"""A comment that switches a rule off: its name, and the reason that follows."""


def complaints_about_words(path: str, text: str) -> list[str]:
    """Complain about each sentence in `text` that is built on a person who is none."""
    if path == "docs/voice.md":  # it shows the words that it bans
        return []
    return [
        f"{path}:{number}: {found.group(0)!r}; name the actor (docs/voice.md)"
        for number, line in enumerate(text.splitlines(), 1)
        for found in _WORDS.finditer(line)
    ]


def complaints_about_first_words(source: Source) -> list[str]:
    """Complain about docstrings that are a question or begin as one does (*What*, *How many* …), or with *See*.

    Those of attributes count: a string after an assignment in a module, a class or a function.
    """
    return [
        f"{where}: docstring begins {docstring.split()[0]!r}; use a verb or a noun phrase"
        for where, docstring in (*_docstrings(source), *_attribute_docstrings(source))
        if _CLAUSE.match(docstring)
    ]


def complaints_about_short_docstrings(source: Source) -> list[str]:
    """Complain about docstrings of fewer than three words."""
    return [
        f"{where}: docstring {docstring!r} says too little"
        for where, docstring in _docstrings(source)
        if len(docstring.split()) < DOCSTRING_WORDS_MIN
    ]


def complaints_about_uncommented_complexity(sources: Iterable[Source]) -> list[str]:
    """Complain about functions with a complexity above ten (McCabe, as ruff counts it) without a comment inside."""
    by_path = {source.path: source for source in sources}
    complaints = []
    for path, line, name in _complex_functions(sorted(by_path)):
        source = by_path[path]
        first, last = _extent(source, line)
        if not any(first <= comment <= last for comment in _comment_lines(source)):
            complaints.append(f"{path}:{line}: {name} has no comment that says why it is right")
    return complaints


def complaints_about_unexplained_exceptions(source: Source) -> list[str]:
    """Complain about exceptions from a rule without their reason: a comment on the line itself or right above it.

    These are `type: ignore`, `noqa`, a bare NotImplementedError, and the import of a private module or name.
    """
    exceptions = {
        token.start[0]: match[1]
        for token in _comments(source)
        if (match := _SUPPRESSION.match(token.string)) and not match[2].strip()
    }
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.unparse(node):
            exceptions.setdefault(node.lineno, "NotImplementedError")
        if isinstance(node, ast.Import | ast.ImportFrom) and _takes_private(node):
            exceptions.setdefault(node.lineno, "a private import")
    explained = _comment_lines(source)
    explained |= {token.start[0] for token in _comments(source) if _is_explained(token.string)}
    return [
        f"{source.path}:{line}: {name} without its reason, on the line or above it"
        for line, name in sorted(exceptions.items())
        if not {line, line - 1} & explained
    ]


def _docstrings(source: Source) -> Iterator[tuple[str, str]]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring is not None:
                yield f"{source.path}:{getattr(node, 'lineno', 1)}", docstring


def _attribute_docstrings(source: Source) -> Iterator[tuple[str, str]]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for assigned, following in pairwise(node.body):
                if not isinstance(assigned, ast.Assign | ast.AnnAssign) or not isinstance(following, ast.Expr):
                    continue
                text = following.value
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    yield f"{source.path}:{following.lineno}", inspect.cleandoc(text.value)


def _is_explained(comment: str) -> bool:
    match = _SUPPRESSION.match(comment)
    return match is not None and bool(match[2].strip())


def _takes_private(node: ast.Import | ast.ImportFrom) -> bool:
    modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    parts = (part for name in [*modules, *(alias.name for alias in node.names)] for part in name.split("."))
    return any(part.startswith("_") and not part.startswith("__") for part in parts)


def _complex_functions(paths: list[str]) -> Iterator[tuple[str, int, str]]:
    if not paths:
        return
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--ignore-noqa", "--no-cache", "--select", "C901"]
    limit = ["--config", f"lint.mccabe.max-complexity={COMPLEXITY_WITHOUT_COMMENT_MAX}", "--output-format", "json"]
    ran = subprocess.run([*ruff, *limit, *paths], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    for found in json.loads(ran.stdout):
        path = Path(found["filename"]).resolve().relative_to(ROOT).as_posix()
        yield path, found["location"]["row"], found["message"]


def _extent(source: Source, line: int) -> tuple[int, int]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno == line:
            return line, node.end_lineno or line
    raise AssertionError(f"{source.path}:{line}: no function begins here")


def _comments(source: Source) -> list[tokenize.TokenInfo]:
    tokens = tokenize.generate_tokens(StringIO(source.text).readline)
    return [token for token in tokens if token.type == tokenize.COMMENT]


def _comment_lines(source: Source) -> set[int]:
    """Return the lines with a comment in words, which neither suppresses a rule nor is a ruler."""
    return {
        token.start[0] for token in _comments(source) if not re.match(r"#\s*(?:type: ignore|noqa|--)", token.string)
    }


def _main(arguments: list[str]) -> int:
    files = [path for name in arguments for path in _files(ROOT / name)]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}
    sources = [Source(path, text) for path, text in texts.items() if path.endswith(".py")]
    complaints = [each for path, text in texts.items() for each in complaints_about_words(path, text)]
    complaints += [each for path, text in texts.items() for each in complaints_about_persons_in_names(path, text)]
    for source in sources:
        complaints += complaints_about_first_words(source) + complaints_about_short_docstrings(source)
        complaints += complaints_about_coined_names(source)
    complaints += complaints_about_uncommented_complexity(sources)
    sys.stdout.write("".join(f"{complaint}\n" for complaint in complaints))
    return 1 if complaints else 0


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(each for each in path.rglob("*") if each.suffix in TEXT_SUFFIXES)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
