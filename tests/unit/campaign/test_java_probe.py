"""Finding Java, with runtimes that are only scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultline.campaign.java import find_java
from faultline.harness.errors import HarnessError


def java_that_says(folder: Path, text: str) -> Path:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{text}\nEND\n")
    command.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "21" 2023-09-19 LTS', 21),
        ('openjdk version "25-ea"', 25),
    ],
)
def test_a_java_of_seventeen_or_newer_is_found_on_the_path(tmp_path: Path, text: str, version: int) -> None:
    home = java_that_says(tmp_path / "jdk", text)
    link = tmp_path / "links"
    link.mkdir()
    (link / "java").symlink_to(home / "bin" / "java")
    found = find_java({"PATH": f"{link}:/usr/bin:/bin"})
    assert (found.home, found.version) == (home, version)


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home = java_that_says(tmp_path / "mine", 'openjdk version "18.0.1"')
    other = java_that_says(tmp_path / "other", 'openjdk version "19.0.1"')
    assert find_java({"JAVA_HOME": str(home), "PATH": f"{other}/bin"}).version == 18


@pytest.mark.parametrize("text", ['openjdk version "1.8.0_392"', 'openjdk version "11.0.2" 2019-01-15'])
def test_an_old_java_is_refused_with_the_package_to_install(tmp_path: Path, text: str) -> None:
    home = java_that_says(tmp_path / "old", text)
    with pytest.raises(HarnessError, match="Java (8|11)") as raised:
        find_java({"JAVA_HOME": str(home)})
    assert "openjdk-17-jre-headless" in raised.value.next_step
    assert raised.value.exit_code == 4


def test_no_java_at_all_is_refused_with_the_package_to_install(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="no Java runtime") as raised:
        find_java({"PATH": str(tmp_path)})
    assert "openjdk-17-jre-headless" in raised.value.next_step


def test_a_java_home_without_java_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="does not start"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_something_that_is_no_java_is_refused(tmp_path: Path) -> None:
    home = java_that_says(tmp_path / "jdk", "hello")
    with pytest.raises(HarnessError, match="does not tell its version"):
        find_java({"JAVA_HOME": str(home)})
