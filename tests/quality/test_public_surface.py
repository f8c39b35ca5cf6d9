"""The names that users may rely on: exported, documented, and enough for what the docs and examples write."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDED: dict[str, list[str]] = json.loads((ROOT / "tests" / "data" / "public_names.json").read_text("utf-8"))
"""The exported names when the list was last changed on purpose. A name leaves it with a line in the changelog only."""

BLOCK = re.compile(r"^```python$(.*?)^```$", re.MULTILINE | re.DOTALL)


def texts_of_users() -> Iterator[tuple[str, str]]:
    """Code as users write it: examples, skeletons, and the Python blocks of the docs."""
    for path in sorted((ROOT / "examples").rglob("*.py")):
        yield str(path.relative_to(ROOT)), path.read_text("utf-8")
    for path in sorted((ROOT / "docs").rglob("*.md")):
        for block in BLOCK.findall(path.read_text("utf-8")):
            yield str(path.relative_to(ROOT)), block
    for path in sorted((ROOT / "faultline" / "cli" / "skeleton").rglob("*.py.template")):
        lines = [line for line in path.read_text("utf-8").splitlines() if line.startswith("from faultline")]
        yield str(path.relative_to(ROOT)), "\n".join(lines)


def names_taken(text: str) -> Iterator[tuple[str, str]]:
    """Each module of Faultline and the name that `text` imports from it; blocks that are no module take none."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "faultline":
            yield from ((str(node.module), alias.name) for alias in node.names)


@pytest.mark.parametrize("package", RECORDED)
def test_a_package_exports_what_was_promised_and_each_name_says_what_it_is(package: str) -> None:
    module = importlib.import_module(package)
    assert sorted(module.__all__) == RECORDED[package], "added: extend tests/data/public_names.json; removed: do not"
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), name


def test_a_name_that_is_not_exported_is_an_attribute_error() -> None:
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        exec("from faultline import Nothing")


def test_examples_skeletons_and_docs_need_nothing_but_public_names() -> None:
    private = [
        f"{where}: from {module} import {name}"
        for where, text in texts_of_users()
        for module, name in names_taken(text)
        if name not in RECORDED.get(module, [])
    ]
    assert private == []
