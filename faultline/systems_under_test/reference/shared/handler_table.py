"""A table of the handlers of a node by the type of message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from faultline.harness.world.ports import NodeId, UnexpectedMessage

__all__ = ["HandlerTable", "Handlers"]

Handlers = Mapping[type, Callable[[NodeId, Any], None]]
"""The handler of each type of message."""


class HandlerTable(dict[type, Callable[[NodeId, Any], None]]):
    """Handlers by the type of message. A type without one is refused with `UnexpectedMessage`, not with a `KeyError`.

    Any peer that speaks the protocol can send such a type: messages to clients, for instance, are of the system too.
    """

    def take(self, source: NodeId, message: Any) -> None:
        """Let the handler of its type handle `message`. Raise `UnexpectedMessage` when there is none."""
        handler = self.get(type(message))
        if handler is None:
            raise UnexpectedMessage(message)
        handler(source, message)
