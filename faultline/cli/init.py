"""`faultline init`: skeletons of packages that plug stores in, with tests that report the missing parts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from string import Template

import click

from faultline.cli.output import say
from faultline.harness.errors import UsageError

__all__ = ["command"]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_WORKLOADS = ("register", "read-write")
_OF_EVERY_PACKAGE = {"pyproject.toml": "pyproject.toml", "__init__.py": "{package}/__init__.py"}
_STORE = _OF_EVERY_PACKAGE | {
    "README.md": "README.md",
    "messages.py": "{package}/messages.py",
    "node.py": "{package}/node.py",
    "client.py": "{package}/client.py",
    "system.py": "{package}/system.py",
    "test_store.py": "tests/test_{package}.py",
}
_ADAPTER = _OF_EVERY_PACKAGE | {
    "adapter/README.md": "README.md",
    "adapter/client.py": "{package}/client.py",
    "adapter/system.py": "{package}/system.py",
    "adapter/test_store.py": "tests/test_{package}.py",
}
_workload = click.option(
    "--workload", type=click.Choice(_WORKLOADS), default=_WORKLOADS[0], show_default=True, help="What it serves."
)
_into = click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Folder in which the folder NAME is made [default: here].",
)


@click.group("init")
def command() -> None:
    """Write the skeleton of a plug-in."""


@command.command("store")
@click.argument("name")
@_workload
@_into
def _store(name: str, workload: str, into: Path) -> int:
    """Write a package NAME that plugs a store into Faultline.

    Three places are left to fill in; until then the conformance kit among its tests says what is missing.
    """
    return _write(_STORE, "a store", name, workload, into)


@command.command("adapter")
@click.argument("name")
@_workload
@_into
def _adapter(name: str, workload: str, into: Path) -> int:
    """Write a package NAME that lets Faultline test a store that exists, on hosts.

    Three places are left to fill in: the command line of a member, its status, and what a client asks.
    """
    return _write(_ADAPTER, "an adapter", name, workload, into)


def _write(files: Mapping[str, str], what: str, name: str, workload: str, into: Path) -> int:
    folder = into / name
    _refuse_what_cannot_be_made(name, folder)
    values = _values(name, workload)
    for template, place in files.items():
        file = folder / place.format(package=values["package"])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_template(template).substitute(values), encoding="utf-8")
    say(f"{folder} holds {what} with three places to fill in (grep -rn 'FILL IN' {folder / values['package']}).")
    say(f"  cd {folder} && pip install --no-build-isolation --no-deps . && python -m pytest")
    say("says what is missing, and where.")
    return 0


def _refuse_what_cannot_be_made(name: str, folder: Path) -> None:
    from faultline.registry import stores, systems

    if not _NAME.fullmatch(name):
        raise UsageError(f"A store cannot be called {name!r}.", "Use words of small letters, such as my-store.")
    if name in systems() | stores():
        raise UsageError(f"There is a system called {name} already.", "Choose another name; `faultline list systems`.")
    if folder.exists():
        raise UsageError(f"{folder} exists already, and nothing was written.", "Choose another name or --into DIR.")


def _values(name: str, workload: str) -> dict[str, str]:
    from faultline.registry import load_workload

    served = load_workload(workload)
    return {
        "name": name,
        "package": name.replace("-", "_"),
        "class_name": "".join(map(str.capitalize, name.split("-"))),
        "workload": workload,
        "promise": served.promise,
        "functions": ", ".join(served.functions),
        "function_names": ", ".join(f'"{f}"' for f in served.functions),
    }


def _template(name: str) -> Template:
    return Template((resources.files("faultline.cli") / "skeleton" / f"{name}.template").read_text("utf-8"))
