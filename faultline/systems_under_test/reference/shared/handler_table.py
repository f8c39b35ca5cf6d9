"""Which handler of a node takes which kind of message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.world.ports import NodeId, UnexpectedMessage

__all__ = ["HandlerTable"]


class HandlerTable(dict[type, Callable[[NodeId, Any], None]]):
    """Handlers by the type of message. A type without one is refused with UnexpectedMessage, not with a KeyError.

    What a node sends to its clients is a message of the system too, so anything that speaks the protocol can bring it
    here.
    """

    def take(self, source: NodeId, message: Any) -> None:
        """Let the handler of its type handle `message`. Raises UnexpectedMessage when there is none."""
        handler = self.get(type(message))
        if handler is None:
            raise UnexpectedMessage(message)
        handler(source, message)
