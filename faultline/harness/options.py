"""The options of a run: those that the system lists, the settings behind its option `tuning`, and their defaults.

A system lists the options that select a variant or that users change. The rest are sizes and times with one good value;
they stand together in one option, `--option tuning=segment_size_bytes:256,in_flight_max:1`. A setting may also be
given as an option of its own, as planted bugs and shipped plans do: it is written into `tuning`, so that equal settings
are equal options.

An option that a system had once is accepted with its former default, which stored plans name; another value is refused
with the system that has the option now.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import NodeSystem, OptionDescription

__all__ = [
    "TUNING",
    "FormerOption",
    "HadMore",
    "IsTuned",
    "MovedAway",
    "all_options",
    "effective_options",
    "flat_options",
    "tuning_settings",
    "tuning_text",
]

TUNING = "tuning"
"""The name of the option behind which the settings stand."""


@runtime_checkable
class IsTuned(Protocol):
    """A system with settings behind its option `tuning`."""

    tuning: Mapping[str, OptionDescription]
    """Each setting by name, described as an option."""


class FormerOption(msgspec.Struct, frozen=True):
    """An option that a system no longer has: its default, and the system that has it now, '' if none has.

    Without `is_kept` the other system does not have it either: it is always what the option asked for.
    """

    default: str
    system: str = ""
    is_kept: bool = True


@runtime_checkable
class HadMore(Protocol):
    """A system that had options and planted bugs which it has no longer."""

    former_options: Mapping[str, FormerOption]
    former_planted_bugs: Mapping[str, str]
    """By planted bug, the system that has it now."""


class MovedAway(UsageError):
    """An option or a planted bug belongs to another `system`, which is asked without the options `given_up`."""

    def __init__(self, message: str, system: str, given_up: frozenset[str] = frozenset()) -> None:
        super().__init__(message, f"Use --system {system}.")
        self.system = system
        self.given_up = given_up


def all_options(system: NodeSystem) -> dict[str, OptionDescription]:
    """Return each option of `system` by name, with the settings behind `tuning` in the place of that option."""
    listed = {name: description for name, description in system.options.items() if name != TUNING}
    return listed | (dict(system.tuning) if isinstance(system, IsTuned) else {})


def effective_options(system: NodeSystem, asked: Mapping[str, str], planted_bugs: Iterable[str]) -> dict[str, str]:
    """Return the options in force: defaults, then those that planted bugs need, then the user's, each checked."""
    known = all_options(system)
    asked = _flat(system, asked)
    options = {name: description.default for name, description in known.items()}
    moved = system.former_planted_bugs if isinstance(system, HadMore) else {}
    for planted_bug in planted_bugs:
        if planted_bug in moved:
            other = moved[planted_bug]
            complaint = f"{system.name} has no planted bug {planted_bug} any more: it is one of {other}."
            raise MovedAway(complaint, other, _given_up(system, other))
        if planted_bug not in system.planted_bugs:
            raise _unknown(
                f"{system.name} has no planted bug", planted_bug, system.planted_bugs, "faultline list planted-bugs"
            )
        for name, value in system.planted_bugs[planted_bug].options.items():
            if asked.get(name, value) != value:
                raise UsageError(
                    f"The planted bug {planted_bug} needs {name}={value}, but {name}={asked[name]} was asked for.",
                    f"Leave {name} out.",
                )
            options[name] = value
    for name, value in asked.items():
        if name not in known:
            raise _unknown(f"{system.name} has no option", name, known, "faultline list systems --json")
        options[name] = _checked(system, name, known[name], value)
    return _with_tuning(system, options)


def flat_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return `options` with each setting behind `tuning` as an option of its own."""
    listed = {name: value for name, value in options.items() if name != TUNING}
    return listed | tuning_settings(options.get(TUNING, ""))


def tuning_settings(text: str) -> dict[str, str]:
    """Return the settings of a text such as `in_flight_max:1,segment_size_bytes:256`. Raise `UsageError`."""
    settings: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, colon, value = part.partition(":")
        if not (name and colon and value):
            raise UsageError(
                f"The option {TUNING} has {part!r}, which is no setting.",
                f"Write {TUNING}=NAME:VALUE, with commas between several; see `faultline list systems --json`.",
            )
        if name in settings:
            raise UsageError(f"The option {TUNING} has {name} twice.", "Give each setting once.")
        settings[name] = value
    return settings


def tuning_text(settings: Mapping[str, str]) -> str:
    """Return `settings` as the text of the option `tuning`, in their order."""
    return ",".join(f"{name}:{value}" for name, value in settings.items())


def _flat(system: NodeSystem, asked: Mapping[str, str]) -> dict[str, str]:
    """Return `asked` with the settings of `tuning` as options of their own, and without former options."""
    former = system.former_options if isinstance(system, HadMore) else {}
    flat = {name: value for name, value in asked.items() if name not in former}
    for name, option in former.items():
        if asked.get(name, option.default) != option.default:
            raise _no_such_option_any_more(system, name, former)
    if not isinstance(system, IsTuned):
        return flat
    for name, value in tuning_settings(flat.pop(TUNING, "")).items():
        if name not in system.tuning:
            raise _unknown(f"{TUNING} of {system.name} has no setting", name, system.tuning, "faultline list systems")
        if flat.setdefault(name, value) != value:
            raise UsageError(
                f"{name} is {flat[name]} as an option of its own, and {value} in {TUNING}.", "Give it once."
            )
    return flat


def _no_such_option_any_more(system: NodeSystem, name: str, former: Mapping[str, FormerOption]) -> UsageError:
    option = former[name]
    complaint = f"{system.name} has no option {name} any more"
    if not option.system:
        return UsageError(f"{complaint}.", f"Leave it out: it is always {option.default}.")
    complaint = f"{complaint}: the system {option.system} took it over."
    return MovedAway(complaint, option.system, _given_up(system, option.system))


def _given_up(system: NodeSystem, other: str) -> frozenset[str]:
    """Return the former options of `system` that `other`, which took a part of it over, does not have."""
    former = system.former_options if isinstance(system, HadMore) else {}
    return frozenset(name for name, one in former.items() if one.system != other or not one.is_kept)


def _with_tuning(system: NodeSystem, options: dict[str, str]) -> dict[str, str]:
    """Return `options` with the settings that are not defaults in `tuning`, in the order in which they are declared."""
    if not isinstance(system, IsTuned):
        return options
    changed = {name: options[name] for name, one in system.tuning.items() if options[name] != one.default}
    folded = {name: value for name, value in options.items() if name not in system.tuning}
    return {**folded, TUNING: tuning_text(changed)}


def _checked(system: NodeSystem, name: str, description: OptionDescription, value: str) -> str:
    choices = description.choices
    if description.is_text:
        return value
    if choices and value not in choices:
        raise UsageError(f"Option {name} of {system.name} cannot be {value!r}.", f"Choose one of {', '.join(choices)}.")
    if not choices and not value.isdigit():
        raise UsageError(
            f"Option {name} of {system.name} must be a whole number, not {value!r}.",
            f"Its default is {description.default}.",
        )
    return value


def _unknown(complaint: str, name: str, known: Iterable[str], command: str) -> UsageError:
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    return UsageError(f"{complaint} called {name!r}.", f"{hint}See them with `{command}`.")
