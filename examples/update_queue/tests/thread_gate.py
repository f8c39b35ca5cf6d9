"""For tests with threads: a handler that stands still until it is told to go on, so that no test waits by the clock."""

from __future__ import annotations

import threading
from typing import Any

SOON_S = 60.0
"""Only a failing test waits this long."""


class Gate:
    """A handler that stands still until it is opened, and says when it has been entered."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()
        self.handled: list[Any] = []

    def __call__(self, request: Any) -> Any:
        self.entered.set()
        assert self.open.wait(SOON_S)
        self.handled.append(request)
        return request
