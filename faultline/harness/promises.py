"""The limits of a system's promise: the workloads, options, fault sets and sizes with which it need not pass.

A system may offer options that give a part of its promise up, as stale reads do, and faults may be worse than those it
is built for. A run that judges it by a promise that it gave up would accuse correct code, so planning refuses it with
the reason, unless the user wants to see the anomalies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import msgspec
from msgspec.structs import replace

from faultline.harness.errors import UsageError
from faultline.harness.plan import Weather
from faultline.harness.system import NodeSystem
from faultline.harness.workload import Workload

__all__ = [
    "AnswersIn",
    "Asked",
    "FollowsIsolation",
    "LimitsItsPromise",
    "NeedsAnswers",
    "PromisesDisks",
    "PromisesIsolation",
    "answers_missing",
    "isolation_promised",
    "option_that_promises",
    "reason_not_promised",
    "refuse_what_is_not_promised",
]


_ENDS_OF_PROCESSES = frozenset(
    {"kill", "rolling-restart", "power-off", "disk-full", "disk-read-only", "fsync-fail", "disk-corrupt"}
)

_DAMAGE = {
    "disk-corrupt": "changes data that were stored",
    "disk-lost-write": "loses writes that it answered",
    "disk-misdirect": "puts writes in the place of other data",
    "disk-lying-fsync": "answers an fsync without syncing",
}
"""The behaviour of a disk under each fault that damages data, as a clause."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The demands of a run on a system. `faults` are names of fault sets, `fault_kinds` the kinds of fault in them."""

    workload: str
    functions: tuple[str, ...]
    options: Mapping[str, str]
    nodes: int = 3
    faults: tuple[str, ...] = ()
    fault_kinds: frozenset[str] = frozenset()
    weather: Weather = Weather()

    @property
    def ends_processes(self) -> bool:
        """True when a fault ends the processes of nodes: at once, or by an error that a disk answers."""
        return not self.fault_kinds.isdisjoint(_ENDS_OF_PROCESSES)

    def chose(self, option: str, *values: str) -> bool:
        """Return whether the option has one of these values."""
        return self.options[option] in values

    def number(self, option: str) -> int:
        """Return the value of an option that is a whole number."""
        return int(self.options[option])


@runtime_checkable
class LimitsItsPromise(Protocol):
    """A system that promises less than some workloads judge by: always, or with certain options, faults or sizes."""

    def not_promised(self, asked: Asked) -> str | None:
        """Return a clause that says why the workload's promise need not hold; None when it must."""


@runtime_checkable
class PromisesDisks(Protocol):
    """A system that keeps its promise on disks that damage data, as long as a majority of its nodes have whole ones.

    `detected_damage` are the kinds of fault (`disk-corrupt`) that a node finds when it starts: it then ends with an
    error, and serves nothing that the disk changed. A system that names none promises nothing on such disks.
    """

    detected_damage: frozenset[str]


@runtime_checkable
class NeedsAnswers(Protocol):
    """A workload that needs answers of a certain form, which some systems with its functions do not give."""

    answers: str
    """The form, such as `siblings`: a read answers with all concurrent values."""


@runtime_checkable
class AnswersIn(Protocol):
    """A system that gives answers of a form of their own."""

    answer_forms: tuple[str, ...]


@runtime_checkable
class PromisesIsolation(Protocol):
    """A system whose options say how far its transactions are isolated from each other."""

    def isolation(self, options: Mapping[str, str]) -> str:
        """Return the consistency model that transactions keep with these options."""


@runtime_checkable
class FollowsIsolation(Protocol):
    """A workload whose transactions are judged by what the system promises of them; strictly where it names nothing."""

    follows_isolation: bool


def isolation_promised(system: NodeSystem, workload: Workload, options: Mapping[str, str]) -> str | None:
    """Return the consistency model by which the system's options let `workload` be judged; None for its own."""
    if isinstance(workload, FollowsIsolation) and isinstance(system, PromisesIsolation):
        return system.isolation(options)
    return None


def answers_missing(system: NodeSystem, workload: Workload) -> str | None:
    """Return the form of answers that `workload` needs and `system` does not give; None when there is none."""
    if not isinstance(workload, NeedsAnswers):
        return None
    forms = system.answer_forms if isinstance(system, AnswersIn) else ()
    return None if workload.answers in forms else workload.answers


def reason_not_promised(system: NodeSystem, asked: Asked) -> str | None:
    """Return a clause that says why `system` does not promise what is asked; None when it does."""
    return _because_of_damage(system, asked) or (
        system.not_promised(asked) if isinstance(system, LimitsItsPromise) else None
    )


def _because_of_damage(system: NodeSystem, asked: Asked) -> str | None:
    beyond = asked.fault_kinds & _DAMAGE.keys()
    # Most runs damage no disk. This is asked for every draw of a universe, and looking for a protocol takes long.
    if beyond and isinstance(system, PromisesDisks):
        beyond -= system.detected_damage
    if not beyond:
        return None
    return f"its nodes do not notice a disk that {' or '.join(_DAMAGE[kind] for kind in sorted(beyond))}"


def option_that_promises(system: NodeSystem, asked: Asked) -> tuple[str, str] | None:
    """Return the one option and value with which `system` would promise what is asked; None when no single one does."""
    for name, description in system.options.items():
        for value in description.choices:
            if reason_not_promised(system, replace(asked, options={**asked.options, name: value})) is None:
                return name, value
    return None


def refuse_what_is_not_promised(system: NodeSystem, asked: Asked) -> None:
    """Raise UsageError for a run that would judge `system` by more than it promises."""
    reason = reason_not_promised(system, asked)
    if reason is None:
        return
    other = option_that_promises(system, asked)
    instead = f"With {other[0]}={other[1]} it does. " if other is not None else ""
    raise UsageError(
        f"{system.name} does not promise what the workload {asked.workload} checks: {reason}.",
        f"{instead}To see what happens all the same, add --beyond-promise, or name the anomalies in a plan's"
        " [expected].",
    )
