"""A fact found out about a host, for `faultline doctor --hosts`."""

from __future__ import annotations

import msgspec

__all__ = ["Finding"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at on `host`: whether it is there, what was seen, and the next step when it is not."""

    host: str
    name: str
    healthy: bool
    seen: str
    next_step: str = ""
