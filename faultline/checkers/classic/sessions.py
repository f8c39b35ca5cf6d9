"""Session guarantees on versioned values (Terry et al., "Session Guarantees for Weakly Consistent Replicated Data",
1994): the promises of a client's own session, whichever replica answers.

Shape: `write` of a value, whose result is `[version, value]`, a bare version, or `{"version": …}`; `read`, whose result
is `[version, value]` or `{"version": …, "value": …}`, null for an unwritten key. Versions are integers that the store
gives to the writes of a key in the order in which they took effect; an unwritten key has version 0.

| anomaly                          | meaning, in one session and on one key                                         |
|----------------------------------|--------------------------------------------------------------------------------|
| `read-your-writes-violated`      | a read answered an older version than one that the session had written         |
| `monotonic-reads-violated`       | a read answered an older version than an earlier read                          |
| `monotonic-writes-violated`      | a write was given an older version than an earlier write                       |
| `writes-follow-reads-violated`   | a write was given a version no newer than one the session had read             |
| `divergent-version`              | in any sessions: one version of a key holds two values                         |

A session is a `process`, or with `sessions="worker"` a worker, which goes on after an indeterminate operation. Within a
session operations follow one another, so each check is one pass with the newest version read and written.

Limit: versions of different keys cannot be compared, so guarantees *across* keys are for the isolation checkers.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions, wrong_shape
from faultline.checkers.common.words import client, counted, token, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

if TYPE_CHECKING:
    from faultline.checkers.incremental.sessions import IncrementalSessions

__all__ = [
    "DIVERGENT_VERSION",
    "MONOTONIC_READS",
    "MONOTONIC_WRITES",
    "READ_YOUR_WRITES",
    "WRITES_FOLLOW_READS",
    "SessionsChecker",
]

READ_YOUR_WRITES = "read-your-writes-violated"
MONOTONIC_READS = "monotonic-reads-violated"
MONOTONIC_WRITES = "monotonic-writes-violated"
WRITES_FOLLOW_READS = "writes-follow-reads-violated"
DIVERGENT_VERSION = "divergent-version"

_EXPECTED = "`write` that answers [version, value], and `read` that answers [version, value] or null."
_SAID = {
    READ_YOUR_WRITES: "read version {now} of {key} after it had itself written version {before}",
    MONOTONIC_READS: "read version {now} of {key} after it had read version {before}",
    MONOTONIC_WRITES: "wrote version {now} of {key} after it had written version {before}",
    WRITES_FOLLOW_READS: "wrote version {now} of {key} after it had read version {before}",
}


class SessionsChecker:
    """A checker of the four session guarantees, key by key, and that a version has one value."""

    name = "sessions"

    def __init__(self, *, sessions: Literal["process", "worker"] = "process") -> None:
        self.sessions = sessions

    def incremental(self) -> IncrementalSessions | None:
        """Return the twin that judges while a run goes on; none for workers, which it does not see."""
        from faultline.checkers.incremental.sessions import IncrementalSessions

        return IncrementalSessions() if self.sessions == "process" else None

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every session of `history`; of `run` nothing is needed."""
        expect_functions(self.name, history, ("read", "write"), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        versions = {row: self._version(history, row) for row, outcome in enumerate(history.outcome) if outcome == "ok"}
        violated: dict[str, list[Case]] = {anomaly: [] for anomaly in _SAID}
        for anomaly, before, row in self._walk(history, versions):
            violated[anomaly].append(Case(history.key[row], (before, row)))
        for anomaly, cases in violated.items():
            conclusion.accuse(
                anomaly,
                cases,
                partial(_told, history, anomaly=anomaly, versions=versions),
                noun="such operation",
            )
        self._judge_values(conclusion, versions)
        session_of = self._sessions(history)
        conclusion.counts.update(observed=len(versions), sessions=len(set(session_of)))
        if not versions:
            conclusion.doubt(f"None of {counted(len(history), 'operation')} succeeded, so nothing is known.")
        elif len({(session_of[row], history.key[row]) for row in versions}) == len(versions):
            conclusion.doubt("No session had two answers about one key, so there was nothing to compare.")
        return conclusion.result(
            f"All {counted(conclusion.counts['sessions'], 'session')} keep the four guarantees in {len(versions)} "
            "operations."
        )

    def _sessions(self, history: History) -> list[int]:
        return history.process if self.sessions == "process" else history.worker

    def _walk(self, history: History, versions: dict[int, int]) -> Iterator[tuple[str, int, int]]:
        newest: dict[tuple[int, str | None, str], int] = {}
        session_of = self._sessions(history)
        for row, version in versions.items():
            session, key, f = session_of[row], history.key[row], history.f[row]
            read, written = newest.get((session, key, "read")), newest.get((session, key, "write"))
            if f == "read":
                if written is not None and version < versions[written]:
                    yield READ_YOUR_WRITES, written, row
                if read is not None and version < versions[read]:
                    yield MONOTONIC_READS, read, row
            else:
                if written is not None and version <= versions[written]:
                    yield MONOTONIC_WRITES, written, row
                if read is not None and version <= versions[read]:
                    yield WRITES_FOLLOW_READS, read, row
            before = newest.get((session, key, f))
            if before is None or version > versions[before]:
                newest[session, key, f] = row

    def _judge_values(self, conclusion: Conclusion, versions: dict[int, int]) -> None:
        history = conclusion.history
        first: dict[tuple[str | None, int], tuple[Any, int]] = {}
        divergent = []
        for row, version in versions.items():
            if version:
                value, before = first.setdefault((history.key[row], version), (_value(history, row), row))
                if value != _value(history, row):
                    divergent.append(Case(version, (before, row)))
        conclusion.accuse(
            DIVERGENT_VERSION,
            divergent,
            lambda case: (
                f"version {case.what} of {history.key[case.rows[0]]} is {told(_value(history, case.rows[0]))} to "
                f"{client(history, case.rows[0])} and {told(_value(history, case.rows[1]))} to "
                f"{client(history, case.rows[1])}"
            ),
            noun="divergent version",
        )

    def _version(self, history: History, row: int) -> int:
        result = history.result[row]
        is_pair = isinstance(result, list | tuple) and len(result) == 2
        version = result.get("version") if isinstance(result, dict) else result[0] if is_pair else result
        if version is None and history.f[row] == "read":
            return 0
        is_bare_read = history.f[row] == "read" and version is result
        if type(version) is not int or is_bare_read:
            raise wrong_shape(self.name, history, row, f"answered {told(result)}, without a version", _EXPECTED)
        return version


def _value(history: History, row: int) -> Any:
    """Return the value of this operation's version: the one that was written or read."""
    result = history.result[row]
    if history.f[row] == "write":
        return token(history.value[row])
    return token(result[1] if isinstance(result, list | tuple) else result.get("value"))


def _told(history: History, case: Case, anomaly: str, versions: dict[int, int]) -> str:
    before, row = case.rows
    said = _SAID[anomaly].format(now=versions[row], before=versions[before], key=history.key[row] or "the register")
    return f"{client(history, row)} {said}"
