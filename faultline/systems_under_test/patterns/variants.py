"""The options of systems that select the variants of a pattern, and the measurements of its planted bugs.

The source texts give most patterns in several forms: a lease is kept by heartbeats or not at all, a log is pushed or
fetched. Each form is the value of an option of some system (`--option NAME=VALUE`). This table says only which options
belong to which pattern. Their values, defaults and meaning are read from the systems, so they cannot go stale, and a
test requires a pattern for every option with named values.

The figures come from docs/reference/planted-bugs.jsonl by way of `detection.jsonl` beside this module, which
`make docs` writes, so that an installed package has them too.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

__all__ = ["VARIANTS", "Detection", "detections"]

VARIANTS: dict[str, dict[str, tuple[str, ...]]] = {
    "write-ahead-log": {"consistent-core": ("flush_policy",), "logged-store": ("flush_policy",)},
    "segmented-log": {"consistent-core": ("segment_size_bytes",)},
    "low-water-mark": {
        "consistent-core": ("low_water_mark",),
        "transactional-kv": ("snapshot_every_entries", "transactions_remembered"),
    },
    "leader-and-followers": {
        "consistent-core": ("election", "read_mode", "pre_vote"),
        "coordinated-kv": ("read_mode", "replication_factor"),
    },
    "heartbeat": {
        "consistent-core": ("failure_detector",),
        "gossip": ("detector",),
        "emergent-leader": ("heartbeats",),
        "data-grid": ("heartbeats",),
    },
    "paxos": {"paxos-kv": ("read_mode", "rejections", "prepare_quorum", "accept_quorum")},
    "replicated-log": {"consistent-core": ("replication",), "transactional-kv": ("replication_factor",)},
    "quorum": {
        "quorum-register": ("write_back", "write_quorum", "read_quorum"),
        "quorum-kv": ("write_quorum", "read_quorum"),
    },
    "generation-clock": {"consistent-core": ("election",)},
    "request-waiting-list": {"quorum-register": ("expiration_ms",)},
    "idempotent-receiver": {"consistent-core": ("discard_policy",)},
    "follower-reads": {"follower-reads": ("read_from", "follower_reads", "regions")},
    "versioned-value": {
        "follower-reads": ("store", "versions_kept"),
        "logged-store": ("reads", "versions_kept"),
        "transactional-kv": ("isolation",),
    },
    "version-vector": {"quorum-kv": ("versions", "coordinator", "read_repair", "conflicts")},
    "fixed-partitions": {"partitioned-kv": ("assignment", "tokens_per_node", "late_nodes", "reassign_every_ms")},
    "key-range-partitions": {
        "range-kv": ("splits", "split_by", "sizes", "split_into", "spread"),
        "range-transactions": ("splits", "partition_load_max", "spread", "move_every_ms"),
    },
    "two-phase-commit": {
        "transactional-kv": ("policy", "isolation", "read_only", "clock", "replication_factor"),
        "range-transactions": ("policy", "wait"),
    },
    "lamport-clock": {"timestamped-kv": ("clock",), "transactional-kv": ("clock",)},
    "hybrid-clock": {"timestamped-kv": ("clock", "forward_jump_ms"), "transactional-kv": ("clock",)},
    "clock-bound-wait": {
        "timestamped-kv": ("wait", "restart_at"),
        "range-transactions": ("wait", "error_bound_ms", "max_offset_ms"),
    },
    "consistent-core": {
        "consistent-core": ("find_leader", "read_mode"),
        "coordination-service": ("watch_delivery", "fencing"),
        "follower-reads": ("read_from", "store"),
        "coordinated-kv": ("core_size", "table_source", "aim"),
    },
    "lease": {"coordination-service": ("fencing",)},
    "state-watch": {
        "coordination-service": ("watch_delivery", "watch_source"),
        "coordinated-kv": ("watch_delivery",),
    },
    "gossip-dissemination": {"gossip": ("exchange", "peers", "detector")},
    "emergent-leader": {
        "emergent-leader": ("heartbeats", "minimum"),
        "data-grid": ("minimum_size", "backups", "lease_ms"),
    },
    "single-socket-channel": {"consistent-core": ("wire",)},
    "request-batch": {
        "consistent-core": ("batch_linger_ms", "batch_entries_max", "batch_size_bytes", "wire_linger_ms")
    },
    "request-pipeline": {"consistent-core": ("in_flight_max",)},
}
"""By pattern and system, the options that select a variant; a pattern that is not listed has one form only."""


class Detection(msgspec.Struct, frozen=True, kw_only=True):
    """The measurement of one planted bug: its own checkers saw it in `found` of `runs` runs of `campaign`."""

    system: str
    bug: str
    campaign: str
    runs: int
    found: int

    @property
    def rate(self) -> float:
        """The share of runs that found it."""
        return self.found / self.runs


@cache
def detections() -> dict[tuple[str, str], Detection]:
    """Return the measurements by system and bug; a bug that was never measured is not among them."""
    lines = files(__package__).joinpath("detection.jsonl").read_bytes()
    return {(one.system, one.bug): one for one in msgspec.json.Decoder(Detection).decode_lines(lines)}
