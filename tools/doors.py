"""The doors through which bytes come into Faultline, each with seeds and a way to knock, for `fuzz_doors.py`.

A door takes a few files of which one is damaged, and is opened with a command line, or for plans of campaigns and hosts
with the function that reads them, as a command would go on to start Spark or log in somewhere.
"""

from __future__ import annotations

import io
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from door_rewrites import WRITERS, KnownHistory

from faultline.campaign.engine import default_engine
from faultline.campaign.histories import history_table
from faultline.campaign.journal import Ending, Journal, write_record
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.simulate import SimulationJob, run_unit
from faultline.checkers import Operation, check
from faultline.checkers.files import check_file, check_histories
from faultline.checkers.importers import FORMATS, format_of
from faultline.checkers.linearizability.proof import proof_of
from faultline.checkers.porcupine.budget import UNLIMITED
from faultline.harness.history import History
from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.store import open_history, prepare_run, write_judgement
from faultline.harness.verdict import Verdict
from faultline.registry import resolve

__all__ = [
    "DOORS",
    "Door",
    "door_named",
    "knock",
    "known_histories",
    "seeds_of",
    "violating_run",
    "with_another_column",
    "with_other_layout",
]

ROOT = Path(__file__).resolve().parents[1]
HISTORIES = ROOT / "tests" / "data" / "histories"
CORPUS = ROOT / "tests" / "data" / "corpus"
SEED_BYTES_MAX = 2_500

Files = dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Door:
    """A door. `targets` are patterns of the files that may be damaged; `weight` is its share of the knocks."""

    name: str
    targets: tuple[str, ...]
    command: tuple[str, ...] = ()
    function: Callable[[Path], object] | None = None
    weight: int = 8


def _check(name: str, *, format_name: str = "", weight: int = 8) -> Door:
    return Door(name, ("input",), ("check", "--format", format_name or name, "input"), weight=weight)


def _load_plan(path: Path) -> object:
    from faultline.campaign.planfile import load_plan

    return load_plan(str(path)).units()


def _load_hosts(path: Path) -> object:
    from faultline.harness.world.hosts.machines.host_sets import parse_hosts

    return parse_hosts(f"ssh:{path}")


_OF_WHOLE_RUNS = ("run.json", "history.jsonl")
_SUMMARISED = ("campaign/plan.json", "campaign/runs/*/verdict.json")
_CAMPAIGN_FILES = ("campaign/histories/part-00000.parquet", *_SUMMARISED)
_JOURNAL_FILES = ("campaign/journal.json", "campaign/rows/part-00000.parquet", *_SUMMARISED)
RUN_FILES = ("history.jsonl", "run.json", "verdict.json")
DOORS = (
    *(_check(name) for name in FORMATS if name not in ("faultline", "elle")),
    _check("elle", weight=4),
    _check("faultline-jsonl", format_name="faultline"),
    _check("auto"),
    Door("run-folder", tuple(f"run/{name}" for name in RUN_FILES), ("check", "run"), weight=4),
    Door("campaign-folder", _CAMPAIGN_FILES, ("check", "campaign"), weight=1),
    Door("conclude", _JOURNAL_FILES, ("campaign", "conclude", "campaign"), weight=1),
    Door("parquet", ("part.parquet",), ("check", "part.parquet"), weight=1),
    Door("proof", ("proof.json",), ("verify", "proof.json"), weight=4),
    Door("replay", tuple(f"run/{name}" for name in RUN_FILES), ("replay", "run"), weight=4),
    Door("plan-toml", ("plan.toml",), function=_load_plan),
    Door("host-toml", ("hosts.toml",), function=_load_hosts),
)


def door_named(name: str) -> Door:
    """Return the door called `name`."""
    return next(door for door in DOORS if door.name == name)


def knock(door: Door, folder: Path) -> int:
    """Open `door`, whose files are in `folder`, the working directory; return the exit code. Errors pass through."""
    from faultline.cli.main import perform

    if door.function is None:
        return perform(list(door.command))
    door.function(folder / door.targets[0])
    return 0


@cache
def seeds_of(door: Door) -> tuple[Files, ...]:
    """Return small inputs that the door accepts unchanged."""
    match door.name:
        case "run-folder" | "replay":
            return tuple({f"run/{name}": data for name, data in run.items()} for run in (violating_run(), _run()))
        case "campaign-folder":
            whole = _campaign()
            return (whole, {name: data for name, data in whole.items() if Path(name).name not in _OF_WHOLE_RUNS})
        case "conclude":
            whole = _campaign()
            return (whole, {name: data for name, data in whole.items() if "/rows/" not in name})
        case "parquet":
            return ({door.targets[0]: _parquet(violating_run())}, {door.targets[0]: _parquet(_run())})
        case "plan-toml":
            return tuple(
                {"plan.toml": path.read_bytes()} for path in (ROOT / "faultline/campaign/plans").glob("*.toml")
            )
        case "proof":
            known = (_proof(known) for known in known_histories() if known.kind in ("register", "kv"))
            return tuple({"proof.json": proof} for proof in (*known, *_further_proofs()))
        case "host-toml":
            return ({"hosts.toml": _HOSTS},)
    kinds = {known.name: known for known in known_histories()}
    chosen = [known for known in kinds.values() if door.name == "auto" or _format(door) in known.formats]
    return tuple({"input": _first_written(known, door)} for known in chosen)


def _format(door: Door) -> str:
    return {"faultline-jsonl": "faultline", "porcupine": "jepsen-log"}.get(door.name, door.name)


def _first_written(known: KnownHistory, door: Door) -> bytes:
    return WRITERS[known.formats[0] if door.name == "auto" else _format(door)](random.Random(known.name), known.events)


@cache
def known_histories() -> tuple[KnownHistory, ...]:
    """Return the histories of `tests/data`, cut to the events that suffice, with their verdicts."""
    found = []
    for path in sorted(HISTORIES.rglob("*")):
        if path.suffix in (".edn", ".json", ".log") or path.name in ("c01-ok.txt", "c01-bad.txt"):
            found += _known(path)
    return tuple(found)


def _known(path: Path) -> list[KnownHistory]:
    description = format_of(path)
    source = description.events(path)
    assert source is not None
    events = [{name: value for name, value in event.items() if name not in ("index", "time")} for event in source]
    verdict = check_file(path).verdict
    functions = {event.get("f") for event in events}
    kind = "other"
    if functions <= {"read", "write", "cas"} and not any(
        type(event.get("value")) in (dict, list) and event["f"] != "cas" for event in events
    ):
        kind = "register"
    elif functions <= {"get", "put", "append"}:
        kind = "kv"
    elif functions == {"txn"}:
        kind = "txn"
    events = [{"value": None} | event for event in events]
    if verdict is Verdict.PASS and kind in ("register", "kv"):
        return [KnownHistory(path.name, kind, events[:cut], False) for cut in (12, 24)]
    if verdict is Verdict.VIOLATION and kind in ("register", "kv"):
        events = _those_that_matter(events)
        return [KnownHistory(path.name, kind, events, True, _shown_by(events))]
    return [KnownHistory(path.name, kind, events, verdict is Verdict.VIOLATION)]


def _those_that_matter(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events of the operations that suffice to show the violation, and of a few others."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "whole"
        path.write_bytes(WRITERS["faultline"](random.Random(0), events))
        needed = set(check_file(path, "faultline").findings[0].operations)
    rows: dict[Any, int] = {}
    kept, row = [], -1
    for event in events:
        process = event.get("process")
        if event["type"] == "invoke":
            row += 1
            rows[process] = row
        if rows[process] in needed or rows[process] % 16 == 0:
            kept.append(event)
    return kept


def _shown_by(events: list[dict[str, Any]]) -> int:
    """Return the length of the shortest prefix that is a violation: a longer prefix of a violation is one, too."""
    low, high = 0, len(events)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "prefix"
        while high - low > 1:
            middle = (low + high) // 2
            path.write_bytes(WRITERS["faultline"](random.Random(0), events[:middle]))
            is_shown = check_file(path, "faultline").verdict is Verdict.VIOLATION
            low, high = (low, middle) if is_shown else (middle, high)
    return high


def _further_proofs() -> tuple[bytes, ...]:
    """Return the proofs of a queue of which a value overtook another, of a mutex that was acquired twice, and of two
    transactions of which each missed the other."""
    enqueued = [Operation(0, ("enqueue", value), 2 * value, None, 2 * value + 1) for value in (1, 2)]
    dequeued = [Operation(1, "dequeue", 6 + 2 * at, value, 7 + 2 * at) for at, value in enumerate((2, 1))]
    acquired = [Operation(client, "acquire", 2 * client, None, 2 * client + 1) for client in (0, 1)]
    skew = [
        Operation(client, [("r", read, None), ("w", key, 1)], client, [("r", read, None), ("w", key, 1)], 2 + client)
        for client, (read, key) in enumerate((("x", "y"), ("y", "x")))
    ]
    results = (
        check("linearizable-queue", [*enqueued, *dequeued]),
        check("mutex", acquired),
        check("serializable", skew),
    )
    return tuple(result.certificate.json() for result in results)


def _proof(known: KnownHistory) -> bytes:
    """Return the proof of the verdict on a history."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history"
        path.write_bytes(WRITERS["faultline"](random.Random(0), known.events))
        (checked,) = check_histories(path, "faultline")
    model, failed_cas = checked.result.detail["model"], checked.result.detail["failed_cas"]
    return proof_of(checked.imported.history, model, known.name, failed_cas, UNLIMITED).json()


def violating_run() -> Files:
    """Return the files of a small simulated run whose history is not linearizable."""
    return _run("ack-before-quorum", 14, 50)


@cache
def _run(planted_bug: str = "", operations: int = 8, seed: int = 0) -> Files:
    """Return the files of a small simulated run: with `planted_bug`, of the first seed from `seed` on that violates."""
    planted_bugs = (planted_bug,) if planted_bug else ()
    request = RunRequest(
        system="consistent-core",
        faults=("leadership",),
        workers=3,
        operations=operations,
        planted_bugs=planted_bugs,
        seed=seed,
    )
    parts = resolve(request)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        plan = make_plan(request, parts)
        prepare_run(folder, "run", plan, "simulated")
        with open_history(folder) as sink:
            record = run_simulated(plan, parts, sink=sink)
        judgement = judge(record, parts, run_id="run")
        write_judgement(folder, judgement)
        files = {name: (folder / name).read_bytes() for name in RUN_FILES}
    if planted_bug and not judgement.signature.startswith("linearizability"):
        return _run(planted_bug, operations, seed + 1)
    return files


@cache
def _campaign() -> Files:
    """Return the folder of a campaign of two runs, of which the first violates."""
    plan = CampaignPlan(
        systems=("consistent-core",),
        fault_sets=(("leadership",),),
        planted_bugs=(("ack-before-quorum",),),
        seeds="50..51",
        workers=3,
        operations=14,
    )
    with tempfile.TemporaryDirectory() as scratch:
        folder = CampaignFolder(Path(scratch) / "campaign")
        folder.make()
        folder.plan.write_bytes(msgspec.json.encode(plan))
        write_record(folder.journal, Journal(master="local[2]", ending=Ending()))
        job = SimulationJob(plan, folder, folder.root, default_engine("simulated"))
        run_unit(job, plan.units()[0])
        folder.clean()
        files = sorted(path for path in folder.root.rglob("*") if path.is_file())
        return {str(path.relative_to(scratch)): path.read_bytes() for path in files}


def _parquet(*runs: Files) -> bytes:
    tables = [
        history_table(f"run.{number}", History.from_jsonl(run["history.jsonl"].splitlines(keepends=True)))
        for number, run in enumerate(runs)
    ]
    buffer = io.BytesIO()
    pq.write_table(pa.concat_tables(tables), buffer, compression="zstd")
    return buffer.getvalue()


def with_another_column(rng: random.Random, data: bytes) -> bytes:
    """Return the Parquet file `data` with one column changed: its values, its type, its name, or the order of its
    rows."""
    table = pq.read_table(io.BytesIO(data))
    place = rng.randrange(table.num_columns)
    name, column = table.column_names[place], table.column(place).to_pylist()
    kind = table.schema.field(place).type
    match rng.randrange(6):
        case 0:
            table = table.drop_columns([name])
        case 1:
            table = table.append_column(rng.choice([name, "x"]), table.column(rng.randrange(table.num_columns)))
        case 2:
            table = table.take(pa.array([rng.randrange(len(table)) for _ in range(rng.randrange(1, 2 * len(table)))]))
        case 3:
            table = table.set_column(place, name, pa.nulls(len(table), kind))
        case 4:
            other = rng.choice([pa.string(), pa.int64(), pa.float64(), pa.binary(), pa.list_(pa.int64()), pa.bool_()])
            values = [None] * len(table) if rng.random() < 0.3 else _values_of(rng, other, len(table))
            table = table.set_column(place, name, pa.array(values, other))
        case _:
            is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
            values_of = _VALUES_OF_INTEGERS if pa.types.is_integer(kind) else _VALUES_OF_STRINGS if is_text else (None,)
            changed = rng.choice(values_of)
            column[rng.randrange(len(column))] = changed
            table = table.set_column(place, name, pa.array(column, kind))
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression=rng.choice(["none", "zstd"]), row_group_size=rng.choice([None, 1, 7]))
    return buffer.getvalue()


def with_other_layout(rng: random.Random, data: bytes) -> bytes:
    """Return the Parquet file `data` with the same rows: columns in another order, other row groups, types and
    compression."""
    table = pq.read_table(io.BytesIO(data))
    names = rng.sample(table.column_names, table.num_columns)
    table = table.select(names).append_column("more", pa.nulls(len(table), pa.int64()))
    for place, name in enumerate(names):
        kind = table.schema.field(place).type
        if rng.random() < 0.3 and pa.types.is_string(kind):
            other = rng.choice([pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
            table = table.set_column(place, name, table.column(place).cast(other))
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression=rng.choice(["none", "zstd"]), row_group_size=rng.choice([None, 1, 7]))
    return buffer.getvalue()


def _values_of(rng: random.Random, kind: pa.DataType, count: int) -> list[Any]:
    if pa.types.is_list(kind):
        return [[rng.randrange(9)] for _ in range(count)]
    if pa.types.is_binary(kind):
        return [rng.randbytes(2) for _ in range(count)]
    return [pa.scalar(rng.randrange(9)).cast(kind).as_py() for _ in range(count)]


_VALUES_OF_STRINGS = (None, "", "null", "[", "[1,2]", '{"a":1}', "[" * 3_000, "9" * 400, "é", "ok", "invoke", "\x00")
_VALUES_OF_INTEGERS = (None, -1, 0, 1, 2**31, 2**62, 2**63 - 1, -(2**63))

_HOSTS = b"""# a comment
[defaults]
user = "admin"
key = "~/.ssh/id_ed25519"
sudo = true
jump = "bastion"

[jumps.bastion]
address = "bastion.example.org"
port = 2222

[hosts.n1]
address = "10.0.0.11"
known_hosts = ["known", "~/known"]

[hosts.n2]
address = "10.0.0.12"
clock = "real"
node_port = 7078
"""
