"""The options of a Raft server and its clients, and the combinations of them that are refused."""

from __future__ import annotations

from typing import Annotated, ClassVar

from faultline.harness.errors import UsageError
from faultline.harness.options import TUNING
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.patterns.data_replication.heartbeat import check_heartbeat_timing
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import SAVED_RESPONSES_MAX
from faultline.systems_under_test.patterns.data_replication.session_expiry import CHECK_INTERVAL_US, SESSION_TIMEOUT_US
from faultline.systems_under_test.patterns.node_communication.batch_queue import BATCH_SIZE_BYTES
from faultline.systems_under_test.reference.shared.settings import (
    Choice,
    Milliseconds,
    Number,
    Settings,
    Switch,
    options_of,
    tuning_of,
)

__all__ = [
    "BATCH_SIZE_BYTES_MIN",
    "DISCARD_POLICIES",
    "ELECTIONS",
    "FAILURE_DETECTORS",
    "FLUSH_POLICIES",
    "KERNEL_SETTINGS",
    "LOG_RETENTION_US",
    "LOW_WATER_MARKS",
    "READ_MODES",
    "RaftSettings",
    "kernel_options",
]

ELECTIONS = ("raft", "zab", "external-store", "collecting")
"""By votes that candidates ask for; by a rule from which all draw the same leader; by a key in a store of its own; by
votes for any server, which then collects the entries of a majority.
"""

FAILURE_DETECTORS = ("pause-aware", "fixed-timeout", "phi-accrual")
"""A fixed timeout that forgives the server's own sleep, without that, or a suspicion that follows the heartbeats."""

BATCH_SIZE_BYTES_MIN = 64
"""The least size of a batch: room for the commands that servers themselves put into the log."""

READ_MODES = ("read-index", "leader-lease", "log", "stale")
"""Through a round of heartbeats, under a lease, through the log; or, unsafe by design, from any server's own state."""

FLUSH_POLICIES = ("each-append", "interval", "never")
"""Before anything is acknowledged; or, unsafe by design, from a timer, or when the operating system pleases."""

LOW_WATER_MARKS = ("snapshot", "time", "acknowledged", "off")
"""Entries that a snapshot makes superfluous; of these, old ones; of these, those that all servers have stored; none."""

DISCARD_POLICIES = ("last-responses", "one-at-a-time", "acknowledged")
"""The saved answers that are kept: a number, the newest alone, or all that the client has not acknowledged."""

LOG_RETENTION_US = 4_233_600_000_000
"""The age at which log entries may go (low_water_mark time): seven weeks."""


class RaftSettings(Settings, frozen=True, kw_only=True):
    """The options of a Raft server and its clients, read and checked; times in microseconds."""

    system: ClassVar[str] = "consistent-core"
    log_retention_us: ClassVar[int] = LOG_RETENTION_US
    saved_responses_max: ClassVar[int] = SAVED_RESPONSES_MAX

    read_mode: Annotated[str, Choice(READ_MODES), "how reads are answered; `stale` is not linearizable"]
    replication: Annotated[str, Choice(("push", "pull")), "the leader sends entries, or followers fetch them"]
    heartbeat_interval_us: Annotated[int, Milliseconds(50), "how often a leader shows that it lives"]
    election_timeout_us: Annotated[
        int,
        Milliseconds(250),
        "the shortest silence after which a server stands for election; the longest is twice that",
    ]
    election: Annotated[str, Choice(ELECTIONS), "how a leader is elected (external-store: the last node is the store)"]
    failure_detector: Annotated[str, Choice(FAILURE_DETECTORS), "how a follower judges the silence of its leader"]
    leader_key_ttl_us: Annotated[
        int,
        Milliseconds(500),
        "how long the leader's key in the store lives unrefreshed (election external-store)",
        TUNING,
    ]
    leader_lease_us: Annotated[
        int,
        Milliseconds(200),
        "how long after a heartbeat the leader may answer reads (read_mode leader-lease)",
        TUNING,
    ]
    pre_vote: Annotated[bool, Switch(), "ask whether an election could be won before starting it"]
    batch_entries_max: Annotated[int, Number(64), "the most log entries in one replication request", TUNING]
    batch_size_bytes: Annotated[
        int, Number(BATCH_SIZE_BYTES), "the most bytes of commands in one batch and in one replication request", TUNING
    ]
    batch_linger_us: Annotated[
        int,
        Milliseconds(0, least=0),
        "how long a leader collects commands to append and flush together; 0: not at all",
    ]
    in_flight_max: Annotated[
        int, Number(5), "the most unanswered replication requests per follower; 1: no pipeline", TUNING
    ]
    segment_size_bytes: Annotated[int, Number(16_384), "the size at which a log file is closed", TUNING]
    flush_policy: Annotated[
        str,
        Choice(FLUSH_POLICIES),
        "when the log is flushed; all but `each-append` can lose what was acknowledged",
    ]
    flush_interval_us: Annotated[
        int, Milliseconds(200), "how long after an append the flush comes (flush_policy interval)", TUNING
    ]
    low_water_mark: Annotated[
        str,
        Choice(LOW_WATER_MARKS),
        "what may be discarded of the log; `time` and `acknowledged` keep more than `snapshot` would",
    ]
    snapshot_every_entries: Annotated[int, Number(2_000), "applied entries between two snapshots"]
    snapshots_retained: Annotated[
        int, Number(2), "how many snapshots are kept, and the log from the oldest of them on", TUNING
    ]
    snapshot_chunk_bytes: Annotated[int, Number(65_536), "how much of a snapshot is sent at once", TUNING]
    log_cleaning_interval_us: Annotated[
        int, Milliseconds(1_000), "how long after one run of the log cleaner the next one comes", TUNING
    ]
    discard_policy: Annotated[
        str,
        Choice(DISCARD_POLICIES),
        "which saved answers of a client are kept: the last few, the newest, or all it has not acknowledged",
    ]
    session_timeout_us: Annotated[
        int, Milliseconds(SESSION_TIMEOUT_US // 1_000), "after how long without a sign of life a session ends", TUNING
    ]
    session_check_us: Annotated[
        int, Milliseconds(CHECK_INTERVAL_US // 1_000), "how often a leader looks for idle sessions", TUNING
    ]
    session_heartbeat_us: Annotated[
        int, Milliseconds(CHECK_INTERVAL_US // 1_000), "how often a client without requests shows that it lives", TUNING
    ]
    request_timeout_us: Annotated[int, Milliseconds(300), "after how long a client asks another server", TUNING]
    client_timeout_us: Annotated[int, Milliseconds(1_000), "after how long a client gives up: outcome unknown"]
    find_leader: Annotated[
        str,
        Choice(("redirect", "forward")),
        "what a server does that does not lead: name the leader, or pass requests on to it",
    ]

    def check(self) -> None:
        """Raise UsageError for values that contradict each other."""
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
        if self.election == "collecting":
            self._check_collecting()
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
        if self.request_timeout_us > self.client_timeout_us:
            raise UsageError(
                "Clients would give up before they ask a second server: request_timeout_ms is above client_timeout_ms.",
                "Lower request_timeout_ms.",
            )

    def _check_collecting(self) -> None:
        """Raise UsageError where a leader could not collect entries, or stamp them anew in one step."""
        needed = {"replication": "push", "flush_policy": "each-append", "low_water_mark": "off"}
        for option, value in needed.items():
            if getattr(self, option) != value:
                raise UsageError(
                    f"A leader that collects entries needs {option}={value}, not {getattr(self, option)}.",
                    f"Set {', '.join(f'{name}={each}' for name, each in needed.items())} with election=collecting.",
                )


_OF_STYLES = ("leader_lease_ms", "leader_key_ttl_ms", "flush_interval_ms")

KERNEL_SETTINGS: dict[str, OptionDescription] = {
    name: one for name, one in tuning_of(RaftSettings).items() if name not in _OF_STYLES
}
"""The settings behind `tuning` of a system whose servers have one style of elections, reads and flushes."""


def kernel_options(*names: str) -> dict[str, OptionDescription]:
    """Return the options of a Raft server of these names."""
    options = options_of(RaftSettings)
    return {name: options[name] for name in names}
