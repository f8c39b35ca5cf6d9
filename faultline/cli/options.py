"""Options that several verbs share, and how their texts become values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from faultline.cli.sealed_outcome import handed_over
from faultline.harness.errors import UsageError

__all__ = ["as_floors", "as_options", "comma_separated", "floor_option", "on_hosts", "request_options", "store_option"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


class _StoreFolder(click.Path):
    """A folder of this machine; an address that looks like one is refused rather than made into one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str):
            from faultline.harness.store import store_folder

            value = store_folder(value)
        return super().convert(value, param, ctx)


store_option = click.option(
    "--store",
    type=_StoreFolder(path_type=Path, file_okay=False),
    default=Path("store"),
    show_default=True,
    help="Folder that keeps runs and campaigns.",
)


def on_hosts(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """The value of `--hosts`. Before anything else is done, a user who is not root goes on in a user namespace."""
    if value and value.startswith("namespaces:"):
        from faultline.harness.world.hosts.namespaces.rootless import enter_user_namespace

        enter_user_namespace(environment=handed_over)
    return value


def comma_separated(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """`a,b` as a tuple; `none` and the empty text are the empty tuple."""
    if not value or value == "none":
        return ()
    return tuple(part.strip() for part in value.split(",") if part.strip())


def as_options(pairs: tuple[str, ...], flag: str = "--option") -> dict[str, str]:
    """`("name=value", …)` as a dictionary. Raises UsageError for a text without `=`."""
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"{flag} {pair} has no value.", f"Write {flag} NAME=VALUE.")
        options[name] = value
    return options


floor_option = click.option(
    "--floor",
    "floor_pairs",
    multiple=True,
    metavar="NAME=SHARE",
    help="What a run must do at least to pass, such as faults-applied=0.5; 0 is nothing [default: each floor's own].",
)


def as_floors(pairs: tuple[str, ...]) -> dict[str, float]:
    """`("name=share", …)` as shares by name. Raises UsageError for what is no floor or no share."""
    from faultline.harness.floors import checked_floors

    floors = {}
    for name, text in as_options(pairs, "--floor").items():
        try:
            floors[name] = float(text)
        except ValueError:
            raise UsageError(f"The floor {name} is a share from 0 to 1, not {text!r}.", f"Try {name}=0.5.") from None
    return checked_floors(floors)


def request_options(command: _Command) -> _Command:
    """The options that say what a run is made of, for `run` and `campaign`."""
    for option in reversed(_REQUEST_OPTIONS):
        command = option(command)
    return command


_REQUEST_OPTIONS = (
    click.option(
        "--workload",
        default="register",
        help="Workload by name [default: the system's usual one, else register].",
        show_default=False,
    ),
    click.option(
        "--faults",
        default="leadership",
        show_default=True,
        callback=comma_separated,
        help="Fault sets by name, separated by commas; `none` for a calm run.",
    ),
    click.option(
        "--mutant", "mutants", callback=comma_separated, help="Planted bugs to switch on, by name [default: none]."
    ),
    click.option("--option", "option_pairs", multiple=True, metavar="NAME=VALUE", help="Option of the system."),
    click.option(
        "--nodes",
        type=int,
        default=3,
        help="Nodes in the cluster [default: as many as the system is usually tested with, else 3].",
        show_default=False,
    ),
    click.option("--workers", type=int, default=5, show_default=True, help="Concurrent clients."),
    click.option("--operations", type=int, default=200, show_default=True, help="Operations before the final reads."),
)
