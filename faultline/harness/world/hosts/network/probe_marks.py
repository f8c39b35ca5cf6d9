"""The marks of the harness's own datagrams, by which each proves one kind of fault and no other."""

from __future__ import annotations

__all__ = ["PROBE_TOS", "TOS_MASK", "UNDEGRADED_TOS"]

UNDEGRADED_TOS = 0xF8
"""Packets of this type of service pass as on a healthy link: with them cuts are probed."""
PROBE_TOS = 0xF4
"""Packets of this type of service pass cut links, and are treated like all others but not counted: with them the
quality of links is probed."""
TOS_MASK = 0xFC
"""The rest of the type of service is for routers to mark congestion with."""
