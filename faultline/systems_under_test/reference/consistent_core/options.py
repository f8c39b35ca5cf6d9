"""The options of `consistent-core`: what can be set, and which combinations are refused."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.patterns.data_replication.heartbeat import check_heartbeat_timing
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import SAVED_RESPONSES_MAX
from faultline.systems_under_test.patterns.data_replication.session_expiry import CHECK_INTERVAL_US, SESSION_TIMEOUT_US
from faultline.systems_under_test.patterns.node_communication.batch_queue import BATCH_SIZE_BYTES
from faultline.systems_under_test.reference.consistent_core.follower_reads.options import (
    FOLLOWER_READ_OPTIONS,
    FollowerReadSettings,
)
from faultline.systems_under_test.reference.consistent_core.services.options import (
    SERVICE_OPTIONS,
    ServiceSettings,
)

__all__ = [
    "BATCH_SIZE_BYTES_MIN",
    "DISCARD_POLICIES",
    "ELECTIONS",
    "FAILURE_DETECTORS",
    "FLUSH_POLICIES",
    "LOW_WATER_MARKS",
    "OPTIONS",
    "READ_MODES",
    "CoreSettings",
]

ELECTIONS = ("raft", "zab", "external-store")
"""Candidates ask for votes; all reckon alike who is best; whoever creates a key in a store first."""

FAILURE_DETECTORS = ("pause-aware", "fixed-timeout", "phi-accrual")
"""A fixed timeout that forgives one's own sleep, without that, or a suspicion that follows how heartbeats arrive."""

BATCH_SIZE_BYTES_MIN = 64
"""The least size of a batch: room for the commands that servers themselves put into the log."""

READ_MODES = ("read-index", "leader-lease", "log", "stale")
"""Through a round of heartbeats, under a lease, through the log; or, unsafe by design, from any server's own state."""

FLUSH_POLICIES = ("each-append", "interval", "never")
"""Before anything is acknowledged; or, unsafe by design, from a timer, or when the operating system pleases."""

LOW_WATER_MARKS = ("snapshot", "time", "acknowledged", "off")
"""What snapshots make superfluous; of that, what is old enough; of that, what all servers have stored; nothing."""

DISCARD_POLICIES = ("last-responses", "one-at-a-time", "acknowledged")
"""Which saved answers are kept: so many, the newest alone, or what the client has not acknowledged."""

OPTIONS: dict[str, OptionDescription] = {
    "read_mode": OptionDescription(
        default="read-index", choices=READ_MODES, summary="how reads are answered; `stale` is not linearizable"
    ),
    "replication": OptionDescription(
        default="push", choices=("push", "pull"), summary="the leader sends entries, or followers fetch them"
    ),
    "heartbeat_interval_ms": OptionDescription(default="50", summary="how often a leader shows that it lives"),
    "election_timeout_ms": OptionDescription(
        default="250",
        summary="the shortest silence after which a server stands for election; the longest is twice that",
    ),
    "election": OptionDescription(
        default="raft",
        choices=ELECTIONS,
        summary="how a leader is elected (external-store: the last node is the store)",
    ),
    "failure_detector": OptionDescription(
        default="pause-aware", choices=FAILURE_DETECTORS, summary="how a follower judges the silence of its leader"
    ),
    "leader_key_ttl_ms": OptionDescription(
        default="500", summary="how long the leader's key in the store lives unrefreshed (election external-store)"
    ),
    "leader_lease_ms": OptionDescription(
        default="200", summary="how long after a heartbeat the leader may answer reads (read_mode leader-lease)"
    ),
    "pre_vote": OptionDescription(
        default="on", choices=("on", "off"), summary="ask whether an election could be won before starting it"
    ),
    "batch_entries_max": OptionDescription(default="64", summary="the most log entries in one replication request"),
    "batch_size_bytes": OptionDescription(
        default=str(BATCH_SIZE_BYTES), summary="the most bytes of commands in one batch and in one replication request"
    ),
    "batch_linger_ms": OptionDescription(
        default="0", summary="how long a leader collects commands to append and flush together; 0: not at all"
    ),
    "in_flight_max": OptionDescription(
        default="5", summary="the most unanswered replication requests per follower; 1: no pipeline"
    ),
    "segment_size_bytes": OptionDescription(default="16384", summary="the size at which a log file is closed"),
    "flush_policy": OptionDescription(
        default="each-append",
        choices=FLUSH_POLICIES,
        summary="when the log is flushed; all but `each-append` can lose what was acknowledged",
    ),
    "flush_interval_ms": OptionDescription(
        default="200", summary="how long after an append the flush comes (flush_policy interval)"
    ),
    "low_water_mark": OptionDescription(
        default="snapshot",
        choices=LOW_WATER_MARKS,
        summary="what may be discarded of the log; `time` and `acknowledged` keep more than `snapshot` would",
    ),
    "snapshot_every_entries": OptionDescription(default="2000", summary="applied entries between two snapshots"),
    "snapshots_retained": OptionDescription(
        default="2", summary="how many snapshots are kept, and the log from the oldest of them on"
    ),
    "snapshot_chunk_bytes": OptionDescription(default="65536", summary="how much of a snapshot is sent at once"),
    "log_cleaning_interval_ms": OptionDescription(
        default="1000", summary="how long after one run of the log cleaner the next one comes"
    ),
    "log_retention_ms": OptionDescription(
        default="4233600000", summary="how old log entries must be to go (low_water_mark time); seven weeks"
    ),
    "discard_policy": OptionDescription(
        default="last-responses",
        choices=DISCARD_POLICIES,
        summary="which saved answers of a client are kept: the last few, the newest, or all it has not acknowledged",
    ),
    "saved_responses_max": OptionDescription(
        default=str(SAVED_RESPONSES_MAX), summary="how many answers are kept (discard_policy last-responses)"
    ),
    "session_timeout_ms": OptionDescription(
        default=str(SESSION_TIMEOUT_US // 1_000), summary="after how long without a sign of life a session ends"
    ),
    "session_check_ms": OptionDescription(
        default=str(CHECK_INTERVAL_US // 1_000), summary="how often a leader looks for idle sessions"
    ),
    "session_heartbeat_ms": OptionDescription(
        default=str(CHECK_INTERVAL_US // 1_000), summary="how often a client without requests shows that it lives"
    ),
    "request_timeout_ms": OptionDescription(default="300", summary="after how long a client asks another server"),
    "client_timeout_ms": OptionDescription(default="1000", summary="after how long a client gives up: outcome unknown"),
    "find_leader": OptionDescription(
        default="redirect",
        choices=("redirect", "forward"),
        summary="what a server does that does not lead: name the leader, or pass requests on to it",
    ),
    **FOLLOWER_READ_OPTIONS,
    **SERVICE_OPTIONS,
}
"""Every option with its default."""


class CoreSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds."""

    read_mode: str
    replication: str
    election: str
    failure_detector: str
    pre_vote: bool
    heartbeat_interval_us: int
    election_timeout_us: int
    leader_lease_us: int
    leader_key_ttl_us: int
    batch_entries_max: int
    batch_size_bytes: int
    batch_linger_us: int
    in_flight_max: int
    segment_size_bytes: int
    flush_policy: str
    flush_interval_us: int
    low_water_mark: str
    snapshot_every_entries: int
    snapshots_retained: int
    snapshot_chunk_bytes: int
    log_cleaning_interval_us: int
    log_retention_us: int
    discard_policy: str
    saved_responses_max: int
    session_timeout_us: int
    session_check_us: int
    session_heartbeat_us: int
    request_timeout_us: int
    client_timeout_us: int
    forwards: bool
    follower: FollowerReadSettings
    service: ServiceSettings

    @classmethod
    def read(cls, options: Mapping[str, str]) -> CoreSettings:
        """The settings of `options`, with defaults for what is left out. Raises UsageError."""
        _refuse_unknown(options)
        values = {name: options.get(name, description.default) for name, description in OPTIONS.items()}
        settings = cls(
            read_mode=_choice("read_mode", values["read_mode"]),
            replication=_choice("replication", values["replication"]),
            election=_choice("election", values["election"]),
            failure_detector=_choice("failure_detector", values["failure_detector"]),
            pre_vote=_choice("pre_vote", values["pre_vote"]) == "on",
            heartbeat_interval_us=1_000 * _number("heartbeat_interval_ms", values),
            election_timeout_us=1_000 * _number("election_timeout_ms", values),
            leader_lease_us=1_000 * _number("leader_lease_ms", values),
            leader_key_ttl_us=1_000 * _number("leader_key_ttl_ms", values),
            batch_entries_max=_number("batch_entries_max", values),
            batch_size_bytes=_number("batch_size_bytes", values),
            batch_linger_us=1_000 * _count("batch_linger_ms", values),
            in_flight_max=_number("in_flight_max", values),
            segment_size_bytes=_number("segment_size_bytes", values),
            flush_policy=_choice("flush_policy", values["flush_policy"]),
            flush_interval_us=1_000 * _number("flush_interval_ms", values),
            low_water_mark=_choice("low_water_mark", values["low_water_mark"]),
            snapshot_every_entries=_number("snapshot_every_entries", values),
            snapshots_retained=_number("snapshots_retained", values),
            snapshot_chunk_bytes=_number("snapshot_chunk_bytes", values),
            log_cleaning_interval_us=1_000 * _number("log_cleaning_interval_ms", values),
            log_retention_us=1_000 * _number("log_retention_ms", values),
            discard_policy=_choice("discard_policy", values["discard_policy"]),
            saved_responses_max=_number("saved_responses_max", values),
            session_timeout_us=1_000 * _number("session_timeout_ms", values),
            session_check_us=1_000 * _number("session_check_ms", values),
            session_heartbeat_us=1_000 * _number("session_heartbeat_ms", values),
            request_timeout_us=1_000 * _number("request_timeout_ms", values),
            client_timeout_us=1_000 * _number("client_timeout_ms", values),
            forwards=_choice("find_leader", values["find_leader"]) == "forward",
            follower=FollowerReadSettings.read(values),
            service=ServiceSettings.read(values),
        )
        settings._refuse_contradictions()
        return settings

    def _refuse_contradictions(self) -> None:
        check_heartbeat_timing(self.heartbeat_interval_us, self.election_timeout_us)
        if self.read_mode == "leader-lease" and self.leader_lease_us >= self.election_timeout_us:
            raise UsageError(
                f"A leader lease of {self.leader_lease_us // 1_000} ms does not end before a new leader can be elected,"
                f" {self.election_timeout_us // 1_000} ms after the last heartbeat.",
                "Set leader_lease_ms below election_timeout_ms, with a margin for clock drift.",
            )
        if self.election == "external-store" and self.leader_key_ttl_us < 2 * self.heartbeat_interval_us:
            raise UsageError(
                f"A leader key that lives {self.leader_key_ttl_us // 1_000} ms expires when one refresh of those every"
                f" {self.heartbeat_interval_us // 1_000} ms is lost.",
                "Set leader_key_ttl_ms to at least twice heartbeat_interval_ms.",
            )
        if self.batch_size_bytes < BATCH_SIZE_BYTES_MIN:
            raise UsageError(
                f"A batch of {self.batch_size_bytes} bytes could not hold the registration of a client.",
                f"Set batch_size_bytes to at least {BATCH_SIZE_BYTES_MIN}.",
            )
        if self.batch_linger_us >= self.request_timeout_us:
            raise UsageError(
                f"Clients would ask again after {self.request_timeout_us // 1_000} ms, before a batch that lingers for"
                f" {self.batch_linger_us // 1_000} ms is sent.",
                "Set batch_linger_ms well below request_timeout_ms.",
            )
        if self.follower.from_followers and self.read_mode == "stale":
            raise UsageError(
                "read_mode stale answers from any server at once; read_from has nothing to add to it.",
                "Use read_from=follower with follower_reads=plain and another read_mode, for the leader's own reads.",
            )
        if self.request_timeout_us > self.client_timeout_us:
            raise UsageError(
                "Clients would give up before they ask a second server: request_timeout_ms is above client_timeout_ms.",
                "Lower request_timeout_ms.",
            )


def _refuse_unknown(options: Mapping[str, str]) -> None:
    for name in options:
        if name not in OPTIONS:
            raise UsageError(f"consistent-core has no option {name!r}.", f"It has {', '.join(OPTIONS)}.")


def _choice(name: str, value: str) -> str:
    choices = OPTIONS[name].choices
    if value not in choices:
        raise UsageError(f"Option {name} cannot be {value!r}.", f"Choose one of {', '.join(choices)}.")
    return value


def _number(name: str, values: Mapping[str, str]) -> int:
    text = values[name]
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise UsageError(
            f"Option {name} must be a whole number above 0, not {text!r}.", f"The default is {OPTIONS[name].default}."
        )
    return int(text)


def _count(name: str, values: Mapping[str, str]) -> int:
    """A whole number that may be 0."""
    return 0 if values[name] == "0" else _number(name, values)
