"""Every module of a pattern is driven by a system that uses it; none is reached from tests alone."""

from __future__ import annotations

from tidy_drivers import complaints_about_undriven_modules, undriven_modules
from tidy_sources import Source, python_sources

from faultline import registry

BOOK = (
    "faultline.systems_under_test.patterns",
    "faultline.systems_under_test.stores",
)
COMMAND_LINE = tuple(
    f"faultline.systems_under_test.patterns.{name}" for name in ("catalogue", "lesson", "requirement_rows", "variants")
)
"""Tables of the patterns, for `faultline list` and `faultline show`; no system has a use for them."""


def roots() -> list[str]:
    """Return the modules of all systems, stores and workloads that are found by name."""
    tables = (registry.systems(), registry.stores(), registry.workloads())
    return sorted({target.partition(":")[0] for table in tables for target in table.values()})


def test_every_module_of_a_pattern_is_driven_by_a_system() -> None:
    undriven = undriven_modules(python_sources("faultline"), roots(), BOOK)
    left = [module for module in undriven if module not in COMMAND_LINE]
    assert not (complaints := complaints_about_undriven_modules(left)), "\n".join(complaints)


def source(module: str, text: str) -> Source:
    return Source(f"{module.replace('.', '/')}.py", text)


SOURCES = [
    source("faultline.systems.core", "from faultline.book.log import Log\n"),
    source("faultline.book.log", "def read() -> None:\n    from faultline.book import clock\n"),
    source("faultline.book.clock", ""),
    source("faultline.book.__init__", ""),
    source("faultline.book.lease", "from faultline.book.log import Log\n"),
    source("faultline.cli", "from faultline.book.lease import Lease\n"),
]


def test_a_module_that_only_others_than_systems_import_is_undriven() -> None:
    assert undriven_modules(SOURCES, ["faultline.systems"], ["faultline.book"]) == ["faultline.book.lease"]


def test_each_undriven_module_is_complained_about() -> None:
    (complaint,) = complaints_about_undriven_modules(["faultline.book.lease"])
    assert complaint.startswith("faultline.book.lease: no system")
    assert complaints_about_undriven_modules([]) == []
