"""The project's own source files, parsed once, as the tidy rules look at them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

__all__ = ["CODE_FOLDERS", "ROOT", "TEXT_SUFFIXES", "Source", "python_sources", "text_files"]

ROOT = Path(__file__).resolve().parents[2]
CODE_FOLDERS = ("faultline", "tests", "tools", "benchmarks", "examples")
TEXT_SUFFIXES = (".py", ".md", ".toml", ".sh", ".txt", ".c", ".h", ".html", ".css", ".js", ".jinja", ".j2")


@dataclass(frozen=True)
class Source:
    """One Python file: its path within the repository and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file."""
        return ast.parse(self.text, self.path)

    @property
    def module(self) -> str:
        """The dotted name under which the file is imported."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def is_package(self) -> bool:
        """True for the `__init__` of a package."""
        return self.path.endswith("/__init__.py")

    @property
    def line_count(self) -> int:
        """Lines of the file."""
        return len(self.text.splitlines())


def python_sources(*folders: str, root: Path = ROOT) -> list[Source]:
    """Every Python file under `folders` of the repository, sorted by path."""
    paths = sorted(path for folder in folders for path in (root / folder).rglob("*.py"))
    return [Source(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def text_files(root: Path = ROOT) -> Iterator[Path]:
    """Every file that people write in: code, documents, tables, templates."""
    for folder in (*CODE_FOLDERS, "docs"):
        yield from (path for path in sorted((root / folder).rglob("*")) if path.suffix in TEXT_SUFFIXES)
    yield from (path for path in sorted(root.glob("*")) if path.suffix in TEXT_SUFFIXES or path.name == "Makefile")
