"""One thing that a machine lacks for hosts made of namespaces."""

from __future__ import annotations

import msgspec

__all__ = ["Lack"]


class Lack(msgspec.Struct, frozen=True):
    """One thing that is missing, and the next step."""

    what: str
    next_step: str
