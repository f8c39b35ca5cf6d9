"""The rule of the lock file: it pins and hashes all that is needed, and says nothing of the machine that made it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)(?P<marker> ; [^\\]+?)?(?P<hashes>( --hash=sha256:[0-9a-f]{64})+)"
)


def requirements_of_project(pyproject: dict[str, Any]) -> list[Requirement]:
    """Return the requirements of pyproject.toml: to run, to be tested, and to be built, without the project itself."""
    project = pyproject["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    asked = [Requirement(line) for line in [*project["dependencies"], *extras, *pyproject["build-system"]["requires"]]]
    return [requirement for requirement in asked if requirement.name != project["name"]]


def complaints_about_lines(lock: str) -> Iterator[str]:
    """Lines of a lock file that are anything but a package, its version, perhaps where it is needed, and its hashes."""
    for line in _logical_lines(lock):
        if _PIN.fullmatch(line) is None:
            yield f"requirements.lock: {line[:60]!r} is not a package, a version and its hashes; run: make lock"


def complaints_about_gaps(
    lock: str,
    asked_for: Iterable[Requirement],
    needs_of: Callable[[str], Iterable[Requirement]],
    environment: Mapping[str, str],
) -> Iterator[str]:
    """Complain about each package that an environment needs, directly or not, and that is not locked for it.

    pip refuses such a file as a whole: it demands hashes, and each package must have one.
    """
    pinned = _versions(lock, environment)
    waiting = list(asked_for)
    seen: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        version = pinned.get(canonicalize_name(requirement.name))
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        if version is None or version not in requirement.specifier:
            where = f"Python {environment['python_full_version']} on {environment['sys_platform']}"
            yield f"requirements.lock: {requirement} is needed by {where}, and {version or 'nothing'} is locked for it"
            continue
        extras = requirement.extras or {""}
        waiting += [
            need
            for need in needs_of(requirement.name)
            if any(_applies(need.marker, {**environment, "extra": extra}) for extra in extras)
        ]


def _versions(lock: str, environment: Mapping[str, str]) -> dict[str, str]:
    pins = [pin for line in _logical_lines(lock) if (pin := _PIN.fullmatch(line))]
    here = [pin for pin in pins if _applies(Marker(pin["marker"][3:]) if pin["marker"] else None, environment)]
    return {canonicalize_name(pin["name"]): pin["version"] for pin in here}


def _applies(marker: Marker | None, environment: Mapping[str, str]) -> bool:
    return marker is None or marker.evaluate(dict(environment))


def _logical_lines(lock: str) -> Iterator[str]:
    for line in re.sub(r"\s*\\\n\s*", " ", lock).splitlines():
        if line and not line.startswith("#"):
            yield line
