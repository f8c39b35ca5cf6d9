"""Histories of other tools whose answer is known: what they hold, row by row, and what the model says of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
from known_answers import sound_history

from faultline.campaign.histories import history_table
from faultline.checkers.files import check_histories
from faultline.checkers.importers.jepsen import read_edn, read_json
from faultline.harness.errors import UsageError
from faultline.harness.history import OPEN, History
from faultline.harness.verdict import Verdict

__all__ = [
    "a_large_history_is_judged_in_all_its_parts",
    "an_edn_history_is_read_row_by_row",
    "histories_of_a_campaign_are_read_run_by_run",
    "keys_in_values_stay_apart",
    "what_is_no_execution_is_refused",
]

EDN = """
{:index 0, :type :invoke, :process 0, :f :write, :value 1, :time 1000000}
{:index 1, :type :invoke, :process 1, :f :read, :value nil, :time 2000000}
{:index 2, :type :info, :process :nemesis, :f :start, :value nil, :time 2500000}
{:index 3, :type :ok, :process 0, :f :write, :value 1, :time 3000000}
{:index 4, :type :invoke, :process 0, :f :write, :value 2, :time 4000000}
{:index 5, :type :ok, :process 1, :f :read, :value 1, :time 5000000}
{:index 6, :type :info, :process 0, :f :write, :value 2, :error :timeout, :time 6000000}
{:index 7, :type :invoke, :process 1, :f :cas, :value [1 3], :time 7000000}
{:index 8, :type :fail, :process 1, :f :cas, :value [1 3], :error :did-not-match, :time 8000000}
{:index 9, :type :invoke, :process 1, :f :read, :value nil, :time 9000000}
{:index 10, :type :ok, :process 1, :f :read, :value 2, :time 10000000}
{:index 11, :type :invoke, :process 2, :f :read, :value nil, :time 11000000}
"""


def an_edn_history_is_read_row_by_row(folder: Path) -> None:
    """Each kind of outcome, an operation that never ended, and times in nanoseconds."""
    path = folder / "history.edn"
    path.write_text(EDN)
    read = read_edn(path)
    made = read.history
    assert made.f == ["write", "read", "write", "cas", "read", "read"]
    assert made.process == [0, 1, 0, 1, 1, 2]
    assert made.outcome == ["ok", "ok", "info", "fail", "ok", "info"]
    assert made.value == [1, None, 2, [1, 3], None, None]
    assert made.result == [1, 1, None, None, 2, None]
    assert made.error == [None, None, "timeout", "did-not-match", None, None]
    assert made.invoke_us == [1_000, 2_000, 4_000, 7_000, 9_000, 11_000]
    assert made.complete_us == [3_000, 5_000, 6_000, 8_000, 10_000, OPEN]
    assert made.complete_index == [3, 5, 6, 8, 10, OPEN]
    assert (read.nemesis_events, read.model, read.clock) == (1, "cas-register", "seconds")
    assert _verdicts(path) == [Verdict.PASS]
    # The write of 2 ended in a time-out. Were it called failed, no one could have read 2.
    path.write_text(EDN.replace(":value 2, :time 10000000", ":value 7, :time 10000000"))
    assert _verdicts(path) == [Verdict.VIOLATION]
    path.write_text(EDN.replace(":type :info, :process 0", ":type :fail, :process 0"))
    assert _verdicts(path) == [Verdict.VIOLATION]


def _verdicts(path: Path, **settings: int) -> list[Verdict]:
    return [checked.result.verdict for checked in check_histories(path, **settings)]


def keys_in_values_stay_apart(folder: Path) -> None:
    """Tuples of a key and a value; the key 1 and the key "1" are two, and each reads what was written to it."""
    rows = [("write", ["1", 5], ["1", 5]), ("write", [1, 6], [1, 6])]
    rows += [("read", ["1", None], ["1", 5]), ("read", [1, None], [1, 6])]
    events = []
    for f, value, result in rows:
        events.append({"type": "invoke", "process": 0, "f": f, "value": value})
        events.append({"type": "ok", "process": 0, "f": f, "value": result})
    path = folder / "history.json"
    path.write_text(json.dumps(events))
    made = read_json(path).history
    assert len(set(made.key)) == 2 and made.key[:2] == made.key[2:]
    assert made.value == [5, 6, None, None] and made.result == [5, 6, 5, 6]
    assert _verdicts(path) == [Verdict.PASS]
    keyed = [event | {"key": str(number // 2 % 2), "value": event["value"][1]} for number, event in enumerate(events)]
    path.write_text("\n".join(json.dumps(event) for event in keyed))
    assert read_json(path).history.key == ["0", "1", "0", "1"]
    assert _verdicts(path) == [Verdict.PASS]


def what_is_no_execution_is_refused(folder: Path) -> None:
    """Files that are torn, or in which an event cannot follow those before it."""
    invoked = '{"type": "invoke", "process": 0, "f": "read", "value": null}'
    ended = '{"type": "ok", "process": 0, "f": "read", "value": null}'
    twice = ended.replace("null", '1, "value": 2')
    known = [f"[{invoked}, {ended}]", f"{invoked}\n{ended}\n{invoked}\n"]
    refused = [
        *(f"[{invoked}, {ended}", f"[{invoked}, {ended[:30]}"),
        *(f"{invoked}\n{invoked}\n", f"{ended}\n", f"{invoked}\n{ended.replace('read', 'write')}\n"),
        f"{invoked}\n{twice}\n",
        f"{invoked}\n{ended.replace('ok', 'maybe')}\n",
        *(_indexed(invoked, 5) + _indexed(ended, 4), _indexed(invoked, 5) + ended + "\n"),
        '{"type": "invoke", "process": 0, "f": "write", "value": 1}\n'
        '{"type": "ok", "process": 0, "f": "write", "value": 2}\n',
    ]
    for text in known:
        path = folder / "history.json"
        path.write_text(text)
        assert len(read_json(path).history) in (1, 2)
    for text in refused:
        path.write_text(text)
        assert _refuses(lambda: read_json(path)), text
    own = sound_history().to_jsonl().splitlines(keepends=True)
    path = folder / "history.jsonl"
    path.write_bytes(b"".join([*own[:-1], own[-1][:15]]))
    assert [checked.operations for checked in check_histories(path)] == [6]
    path.write_bytes(b"".join([*own[:-2], own[-2][:15] + b"\n", own[-1]]))
    assert _refuses(lambda: list(check_histories(path)))
    path.write_bytes(b"")
    assert _verdicts(path) == [Verdict.VACUOUS]


def _indexed(event: str, index: int) -> str:
    return event.replace("{", f'{{"index": {index}, ') + "\n"


def _refuses(act: Callable[[], object]) -> bool:
    try:
        act()
    except UsageError:
        return True
    return False


def histories_of_a_campaign_are_read_run_by_run(folder: Path) -> None:
    """Two runs in two row groups each of one Parquet file: each is judged, also the last one, which violates."""
    import pyarrow as pa

    sound, stale = sound_history(), sound_history()
    stale.result[4] = 9
    tables = [history_table("a", sound), history_table("b", stale)]
    path = folder / "part-00000.parquet"
    pq.write_table(pa.concat_tables(tables), path, row_group_size=4)
    told = [(checked.label.rpartition("#")[2], checked.operations) for checked in check_histories(path)]
    assert told == [("a", 6), ("b", 6)]
    assert _verdicts(path) == [Verdict.PASS, Verdict.VIOLATION]
    from faultline.checkers.importers.parquet import read_run

    read = read_run(path, "b")
    assert [read.result[row] for row in range(6)] == stale.result
    assert list(read.outcome) == stale.outcome and list(read.complete_index) == stale.complete_index


def a_large_history_is_judged_in_all_its_parts(folder: Path) -> None:
    """A history that is split by key: the violation of its last key is found, and told by the right rows."""
    lines = []
    for number in range(40):
        for kind, f, value in (("invoke", "write", number), ("ok", "write", number)):
            lines.append({"type": kind, "process": 0, "f": f, "key": f"k{number % 8}", "value": value})
    last = [{"type": kind, "process": 0, "f": "read", "key": "k7", "value": 7} for kind in ("invoke", "ok")]
    path = folder / "history.json"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    assert _verdicts(path, large_bytes=400) == [Verdict.PASS]
    path.write_text("\n".join(json.dumps(line) for line in [*lines, *last]))
    (checked,) = check_histories(path, large_bytes=400)
    assert checked.result.verdict is Verdict.VIOLATION and checked.operations == 41
    assert checked.result.findings[0].operations[-1] == 40
    assert History().next_index == 0
