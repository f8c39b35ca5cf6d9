"""The options of `timestamped-kv`: the clock that stamps the versions, and the wait until clocks agree."""

from __future__ import annotations

from typing import Annotated, ClassVar

from faultline.harness.errors import UsageError
from faultline.systems_under_test.reference.shared.settings import (
    Choice,
    Milliseconds,
    Number,
    OptionalMilliseconds,
    Settings,
    options_of,
)

__all__ = ["OPTIONS", "TimestampSettings"]

_WAITS = ("none", "write", "restart", "commit")


class TimestampSettings(Settings, frozen=True):
    """The options, read and checked; times in microseconds. `forward_jump_us` is None when no jump is refused."""

    system: ClassVar[str] = "timestamped-kv"

    clock: Annotated[str, Choice(("hybrid", "lamport")), "the clock that stamps the versions of values"]
    wait: Annotated[
        str,
        Choice(_WAITS),
        "the wait until clocks agree: none (reads may be stale), the writer's for max_offset, the reader's by"
        " reading again, or both for the error bound of their clocks",
    ]
    max_offset_us: Annotated[
        int, Milliseconds(200), "the most by which the clocks of two nodes may differ (wait=write and wait=restart)"
    ]
    error_bound_us: Annotated[
        int, Milliseconds(100), "the most by which a node's clock may differ from the true time (wait=commit)"
    ]
    forward_jump_us: Annotated[
        int | None,
        OptionalMilliseconds(500),
        "refuse a request whose stamp is further ahead of the node's clock; 0 refuses none (then the fastest"
        " clock drags the others along)",
    ]
    restart_at: Annotated[
        str,
        Choice(("version", "later")),
        "where an uncertain reader reads again: at the version that made it uncertain, or at the node's time"
        " once max_offset has passed",
    ]
    read_attempts: Annotated[int, Number(5), "the attempts of an uncertain reader before it gives up"]
    request_timeout_us: Annotated[int, Milliseconds(600), "the time after which a reader asks again"]
    client_timeout_us: Annotated[int, Milliseconds(1500), "the time after which a client gives up: outcome unknown"]

    def check(self) -> None:
        """Raise `UsageError` for a wait that the clock cannot end, or that outlasts the patience of clients."""
        if self.clock == "lamport" and self.wait != "none":
            raise UsageError(
                f"A Lamport clock tells no time, so nothing can wait for it (wait={self.wait}).",
                "Use clock=hybrid, or wait=none.",
            )
        patience_us = self.client_timeout_us if self.wait == "write" else self.request_timeout_us
        longest_us = {"write": self.max_offset_us, "commit": 2 * self.error_bound_us}.get(self.wait, 0)
        if longest_us >= min(patience_us, self.client_timeout_us):
            raise UsageError(
                f"Clients lose patience before a wait of {longest_us // 1_000} ms is over (wait={self.wait}).",
                "Raise request_timeout_ms and client_timeout_ms, or lower what is waited for.",
            )


OPTIONS = options_of(TimestampSettings)
"""Every option with its default."""
