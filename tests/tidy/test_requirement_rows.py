"""Every requirement row of a pattern is shown by a test, an invariant or a planted bug, or says why it is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from faultline.systems_under_test.patterns.requirement_rows import (
    RequirementRowsError,
    Requirements,
    load_requirements,
    parse_requirements,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import row_evidence
import rows_page

FOUND = load_requirements()


@pytest.fixture(scope="module")
def shown() -> dict[str, list[row_evidence.Evidence]]:
    return row_evidence.evidence()


def test_every_row_is_shown_or_says_why_not(shown: dict[str, list[row_evidence.Evidence]]) -> None:
    assert {slug: rows for slug, found in FOUND.items() if (rows := row_evidence.unshown(found, shown))} == {}


def test_no_evidence_names_a_row_that_does_not_exist(shown: dict[str, list[row_evidence.Evidence]]) -> None:
    known = {row for pattern in FOUND.values() for row in pattern.rows}
    prefixes = {row.partition("-")[0] for row in known}
    assert [row for row in shown if row.partition("-")[0] in prefixes and row not in known] == []


def test_a_row_that_is_left_out_is_not_shown(shown: dict[str, list[row_evidence.Evidence]]) -> None:
    assert [row for pattern in FOUND.values() for row in pattern.left_out if row in shown] == []


# -- the scan can say no ---------------------------------------------------------------------------------------------

MODULE = """
import pytest
pytestmark = [pytest.mark.slow, pytest.mark.rows("ABC-R1")]

@pytest.mark.rows("ABC-S1", "ABC-S2")
def test_one(): ...

class TestTwo:
    @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.rows("ABC-S3"))])
    def test_three(self, x): ...

@pytest.mark.rows("ABC-S9")
def helper(): ...
"""


def test_marks_count_on_modules_classes_functions_and_parameters_but_not_on_helpers() -> None:
    assert list(row_evidence.marked_tests(MODULE)) == [
        ("test_one", ["ABC-R1", "ABC-S1", "ABC-S2"]),
        ("TestTwo::test_three", ["ABC-R1", "ABC-S3"]),
    ]


def test_a_row_without_evidence_is_unshown_unless_left_out() -> None:
    rows = Requirements(pattern="abc", rows={"ABC-R1": "a", "ABC-R2": "b", "ABC-R3": "c"}, left_out={"ABC-R3": "why"})
    assert row_evidence.unshown(rows, {"ABC-R1": [row_evidence.Evidence("ABC-R1", "test", "t")]}) == ["ABC-R2"]
    assert "**nothing**" in rows_page.rows_page({"quorum": rows}, {}, {})


@pytest.mark.parametrize(
    "text",
    ["prefix = 1", "not toml", 'prefix = "A"\n[rows]\nX1 = "no kind"', 'prefix = "A"\n[rows]\n[left_out]\nR1 = "?"'],
)
def test_a_malformed_file_of_rows_is_refused(text: str) -> None:
    with pytest.raises(RequirementRowsError, match=r"abc\.toml"):
        parse_requirements("abc", text)
