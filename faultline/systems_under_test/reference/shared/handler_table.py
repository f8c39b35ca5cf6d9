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

    def __missing__(self, _kind: type) -> Callable[[NodeId, Any], None]:
        """Return the handler that refuses. Lookups stay those of a dict, since every message of a run makes one."""
        return _refuse


def _refuse(_source: NodeId, message: Any) -> None:
    raise UnexpectedMessage(message)
