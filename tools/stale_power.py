"""Compare what drawn universes find of planted bugs without stale messages and with them.

    python tools/stale_power.py --runs 300 --record FILE

For each bug the runs of `faultline campaign --system S --planted-bug B --universe drawn` are made in the order of that
campaign, a seed of each cell and then the next seed: the first N with `--weather stale=0 --weather reset=0`, and the
same N with `--weather stale=0.01 --weather reset=0`. All else that is drawn is equal. A find is a run with a violation,
and clients have found it where a finding is not one of an invariant. The record is JSON lines, a line for each bug and
weather; the table that is printed goes into docs/how-to/draw-universes.md.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

import msgspec
from universe_power import requests_of

from faultline.campaign.engine import default_engine
from faultline.harness.verdict import Verdict

__all__ = ["BUGS", "Found", "main", "power"]

BUGS = (
    ("consistent-core", "no-duplicate-detection"),
    ("consistent-core", "old-heartbeats-obeyed"),
    ("consistent-core", "late-answer-taken"),
    ("coordination-service", "no-fencing"),
    ("partitioned-kv", "late-move-overwrites"),
    ("coordinated-kv", "former-leader-accepted"),
    ("paxos-kv", "late-answers-count"),
    ("gossip", "generations-merged"),
    ("transactional-kv", "commit-replayed"),
)
"""Bugs about generations, sessions, moves and repetitions, each with its system.

Leaderless stores are not among them: with stale messages they promise nothing where nodes restart, so that other
universes would be drawn.
"""

_SHARES = ("0", "0.01")


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The finds of one bug in `runs` universes with this share of stale messages, `by_clients` those of clients."""

    system: str
    bug: str
    stale: str
    runs: int
    found: int
    by_clients: int


def main() -> int:
    """Measure every bug, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=300, help="the runs for each bug and weather")
    parser.add_argument("--bug", action="append", choices=[bug for _, bug in BUGS], help="this bug only; repeatable")
    parser.add_argument("--record", type=Path, default=Path("stale-power.jsonl"))
    arguments = parser.parse_args()
    with arguments.record.open("wb") as record:
        for system, bug in [one for one in BUGS if not arguments.bug or one[1] in arguments.bug]:
            measured = [power(system, bug, share, arguments.runs) for share in _SHARES]
            record.writelines(msgspec.json.encode(each) + b"\n" for each in measured)
            record.flush()
            print(_line(*measured), flush=True)
    return 0


def power(system: str, bug: str, stale: str, runs: int) -> Found:
    """Return what the first `runs` runs find of `bug` with this share of stale messages."""
    engine, found, by_clients = default_engine("simulated"), 0, 0
    requests = requests_of(system, bug, "drawn", weather={"stale": stale, "reset": "0"})
    for request in itertools.islice(requests, runs):
        judgement = engine.judged(request)
        if judgement.verdict is Verdict.VIOLATION:
            found += 1
            by_clients += any(not each.signature.startswith("invariants/") for each in judgement.findings)
    return Found(system=system, bug=bug, stale=stale, runs=runs, found=found, by_clients=by_clients)


def _line(without: Found, stale: Found) -> str:
    cells = (f"`{without.bug}`", without.system, without.found, stale.found, without.by_clients, stale.by_clients)
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    sys.exit(main())
