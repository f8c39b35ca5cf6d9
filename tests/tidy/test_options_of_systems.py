"""A system that is a product line hides what it is for: a reader compares fifteen options, not fifty."""

from __future__ import annotations

import pytest

from faultline.registry import load_system, systems

_OPTIONS_MAX = 15


@pytest.mark.parametrize("name", sorted(name for name, path in systems().items() if ".reference." in path))
def test_a_reference_system_has_at_most_fifteen_options(name: str) -> None:
    options = load_system(name).options
    assert len(options) <= _OPTIONS_MAX, f"move sizes and times of {name} behind `tuning`, or split it"
