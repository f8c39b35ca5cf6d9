"""Options of both kinds of Redis, and the configuration made from them.

All other settings are Redis's defaults, but for three: no snapshots beside the append-only file, which are forks that a
test does not need; replicas are served at once (`repl-diskless-sync-delay`), since a cluster forms before each run; and
replicas report each second how far they are, so that a lag can be measured in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping

from faultline.harness.system import OptionDescription, StorePlace
from faultline.systems_under_test.stores.redis.commands import Waiting

__all__ = ["OPTIONS", "configuration", "waiting_of"]

OPTIONS: Mapping[str, OptionDescription] = {
    "read_from": OptionDescription(
        default="master",
        choices=("master", "replica"),
        summary="replica: each client reads from its own member, of any role; may be stale",
    ),
    "min_replicas_to_write": OptionDescription(
        default="0", summary="a master with fewer replicas that keep up refuses writes"
    ),
    "min_replicas_max_lag_s": OptionDescription(
        default="10", summary="a replica keeps up that was heard of no longer ago than this"
    ),
    "wait_replicas": OptionDescription(
        default="0", summary="a write counts as done once this many replicas have it (WAIT)"
    ),
    "wait_timeout_ms": OptionDescription(default="500", summary="how long a write waits for them"),
    "append_only": OptionDescription(
        default="yes", choices=("yes", "no"), summary="no: a member that restarts has lost everything"
    ),
    "append_fsync": OptionDescription(
        default="everysec", choices=("always", "everysec", "no"), summary="when the append-only file is flushed"
    ),
    "client_timeout_ms": OptionDescription(default="1000", summary="how long a client waits for an answer"),
}


def _guard(password: str) -> list[str]:
    """Return the lines by which a server demands the password, and gives it to others."""
    return [f"requirepass {password}", f"masterauth {password}"] if password else []


def configuration(place: StorePlace, port: int, password: str, *more: str) -> str:
    """Return the text of `redis.conf` for a server on `port`, with `more` lines at its end."""
    options = place.options
    lines = [
        f"port {port}",
        f"bind {place.address}",
        "protected-mode no",
        *_guard(password),
        f"dir {place.data_folder}",
        f"appendonly {options['append_only']}",
        f"appendfsync {options['append_fsync']}",
        'save ""',
        f"min-replicas-to-write {options['min_replicas_to_write']}",
        f"min-replicas-max-lag {options['min_replicas_max_lag_s']}",
        "repl-diskless-sync-delay 0",
        "repl-ping-replica-period 1",
        *more,
    ]
    return "\n".join(lines) + "\n"


def waiting_of(options: Mapping[str, str]) -> Waiting:
    """Return the waiting for replicas that `options` ask for."""
    return Waiting(int(options["wait_replicas"]), int(options["wait_timeout_ms"]))
