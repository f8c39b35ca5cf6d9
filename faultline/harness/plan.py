"""A run's plan: plain data that every world carries out, and all that is needed to repeat the run.

Operations and faults stand at absolute times and faults name their targets symbolically (`leader`), so that taking one
out moves no other. Together with weather that is a pure function of (seed, stream, time), this lets
counterexamples shrink, and survive changes of the code under test.

A plan may come from a file: the types say which numbers and names make sense, and reading refuses others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from faultline.harness.operation import AnswerOf

__all__ = [
    "ANY_NODE",
    "EVENT_NODE",
    "FAULT_TARGETS",
    "NODE_NAMES",
    "RACK_TARGETS",
    "WORKERS_MAX",
    "LateMessage",
    "Plan",
    "PlannedFault",
    "PlannedOperation",
    "Trigger",
    "Weather",
    "answers_needed",
    "cell_name",
    "node_names",
]

NODE_NAMES = ("athens", "byzantium", "cyrene", "delphi", "ephesus", "fatima", "gortyn", "halicarnassus", "ithaca")
"""The names of simulated and local nodes, in order; see `node_names` for more than these."""

WORKERS_MAX = 10_000
"""The largest number of workers of a run."""

RACK_TARGETS = ("rack", "half-the-racks")
"""The symbolic targets of faults that act on all nodes of a drawn rack, or of half of the racks, rounded up."""

FAULT_TARGETS = (
    *("leader", "follower", "last-follower", "one", "first", "minority", "majority", "all"),
    *RACK_TARGETS,
)
"""The symbolic targets of faults that act on nodes: `one` and `follower` are drawn for each fault, `first` is always
the same node, and `last-follower` is the same for as long as the leader is.

An explicit node or rack name is a target too, and EVENT_NODE is one of faults with a trigger.
"""

EVENT_NODE = "event-node"
"""The target of a fault with a trigger that strikes the node on which the event happened."""

ANY_NODE = "any"
"""The node of a trigger that counts the events of all nodes together."""


def node_names(count: int) -> tuple[str, ...]:
    """Return the names of the first `count` nodes: those of NODE_NAMES, and then numbered ones."""
    return (*NODE_NAMES[:count], *(f"node-{number:04}" for number in range(len(NODE_NAMES) + 1, count + 1)))


_YEAR_US = 366 * 24 * 3_600 * 1_000_000
_Moment = Annotated[int, msgspec.Meta(ge=0, le=_YEAR_US)]
_Delay = Annotated[int, msgspec.Meta(ge=0, le=3_600 * 1_000_000)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Drift = Annotated[int, msgspec.Meta(ge=0, le=500_000)]
_Seed = Annotated[int, msgspec.Meta(ge=0)]
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Workers = Annotated[int, msgspec.Meta(ge=1, le=WORKERS_MAX)]
_Worker = Annotated[int, msgspec.Meta(ge=0, lt=WORKERS_MAX)]
_NodeName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
_Nodes = Annotated[tuple[_NodeName, ...], msgspec.Meta(min_length=1, max_length=1_000)]
_Racks = Annotated[dict[_NodeName, _Nodes], msgspec.Meta(min_length=1, max_length=1_000)]


def cell_name(system: str, planted_bugs: Sequence[str], workload: str, fault_set: Sequence[str]) -> str:
    """Return the name of a campaign cell, all of a run but its numbers: `consistent-core+stale-read/register/kill`."""
    planted = "".join(f"+{name}" for name in planted_bugs)
    return f"{system}{planted}/{workload}/{'+'.join(fault_set) or 'calm'}"


class PlannedOperation(msgspec.Struct, frozen=True):
    """`worker` invokes `f` on `key` with `value` no earlier than `at_us`, and once its previous operation is done.

    With `answer_of` the value depends on an earlier answer: the interpreter makes it `[value, answer]` when it invokes
    the operation. Unset it is not written, so that the digests of other plans do not depend on it.
    """

    worker: _Worker
    at_us: _Moment
    f: str
    key: str | None = None
    value: Any = None
    answer_of: AnswerOf | msgspec.UnsetType = msgspec.UNSET


class Trigger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The event at which a fault strikes: the `ordinal`-th `event` on `node`, counted from 1, and `delay_us` after it.

    `event` is the name of a trace event or of a feature of the system (`faultline.harness.triggers`). `node` is the
    name of a node, ANY_NODE, `leader` or `follower`: the role is that of the moment. Without a delay the fault strikes
    once the step in which the event happened has ended, before anything else happens: what this step wrote is not
    flushed yet, and what it sends after a flush has not left.
    """

    event: str
    ordinal: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    node: str = ANY_NODE
    delay_us: _Delay = 0

    def __str__(self) -> str:
        place = {ANY_NODE: "any node", "leader": "a leader", "follower": "a follower"}.get(self.node, self.node)
        delay = f"{self.delay_us / 1_000:g} ms after " if self.delay_us else ""
        return f"{delay}{self.event} number {self.ordinal} on {place}"


class PlannedFault(msgspec.Struct, frozen=True):
    """A fault of `kind` (a nemesis by name) from `at_us` for `duration_us`, against `target`, with plain arguments.

    With `before_event` it begins just before that event of the node `target`, counted from 0 as
    `faultline.harness.world.simulated.ordered` counts them, and `at_us` only says when that was. With a `trigger` it
    begins at an event, and `at_us` is the time from which events count.
    """

    kind: str
    at_us: _Moment
    duration_us: _Moment
    target: str = "one"
    argument: dict[str, Any] = {}
    before_event: _Count | msgspec.UnsetType = msgspec.UNSET
    trigger: Trigger | msgspec.UnsetType = msgspec.UNSET

    @property
    def stop_us(self) -> int:
        """The time at which the fault is to be healed."""
        return self.at_us + self.duration_us


class LateMessage(msgspec.Struct, frozen=True):
    """A message that waits at `place`, a node or `clients`, behind so many later events of that place.

    It is the event `number` of the place, counted from 0 in the order in which events are due.
    """

    place: str
    number: _Count
    behind: Annotated[int, msgspec.Meta(ge=1)]


class Weather(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ordinary conditions of a simulated run, before any fault. All zero is the calm universe.

    `client_distance_us_max` puts clients at distances of their own from each node, up to that much one way. A `disk` is
    `journaled`, as it is when unset, or behind a `page-cache`. `stale` is the share of the messages that come seconds
    after they were sent, `reset` the share of those in the middle of which their connection breaks; unset, both are 0.
    Fields that came later are unset by default and then not written, so that the digests of other plans do not depend
    on them.
    """

    latency_us_min: _Delay = 300
    latency_us_max: _Delay = 2_500
    fsync_us_min: _Delay = 100
    fsync_us_max: _Delay = 1_500
    loss: _Share = 0.0
    duplicate: _Share = 0.0
    drift_ppm_max: _Drift = 100
    client_distance_us_max: _Delay = 0
    disk: Literal["journaled", "page-cache"] | msgspec.UnsetType = msgspec.UNSET
    stale: _Share | msgspec.UnsetType = msgspec.UNSET
    reset: _Share | msgspec.UnsetType = msgspec.UNSET


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that determines a simulated run, and as much of a real run as can be determined.

    `options` are the system's (read mode, sizes), `planted_bugs` the planted bugs that are switched on, `faults` the
    injections, `heal_us` when everything is healed and final reads may start, `end_us` when the harness stops waiting.
    `host_options` configure the hosts, where the run has hosts (`fsync=lies`). `floors` are the shares that replace
    default ones (`faultline.harness.floors`). With `stop_at_violation` the run is judged while it goes on, and ends at
    the first certain violation. `universe` lists what was drawn for the seed (`faultline.harness.universe`), by names
    such as `weather.loss`. `late` lists the messages that come out of turn (`faultline.harness.explore`). `isolation`
    is the consistency model that the system promises to transactions with these options, where the workload is judged
    by it. `chance_seed` decides the weather, timers and free choices of targets in place of `seed`, in a plan that was
    changed from that of another seed (`faultline.campaign.guided`). `racks` has the nodes of each rack, by its name
    (`faultline.harness.racks`). Unset, none of the six is written, so that the digests of other plans do not depend on
    them.
    """

    system: str
    workload: str
    seed: _Seed
    nodes: _Nodes
    workers: _Workers
    operations: tuple[PlannedOperation, ...]
    faults: tuple[PlannedFault, ...] = ()
    fault_set: tuple[str, ...] = ()
    options: dict[str, str] = {}
    host_options: dict[str, str] = {}
    planted_bugs: tuple[str, ...] = msgspec.field(name="mutants", default=())
    weather: Weather = Weather()
    floors: dict[str, _Share] = {}
    heal_us: _Moment
    end_us: _Moment
    stop_at_violation: bool | msgspec.UnsetType = msgspec.UNSET
    universe: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    late: tuple[LateMessage, ...] | msgspec.UnsetType = msgspec.UNSET
    isolation: str | msgspec.UnsetType = msgspec.UNSET
    chance_seed: _Seed | msgspec.UnsetType = msgspec.UNSET
    racks: _Racks | msgspec.UnsetType = msgspec.UNSET

    def digest(self) -> str:
        """Return the SHA-256 of the encoded plan, in hexadecimal: the address of this plan."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    @property
    def seed_of_chances(self) -> int:
        """The seed that decides the weather, timers and free choices of targets."""
        return self.seed if self.chance_seed is msgspec.UNSET else self.chance_seed

    @property
    def is_ordered(self) -> bool:
        """True when the plan says which events come out of turn, or before which one a fault begins."""
        return bool(self.late) or any(fault.before_event is not msgspec.UNSET for fault in self.faults)

    @property
    def final_us(self) -> int:
        """The time at which the first of the final operations is due; `heal_us` where there are none."""
        return min((one.at_us for one in self.operations if one.at_us >= self.heal_us), default=self.heal_us)

    @property
    def cell(self) -> str:
        """The campaign cell of the run: everything that was tested, without the seed."""
        return cell_name(self.system, self.planted_bugs, self.workload, self.fault_set)


def answers_needed(plan: Plan) -> list[AnswerOf]:
    """Return the answers on which the values of planned operations depend."""
    return list(dict.fromkeys(one.answer_of for one in plan.operations if one.answer_of is not msgspec.UNSET))
