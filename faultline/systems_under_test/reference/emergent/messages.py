"""The messages of `emergent-leader`: those of its members, and a client's question with its answer.

Members report their marks as `membership.messages` says; beside them a node counts `not-enough-members` when a client
was refused by a group that is too small.
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.systems_under_test.reference.membership.messages import MEMBER_MESSAGES

__all__ = ["MESSAGES", "ViewRequest", "ViewResponse"]


class ViewRequest(msgspec.Struct, frozen=True, tag="view-request"):
    """A client's question for the members of the cluster."""

    request_number: int


class ViewResponse(msgspec.Struct, frozen=True, tag="view-response"):
    """The answer to a client: `version`, `coordinator`, `live`; or the code of an error."""

    request_number: int
    view: dict[str, Any] | None = None
    error: str | None = None


MESSAGES: tuple[type[msgspec.Struct], ...] = (*MEMBER_MESSAGES, ViewRequest, ViewResponse)
"""Every message that crosses the network."""
