"""Evidence as files: one claim about a real store each, and the runs that bear it out.

    claim = "etcd's serializable reads are stale behind a partition."
    twin = "etcd-linearizable-reads"        # the same runs with one thing changed, and the other verdict
    expected = "violation"                  # or "pass"
    anomaly = "linearizability/stale-read"  # which violation is meant: a pattern; without it any is
    system = "etcd"
    workload = "register"
    faults = ["partition", "pause"]
    hosts = 3                               # hosts of namespaces, one node on each
    duration_s = 12.0
    seeds = [0, 1, 2]
    [options]                               # of the system
    read_mode = "serializable"
    [host_options]                          # of the hosts
    fsync = "lies"

A harness is only as good as what it has been seen to find. So claims come in pairs: a *known-bad* configuration, of
which the store's own documentation says that it breaks a promise, and its *known-good* twin, which differs in that one
thing and must be clean. A checker that accuses every store fails the second, one that sees nothing fails the first.

A violation is expected of at least one of the seeds, since a real run is one draw; a pass is expected of all of them.
"""

from __future__ import annotations

import difflib
import fnmatch
import tomllib
from collections.abc import Iterable
from importlib import resources
from typing import Literal

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.judgement import Judgement
from faultline.harness.planning import RunRequest
from faultline.harness.verdict import Verdict

__all__ = ["Case", "case_names", "load_case", "parse_case"]


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One claim, and the runs that must bear it out. `name` is that of its file."""

    claim: str
    expected: Literal["violation", "pass"]
    system: str
    seeds: tuple[int, ...]
    name: str = ""
    twin: str = ""
    anomaly: str = ""
    workload: str = "register"
    faults: tuple[str, ...] = ()
    hosts: int = 3
    workers: int = 5
    operations: int = 200
    duration_s: float = 15.0
    options: dict[str, str] = {}
    host_options: dict[str, str] = {}

    @property
    def command(self) -> str:
        """The command that reproduces it."""
        return f"faultline evidence {self.name}"

    def request(self, seed: int) -> RunRequest:
        """Return the run with that seed."""
        return RunRequest(
            system=self.system,
            workload=self.workload,
            faults=self.faults,
            seed=seed,
            options=self.options,
            host_options=self.host_options,
            nodes=self.hosts,
            workers=self.workers,
            operations=self.operations,
            duration_s=self.duration_s,
            world="hosts",
        )

    def shows(self, judgement: Judgement) -> bool:
        """Return whether this is the violation that the claim means."""
        if judgement.verdict is not Verdict.VIOLATION:
            return False
        found = [f"{finding.checker}/{finding.anomaly}" for finding in judgement.findings]
        return bool(fnmatch.filter(found, self.anomaly or "*"))

    def is_borne_out(self, judgements: Iterable[Judgement]) -> bool:
        """Return whether these runs, one for each seed that was tried, bear the claim out."""
        judged = list(judgements)
        if self.expected == "violation":
            return any(self.shows(judgement) for judgement in judged)
        return bool(judged) and all(judgement.verdict is Verdict.PASS for judgement in judged)


def case_names() -> tuple[str, ...]:
    """Return the names of all claims that come with Faultline, sorted."""
    folder = resources.files("faultline.harness.world.hosts.evidence")
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


def load_case(name: str) -> Case:
    """Return the claim called `name`. Raises UsageError when there is none, or when its file makes no sense."""
    known = case_names()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise UsageError(f"There is no evidence called {name!r}.", f"{hint}See it with `faultline evidence`.")
    return parse_case(
        name, (resources.files("faultline.harness.world.hosts.evidence") / f"{name}.toml").read_text("utf-8")
    )


def parse_case(name: str, text: str) -> Case:
    """Return the claim in `text`. Raises UsageError with the key and the cause."""
    try:
        case = msgspec.convert(tomllib.loads(text), Case)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UsageError(
            f"The evidence {name} cannot be read: {error}.", "See faultline/harness/world/hosts/evidence/cases.py."
        ) from error
    if not case.seeds:
        raise UsageError(f"The evidence {name} names no seeds.", "Write seeds = [0, 1, 2].")
    return msgspec.structs.replace(case, name=name)
