"""The lock file holds its rules, and each rule can say no."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, requires

import pytest
from packaging.requirements import Requirement
from tidy_lock import complaints_about_gaps, complaints_about_lines, requirements_of_project
from tidy_sources import ROOT

HASH = "--hash=sha256:" + "0123456789abcdef" * 4
LOCK = (
    f"# A remark.\nclick==8.5.1 \\\n    {HASH} \\\n    {HASH}\nmdurl==0.1.2 \\\n    {HASH}\n"
    f"colorama==0.4.6 ; sys_platform == 'win32' \\\n    {HASH}\n"
)
# The Python of Debian 12 is older than what a developer has, and some packages need more on it.
PYTHONS = {"3.11.2": "3.11", "3.11.9": "3.11", "3.12.3": "3.12", "3.13.0": "3.13", "3.14.0": "3.14"}


def environment(python: str = "3.11.2", platform: str = "linux") -> dict[str, str]:
    system = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}[platform]
    return {
        "extra": "",
        "implementation_name": "cpython",
        "os_name": "nt" if platform == "win32" else "posix",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
        "platform_system": system,
        "python_full_version": python,
        "python_version": PYTHONS[python],
        "sys_platform": platform,
    }


def needs_of_installed(name: str) -> list[Requirement]:
    """Return the requirements that a package names; none for one that this machine's platform does not install."""
    try:
        return [Requirement(line) for line in requires(name) or ()]
    except PackageNotFoundError:
        return []


def needs_nothing(name: str) -> list[Requirement]:
    return []


def test_every_line_of_the_lock_file_has_a_version_and_hashes() -> None:
    assert list(complaints_about_lines((ROOT / "requirements.lock").read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
@pytest.mark.parametrize("python", PYTHONS)
def test_all_that_is_needed_is_locked_for_every_python_and_platform(python: str, platform: str) -> None:
    asked_for = requirements_of_project(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert len(asked_for) > 10
    assert list(complaints_about_gaps(lock, asked_for, needs_of_installed, environment(python, platform))) == []


def test_a_lock_file_of_versions_and_hashes_is_accepted() -> None:
    assert list(complaints_about_lines(LOCK)) == []
    asked_for = [Requirement("click>=8.1"), Requirement("MDURL")]
    assert list(complaints_about_gaps(LOCK, asked_for, needs_nothing, environment())) == []


@pytest.mark.parametrize(
    "line",
    [
        "rich==15.0.0",
        "rich==15.0.0 ; sys_platform == 'linux'",
        f"rich>=15.0.0 {HASH}",
        f"rich==15.0.0 {HASH[:-1]}",
        "--extra-index-url https://packages.example/simple",
        f"faultline @ file:///home/someone/faultline {HASH}",
    ],
)
def test_a_line_without_a_version_or_a_hash_is_refused(line: str) -> None:
    (complaint,) = complaints_about_lines(f"{LOCK}{line}\n")
    assert line[:20] in complaint


@pytest.mark.parametrize("asked", ["rich>=13", "click>=9"])
def test_a_requirement_that_is_not_locked_is_named(asked: str) -> None:
    (complaint,) = complaints_about_gaps(LOCK, [Requirement(asked)], needs_nothing, environment())
    assert asked in complaint and "Python 3.11.2 on linux" in complaint


def test_what_a_requirement_needs_on_some_pythons_only_must_be_locked_for_them() -> None:
    def needs(name: str) -> list[Requirement]:
        return [Requirement("async-timeout>=4; python_full_version < '3.11.3'")] if name == "click" else []

    (complaint,) = complaints_about_gaps(LOCK, [Requirement("click")], needs, environment("3.11.2"))
    assert "async-timeout>=4" in complaint
    assert list(complaints_about_gaps(LOCK, [Requirement("click")], needs, environment("3.12.3"))) == []


def test_what_an_extra_needs_must_be_locked_where_the_extra_is_asked_for() -> None:
    def needs(name: str) -> list[Requirement]:
        return [Requirement("click-plus; extra == 'plus'")] if name == "click" else []

    assert list(complaints_about_gaps(LOCK, [Requirement("click")], needs, environment())) == []
    assert len(list(complaints_about_gaps(LOCK, [Requirement("click[plus]")], needs, environment()))) == 1


def test_what_is_locked_for_another_platform_is_not_locked_for_this_one() -> None:
    asked_for = [Requirement("colorama")]
    assert list(complaints_about_gaps(LOCK, asked_for, needs_nothing, environment(platform="win32"))) == []
    assert len(list(complaints_about_gaps(LOCK, asked_for, needs_nothing, environment(platform="darwin")))) == 1


def test_the_package_s_own_extras_are_no_requirements() -> None:
    project = {
        "name": "faultline",
        "dependencies": ["click"],
        "optional-dependencies": {"dev": ["faultline[all]", "ruff"]},
    }
    asked = requirements_of_project({"project": project, "build-system": {"requires": ["hatchling"]}})
    assert [requirement.name for requirement in asked] == ["click", "ruff", "hatchling"]
