"""The table of anomalies: it has every name that a checker can give, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import faultline.checkers
from faultline.checkers import CHECKERS
from faultline.checkers.anomalies import ANOMALIES, gravity, listed
from faultline.checkers.linearizability.descriptions import MODELS
from faultline.checkers.transactions.anomalies import MEANINGS
from faultline.checkers.transactions.models import ALIASES, STRONGER_THAN
from faultline.checkers.transactions.shapes import SHAPES

ROOM = Path(faultline.checkers.__file__).parent
NAMES = {name for group in ANOMALIES.values() for name in group}

HYPHENATED = re.compile(r"[a-zA-Z]+[0-9]*(-[a-z0-9]+)+")

NOT_JUDGED = ("importers/", "porcupine/", "anomalies.py", "vacuity.py", "__init__.py", "transactions/models.py")
"""Files that find no anomalies: the vacuity checks warn, models say what they forbid."""

OTHER_WORDS = {
    *("clock-drift", "clock-offsets", "clock-step", "clock-strobe"),  # faults
    *("guarded-write", "late-write", "not-held", "read-after", "read-init", "read-pair", "write-pair"),  # functions
    *("guarded-writes", "never-read", "compare-and-set", "predicate-rw", "utf-8"),  # counts and words
}
"""Words with a hyphen in the checkers that are no anomaly: functions, faults, counts."""


def words_in(path: Path) -> Iterator[str]:
    """The string constants with a hyphen in `path`, but for docstrings and the like."""
    tree = ast.parse(path.read_text("utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield from [node.value] if HYPHENATED.fullmatch(node.value) or node.value in NAMES else []


def given() -> set[str]:
    paths = [path for path in ROOM.rglob("*.py") if not path.relative_to(ROOM).as_posix().startswith(NOT_JUDGED)]
    return {word for path in paths for word in words_in(path)}


def without_suffixes(name: str) -> str:
    return re.sub(r"(-item)?(-process|-realtime)?$", "", name)


def test_every_name_that_a_checker_gives_stands_in_the_table() -> None:
    of_models = {*MODELS, *STRONGER_THAN, *ALIASES} | {other.name for each in STRONGER_THAN.values() for other in each}
    unknown = given() - NAMES - OTHER_WORDS - of_models - CHECKERS.keys()
    assert {name for name in unknown if without_suffixes(name) not in MEANINGS} == set()


def test_no_name_stands_in_the_table_that_no_checker_gives() -> None:
    assert NAMES - given() == set()
    assert OTHER_WORDS - given() == set()


def test_a_name_stands_once_in_the_table_and_once_in_the_listing() -> None:
    assert sum(map(len, ANOMALIES.values())) == len(NAMES)
    names = [anomaly.name for anomaly in listed()]
    assert len(set(names)) == len(names)
    assert set(names) == NAMES | MEANINGS.keys()
    assert {without_suffixes(shape.name) for shape in SHAPES} <= set(names)


def test_losses_are_graver_than_stale_reads_and_names_of_others_come_last() -> None:
    assert gravity("lost-update") < gravity("lost-write") < gravity("stale-read") < gravity("my-own-anomaly")
