"""The options of `emergent-leader`: those of members, and the minimum size below which clients are refused."""

from __future__ import annotations

from typing import Annotated, ClassVar

from faultline.systems_under_test.reference.membership.settings import MemberSettings
from faultline.systems_under_test.reference.shared.settings import Milliseconds, Number, options_of

__all__ = ["OPTIONS", "EmergentSettings"]


class EmergentSettings(MemberSettings, frozen=True):
    """The options, read and checked; times in microseconds."""

    system: ClassVar[str] = "emergent-leader"

    minimum: Annotated[
        int,
        Number(0, least=0),
        "the live members below which clients are refused; 0 is a majority of the largest membership ever seen",
    ]
    client_timeout_us: Annotated[int, Milliseconds(800), "the time after which a client gives up"]


OPTIONS = options_of(EmergentSettings)
"""Every option with its default."""
