"""The records of the planted bugs of the replicated log, its mark and the reads that bypass it."""

from __future__ import annotations

from faultline.harness.system import PlantedBug

__all__ = ["RECORDS"]


def _bug(
    name: str,
    row: str,
    summary: str,
    shows_as: str,
    caught_by: tuple[str, ...],
    *,
    campaign: str = "leadership",
    **options: str,
) -> PlantedBug:
    patterns = {"LOG": "replicated-log", "HWM": "high-water-mark"}
    return PlantedBug(
        name=name,
        pattern=patterns[row.partition("-")[0]],
        id=row,
        summary=summary,
        shows_as=shows_as,
        campaign=campaign,
        caught_by=caught_by,
        options=options,
    )


_DIVERGENCE = ("LOG-I1", "LOG-I2", "LDR-I3", "GEN-I2", "linearizability")

RECORDS = (
    _bug(
        "no-previous-check",
        "LOG-M2",
        "a follower appends what it is sent without looking at the entry before",
        "after a leader change a log has holes, and servers execute different entries",
        _DIVERGENCE,
    ),
    _bug(
        "previous-index-only",
        "LOG-M3",
        "a follower checks that it has an entry before the ones it is sent, but not of which generation",
        "entries of the new leader follow an old one that the leader never had",
        _DIVERGENCE,
    ),
    _bug(
        "truncate-to-request",
        "LOG-M4",
        "a follower takes a request for the end of the log and cuts off what follows",
        "a late or short request removes acknowledged, even committed entries",
        ("HWM-I5", *_DIVERGENCE),
    ),
    _bug(
        "acknowledge-last-index",
        "LOG-M6",
        "a follower acknowledges the end of its log instead of what the request verified",
        "the leader counts a stale suffix as copies of its own entries and commits too early",
        ("HWM-I5", "HWM-I2", *_DIVERGENCE),
    ),
    _bug(
        "unbounded-mark",
        "LOG-M7",
        "a follower applies up to the leader's mark, also entries that were never verified",
        "a follower that comes back executes its own stale suffix",
        ("HWM-I5", *_DIVERGENCE),
    ),
    _bug(
        "serve-before-no-op",
        "LOG-M10",
        "a new leader answers reads before its no-op is committed",
        "right after a change of leaders a read misses a write that was acknowledged",
        ("LOG-R15", "linearizability"),
    ),
    _bug(
        "lease-too-long",
        "LOG-M12",
        "the leader's lease is longer than the election timeout",
        "a leader that was cut off answers stale reads after another one was elected",
        ("LOG-I7", "linearizability"),
        read_mode="leader-lease",
    ),
    _bug(
        "lease-dated-at-arrival",
        "LOG-M12",
        "the lease counts from the arrival of an acknowledgement, not from the sending of what it acknowledges",
        "a leader that was paused finds old acknowledgements, thinks they are news and answers stale reads",
        ("LOG-I7", "linearizability"),
        read_mode="leader-lease",
    ),
    _bug(
        "no-step-down",
        "LOG-M13",
        "a leader whose lease is over goes on leading and answering",
        "two leaders answer reads, one of them from the past",
        ("linearizability",),
        read_mode="leader-lease",
    ),
    _bug(
        "apply-newest-first",
        "LOG-M14",
        "entries that are committed together are executed in the wrong order",
        "servers that learned of the mark at different times have different values",
        ("LOG-I5", "GEN-I2", "LOG-I1", "linearizability"),
    ),
    _bug(
        "next-index-stuck",
        "LOG-M15",
        "a leader that is refused sends the same again instead of going further back",
        "a follower that lacks entries never gets them",
        ("LOG-I8", "availability"),
    ),
    _bug(
        "orphaned-callbacks",
        "LOG-M16",
        "what waits for an index is not failed at a step-down, and is answered by whatever entry gets there",
        "a client is told success for an operation that was overwritten",
        ("linearizability",),
    ),
    _bug(
        "dirty-read",
        "HWM-M1",
        "a leader executes an operation for readers as soon as it is in its own log",
        "a read returns a value that vanishes again, or a compare-and-set is decided by one",
        ("linearizability", "LOG-I2"),
    ),
    _bug(
        "even-cluster-formula",
        "HWM-M2",
        "the mark is at position n/2 of the sorted indexes, as printed",
        "with four servers an entry is committed that only two have on their disks",
        ("HWM-I2", "LOG-I2", "LDR-I3", "linearizability"),
        campaign="even-clusters",
    ),
    _bug(
        "own-copy-counted-twice",
        "HWM-M3",
        "the leader counts its own copy once as its log and once among the acknowledgements",
        "one copy too few is taken for a majority",
        ("linearizability", "LOG-I2", "HWM-I5", "LDR-I3"),
    ),
    _bug(
        "truncate-to-own-mark",
        "HWM-M4",
        "a follower of a new leader cuts its log back to its own mark, which lags, and fetches the rest again",
        "a copy that counted towards a majority is gone when the next leader is elected",
        ("LDR-I3", "LOG-I2", "HWM-I2", "linearizability"),
        campaign="durability",
    ),
    _bug(
        "mark-moves-back",
        "HWM-M6",
        "a follower takes over a smaller mark and executes the entries above it again",
        "entries are executed twice",
        ("HWM-I1", "LOG-I5"),
    ),
    _bug(
        "mark-before-apply",
        "HWM-M7",
        "entries count as executed as soon as the mark covers them, up to 100 ms before they are",
        "reads are answered from a state that lacks acknowledged writes",
        ("linearizability",),
    ),
    _bug(
        "follower-applies-everything",
        "HWM-M8",
        "a follower executes all it has verified, whatever the leader's mark",
        "a follower executes entries that are replaced later",
        ("HWM-I3", "LOG-I2", "HWM-I5"),
    ),
    _bug(
        "apply-previous-again",
        "HWM-M9",
        "execution starts at the entry that was executed last",
        "entries are executed twice",
        ("LOG-I5",),
    ),
)
"""Their records."""
