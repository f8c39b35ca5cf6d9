"""The description of a host, known before the first connection to it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

__all__ = ["HOSTS_MAX", "Host"]

HOSTS_MAX = 9
"""A set has at most this many hosts: as many as there are names for the nodes of a run."""


class Host(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The way in which a host is reached, and the means that may be used on it.

    `address` is where nodes and clients find it; SSH does too, unless it has an `ssh_address` of its own.
    `key` is a file with the private key; without one the agent's and the user's usual keys are tried. Its own key must
    stand in one of the `known_hosts` files or in the user's, unless `check_host_key` is switched off by hand. `jump` is
    a host through which it is reached. With `sudo`, commands that need root run under `sudo -n`. Clock faults strike
    what each `process` of a store sees or, on a host that serves nothing else, its `real` clock. Hosts of one `rack`
    fail together in some faults. `folder` is where
    nodes keep their files. They listen on `node_port` of `address` and of no other address; behind a translation of
    addresses, of `listen_address`, which is the host's own. `python` is the interpreter that can import Faultline when
    `python_path` is on its path.
    """

    name: str
    address: str
    ssh_address: str = ""
    port: int = 22
    user: str = "root"
    key: str | None = None
    known_hosts: tuple[str, ...] = ()
    check_host_key: bool = True
    jump: Host | None = None
    sudo: bool = False
    clock: Literal["process", "real"] = "process"
    rack: Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z0-9][A-Za-z0-9_.-]{0,99})?$")] = ""
    folder: str = "/var/tmp/faultline"
    node_port: int = 7077
    listen_address: str = ""
    python: str = "python3"
    python_path: str = ""

    @property
    def way_in(self) -> str:
        """The address at which SSH reaches the host."""
        return self.ssh_address or self.address
