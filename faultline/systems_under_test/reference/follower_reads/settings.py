"""The options of versions and of reads from followers."""

from __future__ import annotations

from typing import Annotated, ClassVar

from faultline.harness.errors import UsageError
from faultline.systems_under_test.reference.shared.settings import Choice, Milliseconds, Number, Settings

__all__ = ["REGIONS", "FollowerReadSettings"]

REGIONS = ("us-west", "us-east", "eu-west")
"""The regions that nodes are spread over, in turn."""

_MODES = ("plain", "bounded", "stamped", "session", "at-stamp", "no-wait", "closed", "read-index")


class FollowerReadSettings(Settings, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds."""

    system: ClassVar[str] = "follower-reads"

    store: Annotated[
        str,
        Choice(("single", "versioned")),
        "keep the last value of each key, or all of them under the index of their entry",
    ]
    versions_kept: Annotated[
        int,
        Number(0, least=0),
        "how many indexes back the past stays readable (store versioned); 0 keeps everything",
    ]
    read_from: Annotated[
        str,
        Choice(("leader", "follower", "nearest"), default="follower"),
        "who is asked first: the leader, the client's own server, or the nearest by region and latency",
    ]
    follower_reads: Annotated[
        str,
        Choice(_MODES, default="session"),
        "what a follower's answer is worth: plain (a prefix of the log), bounded (by max_staleness_ms), stamped"
        " (read your writes), session (and monotonic), at-stamp (a snapshot), no-wait (refused instead of delayed),"
        " closed (at a closed timestamp, whose versions are times), read-index (linearizable)",
    ]
    follower_wait_timeout_us: Annotated[
        int, Milliseconds(200), "after how long a follower gives up a read whose stamp it has not applied"
    ]
    follower_silence_us: Annotated[
        int, Milliseconds(500), "after how long without its leader a follower stops serving reads"
    ]
    max_staleness_us: Annotated[
        int, Milliseconds(300), "how old an answer of a follower may be (follower_reads bounded)"
    ]
    regions: Annotated[
        str,
        Choice(("1", "2", "3"), default="3"),
        "over how many regions the servers are spread, in turn",
    ]

    @property
    def versioned(self) -> bool:
        """True when the past of each key is kept."""
        return self.store == "versioned"

    @property
    def closes_timestamps(self) -> bool:
        """True when versions are times, which leaders close and at which followers answer."""
        return self.from_followers and self.mode == "closed"

    @property
    def mode(self) -> str:
        """The promise of an answer that a follower gives."""
        return self.follower_reads

    @property
    def from_followers(self) -> bool:
        """True when followers answer reads at all."""
        return self.read_from != "leader"

    @property
    def bound_us(self) -> int:
        """The greatest age of an answer; 0 where none is promised."""
        return self.max_staleness_us if self.mode == "bounded" else 0

    def region_of(self, number: int) -> str:
        """Return the region of the server of that number."""
        return REGIONS[number % int(self.regions)]

    def check(self) -> None:
        """Raise UsageError for values that contradict each other."""
        if self.from_followers and self.mode == "at-stamp" and not self.versioned:
            raise UsageError(
                "A store that keeps one value per key cannot be read at a stamp (follower_reads at-stamp).",
                "Add --option store=versioned.",
            )
        if self.closes_timestamps and self.versions_kept:
            raise UsageError(
                "versions_kept counts indexes, but with follower_reads closed versions are times.",
                "Leave versions_kept out: store=versioned keeps all, store=single what reads at closed times need.",
            )
        if self.versions_kept and not self.versioned:
            raise UsageError("versions_kept says nothing for store single.", "Add --option store=versioned.")
