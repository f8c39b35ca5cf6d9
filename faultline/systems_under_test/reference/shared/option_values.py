"""Reading the options of a system: text in, checked values out, and a complaint that names what would be allowed."""

from __future__ import annotations

from collections.abc import Mapping

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription

__all__ = ["OptionValues"]


class OptionValues:
    """The values of the options of one system, defaults for those that were left out."""

    def __init__(self, system: str, described: Mapping[str, OptionDescription], given: Mapping[str, str]) -> None:
        """Raises UsageError for an option that the system does not have."""
        for name in given:
            if name not in described:
                raise UsageError(f"{system} has no option {name!r}.", f"It has {', '.join(described)}.")
        self._described = described
        self._values = {name: given.get(name, description.default) for name, description in described.items()}

    def choice(self, name: str) -> str:
        """The value of an option that has choices. Raises UsageError when it is none of them."""
        value, choices = self._values[name], self._described[name].choices
        if value not in choices:
            raise UsageError(f"Option {name} cannot be {value!r}.", f"Choose one of {', '.join(choices)}.")
        return value

    def number(self, name: str, least: int = 1) -> int:
        """The value of a whole number of at least `least`. Raises UsageError for anything else."""
        text = self._values[name]
        if not (text.isascii() and text.isdigit() and int(text) >= least):
            raise UsageError(
                f"Option {name} must be a whole number from {least}, not {text!r}.",
                f"The default is {self._described[name].default}.",
            )
        return int(text)

    def microseconds(self, name: str) -> int:
        """The value of a time in milliseconds, above 0, in microseconds. Raises UsageError."""
        return 1_000 * self.number(name)

    def text(self, name: str) -> str:
        """The value of an option that takes any text."""
        return self._values[name]
