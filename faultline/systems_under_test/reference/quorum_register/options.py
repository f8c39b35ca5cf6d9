"""The options of `quorum-register`: the replicas that must agree, and the moment at which a read may answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

import msgspec

from faultline.harness.errors import UsageError
from faultline.systems_under_test.patterns.data_replication.quorum import majority
from faultline.systems_under_test.reference.shared.settings import Choice, Milliseconds, Number, Settings, options_of

__all__ = ["OPTIONS", "RegisterSettings"]


class RegisterSettings(Settings, frozen=True):
    """The options, read and checked; times in microseconds."""

    system: ClassVar[str] = "quorum-register"

    write_back: Annotated[
        str,
        Choice(("on", "later", "off")),
        "a read stores the copy it found on a quorum before it answers (on: linearizable), afterwards (later: read"
        " repair), or never (off)",
    ]
    write_quorum: Annotated[
        int,
        Number(0, least=0),
        "replicas that must have stored a value before it counts as written; 0 is a majority",
    ]
    read_quorum: Annotated[
        int,
        Number(0, least=0),
        "replicas that must have answered before a read or write goes on; 0 is a majority. With no more than n"
        " together with write_quorum, reads may miss writes",
    ]
    expiration_us: Annotated[
        int,
        Milliseconds(200),
        "the silence after which a replica counts as lost; below the clients' own timeouts",
    ]
    request_timeout_us: Annotated[int, Milliseconds(300), "the time after which a reader asks another replica"]
    client_timeout_us: Annotated[int, Milliseconds(1000), "the time after which a client gives up: outcome unknown"]

    @classmethod
    def of_cluster(cls, options: Mapping[str, str], replicas: int) -> Self:
        """Return the settings of `options` among `replicas`, with majorities for quorums of 0. Raise `UsageError`."""
        settings = cls.read(options)
        return msgspec.structs.replace(
            settings,
            write_quorum=_quorum("write_quorum", settings.write_quorum, replicas),
            read_quorum=_quorum("read_quorum", settings.read_quorum, replicas),
        )


def _quorum(name: str, asked: int, replicas: int) -> int:
    needed = asked or majority(replicas)
    if needed > replicas:
        raise UsageError(
            f"{name} is {needed}, and there are only {replicas} replicas.", f"Set it to {replicas} at most."
        )
    return needed


OPTIONS = options_of(RegisterSettings)
"""Every option with its default."""
