"""Host files: the TOML that `--hosts ssh:FILE` reads.

    [defaults]                      # for every host below; a host may say otherwise
    user = "admin"
    key = "~/.ssh/id_ed25519"
    sudo = true

    [jumps.bastion]                 # hosts to go through; they carry no nodes
    address = "bastion.example.org"

    [hosts.n1]
    address = "10.0.0.11"
    jump = "bastion"

    [hosts.n2]
    address = "10.0.0.12"
    jump = "bastion"

The keys of a host are the fields of `Host` (`host.py`). Files are named relative to the host file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.untrusted import converted, read_toml
from faultline.harness.world.hosts.machines.host import Host

__all__ = ["read_host_file"]

_HINT = 'Write one with a table for each host, such as [hosts.n1] with address = "10.0.0.11".'
_TABLES = ("defaults", "jumps", "hosts")


def read_host_file(path: Path) -> tuple[Host, ...]:
    """Return the hosts in the order of the file. Raises UsageError with the file, the host and the key at fault."""
    tables = _tables(path)
    defaults = tables.get("defaults", {})
    jumps: dict[str, Host] = {}
    for name, entry in tables.get("jumps", {}).items():
        jumps[name] = _host(path, name, {**_without_jump(defaults), **entry}, jumps)
    hosts = tuple(_host(path, name, {**defaults, **entry}, jumps) for name, entry in tables.get("hosts", {}).items())
    if not hosts:
        raise UsageError(f"{path} names no hosts.", _HINT)
    return hosts


def _tables(path: Path) -> dict[str, dict[str, Any]]:
    tables = read_toml(path, next_step=_HINT)
    for name, table in tables.items():
        if name not in _TABLES:
            raise UsageError(f"{path} has a table [{name}], which means nothing.", f"There are {', '.join(_TABLES)}.")
        if not isinstance(table, dict) or (name != "defaults" and not all(isinstance(v, dict) for v in table.values())):
            raise UsageError(f"In {path}, {name} is not a table of hosts.", "Write it as [hosts.NAME].")
    return tables


def _without_jump(defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults of a jump host: without the jump, or it would have to be reached through itself."""
    return {key: value for key, value in defaults.items() if key != "jump"}


def _host(path: Path, name: str, entry: Mapping[str, Any], jumps: Mapping[str, Host]) -> Host:
    fields: dict[str, Any] = {**entry, "name": name}
    jump = fields.pop("jump", None)
    if jump is not None and (not isinstance(jump, str) or jump not in jumps):
        raise UsageError(
            f"In {path}, the host {name} is reached through {jump!r:.60}, which is no jump host.", _known(jumps)
        )
    if isinstance(fields.get("key"), str):
        fields["key"] = _file(path, fields["key"])
    if isinstance(fields.get("known_hosts"), list):
        fields["known_hosts"] = [_file(path, str(known)) for known in fields["known_hosts"]]
    see = "See the keys in docs/reference/host-file.md."
    host = converted(fields, Host, path, place=f"the host {name}", next_step=see)
    return msgspec.structs.replace(host, jump=jumps[jump]) if jump is not None else host


def _known(jumps: Mapping[str, Host]) -> str:
    return f"There are {', '.join(jumps)}." if jumps else "Add a table such as [jumps.bastion] above it."


def _file(path: Path, named: str) -> str:
    try:
        return str((path.parent / Path(named).expanduser()).absolute())
    except RuntimeError as error:
        raise UsageError(f"In {path}, there is no home for {named!r:.60}.", "Write the whole path.") from error
