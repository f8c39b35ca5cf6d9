"""Locks that end by themselves: did two clients believe to hold one at the same time, and were old tokens refused?

Shape, one lock and one guarded resource for each key: `acquire`, whose result is `{"token": n}`; `check`, which asks
the client's own library whether it may still act as the owner, and succeeds only if so; `guarded-write`, whose result
has the token that it went under and the index of its place among all changes; `late-write`, the same by an owner that
fell asleep in between; `release`; `abandon`.

A lease is over when its time is, and no operation tells when that was. But its owner must have *believed* in it from
the end of `acquire` to the last `check`, write or release that it did not refuse itself: no client regains a lost lease
without another `acquire`. So these spans are certain, and their order in the history is that of real time.

| anomaly                    | meaning                                                                             |
|----------------------------|-------------------------------------------------------------------------------------|
| `two-holders`              | the spans of two clients overlap                                                     |
| `fencing-token-went-back`  | an acquire that began after another had ended was given a smaller token             |
| `duplicated-fencing-token` | two acquires were given the same token                                              |
| `stale-write-accepted`     | a write under a smaller token was accepted behind one under a greater one             |

Limits: a belief between two operations of an owner is not seen, nor one after the last of them.

Sources: Gray and Cheriton, "Leases" (SOSP 1989); Kleppmann, "How to do distributed locking" (2016).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from faultline.checkers.classic.fencing_tokens import judge_granted_tokens
from faultline.checkers.classic.lock import STALE_WRITE, TWO_HOLDERS
from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions, wrong_shape
from faultline.checkers.common.words import client, counted, told
from faultline.harness.history import OPEN, History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

if TYPE_CHECKING:
    from faultline.checkers.incremental.locks import IncrementalLeasedLocks

__all__ = ["LeasedLockChecker"]

_FUNCTIONS = ("acquire", "check", "guarded-write", "late-write", "release", "abandon")
_WRITES = ("guarded-write", "late-write")
_EXPECTED = "`acquire` and `guarded-write` that answer {token: n, index: n}, `check`, `release` and `abandon`."


class LeasedLockChecker:
    """No two clients believe to hold one lease at a time, tokens grow, and stale ones are refused."""

    name = "leased-lock"

    def incremental(self) -> IncrementalLeasedLocks:
        """Return the twin that judges while a run goes on."""
        from faultline.checkers.incremental.locks import IncrementalLeasedLocks

        return IncrementalLeasedLocks()

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every lock of `history`; of `run` nothing is needed."""
        expect_functions(self.name, history, _FUNCTIONS, _EXPECTED)
        conclusion = Conclusion(self.name, history)
        for key, rows in history.rows_by_key().items():
            for row in rows:
                _expect_token(history, row)
            holds = list(_holds(history, rows))
            conclusion.counts["holds"] += len(holds)
            _judge_holds(conclusion, key, holds)
            acquired = _tokens(history, rows, "acquire")
            written = [row for row in rows if _is_accepted_write(history, row)]
            conclusion.counts["guarded-writes"] += len(written)
            judge_granted_tokens(conclusion, key, acquired)
            _judge_writes(conclusion, key, written)
        counts = conclusion.counts
        if len(history) and not counts["holds"]:
            conclusion.doubt("No client acquired a lease, so nothing is known about mutual exclusion.")
        return conclusion.result(
            f"{counted(counts['holds'], 'hold')} of leases did not overlap, tokens grew, and "
            f"{counted(counts['guarded-writes'], 'guarded write')} bore no stale one."
        )


class _Hold(NamedTuple):
    """A span in which the client of `acquire` certainly believed that it held the lease; `last` is the newest proof."""

    begin: int
    end: int
    acquire: int
    last: int


def _expect_token(history: History, row: int) -> None:
    """Raise `UsageError` unless an acquire or write that succeeded answered its token, a write its place as well."""
    f, result = history.f[row], history.result[row]
    names = ("token",) if f == "acquire" else ("token", "index") if f in _WRITES else ()
    if history.outcome[row] != "ok" or not names:
        return
    if not isinstance(result, dict) or not all(type(result.get(name)) is int for name in names):
        problem = f"answered {told(result)} without {' and '.join(names)}"
        raise wrong_shape(LeasedLockChecker.name, history, row, problem, _EXPECTED)


def _holds(history: History, rows: Sequence[int]) -> Iterator[_Hold]:
    """Yield a span for each successful acquire."""
    open_holds: dict[int, _Hold] = {}
    for row in rows:
        who, f, outcome = history.process[row], history.f[row], history.outcome[row]
        if f == "acquire" and outcome == "ok":
            if who in open_holds:
                yield open_holds[who]
            at = history.complete_index[row]
            open_holds[who] = _Hold(at, at, row, row)
        elif who in open_holds and f in ("abandon", "late-write"):
            yield open_holds.pop(who)
        elif who in open_holds and f != "acquire" and _proves_belief(history, row):
            hold = open_holds[who]
            open_holds[who] = _Hold(hold.begin, history.invoke_index[row], hold.acquire, row)
            if f == "release":
                yield open_holds.pop(who)
    yield from open_holds.values()


def _proves_belief(history: History, row: int) -> bool:
    """Return whether the client acted as the owner: it reports its own refusals as `not-held`, the core's otherwise.

    An operation that is still open proves nothing: the client may refuse it yet.
    """
    return history.complete_index[row] != OPEN and history.error[row] != "not-held"


def _judge_holds(conclusion: Conclusion, key: str | None, holds: Sequence[_Hold]) -> None:
    history = conclusion.history
    cases = []
    longest: _Hold | None = None
    for hold in sorted(holds):
        if longest is not None and longest.end > hold.begin:
            cases.append(Case(history.process[hold.acquire], (longest.acquire, longest.last, hold.acquire)))
        if longest is None or hold.end > longest.end:
            longest = hold
    conclusion.accuse(
        TWO_HOLDERS,
        cases,
        lambda case: (
            f"{client(history, case.rows[2])} was given the lease while {client(history, case.rows[0])} believed, "
            "before and after, that it held it"
        ),
        noun="overlap",
        key=key,
        tell=lambda process: f"client {process}",
    )


def _tokens(history: History, rows: Sequence[int], *functions: str) -> dict[int, int]:
    return {
        row: history.result[row]["token"]
        for row in rows
        if history.f[row] in functions and history.outcome[row] == "ok"
    }


def _is_accepted_write(history: History, row: int) -> bool:
    return history.f[row] in _WRITES and history.outcome[row] == "ok"


def _judge_writes(conclusion: Conclusion, key: str | None, written: Sequence[int]) -> None:
    """Judge the writes by their places in the log, as a late one begins long before it is sent."""
    history = conclusion.history
    tokens = {row: history.result[row]["token"] for row in written}
    cases = []
    greatest: int | None = None
    for row in sorted(written, key=lambda row: history.result[row]["index"]):
        if greatest is not None and tokens[row] < tokens[greatest]:
            cases.append(Case(tokens[row], (greatest, row)))
        else:
            greatest = row
    conclusion.accuse(
        STALE_WRITE,
        cases,
        lambda case: (
            f"the resource accepted a write of {client(history, case.rows[1])} under the token {case.what}, although "
            f"it had accepted {tokens[case.rows[0]]} before"
        ),
        noun="stale write",
        key=key,
    )
