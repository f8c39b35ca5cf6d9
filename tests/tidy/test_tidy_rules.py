"""Each tidy rule can say no: one thing it refuses and one that it lets pass."""

from __future__ import annotations

from textwrap import dedent

import pytest
from tidy_bans import (
    BANNED_EVERYWHERE,
    BANNED_IN_PLANS,
    BANNED_IN_WORLDS,
    complaints_about_names,
    complaints_about_sets,
)
from tidy_closure import closure, complaints_about_foreign_packages
from tidy_imports import complaints_about_cycles, complaints_about_direction, read_import_table
from tidy_shape import (
    FILE_LINES_AIM,
    FILE_LINES_MAX,
    FUNCTION_LINES_MAX,
    HEADINGS,
    complaints_about_docstring,
    complaints_about_exports,
    complaints_about_headings,
    complaints_about_leftovers,
    complaints_about_length,
    complaints_about_private_imports,
    complaints_about_untested_errors,
)
from tidy_sources import Source

TABLE = {"harness": frozenset[str](), "nemesis": frozenset({"harness"})}


def source(text: str, path: str = "faultline/nemesis/partition.py") -> Source:
    return Source(path, dedent(text))


# -- imports --------------------------------------------------------------------------------------------------------


def test_the_import_table_is_read_from_markdown() -> None:
    rows = [
        "| room | may import | note |",
        "|---|---|---|",
        "| `harness` | | x |",
        "| `cli` | `harness` `nemesis` | y |",
    ]
    markdown = "\n".join(["# Title", "", *rows, "", "| `other` | `table` |"])
    assert read_import_table(markdown) == {"harness": frozenset(), "cli": frozenset({"harness", "nemesis"})}


def test_a_room_within_a_room_has_rules_of_its_own() -> None:
    table = {"harness": frozenset[str](), "harness.world.hosts": frozenset({"harness"}), "cli": frozenset({"harness"})}
    below = Source("faultline/harness/run.py", "import faultline.harness.world.hosts.run")
    above = Source("faultline/harness/world/hosts/run.py", "import faultline.harness.run")
    beside = Source("faultline/cli/run.py", "import faultline.harness.world.hosts.run\nimport faultline.harness.run")
    (first, second) = complaints_about_direction([below, above, beside], table)
    assert "run.py:1: `harness` imports faultline.harness.world.hosts.run; it may import no other room" in first
    assert "`cli` imports faultline.harness.world.hosts.run; it may import harness" in second


def test_a_document_without_the_table_is_refused() -> None:
    with pytest.raises(AssertionError, match="no table"):
        read_import_table("| room | note |\n|---|---|\n")


@pytest.mark.parametrize(
    "statement",
    [
        "from faultline.nemesis.partition import Cut",
        "import faultline.nemesis.partition",
        "from faultline import nemesis",
        "from ..nemesis import partition",
        "def f():\n    from faultline.nemesis import partition",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from faultline.nemesis import partition",
    ],
)
def test_an_upward_import_is_refused_however_it_is_written(statement: str) -> None:
    sources = [
        Source("faultline/harness/run.py", statement),
        Source("faultline/nemesis/__init__.py", ""),
        Source("faultline/nemesis/partition.py", ""),
    ]
    (complaint,) = complaints_about_direction(sources, TABLE)
    assert "faultline/harness/run.py" in complaint
    assert "no other room" in complaint


def test_a_downward_import_and_the_package_itself_are_allowed() -> None:
    text = "import json\nfrom faultline import __version__\nfrom faultline.harness.errors import UsageError"
    assert complaints_about_direction([Source("faultline/nemesis/kill.py", text)], TABLE) == []


def test_a_room_that_the_table_does_not_know_is_refused() -> None:
    (complaint,) = complaints_about_direction([Source("faultline/attic/junk.py", "")], TABLE)
    assert "attic" in complaint


def test_a_circle_of_imports_is_found_also_through_a_function() -> None:
    first = Source("faultline/harness/a.py", "from faultline.harness.b import f")
    second = Source("faultline/harness/b.py", "def f():\n    from faultline.harness import a")
    (complaint,) = complaints_about_cycles([first, second])
    assert "faultline.harness.a" in complaint
    assert complaints_about_cycles([first, Source("faultline/harness/b.py", "def f(): ...")]) == []


REFERENCE = "faultline/systems_under_test/reference"


def test_a_closure_follows_imports_but_not_those_of_a_type_checker() -> None:
    texts = {
        f"{REFERENCE}/tiny/node.py": "from faultline.systems_under_test.reference.shared.table import Table",
        f"{REFERENCE}/shared/table.py": """
            from faultline.harness.plan import Plan
            from faultline.systems_under_test.reference.shared import rows
            if TYPE_CHECKING:
                from faultline.systems_under_test.reference.shared.types import Row
        """,
        f"{REFERENCE}/shared/rows.py": "",
        f"{REFERENCE}/shared/types.py": "",
    }
    sources = {each.module: each for each in (source(dedent(text), path) for path, text in texts.items())}
    node = "faultline.systems_under_test.reference.tiny.node"
    assert {module.rpartition(".")[2] for module in closure(node, sources)} == {"node", "table", "rows"}


def test_a_system_that_imports_another_ones_folder_is_refused() -> None:
    texts = {
        f"{REFERENCE}/tiny/system.py": "from faultline.systems_under_test.reference.other.client import Client",
        f"{REFERENCE}/other/system.py": "from faultline.systems_under_test.reference.other.client import Client",
        f"{REFERENCE}/other/client.py": "from faultline.systems_under_test.reference.shared.table import Table",
        f"{REFERENCE}/shared/table.py": "",
    }
    [complaint] = complaints_about_foreign_packages([source(text, path) for path, text in texts.items()])
    assert complaint.startswith(
        f"{REFERENCE}/tiny/system.py: takes faultline.systems_under_test.reference.other.client"
    )


# -- banned names ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "replacement"),
    [
        ("import time\ndef f(): return time.time()", "clock port"),
        ("from time import monotonic as now\ndef f(): return now()", "clock port"),
        ("import asyncio\nasync def f(): await asyncio.sleep(1)", "timers port"),
        ("import random\ndef f(): return random.random()", "random port"),
        ("from random import Random\nrng = Random(7)", "random port"),
        ("import uuid\ndef f(): return uuid.uuid4()", "derived from the seed"),
        ("import os\ndef f(): return os.urandom(8)", "hash of the seed"),
        ("from datetime import datetime\ndef f(): return datetime.now()", "clock port"),
        ("def f(key): return hash(key) % 7", "hashlib"),
        ("def f(node): return id(node)", "derived from the seed"),
        ("import time\ndef f(clock=time.monotonic): ...", "clock port"),
    ],
)
def test_code_inside_a_world_may_not_ask_the_machine(text: str, replacement: str) -> None:
    complaints = complaints_about_names(source(text), BANNED_IN_WORLDS)
    assert any(replacement in complaint for complaint in complaints), complaints


def test_planning_code_may_use_a_seeded_generator_but_not_the_shared_one() -> None:
    assert complaints_about_names(source("from random import Random\nrng = Random(7)"), BANNED_IN_PLANS) == []
    (complaint,) = complaints_about_names(source("import random\nx = random.choice([1, 2])"), BANNED_IN_PLANS)
    assert "random.choice" in complaint


def test_names_that_only_look_banned_are_allowed() -> None:
    text = (
        "class Lease:\n    time: int\ndef f(lease, id, hash): return lease.time, id, hash, lease.random.uniform_us('a')"
    )
    assert complaints_about_names(source(text), BANNED_IN_WORLDS) == []


def test_library_code_may_not_print() -> None:
    (complaint,) = complaints_about_names(source("print('hello')"), BANNED_EVERYWHERE)
    assert "programs alone" in complaint
    assert complaints_about_names(source("def f(print): print('hello')"), BANNED_EVERYWHERE) == []


# -- sets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "for node in {'a', 'b'}: ...",
        "for node in set(nodes): ...",
        "names = [node for node in frozenset(nodes)]",
        "names = list({node for node in nodes})",
        "def f(nodes: set[str]):\n    for node in nodes: ...",
        "class N:\n    def start(self): self.votes: set[str] = set()\n    def f(self): return tuple(self.votes)",
        "votes = set()\ndef f(): return ', '.join(votes)",
        "for node in a.keys() - b.keys(): ...",
        "first = next(iter(set(nodes)))",
        "send(*{1, 2})",
        "votes = set()\nvotes.pop()",
    ],
)
def test_an_order_taken_from_a_set_is_refused(text: str) -> None:
    (complaint,) = complaints_about_sets(source(text))
    assert "sorted" in complaint


@pytest.mark.parametrize(
    "text",
    [
        "for node in sorted({'a', 'b'}): ...",
        "def f(votes: set[str]): return 'a' in votes and len(votes) > 1",
        "def f(votes: set[str]): return all(vote for vote in votes)",
        "def f(nodes: set[str]): return {node for node in nodes}",
        "for node in ['a', 'b']: ...",
        "for key in table.keys(): ...",
        "pending = {}\npending.pop('a')",
    ],
)
def test_using_a_set_without_its_order_is_allowed(text: str) -> None:
    assert complaints_about_sets(source(text)) == []


# -- length ---------------------------------------------------------------------------------------------------------

PATH = "faultline/nemesis/partition.py"


def lines(count: int) -> Source:
    return Source(PATH, "x = 1\n" * count)


def function_of(count: int) -> Source:
    return Source(PATH, "class Cut:\n    def start(self):\n" + "        x = 1\n" * (count - 1))


def test_a_file_over_the_limit_is_refused_unless_the_ratchet_tolerates_it() -> None:
    too_long = lines(FILE_LINES_AIM + 1)
    assert complaints_about_length(lines(FILE_LINES_AIM), {}) == []
    assert len(complaints_about_length(too_long, {})) == 1
    assert complaints_about_length(too_long, {PATH: FILE_LINES_AIM + 1}) == []


def test_no_ratchet_tolerates_a_file_over_the_hard_limit() -> None:
    (complaint,) = complaints_about_length(lines(FILE_LINES_MAX + 1), {PATH: FILE_LINES_MAX + 1})
    assert "hard limit" in complaint


def test_a_function_over_the_limit_is_refused_by_name() -> None:
    assert complaints_about_length(function_of(FUNCTION_LINES_MAX), {}) == []
    (complaint,) = complaints_about_length(function_of(FUNCTION_LINES_MAX + 1), {})
    assert f"{PATH}::Cut.start" in complaint


def test_the_ratchet_only_gets_tighter() -> None:
    long = lines(FILE_LINES_AIM + 50)
    assert "may only get shorter" in complaints_about_length(long, {PATH: FILE_LINES_AIM + 49})[0]
    assert "tighten" in complaints_about_length(long, {PATH: FILE_LINES_AIM + 90})[0]
    assert "remove its entry" in complaints_about_length(lines(3), {PATH: FILE_LINES_AIM + 90})[0]
    assert "not in the code" in complaints_about_length(lines(3), {f"{PATH}::gone": 90})[0]


# -- exports, docstrings, leftovers, errors -------------------------------------------------------------------------


def test_exports_must_be_what_is_public() -> None:
    text = (
        "from json import dumps\n__all__ = ['LIMIT', 'dumps', 'f']\nLIMIT = 3\n_hidden = 4\ndef f(): ...\ndef _g(): ..."
    )
    assert complaints_about_exports(source(text)) == []
    assert "`f` is public" in complaints_about_exports(source("__all__ = []\ndef f(): ..."))[0]
    assert "`gone` is in __all__" in complaints_about_exports(source("__all__ = ['gone']"))[0]
    assert "no __all__" in complaints_about_exports(source("def f(): ..."))[0]
    assert complaints_about_exports(source("'''Only words.'''")) == []


def test_what_other_modules_take_must_be_exported() -> None:
    plan = Source("faultline/harness/plan.py", "__all__ = ['Plan']\nclass Plan: ...\nLIMIT = 3")
    package = Source("faultline/harness/__init__.py", "")
    user = "from faultline.harness import plan\nfrom faultline.harness.plan import Plan"
    assert complaints_about_private_imports([plan, package, source(user)]) == []
    (complaint,) = complaints_about_private_imports([plan, source("from faultline.harness.plan import LIMIT")])
    assert "`LIMIT` is not in __all__" in complaint


def test_a_module_needs_a_docstring_but_an_empty_package_does_not() -> None:
    assert len(complaints_about_docstring(source("x = 1"))) == 1
    assert complaints_about_docstring(source("'''Says what it is for.'''\nx = 1")) == []
    assert complaints_about_docstring(source("", "faultline/nemesis/__init__.py")) == []


def test_a_pattern_module_needs_all_headings_in_order() -> None:
    complete = [f"*{heading}.* Words about it." for heading in HEADINGS]
    docstring = '"""A pattern.\n\n{}\n"""'
    assert complaints_about_headings(source(docstring.format("\n\n".join(complete)))) == []
    assert "Planted bugs" in complaints_about_headings(source(docstring.format("\n\n".join(complete[:-1]))))[0]
    assert "not in the order" in complaints_about_headings(source(docstring.format("\n\n".join(reversed(complete)))))[0]
    # "Tolerates" must not be found in the middle of a sentence.
    mentioned = [line for line in complete if not line.startswith("*Tolerates")] + ["It says what it Tolerates."]
    assert "Tolerates" in complaints_about_headings(source(docstring.format("\n\n".join(mentioned))))[0]


@pytest.mark.parametrize("mark", ["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"])
def test_marks_of_unfinished_work_are_refused(mark: str) -> None:
    assert complaints_about_leftovers("a.md", f"fine\n{mark}: later") == [f"a.md:2: {mark} left over"]
    assert complaints_about_leftovers("a.md", f"the {mark.lower()} list of a person") == []


def test_an_error_that_no_test_expects_is_found() -> None:
    library = [source("class BaseError(Exception): ...\nclass Torn(BaseError): ...\nclass Late(BaseError): ...")]
    tests = [source("import pytest\ndef test_a():\n    with pytest.raises((Torn, KeyError)): ...", "tests/test_a.py")]
    assert complaints_about_untested_errors(library, tests) == [f"{PATH}: no test expects Late with pytest.raises"]
