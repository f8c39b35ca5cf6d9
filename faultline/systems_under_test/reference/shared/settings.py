"""Options declared once: a field, its kind, its default and a line about it make the option, its parsing and its help.

    class GossipSettings(Settings, frozen=True):
        system: ClassVar[str] = "gossip"

        fanout: Annotated[int, Number(3), "with how many peers a node gossips in a round"]
        gossip_interval_us: Annotated[int, Milliseconds(100), "how long between two rounds of a node"]

A field of milliseconds is kept in microseconds: the option of `gossip_interval_us` is `gossip_interval_ms`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, get_type_hints

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription

__all__ = ["Choice", "Milliseconds", "Number", "Settings", "Switch", "kinds_of", "options_of"]


class Number(msgspec.Struct, frozen=True):
    """A whole number of at least `least`."""

    default: int
    least: int = 1

    def option(self, field: str) -> str:
        """The name of the option behind `field`."""
        return field

    def described(self, summary: str) -> OptionDescription:
        """The option as it is listed."""
        return OptionDescription(default=str(self.default), summary=summary)

    def parsed(self, name: str, text: str) -> Any:
        """The value of `text`. Raises UsageError."""
        if not (text.isascii() and text.isdigit() and int(text) >= self.least):
            raise UsageError(
                f"Option {name} must be a whole number from {self.least}, not {text!r}.",
                f"The default is {self.default}.",
            )
        return int(text)


class Milliseconds(Number, frozen=True):
    """A time: milliseconds outside, microseconds inside."""

    def option(self, field: str) -> str:
        """The name of the option behind `field`."""
        return f"{field.removesuffix('_us')}_ms"

    def parsed(self, name: str, text: str) -> Any:
        """The value of `text`. Raises UsageError."""
        return 1_000 * super().parsed(name, text)


class Choice(msgspec.Struct, frozen=True):
    """One of `choices`, the first of them by default."""

    choices: tuple[str, ...]

    def option(self, field: str) -> str:
        """The name of the option behind `field`."""
        return field

    def described(self, summary: str) -> OptionDescription:
        """The option as it is listed."""
        return OptionDescription(default=self.choices[0], choices=self.choices, summary=summary)

    def parsed(self, name: str, text: str) -> Any:
        """The value of `text`. Raises UsageError."""
        if text not in self.choices:
            raise UsageError(f"Option {name} cannot be {text!r}.", f"Choose one of {', '.join(self.choices)}.")
        return text


class Switch(Choice, frozen=True):
    """`on` or `off`."""

    choices: tuple[str, ...] = ("on", "off")

    def parsed(self, name: str, text: str) -> Any:
        """The value of `text`. Raises UsageError."""
        return super().parsed(name, text) == "on"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one system, read and checked. A subclass overrides `check` to refuse contradictions."""

    system: ClassVar[str] = ""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Any:
        """The settings of the options `given`, defaults for the rest. Raises UsageError."""
        kinds = kinds_of(cls)
        names = {kind.option(field): (field, kind) for field, (kind, _) in kinds.items()}
        for name in given:
            if name not in names:
                raise UsageError(f"{cls.system} has no option {name!r}.", f"It has {', '.join(names)}.")
        described = options_of(cls)
        values = {
            field: kind.parsed(name, given.get(name, described[name].default)) for name, (field, kind) in names.items()
        }
        settings = cls(**values)
        settings.check()
        return settings

    def check(self) -> None:
        """Raise UsageError for values that contradict each other."""


def kinds_of(settings: type[Settings]) -> dict[str, tuple[Any, str]]:
    """By field its kind and what is said about it."""
    hints = get_type_hints(settings, include_extras=True)
    return {field: hint.__metadata__ for field, hint in hints.items() if hasattr(hint, "__metadata__")}


def options_of(settings: type[Settings]) -> dict[str, OptionDescription]:
    """The options as they are listed, in the order of the fields."""
    return {kind.option(field): kind.described(summary) for field, (kind, summary) in kinds_of(settings).items()}
