"""Options that several verbs share, and how their texts become values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from faultline.cli.sealed_outcome import handed_over
from faultline.harness.errors import UsageError
from faultline.harness.results import RESULTS_FOLDER

__all__ = [
    "as_floors",
    "as_options",
    "comma_separated",
    "floor_option",
    "on_hosts",
    "output_option",
    "request_options",
    "stop_option",
    "universe_option",
    "weather_option",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])


class _ResultsFolder(click.Path):
    """A folder of this machine; an address such as `s3a://bucket` is refused instead of becoming a folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str):
            from faultline.harness.store import store_folder

            value = store_folder(value)
        return super().convert(value, param, ctx)


_FORMER_NAME = "faultline.cli.options.store"


def _former_name(context: click.Context, _parameter: click.Parameter, value: Path | None) -> None:
    """Keep the folder that `--store` names, and tell the new name of the option."""
    if value is not None:
        click.echo("--store is now called --output; the former name still works.", err=True)
        context.meta[_FORMER_NAME] = value


def _output_folder(context: click.Context, parameter: click.Parameter, value: Path) -> Path:
    """Return the folder of `--output`, or that of its former name. Given options come before defaults."""
    former: Path | None = context.meta.get(_FORMER_NAME)
    if former is None:
        return value
    assert parameter.name is not None
    if context.get_parameter_source(parameter.name) is not click.core.ParameterSource.DEFAULT:
        raise click.UsageError("--output and --store name the same folder. Give --output alone.")
    return former


def output_option(command: _Command) -> _Command:
    """Give `command` the option `--output`, and its former name `--store`, which no help lists."""
    folder = _ResultsFolder(path_type=Path, file_okay=False)
    former = click.option("--store", type=folder, expose_value=False, hidden=True, callback=_former_name)
    option = click.option(
        "--output",
        type=folder,
        default=RESULTS_FOLDER,
        show_default=True,
        callback=_output_folder,
        help="Folder that keeps runs and campaigns.",
    )
    return option(former(command))


def on_hosts(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Return the value of `--hosts`. A user who is not root first enters a user namespace."""
    if value and value.startswith("namespaces:"):
        from faultline.harness.world.hosts.namespaces.rootless import enter_user_namespace

        enter_user_namespace(environment=handed_over)
    return value


def comma_separated(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Return `a,b` as a tuple; `none` and the empty text are the empty tuple."""
    if not value or value == "none":
        return ()
    return tuple(part.strip() for part in value.split(",") if part.strip())


def as_options(pairs: tuple[str, ...], flag: str = "--option") -> dict[str, str]:
    """Return `("name=value", …)` as a dictionary. Raise UsageError for a text without `=`."""
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
    help="Least share that a run needs to pass, such as faults-applied=0.5; 0 is no floor [default: each floor's own].",
)


weather_option = click.option(
    "--weather",
    "weather_pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Condition of the simulated world, such as disk=page-cache or fsync_us_max=20000 [default: calm].",
)


def as_floors(pairs: tuple[str, ...]) -> dict[str, float]:
    """Return `("name=share", …)` as shares by name. Raise UsageError for an unknown floor or a bad share."""
    from faultline.harness.floors import checked_floors

    floors = {}
    for name, text in as_options(pairs, "--floor").items():
        try:
            floors[name] = float(text)
        except ValueError:
            raise UsageError(f"The floor {name} is a share from 0 to 1, not {text!r}.", f"Try {name}=0.5.") from None
    return checked_floors(floors)


stop_option = click.option(
    "--stop-at-violation",
    is_flag=True,
    help="Judge while a run goes on, and stop at the first violation [default: judge it when it has ended].",
)


universe_option = click.option(
    "--universe",
    type=click.Choice(["calm", "drawn"]),
    help="Weather, sizes, options and faults as given, or drawn for each seed [default: calm; drawn in a campaign of "
    "systems without a plan].",
)


def request_options(command: _Command) -> _Command:
    """Return a decorator that adds the options of a run, for `run` and `campaign`."""
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
        "--planted-bug",
        "--mutant",
        "planted_bugs",
        callback=comma_separated,
        help="Planted bugs to switch on, by name [default: none].",
    ),
    click.option("--option", "option_pairs", multiple=True, metavar="NAME=VALUE", help="Option of the system."),
    click.option(
        "--nodes",
        type=int,
        default=3,
        help="Nodes in the cluster [default: as many as the system is usually tested with, else 3].",
        show_default=False,
    ),
    click.option(
        "--racks",
        type=int,
        help="Racks to which the nodes are dealt in turn [default: those of the host file, else 3 where faults strike "
        "racks].",
    ),
    click.option("--workers", type=int, default=5, show_default=True, help="Concurrent clients."),
    click.option("--operations", type=int, default=200, show_default=True, help="Operations before the final reads."),
)
