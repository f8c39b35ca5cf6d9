"""The rule of the lock file: it pins and hashes all that is asked for, and says nothing of the machine that made it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)(?P<hashes>( --hash=sha256:[0-9a-f]{64})+)")


def complaints_about_lock(lock: str, asked_for: Iterable[Requirement]) -> Iterator[str]:
    """What a lock file lacks: pins, hashes, packages that are asked for, and lines that are nothing else."""
    pinned = {}
    for line in _logical_lines(lock):
        pin = _PIN.fullmatch(line)
        if pin is None:
            yield f"requirements.lock: {line[:60]!r} is not a package, a version and its hashes; run: make lock"
        else:
            pinned[canonicalize_name(pin["name"])] = pin["version"]
    for requirement in asked_for:
        version = pinned.get(canonicalize_name(requirement.name))
        if version is None or version not in requirement.specifier:
            yield f"requirements.lock: {requirement} is asked for, and {version or 'nothing'} is pinned; run: make lock"


def requirements_of_project(pyproject: dict[str, Any]) -> list[Requirement]:
    """What pyproject.toml asks for: to run, to be tested, and to be built; its own extras are resolved there."""
    project = pyproject["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    asked = [Requirement(line) for line in [*project["dependencies"], *extras, *pyproject["build-system"]["requires"]]]
    return [requirement for requirement in asked if requirement.name != project["name"]]


def _logical_lines(lock: str) -> Iterator[str]:
    for line in re.sub(r"\s*\\\n\s*", " ", lock).splitlines():
        if line and not line.startswith("#"):
            yield line
