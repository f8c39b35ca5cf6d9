"""Systems declare what their nodes and clients can mark: all of it, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

import faultline
from faultline.campaign.engine import default_engine
from faultline.campaign.planfile import load_plan, shipped_plans
from faultline.harness.feature import features_of, possible_features
from faultline.harness.options import all_options
from faultline.harness.run import run_simulated
from faultline.registry import fault_marks, load_system, stores, systems

PACKAGE = Path(faultline.__file__).parent

COLLECTING = {"collected-entries-differed", "entries-stamped-anew"}
OTHER_LOGS_AND_ELECTIONS = COLLECTING | {
    "commands-batched",
    "fetch-diverged",
    "follower-brought-in-line",
    "leader-key-expired",
    "lease-expired-read-refused",
    "old-round-vote-answered",
    "promise-of-a-longer-log-not-counted",
    "settled-leader-joined",
}
LEADER_KEYS = {
    "leader-key-given-back",
    "leader-key-gone-when-read",
    "leader-key-lost",
    "leader-key-not-refreshed",
    "own-leader-key-of-before-given-back",
}
UNUSED = {
    "coordination-service": OTHER_LOGS_AND_ELECTIONS | LEADER_KEYS,
    "follower-reads": OTHER_LOGS_AND_ELECTIONS | LEADER_KEYS,
    "partitioned-kv": OTHER_LOGS_AND_ELECTIONS
    | LEADER_KEYS
    | {"sessions-expired", "expired-session-refused", "discarded-request-refused"},
    "coordinated-kv": OTHER_LOGS_AND_ELECTIONS | LEADER_KEYS,
    "transactional-kv": COLLECTING | {"commands-batched", "lease-expired-read-refused"},
}
"""Marks in modules that a system imports for something else: it builds nothing that reaches them."""


# -- what the code can mark -------------------------------------------------------------------------------------------


@cache
def tree_of(module: str) -> ast.Module | None:
    path = PACKAGE.parent / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text("utf-8")) if file.is_file() else None


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and ".systems_under_test" in node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def closure(module: str) -> set[str]:
    """The modules of systems that `module` imports, and those that these import."""
    seen, left = set[str](), [module]
    while left:
        name = left.pop()
        tree = tree_of(name)
        if name not in seen and tree is not None:
            seen.add(name)
            left += imported(tree)
    return seen


def patterns(argument: ast.expr, tree: ast.Module) -> set[str]:
    """The marks that an argument of `sometimes` can be; `*` stands for what is known only when it is called."""
    if isinstance(argument, ast.Constant):
        return {str(argument.value)}
    if isinstance(argument, ast.IfExp):
        return patterns(argument.body, tree) | patterns(argument.orelse, tree)
    if isinstance(argument, ast.JoinedStr):
        return {"".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in argument.values)}
    assert isinstance(argument, ast.Subscript) and isinstance(argument.value, ast.Name), ast.unparse(argument)
    return values_of(argument.value.id, tree)


def values_of(name: str, tree: ast.Module) -> set[str]:
    """The values of the module's dictionary `name`."""
    (table,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name
    )
    assert isinstance(table, ast.Dict)
    return {str(ast.literal_eval(value)) for value in table.values}


def marks_in(module: str) -> set[str]:
    tree = tree_of(module)
    assert tree is not None
    calls = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sometimes"
    )
    return {mark for call in calls for mark in patterns(call.args[0], tree)}


def fits(name: str, known: set[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in known)


@pytest.mark.slow
@pytest.mark.parametrize("name", systems())
def test_a_system_declares_what_its_code_can_mark_and_nothing_else(name: str) -> None:
    found = {mark for module in closure(systems()[name].partition(":")[0]) for mark in marks_in(module)}
    unused = UNUSED.get(name, set())
    declared = {feature.name for feature in features_of(load_system(name))}
    unreachable = {mark for mark in declared if fits(mark, unused)}
    undeclared = {mark for mark in found if not fits(mark, unused) and not any(fits(each, {mark}) for each in declared)}
    assert (undeclared, unreachable) == (set(), set())
    assert {mark for mark in declared if not fits(mark, found)} == set(), "nothing marks these"
    assert {pattern for pattern in unused if not any(fits(mark, {pattern}) for mark in found)} == set(), "needless"


@pytest.mark.parametrize("name", systems() | stores())
def test_features_are_declared_once_in_words_with_options_that_there_are(name: str) -> None:
    system = load_system(name)
    features, options = features_of(system), all_options(system)
    assert len({feature.name for feature in features}) == len(features) > 0
    assert fault_marks().isdisjoint(feature.name for feature in features)
    for feature in features:
        assert feature.summary and not feature.summary.endswith(".")
        for option, value in {**feature.needs, **feature.unless}.items():
            choices = options[option].choices
            assert value in choices or not choices, f"{feature.name}: {option}={value}"
        assert bool(feature.log) is (name in stores()), "lines of logs tell of stores, and of nothing else"


# -- what runs do mark ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped_plans())
def test_runs_mark_only_features_that_their_options_make_possible(name: str) -> None:
    plan, of_faults = load_plan(name), fault_marks()
    engine = default_engine("simulated")
    for cell in plan.cells():
        request = plan.request(cell, plan.seed_range().start)
        parts = engine.resolve(request)
        planned = engine.plan(request, parts)
        possible = {feature.name for feature in possible_features(parts.system, planned.options)}
        assert set(run_simulated(planned, parts).marks) - of_faults <= possible, cell.name
