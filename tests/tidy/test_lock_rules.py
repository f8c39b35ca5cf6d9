"""The lock file holds its rule, and the rule can say no."""

from __future__ import annotations

import tomllib

import pytest
from packaging.requirements import Requirement
from tidy_lock import complaints_about_lock, requirements_of_project
from tidy_sources import ROOT

HASH = "--hash=sha256:" + "0123456789abcdef" * 4
LOCK = f"# A remark.\nclick==8.5.1 \\\n    {HASH} \\\n    {HASH}\nmdurl==0.1.2 \\\n    {HASH}\n"


def test_every_line_of_the_lock_file_has_a_version_and_hashes_and_everything_asked_for_is_there() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert list(complaints_about_lock(lock, requirements_of_project(pyproject))) == []


def test_a_lock_file_of_versions_and_hashes_is_accepted() -> None:
    assert list(complaints_about_lock(LOCK, [Requirement("click>=8.1"), Requirement("MDURL")])) == []


@pytest.mark.parametrize(
    "line",
    [
        "rich==15.0.0",
        f"rich>=15.0.0 {HASH}",
        f"rich==15.0.0 {HASH[:-1]}",
        "--extra-index-url https://packages.example/simple",
        f"faultline @ file:///home/someone/faultline {HASH}",
    ],
)
def test_a_line_without_a_version_or_a_hash_is_refused(line: str) -> None:
    (complaint,) = complaints_about_lock(f"{LOCK}{line}\n", [])
    assert line[:20] in complaint


@pytest.mark.parametrize("asked", ["rich>=13", "click>=9"])
def test_a_requirement_that_is_not_locked_is_named(asked: str) -> None:
    (complaint,) = complaints_about_lock(LOCK, [Requirement(asked)])
    assert asked in complaint and "make lock" in complaint


def test_the_package_s_own_extras_are_no_requirements() -> None:
    project = {
        "name": "faultline",
        "dependencies": ["click"],
        "optional-dependencies": {"dev": ["faultline[all]", "ruff"]},
    }
    asked = requirements_of_project({"project": project, "build-system": {"requires": ["hatchling"]}})
    assert [requirement.name for requirement in asked] == ["click", "ruff", "hatchling"]
