"""Numbers of things in sentences."""

from __future__ import annotations

__all__ = ["counted"]


def counted(count: int, noun: str) -> str:
    """`1 element`, `3 elements`, `1,530 watches`."""
    ending = "es" if noun.endswith(("ch", "sh", "s", "x")) else "s"
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}{ending}"
