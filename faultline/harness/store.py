"""The store: one folder per run, written as the run happens, so that a crash or Ctrl-C loses nothing recorded.

RUN/run.json        the plan, the world and the versions: written first
RUN/history.jsonl   one line per event, appended as it happens
RUN/verdict.json    the judgement: written last, in one step
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator
from os.path import isfile
from pathlib import Path
from typing import Any

import msgspec

import faultline
from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.history import EventSink, History
from faultline.harness.judgement import Judgement
from faultline.harness.plan import Plan
from faultline.harness.planning import RunRequest
from faultline.harness.plugins import SYSTEMS_GROUP, WORKLOADS_GROUP, provider_of
from faultline.harness.results import appending, writable, write_pieces, write_whole
from faultline.harness.run_record import WorldName
from faultline.harness.untrusted import HISTORY_BYTES_MAX, read_json, read_whole
from faultline.harness.verdict import Verdict

__all__ = [
    "RunFile",
    "StoredRun",
    "claim_folder",
    "numbered",
    "open_history",
    "prepare_run",
    "read_judgement",
    "read_run",
    "read_run_file",
    "read_violation",
    "run_id_of",
    "store_folder",
    "write_judgement",
]

SCHEMA = 1
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_OPERATIONS_AT_ONCE = 1_000


class RunFile(msgspec.Struct, kw_only=True):
    """`run.json`: all that is needed to do the run again. `hosts` is what `--hosts` named, in the world of hosts.

    `providers` names the packages that the `system` and the `workload` came with, where they are plug-ins.
    """

    schema: int = SCHEMA
    run_id: str
    world: WorldName
    plan: Plan
    versions: dict[str, str] = {}
    hosts: str = ""
    providers: dict[str, str] = {}


class StoredRun(msgspec.Struct, kw_only=True):
    """A run read back: its folder, `run.json`, the bytes of its history, and the judgement when there is one."""

    folder: str
    file: RunFile
    history_bytes: bytes
    judgement: Judgement | None

    def history(self) -> History:
        """Return the history as recorded."""
        lines = self.history_bytes.splitlines(keepends=True)
        return History.from_jsonl(lines, source=str(Path(self.folder) / "history.jsonl"))


def run_id_of(asked: RunRequest | Plan, hosts: str = "") -> str:
    """Return the name of the run of a request, on `hosts` if any, or of a plan: its cell, its seed, and a digest.

    The digest covers everything that determines the run: the request or plan, and the versions of Faultline and of the
    packages that the system and the workload came with.
    """
    providers = sorted(_cached_providers(asked.system, asked.workload).items())
    digest = hashlib.sha256(msgspec.json.encode((asked, hosts, faultline.__version__, providers))).hexdigest()
    world = "" if isinstance(asked, Plan) or asked.world == "simulated" else f".{asked.world}"
    return f"{asked.cell.replace('/', '.')}.{asked.seed}.{digest[:8]}{world}"


def store_folder(named: str) -> Path:
    """Return the folder that the user named as the store.

    Raise UsageError for an address, which would become a folder, and for a name that is no UTF-8, which no file could
    hold as the name of the run.
    """
    if _ADDRESS.match(named):
        raise UsageError(
            f"The results folder cannot be at {named}: it is a folder.",
            "Choose a folder with --output DIR; for a cluster, on a file system that all of its machines mount.",
        )
    try:
        named.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"The results folder cannot be at {named!a}: its name is not UTF-8 and cannot be written to a file.",
            "Choose another name with --output DIR.",
        ) from error
    return Path(named)


def numbered(name: str) -> Iterator[str]:
    """Return `name`, and then `name-2`, `name-3` …"""
    return itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))


def claim_folder(parent: Path, names: Iterable[str]) -> Path:
    """Make a new folder below `parent` under the first of `names` that is not taken, and return it.

    What an earlier run recorded is never touched: the code under test may have changed since. Raise HarnessError when
    the store cannot be written.
    """
    with writable(parent):
        parent.mkdir(parents=True, exist_ok=True)
        for name in names:
            with contextlib.suppress(FileExistsError):
                (parent / name).mkdir()
                return parent / name
    raise HarnessError(f"All names for a new folder in {parent} are taken.", "Choose another --output.")


def prepare_run(folder: Path, run_id: str, plan: Plan, world: WorldName, hosts: str = "") -> None:
    """Make the run's folder and write `run.json`. Raise HarnessError when the store cannot be written."""
    with writable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        versions = {"faultline": faultline.__version__}
        providers = _providers(plan.system, plan.workload)
        file = RunFile(run_id=run_id, world=world, plan=plan, versions=versions, hosts=hosts, providers=providers)
        write_pieces(folder / "run.json", _run_file_pieces(file))


@contextlib.contextmanager
def open_history(folder: Path) -> Iterator[EventSink]:
    """Return a sink that appends to `history.jsonl`, handed line by line to the operating system.

    Raise HarnessError when the store cannot be written.
    """
    with writable(folder), appending(folder / "history.jsonl") as sink:
        yield sink


def write_judgement(folder: Path, judgement: Judgement) -> Path:
    """Write `verdict.json` in one step and return its path."""
    path = folder / "verdict.json"
    with writable(folder):
        write_whole(path, _pretty(judgement))
    return path


def read_run(folder: Path) -> StoredRun:
    """Read a run back. Raise UsageError when `folder` is no run, naming the file that is missing or malformed."""
    file, history_path = read_run_file(folder), folder / "history.jsonl"
    return StoredRun(
        folder=str(folder),
        file=file,
        history_bytes=read_whole(history_path, bytes_max=HISTORY_BYTES_MAX) if isfile(history_path) else b"",
        judgement=read_judgement(folder),
    )


def read_violation(folder: Path, otherwise: str) -> tuple[StoredRun, Judgement]:
    """Read back a run of the simulated world that violates, with its judgement. Raise UsageError for any other run.

    `otherwise` is a clause that ends the error: the reason why such a run is needed.
    """
    stored = read_run(folder)
    judgement = stored.judgement
    if stored.file.world != "simulated" or judgement is None or judgement.verdict is not Verdict.VIOLATION:
        raise UsageError(
            f"{folder} is not a violation of the simulated world{otherwise}.",
            "Give the folder of a violating simulated run, as printed after `replay`.",
        )
    return stored, judgement


def read_run_file(folder: Path) -> RunFile:
    """Return the plan of the run in `folder`, and its circumstances. Raise UsageError when there is none to be read."""
    path = folder / "run.json"
    if not isfile(path):
        raise UsageError(
            f"{folder} is not a run: it has no run.json.", "Give the folder of a run, as printed after `replay`."
        )
    return read_json(path, RunFile)


def read_judgement(folder: Path) -> Judgement | None:
    """Return the judgement of the run in `folder`, None when there is none. Raise UsageError when it cannot be read."""
    path = folder / "verdict.json"
    return read_json(path, Judgement) if isfile(path) else None


def _run_file_pieces(file: RunFile) -> Iterator[bytes]:
    """Yield the text of `_pretty(file)`, a thousand operations at a time: a long plan's text is larger than the plan.

    The place of the operations in the text is unique: quotation marks in strings are escaped.
    """
    operations = file.plan.operations
    bare = msgspec.structs.replace(file, plan=msgspec.structs.replace(file.plan, operations=()))
    before, mark, after = _pretty(bare).partition(b'"operations": [')
    yield before + mark
    for start in range(0, len(operations), _OPERATIONS_AT_ONCE):
        listed = _pretty(operations[start : start + _OPERATIONS_AT_ONCE]).removeprefix(b"[").removesuffix(b"\n]\n")
        yield (b"," if start else b"") + listed.replace(b"\n", b"\n    ")
    yield (b"\n    " if operations else b"") + after


def _providers(system: str, workload: str) -> dict[str, str]:
    """Return the packages that provide a system and a workload; none for those that ship with Faultline."""
    named = {"system": provider_of(SYSTEMS_GROUP, system), "workload": provider_of(WORKLOADS_GROUP, workload)}
    return {what: package for what, package in named.items() if package}


_cached_providers = functools.cache(_providers)
"""A cache for the many runs of a campaign, whose packages do not change."""


def _pretty(record: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
