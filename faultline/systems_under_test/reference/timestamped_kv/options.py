"""The options of `timestamped-kv`: which clock stamps the versions, and who waits for clocks to agree."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.reference.shared.option_values import OptionValues

__all__ = ["OPTIONS", "TimestampSettings"]

OPTIONS: dict[str, OptionDescription] = {
    "clock": OptionDescription(
        default="hybrid", choices=("hybrid", "lamport"), summary="what stamps the versions of values"
    ),
    "wait": OptionDescription(
        default="none",
        choices=("none", "write", "restart", "commit"),
        summary="who waits until clocks agree: nobody (reads may be stale), the writer for max_offset, the reader by"
        " reading again, or both for the error bound of their clocks",
    ),
    "max_offset_ms": OptionDescription(
        default="200", summary="by how much the clocks of two nodes may differ (wait=write and wait=restart)"
    ),
    "error_bound_ms": OptionDescription(
        default="100", summary="by how much a node's clock may differ from the true time (wait=commit)"
    ),
    "forward_jump_ms": OptionDescription(
        default="500",
        summary="refuse a request whose stamp is further ahead of the node's clock; 0 refuses none (then the fastest"
        " clock drags the others along)",
    ),
    "restart_at": OptionDescription(
        default="version",
        choices=("version", "later"),
        summary="where an uncertain reader reads again: at the version that made it uncertain, or at the node's time"
        " once max_offset has passed",
    ),
    "read_attempts": OptionDescription(default="5", summary="how often an uncertain reader tries before it gives up"),
    "request_timeout_ms": OptionDescription(default="600", summary="after how long a reader asks again"),
    "client_timeout_ms": OptionDescription(default="1500", summary="after how long a client gives up: outcome unknown"),
}
"""Every option with its default."""


class TimestampSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds. `forward_jump_us` is None when no jump is refused."""

    clock: str
    wait: str
    max_offset_us: int
    error_bound_us: int
    forward_jump_us: int | None
    restart_at: str
    read_attempts: int
    request_timeout_us: int
    client_timeout_us: int

    @classmethod
    def read(cls, options: Mapping[str, str]) -> TimestampSettings:
        """The settings of `options`. Raises UsageError for one that cannot be used."""
        values = OptionValues("timestamped-kv", OPTIONS, options)
        clock, wait = values.choice("clock"), values.choice("wait")
        if clock == "lamport" and wait != "none":
            raise UsageError(
                f"A Lamport clock tells no time, so nothing can wait for it (wait={wait}).",
                "Use clock=hybrid, or wait=none.",
            )
        settings = cls(
            clock=clock,
            wait=wait,
            max_offset_us=values.microseconds("max_offset_ms"),
            error_bound_us=values.microseconds("error_bound_ms"),
            forward_jump_us=1_000 * values.number("forward_jump_ms", least=0) or None,
            restart_at=values.choice("restart_at"),
            read_attempts=values.number("read_attempts"),
            request_timeout_us=values.microseconds("request_timeout_ms"),
            client_timeout_us=values.microseconds("client_timeout_ms"),
        )
        settings._refuse_waits_without_end()
        return settings

    def _refuse_waits_without_end(self) -> None:
        patience_us = self.client_timeout_us if self.wait == "write" else self.request_timeout_us
        longest_us = {"write": self.max_offset_us, "commit": 2 * self.error_bound_us}.get(self.wait, 0)
        if longest_us >= min(patience_us, self.client_timeout_us):
            raise UsageError(
                f"Clients lose patience before a wait of {longest_us // 1_000} ms is over (wait={self.wait}).",
                "Raise request_timeout_ms and client_timeout_ms, or lower what is waited for.",
            )
