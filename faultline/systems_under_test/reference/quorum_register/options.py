"""The options of `quorum-register`: how many replicas must agree, and when a read may answer."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.patterns.data_replication.quorum import majority
from faultline.systems_under_test.reference.shared.option_values import OptionValues

__all__ = ["OPTIONS", "RegisterSettings"]

OPTIONS: dict[str, OptionDescription] = {
    "write_back": OptionDescription(
        default="on",
        choices=("on", "later", "off"),
        summary="a read stores what it found on a quorum before it answers (on: linearizable), afterwards (later: read"
        " repair), or never (off)",
    ),
    "write_quorum": OptionDescription(
        default="0", summary="replicas that must have stored a value before it counts as written; 0 is a majority"
    ),
    "read_quorum": OptionDescription(
        default="0",
        summary="replicas that must have answered before a read or write goes on; 0 is a majority. With no more than n"
        " together with write_quorum, reads may miss writes",
    ),
    "expiration_ms": OptionDescription(
        default="200", summary="after how long a replica that is silent counts as lost; below the clients' own timeouts"
    ),
    "request_timeout_ms": OptionDescription(default="300", summary="after how long a reader asks another replica"),
    "client_timeout_ms": OptionDescription(default="1000", summary="after how long a client gives up: outcome unknown"),
}
"""Every option with its default."""


class RegisterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds."""

    write_back: str
    write_quorum: int
    read_quorum: int
    expiration_us: int
    request_timeout_us: int
    client_timeout_us: int

    @classmethod
    def read(cls, options: Mapping[str, str], replicas: int) -> RegisterSettings:
        """The settings of `options` for a cluster of `replicas`. Raises UsageError."""
        values = OptionValues("quorum-register", OPTIONS, options)
        return cls(
            write_back=values.choice("write_back"),
            write_quorum=_quorum(values, "write_quorum", replicas),
            read_quorum=_quorum(values, "read_quorum", replicas),
            expiration_us=values.microseconds("expiration_ms"),
            request_timeout_us=values.microseconds("request_timeout_ms"),
            client_timeout_us=values.microseconds("client_timeout_ms"),
        )


def _quorum(values: OptionValues, name: str, replicas: int) -> int:
    needed = values.number(name, least=0) or majority(replicas)
    if needed > replicas:
        raise UsageError(
            f"{name} is {needed}, and there are only {replicas} replicas.", f"Set it to {replicas} at most."
        )
    return needed
