"""Locks: mutual exclusion, fencing tokens that grow, and a resource that turns stale holders away.

Shape: `acquire`, whose result is the fencing token (an integer, or `{"token": n}`), or anything else for a lock without
tokens; `release`; and `write` to the resource that the lock guards, with `{"token": n, …}` or `[n, …]` as
value. One lock, and one resource, for each key.

- **mutual exclusion**: a client *certainly* holds the lock from the end of an ok acquire to the beginning of its next
  release, whatever its outcome (after a `fail` the hold goes on); with `lease_us`, no longer than
  that after the acquire began. Two such spans of different clients must not overlap. An indeterminate acquire proves
  no hold, so it is never a finding; and it excuses a release without a hold.
- **tokens**: an acquire that begins after another has ended gets a greater token, and no token is given twice.
- **fencing** (Kleppmann, "How to do distributed locking", 2016): once the resource has acknowledged a write with one
  token, it must not accept a write with a smaller one that begins afterwards.

Without `lease_us` the lock is held until it is released; a client that crashed holds it for ever. All of these are
necessary conditions, checked in one sweep; whether the lock's *answers* fit one order is decided by the linearizability
checker with the model `mutex`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faultline.checkers.classic.fencing_tokens import judge_granted_tokens, smaller_than_before
from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions, wrong_shape
from faultline.checkers.common.words import client, counted, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

if TYPE_CHECKING:
    from faultline.checkers.incremental.locks import IncrementalLocks

__all__ = [
    "RELEASE_WITHOUT_HOLD",
    "STALE_WRITE",
    "TWO_HOLDERS",
    "LockChecker",
]

RELEASE_WITHOUT_HOLD = "release-without-hold"
STALE_WRITE = "stale-write-accepted"
TWO_HOLDERS = "two-holders"

_NEVER_US = 1 << 62
_EXPECTED = "`acquire` that may answer a fencing token, `release`, and `write` of {token: n} to the guarded resource."


class LockChecker:
    """A checker that no two clients hold the lock at once, tokens grow, and stale tokens are refused."""

    name = "lock"

    def __init__(self, *, lease_us: int | None = None) -> None:
        self.lease_us = lease_us

    def incremental(self) -> IncrementalLocks | None:
        """Return the twin that judges while a run goes on; none for leases, which end by a clock it does not see."""
        from faultline.checkers.incremental.locks import IncrementalLocks

        return IncrementalLocks() if self.lease_us is None else None

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every lock of `history`; of `run` nothing is needed."""
        expect_functions(self.name, history, ("acquire", "release", "write"), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        for key, rows in history.rows_by_key().items():
            self._judge_holds(conclusion, key, rows)
            _judge_tokens(conclusion, key, rows)
            self._judge_writes(conclusion, key, rows)
        counts = conclusion.counts
        if not counts["holds"]:
            conclusion.doubt(f"None of {counted(len(history), 'operation')} acquired the lock, so nothing is known.")
        return conclusion.result(
            f"{counted(counts['holds'], 'hold')} of the lock did not overlap; {counts['tokens']} tokens grew, and "
            f"{counted(counts['guarded-writes'], 'guarded write')} bore no stale one."
        )

    def _judge_holds(self, conclusion: Conclusion, key: str | None, rows: Sequence[int]) -> None:
        history = conclusion.history
        holds, groundless = _holds(history, rows, self.lease_us)
        conclusion.counts["holds"] += len(holds)
        conclusion.accuse(
            TWO_HOLDERS,
            list(_overlaps(history, holds, self.lease_us)),
            lambda case: (
                f"{client(history, case.rows[1])} was given the lock while {client(history, case.rows[0])} certainly "
                "held it"
            ),
            noun="overlap",
            key=key,
            tell=lambda process: f"client {process}",
        )
        if self.lease_us is None:
            conclusion.accuse(
                RELEASE_WITHOUT_HOLD,
                [Case(history.process[row], (row,)) for row in groundless],
                lambda case: f"{client(history, case.rows[0])} released the lock, which it cannot have held",
                noun="such release",
                key=key,
            )

    def _judge_writes(self, conclusion: Conclusion, key: str | None, rows: Sequence[int]) -> None:
        history = conclusion.history
        tokens = {
            row: _token_of_write(self.name, history, row)
            for row in rows
            if history.f[row] == "write" and history.outcome[row] == "ok"
        }
        conclusion.counts["guarded-writes"] += len(tokens)
        conclusion.accuse(
            STALE_WRITE,
            smaller_than_before(history, tokens),
            lambda case: (
                f"the resource accepted a write of {client(history, case.rows[1])} with the token {told(case.what)}, "
                f"although it had accepted the token {told(tokens[case.rows[0]])} before"
            ),
            noun="stale write",
            key=key,
        )


@dataclass(frozen=True, slots=True)
class _Hold:
    """A span in which the client of `acquire` certainly has the lock, as indices and as times."""

    acquire: int
    begin: int
    begin_us: int
    end: int
    end_us: int


def _holds(history: History, rows: Sequence[int], lease_us: int | None) -> tuple[list[_Hold], list[int]]:
    """Return the certain holds, and the ok releases of clients that cannot have held the lock."""
    held: dict[int, int] = {}
    excused: set[int] = set()
    spans: list[tuple[int, int | None]] = []
    groundless = []
    for row in rows:
        who, f, outcome = history.process[row], history.f[row], history.outcome[row]
        if f == "acquire" and outcome == "ok":
            spans += [(held[who], row)] if who in held else []
            held[who] = row
        elif f == "acquire" and outcome == "info":
            excused.add(history.worker[row])
        elif f == "release" and outcome != "fail":
            if who in held:
                spans.append((held.pop(who), row))
            elif outcome == "ok" and history.worker[row] not in excused:
                groundless.append(row)
    spans += [(acquire, None) for acquire in held.values()]
    holds = [_hold(history, acquire, until, lease_us) for acquire, until in spans]
    return [hold for hold in holds if hold.end_us > hold.begin_us or lease_us is None], groundless


def _hold(history: History, acquire: int, until: int | None, lease_us: int | None) -> _Hold:
    """Return a hold from the end of `acquire` to the beginning of `until`, or to the end of its lease."""
    until_us = _NEVER_US if until is None else history.invoke_us[until]
    if lease_us is not None:
        until_us = min(until_us, history.invoke_us[acquire] + lease_us)
    end = history.next_index if until is None else history.invoke_index[until]
    return _Hold(acquire, history.complete_index[acquire], history.complete_us[acquire], end, until_us)


def _overlaps(history: History, holds: Sequence[_Hold], lease_us: int | None) -> Iterator[Case]:
    """Yield, of holds in order of their beginning, each that begins while the longest one before it lasts."""
    longest: _Hold | None = None
    for hold in sorted(holds, key=lambda hold: hold.begin):
        if longest is not None and longest.end > hold.begin and (lease_us is None or longest.end_us > hold.begin_us):
            yield Case(history.process[hold.acquire], (longest.acquire, hold.acquire))
        if longest is None or (hold.end_us, hold.end) > (longest.end_us, longest.end):
            longest = hold


def _judge_tokens(conclusion: Conclusion, key: str | None, rows: Sequence[int]) -> None:
    history = conclusion.history
    acquired = [row for row in rows if history.f[row] == "acquire" and history.outcome[row] == "ok"]
    tokens = {row: token for row in acquired if (token := _token(history.result[row])) is not None}
    conclusion.counts["tokens"] += len(tokens)
    judge_granted_tokens(conclusion, key, tokens)


def _token(result: Any) -> int | None:
    token = result.get("token") if isinstance(result, dict) else result
    return token if type(token) is int else None


def _token_of_write(checker: str, history: History, row: int) -> int:
    value = history.value[row]
    is_list = isinstance(value, list | tuple) and len(value) > 0
    token = _token(value[0]) if is_list else _token(value) if isinstance(value, dict) else None
    if token is None:
        raise wrong_shape(checker, history, row, f"writes {told(value)} without a token", _EXPECTED)
    return token
