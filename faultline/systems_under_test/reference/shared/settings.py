"""Options declared once: a field, its kind, its default and a line about it make the option, its parsing and its help.

    class GossipSettings(Settings, frozen=True):
        system: ClassVar[str] = "gossip"

        fanout: Annotated[int, Number(3), "with how many peers a node gossips in a round"]
        gossip_interval_us: Annotated[int, Milliseconds(100), "how long between two rounds of a node"]

A field of milliseconds is kept in microseconds: the option of `gossip_interval_us` is `gossip_interval_ms`.

A field that ends with `TUNING` is listed as a setting behind the option `tuning` (`faultline.harness.options`). It is
read from there, or under its own name:

        segment_size_bytes: Annotated[int, Number(16_384), "the size at which a log file is closed", TUNING]
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import ClassVar, NamedTuple, Protocol, Self, get_type_hints

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.options import TUNING, tuning_settings
from faultline.harness.system import OptionDescription

__all__ = [
    "Choice",
    "Kind",
    "Milliseconds",
    "NamedByField",
    "Number",
    "OptionalMilliseconds",
    "Settings",
    "Switch",
    "Text",
    "kinds_of",
    "options_of",
    "refuse_others",
    "tuning_of",
    "tuning_option",
    "unknown_name",
]


class Kind(Protocol):
    """The kind of an option, which lists the option and reads its text."""

    def option(self, field: str) -> str:
        """Return the name of the option behind `field`."""

    def described(self, summary: str) -> OptionDescription:
        """Return the option as it is listed."""

    def parsed(self, name: str, text: str) -> object:
        """Return the value of `text`. Raise `UsageError` for a text that the option `name` cannot have."""


class NamedByField(msgspec.Struct, frozen=True):
    """Base of the kinds whose options have the names of their fields."""

    def option(self, field: str) -> str:
        """Return the name of the field, which is that of the option as well."""
        return field


class Number(NamedByField, frozen=True):
    """A whole number of at least `least`."""

    default: int
    least: int = 1

    def described(self, summary: str) -> OptionDescription:
        return OptionDescription(default=str(self.default), summary=summary)

    def parsed(self, name: str, text: str) -> int:
        if not (text.isascii() and text.isdigit() and int(text) >= self.least):
            raise UsageError(
                f"Option {name} must be a whole number from {self.least}, not {text!r}.",
                f"The default is {self.default}.",
            )
        return int(text)


class Milliseconds(Number, frozen=True):
    """A time: milliseconds outside, microseconds inside."""

    def option(self, field: str) -> str:
        return f"{field.removesuffix('_us')}_ms"

    def parsed(self, name: str, text: str) -> int:
        return 1_000 * super().parsed(name, text)


class OptionalMilliseconds(NamedByField, frozen=True):
    """A time that can be left out: 0 milliseconds are read as None."""

    default: int

    def option(self, field: str) -> str:
        return self._time().option(field)

    def described(self, summary: str) -> OptionDescription:
        return self._time().described(summary)

    def parsed(self, name: str, text: str) -> int | None:
        return self._time().parsed(name, text) or None

    def _time(self) -> Milliseconds:
        return Milliseconds(self.default, least=0)


class Choice(NamedByField, frozen=True):
    """One of `choices`; the first of them by default, unless `default` names another."""

    choices: tuple[str, ...]
    default: str = ""

    def described(self, summary: str) -> OptionDescription:
        return OptionDescription(default=self.default or self.choices[0], choices=self.choices, summary=summary)

    def parsed(self, name: str, text: str) -> str:
        if text not in self.choices:
            raise UsageError(f"Option {name} cannot be {text!r}.", f"Choose one of {', '.join(self.choices)}.")
        return text


class Switch(NamedByField, frozen=True):
    """`on` or `off`, read as a truth value; the default is listed first."""

    is_on: bool = True

    def described(self, summary: str) -> OptionDescription:
        return self._choice().described(summary)

    def parsed(self, name: str, text: str) -> bool:
        return self._choice().parsed(name, text) == "on"

    def _choice(self) -> Choice:
        return Choice(("on", "off") if self.is_on else ("off", "on"))


class Text(NamedByField, frozen=True):
    """Any text; a subclass of `Settings` checks and reads it further."""

    default: str = ""

    def described(self, summary: str) -> OptionDescription:
        return OptionDescription(default=self.default, summary=summary, is_text=True)

    def parsed(self, name: str, text: str) -> str:
        return text


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one system, read and checked. A subclass overrides `check` to refuse contradictions."""

    system: ClassVar[str] = ""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Self:
        """Return the settings of the options `given`, with defaults for the rest. Raise `UsageError`."""
        settings = _read(cls, tuple(given.items()))
        assert isinstance(settings, cls)
        return settings

    @classmethod
    def made(cls, given: Mapping[str, str]) -> Self:
        """Return new settings of the options `given`, not checked yet; those made of other settings override this."""
        return cls(**_values_of(cls, given))

    def check(self) -> None:
        """Raise `UsageError` for values that contradict each other."""


def kinds_of(settings: type[Settings]) -> dict[str, tuple[Kind, str]]:
    """Return by field its kind and the line about it."""
    return {field.name: (field.kind, field.description.summary) for field in _fields_of(settings).values()}


def options_of(settings: type[Settings]) -> dict[str, OptionDescription]:
    """Return the options as they are listed, in the order of the fields, with `tuning` last if a field stands behind
    it."""
    listed = {name: field.description for name, field in _fields_of(settings).items() if not field.is_tuned}
    tuned = tuning_of(settings)
    return listed | ({TUNING: tuning_option(tuned)} if tuned else {})


def tuning_of(settings: type[Settings]) -> dict[str, OptionDescription]:
    """Return the settings behind the option `tuning`, in the order of the fields."""
    return {name: field.description for name, field in _fields_of(settings).items() if field.is_tuned}


def tuning_option(settings: Iterable[str]) -> OptionDescription:
    """Return the option `tuning` as it is listed, with these settings behind it."""
    return OptionDescription(
        default="", is_text=True, summary=f"NAME:VALUE with commas between, of {', '.join(settings)}"
    )


def refuse_others(system: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise `UsageError` for the first name of `given` that is none of `known`."""
    known = list(known)
    for name in given:
        if name not in known:
            raise unknown_name(f"{system} has no option", name, known)


def unknown_name(complaint: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error of a name that is none of `known`: it tells the nearest of them, and all."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    return UsageError(f"{complaint} {name!r}.", f"{hint}It has {', '.join(known)}.")


class _Field(NamedTuple):
    name: str
    kind: Kind
    description: OptionDescription
    is_tuned: bool


# Each node and each client of a run reads its settings, nearly always the same ones; frozen records can be shared.
@lru_cache(maxsize=256)
def _read(settings: type[Settings], given: tuple[tuple[str, str], ...]) -> Settings:
    read = settings.made(dict(given))
    read.check()
    return read


def _values_of(settings: type[Settings], given: Mapping[str, str]) -> dict[str, object]:
    """Return by field the values of the options `given`, or their defaults."""
    fields = _fields_of(settings)
    texts = dict(given)
    if any(field.is_tuned for field in fields.values()):
        texts |= tuning_settings(texts.pop(TUNING, ""))
    for name in texts:
        if name not in fields:
            raise unknown_name(f"{settings.system} has no option", name, fields)
    return {
        field.name: field.kind.parsed(name, texts.get(name, field.description.default))
        for name, field in fields.items()
    }


# Resolving annotations takes some hundred microseconds, and each node and client of each run reads its settings.
@cache
def _fields_of(settings: type[Settings]) -> dict[str, _Field]:
    """Return the fields of `settings` by the names of their options."""
    fields = {}
    for name, hint in get_type_hints(settings, include_extras=True).items():
        if hasattr(hint, "__metadata__"):
            kind, summary, *behind = hint.__metadata__
            fields[kind.option(name)] = _Field(name, kind, kind.described(summary), TUNING in behind)
    return fields
