"""Conditions on the values of objects, by which transactions select them."""

from __future__ import annotations

from typing import Any

__all__ = ["is_condition", "meets"]


def is_condition(condition: Any) -> bool:
    """Return whether `condition` is `"true"`, `["=", VALUE]`, `[">", BOUND]` or `["mod", M, R]`."""
    match condition:
        case "true" | ["true"] | ["=", _] | [">", int()]:
            return True
        case ["mod", int(modulus), int()]:
            return modulus > 0
    return False


def meets(condition: Any, value: Any) -> bool:
    """Return whether an object of this value meets the condition; null is an object that does not exist."""
    if value is None:
        return False
    match condition:
        case ["=", wanted]:
            return bool(value == wanted)
        case [">", bound]:
            return type(value) is int and value > bound
        case ["mod", modulus, remainder]:
            return type(value) is int and value % modulus == remainder
    return True
