"""The shape of files: how long they are, what they export, what their docstrings say, what must not be left in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from tidy_sources import Source

__all__ = [
    "FILE_LINES_AIM",
    "FILE_LINES_MAX",
    "FUNCTION_LINES_MAX",
    "HEADINGS",
    "complaints_about_docstring",
    "complaints_about_exports",
    "complaints_about_headings",
    "complaints_about_leftovers",
    "complaints_about_length",
    "complaints_about_private_imports",
    "complaints_about_untested_errors",
]

FILE_LINES_AIM = 400
FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 70
RATCHET_SLACK = 10

HEADINGS = (
    "Problem",
    "Idea",
    "Invariants",
    "Tolerates",
    "Does not tolerate",
    "Workloads",
    "Checkers",
    "Planted bugs",
)
"""The headings in the docstring of every pattern module, in this order; the catalogue is made from them."""

# Put together from halves, so that this file does not complain about itself.
LEFTOVERS = re.compile("|".join(rf"\b{word}\b" for word in ("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")))

# -- length ---------------------------------------------------------------------------------------------------------


def complaints_about_length(source: Source, tolerated: Mapping[str, int]) -> list[str]:
    """Files and functions that are too long, measured against the limits and the ratchet of tolerated excesses.

    `tolerated` maps a path, or `path::function`, to the lines it may have. Nothing may grow past its entry; once it is
    clearly shorter, the entry has to follow, so that the ratchet only ever gets tighter.
    """
    measured: dict[str, tuple[int, int, int | None]] = {
        source.path: (source.line_count, FILE_LINES_AIM, FILE_LINES_MAX)
    }
    for name, lines in _function_lines(source.tree.body):
        measured[f"{source.path}::{name}"] = (lines, FUNCTION_LINES_MAX, None)
    complaints = [_too_long(what, *size, tolerated.get(what)) for what, size in measured.items()]
    gone = [what for what in tolerated if what.split("::")[0] == source.path and what not in measured]
    complaints += [f"{what}: is in the ratchet but not in the code; remove the entry" for what in gone]
    return [complaint for complaint in complaints if complaint]


def _too_long(what: str, lines: int, aim: int, hard: int | None, tolerated: int | None) -> str | None:
    if hard is not None and lines > hard:
        return f"{what}: {lines} lines, and {hard} is the hard limit; split it by idea"
    if tolerated is None:
        return f"{what}: {lines} lines, the limit is {aim}; split it by idea" if lines > aim else None
    if lines > tolerated:
        return f"{what}: {lines} lines, and the ratchet tolerates {tolerated}; it may only get shorter"
    if lines <= aim:
        return f"{what}: {lines} lines, within the limit of {aim}; remove its entry from the ratchet"
    if lines < tolerated - RATCHET_SLACK:
        return f"{what}: {lines} lines, well below the {tolerated} of the ratchet; tighten the entry"
    return None


def _function_lines(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, int]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _function_lines(node.body, f"{prefix}{node.name}.")


# -- exports --------------------------------------------------------------------------------------------------------


def complaints_about_exports(source: Source) -> list[str]:
    """`__all__` against what is public: every function and class whose name has no underscore, and only what exists."""
    exported = _declared_exports(source.tree)
    public = _public_definitions(source.tree)
    if exported is None:
        return [f"{source.path}: defines {', '.join(sorted(public))} but no __all__"] if public else []
    bound = public | _assigned_names(source.tree) | _imported_names(source.tree)
    complaints = [f"{source.path}: `{name}` is public but not in __all__" for name in sorted(public - exported)]
    complaints += [f"{source.path}: `{name}` is in __all__ but not defined" for name in sorted(exported - bound)]
    return complaints


def complaints_about_private_imports(sources: list[Source]) -> list[str]:
    """Names that one module takes from another although they are not in its `__all__`."""
    exports = {source.module: _declared_exports(source.tree) for source in sources}
    complaints = []
    for source in sources:
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.ImportFrom) or node.module not in exports:
                continue
            allowed = (exports[node.module] or set()) | {
                alias.name for alias in node.names if _is_module(node, alias, exports)
            }
            names = [alias.name for alias in node.names if alias.name not in allowed]
            complaints += [
                f"{source.path}:{node.lineno}: `{name}` is not in __all__ of {node.module}" for name in names
            ]
    return complaints


def _is_module(node: ast.ImportFrom, alias: ast.alias, exports: Mapping[str, object]) -> bool:
    return f"{node.module}.{alias.name}" in exports


def _declared_exports(tree: ast.Module) -> set[str] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return {str(name) for name in ast.literal_eval(node.value)}
    return None


def _public_definitions(tree: ast.Module) -> set[str]:
    definitions = (
        node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    )
    return {node.name for node in definitions if not node.name.startswith("_")}


def _assigned_names(tree: ast.Module) -> set[str]:
    stored = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return {node.id for node in stored}


def _imported_names(tree: ast.Module) -> set[str]:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return {alias.asname or alias.name for node in imports for alias in node.names}


# -- words ----------------------------------------------------------------------------------------------------------


def complaints_about_docstring(source: Source) -> list[str]:
    """A module without a docstring. The empty `__init__` of a plain folder needs none."""
    if not source.tree.body or ast.get_docstring(source.tree):
        return []
    return [f"{source.path}: has no module docstring"]


def complaints_about_headings(source: Source) -> list[str]:
    """Headings that the docstring of a pattern module lacks or has out of order."""
    docstring = ast.get_docstring(source.tree) or ""
    found = [(match.start() if (match := _heading(heading).search(docstring)) else None) for heading in HEADINGS]
    missing = [heading for heading, place in zip(HEADINGS, found, strict=True) if place is None]
    if missing:
        return [f"{source.path}: its docstring lacks the headings {', '.join(missing)}"]
    places = [place for place in found if place is not None]
    return (
        [] if places == sorted(places) else [f"{source.path}: the headings are not in the order {', '.join(HEADINGS)}"]
    )


def _heading(heading: str) -> re.Pattern[str]:
    """A heading begins a line, emphasised or not; a colon, a full stop, a remark or the line's end follows it."""
    return re.compile(rf"^[ *_#-]*{heading}\b[ *_]*(?:[.:(–-]|$)", re.MULTILINE)


def complaints_about_leftovers(path: str, text: str) -> list[str]:
    """Marks that people leave where something is unfinished."""
    lines = enumerate(text.splitlines(), start=1)
    return [f"{path}:{number}: {match[0]} left over" for number, line in lines if (match := LEFTOVERS.search(line))]


# -- errors ---------------------------------------------------------------------------------------------------------


def complaints_about_untested_errors(library: list[Source], tests: list[Source]) -> list[str]:
    """Exception classes of the library that no test expects with `pytest.raises`. Bases of others are exempt."""
    defined = {node.name: source.path for source in library for node in _errors(source)}
    bases = {base for source in library for node in _errors(source) for base in _bases(node)}
    expected = {name for source in tests for node in ast.walk(source.tree) for name in _expected_errors(node)}
    missing = sorted(name for name in defined if name not in bases and name not in expected)
    return [f"{defined[name]}: no test expects {name} with pytest.raises" for name in missing]


def _errors(source: Source) -> list[ast.ClassDef]:
    classes = (node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef))
    return [node for node in classes if any(base.endswith(("Error", "Exception")) for base in _bases(node))]


def _bases(node: ast.ClassDef) -> list[str]:
    return [base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases]


def _expected_errors(node: ast.AST) -> list[str]:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "raises"):
        return []
    names = (part for argument in node.args for part in ast.walk(argument))
    return [part.id if isinstance(part, ast.Name) else getattr(part, "attr", "") for part in names]
