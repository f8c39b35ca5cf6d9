"""The options of `logged-store`: when a write is safe, what waits in front of the log, and what the file keeps."""

from __future__ import annotations

from typing import Annotated, ClassVar

from faultline.harness.errors import UsageError
from faultline.systems_under_test.reference.shared.settings import Choice, Milliseconds, Number, Settings, options_of

__all__ = ["OPTIONS", "LoggedStoreSettings"]


class LoggedStoreSettings(Settings, frozen=True):
    """The options, read and checked; times in microseconds."""

    system: ClassVar[str] = "logged-store"

    flush_policy: Annotated[
        str,
        Choice(("each-append", "groups", "interval", "never")),
        "when the log is flushed: before each answer, before the answers to a group, or after them (unsafe: a server"
        " that ends loses what it had acknowledged)",
    ]
    group_max: Annotated[int, Number(8), "how many writes share a flush (flush_policy groups)"]
    group_linger_us: Annotated[
        int, Milliseconds(2), "how long the first write of a group waits for others (flush_policy groups)"
    ]
    flush_interval_us: Annotated[
        int, Milliseconds(200), "how long after a write the flush comes (flush_policy interval)"
    ]
    queue_max: Annotated[int, Number(100), "how many writes wait for the log before more are refused"]
    batch_linger_us: Annotated[
        int, Milliseconds(0, least=0), "how long writes gather in front of the log; 0: none waits"
    ]
    reads: Annotated[
        str,
        Choice(("newest", "at-version")),
        "what a read shows: the newest value, or the one at the version that the session has written or seen last",
    ]
    versions_kept: Annotated[
        int, Number(0, least=0), "how many entries back the past stays readable; 0 keeps everything"
    ]
    store_every_entries: Annotated[int, Number(50), "after how many entries the versions are stored in a file"]
    files_retained: Annotated[
        int, Number(2), "how many of these files are kept, and the log from the oldest of them on"
    ]
    segment_size_bytes: Annotated[int, Number(4_096), "the size at which a log file is closed"]
    log_cleaning_interval_us: Annotated[
        int, Milliseconds(200), "how long after one run of the log cleaner the next one comes"
    ]
    request_timeout_us: Annotated[int, Milliseconds(300), "after how long a client asks again"]
    client_timeout_us: Annotated[int, Milliseconds(1000), "after how long a client gives up: outcome unknown"]

    def check(self) -> None:
        """Raise `UsageError` for values that contradict each other."""
        if self.request_timeout_us > self.client_timeout_us:
            raise UsageError(
                "Clients would give up before they ask again: request_timeout_ms is above client_timeout_ms.",
                "Lower request_timeout_ms.",
            )


OPTIONS = options_of(LoggedStoreSettings)
"""Every option with its default."""
