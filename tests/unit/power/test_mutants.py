"""Mutants: each operator changes what it says, ids do not move with lines, and what only reports is left alone."""

from __future__ import annotations

import ast

import pytest

from faultline.power.modules import group_of, modules_of
from faultline.power.mutants import EMPTY_FUNCTION, MARKER, OPERATORS, marked_tree, mutants_of, mutated_tree
from faultline.registry import load_system, systems

CODE = """
class Node:
    def handle(self, message):
        if message.old:
            return
        self.log.append(message)
        self.send_all(message)
        self.timer.cancel()
        self.newest = message
        if self.count < 3 and message.key == self.key:
            self.next = max(self.count + 1, message.count)
"""

EXPECTED = {
    "drop-guard": ["if message.old: return → if message.old: pass"],
    "drop-persist": ["self.log.append(message) → (nothing)"],
    "drop-send": ["self.send_all(message) → (nothing)"],
    "drop-reset": ["self.timer.cancel() → (nothing)"],
    "drop-assignment": [
        "self.newest = message → (nothing)",
        "self.next = max(self.count + 1, message.count) → (nothing)",
    ],
    "shift-comparison": ["self.count < 3 → self.count <= 3"],
    "invert-comparison": ["message.key == self.key → message.key != self.key"],
    "drop-operand": [
        "self.count < 3 and message.key == self.key → message.key == self.key",
        "self.count < 3 and message.key == self.key → self.count < 3",
    ],
    "swap-extremum": ["max(self.count + 1, message.count) → min(self.count + 1, message.count)"],
    "off-by-one": ["self.count + 1 → self.count"],
}


def test_each_operator_changes_its_places_and_no_others():
    found: dict[str, list[str]] = {}
    for mutant in mutants_of(CODE, "node"):
        found.setdefault(mutant.operator, []).append(mutant.diff)
    assert found == EXPECTED
    assert set(found) == set(OPERATORS)


def test_ids_stay_when_lines_move_and_other_code_changes():
    moved = CODE.replace("class Node:", "import os\n\n\nclass Other:\n    pass\n\n\nclass Node:").replace(
        "        self.send_all(message)", "        # A remark.\n        self.send_all( message )"
    )
    before, after = mutants_of(CODE, "node"), mutants_of(moved, "node")
    assert [mutant.id for mutant in before] == [mutant.id for mutant in after]
    assert all(old.line < new.line for old, new in zip(before, after, strict=True))


def test_equal_changes_in_one_function_have_different_ids():
    code = "def handle(self):\n    self.log.flush()\n    self.log.flush()\n"
    first, second = mutants_of(code, "node")
    assert first.id != second.id
    assert first.id.removesuffix(":0") == second.id.removesuffix(":1")


@pytest.mark.parametrize("mutant", mutants_of(CODE, "node"), ids=lambda mutant: mutant.diff)
def test_a_mutated_tree_differs_in_one_place_which_calls_the_marker(mutant):
    changed = ast.unparse(mutated_tree(CODE, mutant))
    assert changed.count(MARKER) == 1
    assert changed != ast.unparse(ast.parse(CODE))


MARKED = """
def handle(old, count, log):
    if old:
        return "refused"
    log.append(count + 1)
    if count < 3 and count != 1:
        log[0] = max(count, 0)
        del log[1:]
    return log
"""


@pytest.mark.parametrize(
    ("arguments", "returned", "reached"),
    [
        ((True, 0, []), "refused", {"drop-guard"}),
        ((False, 3, []), [4], {"drop-persist", "off-by-one", "drop-operand", "shift-comparison"}),
        (
            (False, 2, [9, 9]),
            [2],
            {
                "drop-persist",
                "off-by-one",
                "drop-operand",
                "shift-comparison",
                "invert-comparison",
                "drop-assignment",
                "swap-extremum",
                "drop-reset",
            },
        ),
    ],
)
def test_marked_code_does_what_it_did_and_names_the_places_that_it_came_to(arguments, returned, reached):
    reached_ids = []
    names = {MARKER: lambda mutant_id, value=True: (reached_ids.append(mutant_id), value)[1]}
    exec(compile(marked_tree(MARKED, "node"), "node", "exec"), names)
    by_id = {mutant.id: mutant.operator for mutant in mutants_of(MARKED, "node")}
    assert len(by_id) == 10
    assert names["handle"](*arguments) == returned
    assert {by_id[each] for each in reached_ids} == reached


@pytest.mark.parametrize(
    "code",
    [
        "def handle(self):\n    self.ports.trace.emit(Stored(self.count + 1))\n",
        "def handle(self):\n    self._trace.sometimes('late')\n",
        "def handle(self):\n    assert self.count < 3\n",
        "def handle(self):\n    raise ValueError(f'{self.count + 1}')\n",
        "class Node:\n    def __init__(self):\n        self.count = 0\n",
        "class OneLeader:\n    def observe(self, time, node, event, report):\n        self.leader = node\n",
        "@BUGS.plant('forgets', 'X-1', part='log')\nclass _Forgets:\n    def flush(self):\n        self.dirty = True\n",
        "class Store:\n    def not_promised(self, asked):\n        return asked.nodes < 3\n",
        "count = 1 + 1\n",
    ],
)
def test_what_reports_declares_or_constructs_is_left_as_it_is(code):
    assert mutants_of(code, "node", system_class="Store") == []


def test_a_thorough_choice_empties_functions_and_changes_invariants_but_nothing_that_declares():
    code = (
        "class OneLeader:\n    def __init__(self):\n        self.count = 1 + 1\n"
        "    def observe(self, event):\n        self.leader = event\n"
        "@BUGS.plant('forgets', 'X-1')\nclass _Forgets:\n    def flush(self):\n        self.dirty = self.count\n"
    )
    found = [(mutant.place, mutant.operator) for mutant in mutants_of(code, "node", thorough=True)]
    assert found == [("OneLeader.observe", "drop-assignment"), ("OneLeader.observe", EMPTY_FUNCTION)]


def test_an_emptied_function_notes_that_it_was_called_and_returns_nothing():
    reached = []
    names = {MARKER: lambda mutant_id, value=True: (reached.append(mutant_id), value)[1]}
    emptied = next(each for each in mutants_of(MARKED, "node", thorough=True) if each.operator == EMPTY_FUNCTION)
    assert emptied.diff == "def handle: … → def handle: return"
    exec(compile(mutated_tree(MARKED, emptied, thorough=True), "node", "exec"), names)
    assert names["handle"](False, 0, []) is None
    assert reached == [emptied.id]


def test_a_thorough_mark_leaves_the_docstring_and_what_the_code_does():
    reached = []
    names = {MARKER: lambda mutant_id, value=True: (reached.append(mutant_id), value)[1]}
    code = MARKED.replace("    if old:", "    'Append it.'\n    if old:")
    exec(compile(marked_tree(code, "node", thorough=True), "node", "exec"), names)
    assert names["handle"](False, 3, []) == [4]
    assert names["handle"].__doc__ == "Append it."
    assert [each for each in reached if EMPTY_FUNCTION in each]


@pytest.mark.parametrize("name", ["quorum-register", "consistent-core", "transactional-kv"])
def test_only_modules_of_nodes_and_clients_are_mutated(name):
    found = modules_of(load_system(name), systems()[name])
    names = [module.name for module in found]
    assert all(each.startswith("faultline.systems_under_test.") for each in names)
    assert not [each for each in names if "planted_bugs" in each or "invariants" in each]
    assert "write-ahead-log" in {group_of(each) for each in names}
    ids = [mutant.id for module in found for mutant in mutants_of(module.text, module.name, module.system_class)]
    assert len(ids) == len(set(ids)) > 200


@pytest.mark.parametrize(
    ("module", "group"),
    [
        ("faultline.systems_under_test.patterns.data_replication.write_ahead_log", "write-ahead-log"),
        ("faultline.systems_under_test.patterns.data_replication.paxos_store", "paxos"),
        ("faultline.systems_under_test.patterns.data_replication.file_format", "file-format"),
        ("faultline.systems_under_test.reference.consistent_core.server", "consistent-core"),
        ("toy_store", "toy-store"),
    ],
)
def test_a_module_counts_for_its_pattern_of_the_catalogue_or_for_itself(module, group):
    assert group_of(module) == group


def test_a_plug_in_is_mutated_in_its_own_package():
    found = modules_of(load_system("toy"), systems()["toy"])
    assert [module.name for module in found] == ["toy_store"]
    assert {mutant.place.partition(".")[0] for mutant in mutants_of(found[0].text, "toy_store", "Toy")} == {
        "ToyNode",
        "ToyClient",
        "ForgetfulNode",
    }
