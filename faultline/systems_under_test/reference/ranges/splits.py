"""The kind of an option that names the keys at which the first ranges begin."""

from __future__ import annotations

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import UnsuitableSplit, ranges_between
from faultline.systems_under_test.reference.shared.settings import NamedByField

__all__ = ["Splits"]


class Splits(NamedByField, frozen=True):
    """The keys at which ranges begin, ascending, with commas between them."""

    def described(self, summary: str) -> OptionDescription:
        return OptionDescription(default="", is_text=True, summary=summary)

    def parsed(self, name: str, text: str) -> tuple[str, ...]:
        splits = tuple(text.split(",")) if text else ()
        try:
            ranges_between(splits)
        except UnsuitableSplit as error:
            raise UsageError(f"Option {name} cannot be {text!r}: {error}.", "Give keys in order, as in b,d.") from error
        return splits
