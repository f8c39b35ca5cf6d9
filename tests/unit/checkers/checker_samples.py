"""For each checker that judges what clients saw: a small legal history, and some that it cannot decide.

The legal history has indeterminate operations and retries, and must pass. `refused` has one operation of it answered
with a value of a wrong type, `unread` an acknowledged change that no answer could have shown, and `single` one answer
that nothing can contradict. In `repeated`, a legal history, one value is written twice, with a read between the two.
Checkers of transactions have tables of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from classic_histories import history_of, op

from faultline.checkers import CHECKERS
from faultline.harness.history import History
from faultline.harness.plan import Plan
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

Step = dict[str, Any]


@dataclass(frozen=True)
class Sample:
    """The histories of one checker; `options` are its own."""

    legal: tuple[Step, ...]
    refused: tuple[Step, ...] = ()
    unread: tuple[Step, ...] = ()
    single: tuple[Step, ...] = ()
    repeated: tuple[Step, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()


def lost(f: str, value: Any = None, **more: Any) -> Step:
    """An operation whose outcome is unknown."""
    return op(f, value, outcome="info", error="timeout", **more)


def refusal(f: str, value: Any = None, **more: Any) -> Step:
    """An operation that failed for certain."""
    return op(f, value, outcome="fail", error="refused", **more)


_MONEY = {"from": "a", "to": "b", "amount": 5}
_VIEW = {"version": 1, "coordinator": "n1", "live": ["n1"]}
_BOTH = [["r", 1, None], ["r", 2, None]]
_WATCH = {"number": 1}
_STATE = ["state", [4, 9], {}, None]


def _drained(*items: list[Any]) -> dict[str, Any]:
    return {"number": 1, "items": list(items)}


SAMPLES: dict[str, Sample] = {
    "linearizability": Sample(
        legal=(lost("write", 1, key="x"), op("write", 1, process=1, key="x"), op("read", None, 1, process=1, key="x"),
               lost("cas", [1, 2], process=2, key="x"), op("read", None, 2, process=1, key="x")),
        refused=(op("cas", 7, key="x"),),
        repeated=(op("write", 1, key="x"), op("read", None, 1, key="x"), op("write", 2, key="x"),
                  op("write", 1, key="x"), op("read", None, 1, key="x")),
    ),
    "siblings": Sample(
        legal=(op("write", 1, key="x"), lost("write", 2, process=1, key="x"), op("write", 3, process=2, key="x"),
               op("read", None, [1, 3], process=2, key="x"), op("read", None, [1, 2, 3], process=0, key="x"),
               op("read", None, [1, 2, 3], process=2, key="x"), op("read", None, [1, 2, 3], process=0, key="x")),
        refused=(op("write", 1, key="x"), op("read", None, 1, key="x")),
        unread=(op("write", 1, key="x"), op("read", None, [1], key="x"), op("write", 1, key="y")),
        repeated=(op("write", 1, key="x"), op("read", None, [1], key="x"), op("write", 1, key="x"),
                  op("read", None, [1], key="x")),
    ),
    "convergence": Sample(
        legal=(lost("write", 1, span=(0, 1), key="x"), op("write", 2, span=(2, 3), key="x"),
               op("read", None, 2, span=(4, 5), key="x"), op("read", None, 2, span=(6, 7), process=1, key="x"),
               op("view", None, ["n1"], span=(8, 9)), lost("view", span=(10, 11), process=2)),
        refused=(op("write", 2, key="x"), op("read", None, 2, key="x"), op("read", None, 2, process=1, key="x"),
                 op("view", None, 7)),
        unread=(op("write", 2, key="x"), op("read", None, 2, key="x"), op("read", None, 2, process=1, key="x"),
                op("write", 3, key="y")),
        single=(op("write", 2, key="x"), op("read", None, 2, key="x")),
        repeated=(op("write", 1, key="x"), op("read", None, 1, key="x"), op("write", 1, key="x"),
                  op("read", None, 1, key="x"), op("read", None, 1, process=1, key="x")),
    ),
    "membership": Sample(
        legal=(op("view", None, _VIEW), refusal("view"), lost("view"), op("view", None, _VIEW),
               op("view", None, _VIEW)),
        refused=(op("view", None, _VIEW), op("view", None, _VIEW), op("view", None, 7)),
    ),
    "scans": Sample(
        legal=(lost("write", 1, key="a"), op("write", 2, key="a"), lost("delete", key="b"), op("write", 3, key="b"),
               lost("delete", key="b"), op("scan", ["", None], [["a", 2]])),
        refused=(op("write", 1, key="a"), op("scan", ["", None], 7)),
        unread=(op("write", 1, key="a"), op("write", 2, key="m"), op("scan", ["", "c"], [["a", 1]])),
        repeated=(op("write", 1, key="a"), op("scan", ["", None], [["a", 1]]), op("write", 2, key="a"),
                  op("write", 1, key="a"), op("scan", ["", None], [["a", 1]])),
    ),
    "causal-pairs": Sample(
        legal=(lost("write-pair", 1, key="p"), op("write-pair", 2, key="p"), op("read-pair", None, [2, 2], key="p"),
               lost("write-pair", 3, key="p"), op("read-pair", None, [3, 2], key="p")),
        refused=(op("write-pair", 1, key="p"), op("read-pair", None, 7, key="p")),
        repeated=(lost("write-pair", 1, key="p"), op("read-pair", None, [1, 1], key="p"), op("write-pair", 1, key="p"),
                  op("read-pair", None, [1, 1], key="p")),
    ),
    "dependent-writes": Sample(
        legal=(lost("write", [1, None], key="c/0"), op("write", [2, None], process=1, key="c/0"),
               op("read", None, [2, None], process=1, key="c/0"), op("write", [3, [2, None]], process=1, key="c/1"),
               op("read", None, [3, [2, None]], process=2, key="c/1"),
               op("read", None, [2, None], process=2, key="c/0"), lost("read", process=3, key="c/0")),
        refused=(op("write", [1, None], key="c/0"), op("read", None, 7, key="c/0")),
        repeated=(op("write", [1, None], key="c/0"), op("read", None, [1, None], key="c/0"),
                  op("write", [2, None], process=1, key="c/0"), op("read", None, [2, None], key="c/0"),
                  op("write", [1, None], process=1, key="c/0"), op("read", None, [1, None], key="c/0")),
    ),
    "booking": Sample(
        legal=(lost("book", "ann", key="monday"), op("bookings", None, ["ann", "ann"], process=1, key="monday"),
               op("book", "ann", ["ann", "ann"], key="monday"), lost("bookings", process=2, key="monday")),
        refused=(op("book", "ann", 7, key="monday"),),
    ),
    "follower-reads": Sample(
        legal=(op("write", 1, key="x"), lost("write", 2, process=1, key="x"), op("write", 3, process=1, key="x"),
               op("read", None, 3, process=1, key="x"), op("read", None, 1, process=2, key="x")),
        repeated=(op("write", 1, key="x"), op("read", None, 1, key="x"), op("write", 2, process=1, key="x"),
                  op("read", None, 2, key="x"), op("write", 1, process=1, key="x")),
    ),
    "leased-lock": Sample(
        legal=(lost("acquire", key="l"), op("acquire", None, {"token": 1}, process=1, key="l"),
               op("check", process=1, key="l"), lost("guarded-write", 5, process=1, key="l"),
               op("guarded-write", 6, {"token": 1, "index": 3}, process=1, key="l"),
               lost("release", process=1, key="l"), op("acquire", None, {"token": 2}, process=2, key="l")),
        refused=(op("acquire", None, {"token": 1}, key="l"), op("guarded-write", 6, 7, key="l")),
    ),
    "watches": Sample(
        legal=(op("watch", None, _WATCH, process=1, key="s"), lost("put", 1, key="s/1"), op("put", 2, 6, key="s/1"),
               lost("drain", process=2, key="s"),
               op("drain", None, _drained(_STATE, ["event", 5, 0, "s/1", 1, False], ["event", 6, 0, "s/1", 2, False]),
                  process=1, key="s")),
        refused=(op("watch", None, _WATCH, process=1, key="s"), op("put", 2, 6, key="s/1"),
                 op("drain", None, 7, process=1, key="s")),
        repeated=(op("watch", None, _WATCH, process=1, key="s"), op("put", 1, 5, key="s/1"),
                  op("drain", None, _drained(_STATE, ["event", 5, 0, "s/1", 1, False]), process=1, key="s"),
                  op("put", 1, 6, key="s/1"),
                  op("drain", None, _drained(["event", 6, 0, "s/1", 1, False]), process=1, key="s")),
    ),
    "set": Sample(
        legal=(lost("add", 1), op("add", 1), op("add", 2), lost("read"), op("read", None, [1, 2])),
        refused=(op("add", 1), op("read", None, 7)),
        unread=(op("add", 1, key="x"), op("read", None, [1], key="x"), op("add", 1, key="y")),
    ),
    "set-full": Sample(
        legal=(lost("add", 1), op("read", None, [1]), op("add", 1), op("add", 2), op("read", None, [1, 2])),
        refused=(op("add", 1), op("read", None, 7)),
        unread=(op("add", 1, key="x"), op("read", None, [1], key="x"), op("add", 1, key="y")),
    ),
    "queue": Sample(
        legal=(lost("enqueue", 1), op("enqueue", 1), op("dequeue", None, 1), lost("dequeue"), op("dequeue", None, 1)),
        refused=(op("enqueue", 1), op("drain", None, 7)),
        unread=(op("enqueue", 1, key="x"), op("dequeue", None, 1, key="x"), op("enqueue", 1, key="y")),
    ),
    "total-queue": Sample(
        legal=(lost("enqueue", 1), op("enqueue", 1), op("dequeue", None, 1), op("dequeue", None, 1), lost("dequeue"),
               op("dequeue", None, None)),
        refused=(op("enqueue", 1), op("drain", None, 7)),
        unread=(op("enqueue", 1, key="x"), op("dequeue", None, 1, key="x"), op("enqueue", 1, key="y")),
    ),
    "unique-ids": Sample(
        legal=(lost("generate"), op("generate", None, 7), op("generate", None, 8)),
        refused=(op("generate", None, None),),
    ),
    "counter": Sample(
        legal=(lost("add", 1), op("add", 1), op("read", None, 2), op("read", None, 2)),
        refused=(op("add", 1), op("read", None, "two")),
        unread=(op("add", 1, key="x"), op("read", None, 1, key="x"), op("add", 1, key="y")),
    ),
    "bank": Sample(
        legal=(op("read", None, {"a": 50, "b": 50}), lost("transfer", _MONEY), op("transfer", _MONEY),
               lost("read"), op("read", None, {"a": 40, "b": 60})),
        refused=(op("read", None, [50, 50]),),
        single=(op("read", None, {"a": 50, "b": 50}), op("transfer", _MONEY)),
    ),
    "transfers": Sample(
        legal=(lost("transfer", _MONEY), op("transfer", _MONEY), refusal("transfer", _MONEY),
               op("read", None, {"a": -10, "b": 10})),
        refused=(op("transfer", _MONEY), op("read", None, [-5, 5])),
        unread=(op("transfer", _MONEY, key="x"), op("read", None, {"a": -5, "b": 5}, key="x"),
                op("transfer", _MONEY, key="y")),
    ),
    "long-fork": Sample(
        legal=(lost("write", [["w", 1, 1]]), op("write", [["w", 2, 1]], process=1), lost("read", [["r", 1, None]]),
               op("read", _BOTH, [["r", 1, None], ["r", 2, 1]], process=1),
               op("read", _BOTH, [["r", 1, 1], ["r", 2, 1]], process=2)),
        refused=(op("read", None, 7),),
        single=(op("write", [["w", 1, 1]]), op("read", None, [["r", 1, 1]])),
    ),
    "causal-register": Sample(
        legal=(op("read-init", None, 0, key="x"), lost("write", 1, key="x"), op("write", 2, process=1, key="x"),
               lost("read", key="x"), op("read", None, 2, process=1, key="x")),
        refused=(op("write", 1, key="x"), op("write", 1, key="x"), op("read", None, 1, key="x")),
    ),
    "causal-reverse": Sample(
        legal=(lost("write", 1), op("write", 2, process=1), op("read", None, [2], process=1), op("read", None, [1, 2])),
        refused=(op("write", 1), op("read", None, 7)),
        single=(op("read", None, []), op("write", 1)),
    ),
    "adya-g2": Sample(
        legal=(op("insert", [1, None], key="x"), refusal("insert", [None, 2], process=1, key="x"),
               lost("insert", [3, None], key="y"), op("insert", [None, 4], process=1, key="y")),
        refused=(op("insert", 7, key="x"),),
        single=(op("insert", [1, None], key="x"), op("insert", [None, 2], key="y")),
    ),
    "monotonic": Sample(
        legal=(lost("increment"), op("increment", None, 1), op("read", None, 1), lost("read"), op("read", None, 2)),
        refused=(op("read", None, "two"),),
        single=(op("increment"), op("read", None, 2), op("read", None, 1, process=1)),
    ),
    "sessions": Sample(
        legal=(lost("write", 1, key="x"), op("write", 1, 2, key="x"), op("read", None, [2, 1], key="x"),
               lost("read", key="x"), op("read", None, [2, 1], key="x")),
        refused=(op("write", 1, "two", key="x"),),
        single=(op("write", 1, 2, key="x"), op("read", None, [1, 0], process=1, key="x")),
    ),
    "lock": Sample(
        legal=(lost("acquire"), op("acquire", None, 1, process=1), op("write", [1, "a"], process=1),
               lost("release", process=1), op("release", process=0), op("acquire", None, 2, process=2)),
        refused=(op("acquire", None, 1), op("write", "a")),
    ),
    "log": Sample(
        legal=(lost("send", 1, key="x"), op("send", 2, 1, key="x"), op("poll", None, [[0, 1], [1, 2]], key="x"),
               lost("poll", key="x")),
        refused=(op("send", 1, "first", key="x"),),
        unread=(op("send", 1, 0, key="x"), op("poll", None, [[0, 1]], key="x"), op("send", 1, 0, key="y")),
    ),
    **dict.fromkeys(
        ("sequential", "causal-memory", "causal-convergence", "weak-causal", "pram"),
        Sample(
            legal=(lost("write", 1, key="x"), op("write", 2, process=1, key="x"),
                   op("read", None, 1, process=2, key="x"), lost("read", process=3, key="x"),
                   op("write", 3, process=1, key="y"), refusal("write", 4, process=1, key="y"),
                   op("read", None, 3, process=2, key="y")),
            refused=(op("cas", 7, key="x"),),
            repeated=(op("write", 1, key="x"), op("read", None, 1, key="x"), op("write", 2, key="x"),
                      op("write", 1, key="x"), op("read", None, 1, key="x")),
        ),
    ),
    "staleness": Sample(
        legal=(lost("write", 1, key="x"), op("write", 2, process=1, key="x"), op("read", None, 1, process=2, key="x"),
               op("write", 3, process=1, key="x"), op("read", None, 1, process=2, key="x"), lost("read", key="x")),
        refused=(op("write", 1, key="x"), op("cas", [1, 2], key="x")),
        unread=(op("write", 1, key="x"),),
        repeated=(op("write", 1, key="x"), op("read", None, 1, key="x"), op("write", 2, key="x"),
                  op("write", 1, key="x"), op("read", None, 1, key="x")),
    ),
}  # fmt: skip
"""The checkers that judge the answers to clients, by name."""

TRANSACTIONS = frozenset(
    (
        *("list-append", "rw-register", "txn-set", "txn-counter", "closed-predicate"),
        *("rw-read-committed", "rw-read-atomic", "rw-causal", "rw-snapshot-isolation", "rw-serializable"),
    )
)
"""The checkers of transactions, which have tables of their own."""


def asked(name: str, *steps: Step, **options: Any) -> CheckResult:
    """Return the answer of the checker `name` on these operations, a second apart, in a run that healed at once."""
    history = history_of(*steps, step_us=1_000_000)
    return CHECKERS[name](**options).check(history, run_of(history))


def run_of(history: History) -> RunRecord:
    """A run of `history` on the node n1, healed before it began."""
    plan = Plan(
        system="s", workload="w", seed=0, nodes=("n1",), workers=3, operations=(), heal_us=0, end_us=0
    )  # fmt: skip
    return RunRecord(plan=plan, world="simulated", history=history)
