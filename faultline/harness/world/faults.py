"""The fault port: how a nemesis acts on a world, whether simulated or real.

Each world declares an *actuator* for every capability that it has. An actuator strikes its targets, probes them and
mends them. The probe lets a nemesis prove that its fault took effect; a fault that did not bite makes the run a harness
error, not a pass. A fault that needs a capability which the world lacks is refused by name before the run starts.

| capability | targets | setting | what a strike does |
|---|---|---|---|
| `cut` | links | true | nothing passes any more, and no error says so |
| `loss` `delay` `duplicate` `reorder` `corrupt` `rate` | links | `LinkQuality` | the link is worse than the weather |
| `connection-kill` | links | names | open connections end with an error; new ones may be opened |
| `connection-reset` | links | true | connections end, and attempts to open one are refused |
| `link-down` | nodes | true | peers and clients lose the node, as when its cable is pulled |
| `kill` | nodes | true | the process ends at once and loses its memory and what it had not fsynced |
| `pause` | nodes | true | the process stops where it stands; its messages and timers wait |
| `freeze` | nodes | true | all processes of the node stop at the same moment and cannot tell |
| `power-off` | nodes | true | the host ends; what was not synced is lost, even if a process had written it |
| `disk-full` `disk-read-only` `disk-stall` | nodes | `DiskState` | the disk takes no writes |
| `fsync-fail` | nodes | true | every fsync is answered with an error |
| `disk-corrupt` `disk-lost-write` `disk-misdirect` | nodes | true | stored data differ from what was written |
| `disk-lying-fsync` | nodes | true | every fsync is answered and syncs nothing |
| `cpu-squeeze` | nodes | share | the node has this share of one processor |
| `memory-squeeze` | nodes | bytes | the node may take so much more memory; the probe tells the limit |
| `clock-step` | nodes | microseconds | the wall clock moves once; the probe tells its offset from true time |
| `clock-drift` | nodes | ppm | both clocks of the node run fast or slow |

A killed process loses its memory, but the kernel still writes down what it wrote without fsync; a loss of power takes
that too. The simulated world makes the same difference where its disks are behind a page cache, and there every other
kill takes the power as well. On its journaled disks every kill is a loss of power.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypedDict, TypeVar, cast

import msgspec

from faultline.harness.errors import HarnessError
from faultline.harness.world.ports import Link, NodeId

__all__ = [
    "ALL_CAPABILITIES",
    "CAPABILITIES",
    "DAMAGE_CAPABILITIES",
    "HOST_CAPABILITIES",
    "LOCAL_CAPABILITIES",
    "SIMULATED_CAPABILITIES",
    "Actuator",
    "Actuators",
    "DiskState",
    "FaultPort",
    "LinkQuality",
    "limited_to",
    "one_by_one",
    "switch",
    "switches",
]

CAPABILITIES = ("cut", "loss", "delay", "duplicate", "kill", "pause", "clock-step", "clock-drift")
"""The capabilities that the simulated and the local world share."""

_DISK_CAPABILITIES = ("power-off", "disk-full", "disk-read-only", "disk-stall", "fsync-fail")

DAMAGE_CAPABILITIES = ("disk-corrupt", "disk-lost-write", "disk-misdirect", "disk-lying-fsync")
"""The capabilities that take or change data which was answered for as durable."""

SIMULATED_CAPABILITIES = (*CAPABILITIES, *_DISK_CAPABILITIES, *DAMAGE_CAPABILITIES)
"""The capabilities of the simulated world: its disks fail, and forget what was not synced when the power goes."""

LOCAL_CAPABILITIES = (*CAPABILITIES, "rate", "connection-kill", "connection-reset")
"""The capabilities of the local world, which has bytes and connections."""

HOST_CAPABILITIES = (
    "reorder",
    "corrupt",
    "link-down",
    "freeze",
    "cpu-squeeze",
    "memory-squeeze",
    *_DISK_CAPABILITIES,
)
"""The capabilities that only hosts have, each host as far as its kernel and its programs allow."""

ALL_CAPABILITIES = (*LOCAL_CAPABILITIES, *HOST_CAPABILITIES, *DAMAGE_CAPABILITIES)
"""The capabilities of all worlds together."""

DiskState = Literal["well", "full", "read-only", "stalled"]
"""The fate of a write to a disk: it is served, finds no room, is refused, or hangs."""

Target = TypeVar("Target", bound=Hashable)
Setting = TypeVar("Setting")


class LinkQuality(msgspec.Struct, frozen=True, kw_only=True):
    """The behaviour of a degraded link, on top of the weather.

    `delay_us` and `jitter_us` are added, `loss` and `duplicate` are shares of the messages. The rest needs packets or
    bytes: `reorder` is the share of packets that skip the delay and so overtake others, `corrupt` the share that arrive
    with a flipped bit (which the receiver's kernel finds by the checksum, and drops), `rate_kbit_per_s` the most that
    the link carries, 0 without a limit. A world gives what the capabilities of these names say.
    """

    delay_us: int = 0
    jitter_us: int = 0
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0
    rate_kbit_per_s: int = 0


@dataclass(frozen=True, slots=True)
class Actuator(Generic[Target, Setting]):
    """One capability of a world. Actions are idempotent and take effect before they return.

    `strike` brings all targets under a setting and returns its means, where the world has several. `probe` looks at the
    targets themselves and returns the setting in force on each. `mend` puts the targets right, also those that were
    never struck.
    """

    strike: Callable[[Sequence[Target], Setting], str | None]
    probe: Callable[[Sequence[Target]], Mapping[Target, Setting]]
    mend: Callable[[Sequence[Target]], None]


Actuators = TypedDict(
    "Actuators",
    {
        "cut": Actuator[Link, bool],
        "loss": Actuator[Link, LinkQuality],
        "delay": Actuator[Link, LinkQuality],
        "duplicate": Actuator[Link, LinkQuality],
        "reorder": Actuator[Link, LinkQuality],
        "corrupt": Actuator[Link, LinkQuality],
        "rate": Actuator[Link, LinkQuality],
        "connection-kill": Actuator[Link, frozenset[str]],
        "connection-reset": Actuator[Link, bool],
        "link-down": Actuator[NodeId, bool],
        "kill": Actuator[NodeId, bool],
        "pause": Actuator[NodeId, bool],
        "freeze": Actuator[NodeId, bool],
        "power-off": Actuator[NodeId, bool],
        "disk-full": Actuator[NodeId, DiskState],
        "disk-read-only": Actuator[NodeId, DiskState],
        "disk-stall": Actuator[NodeId, DiskState],
        "fsync-fail": Actuator[NodeId, bool],
        "disk-corrupt": Actuator[NodeId, bool],
        "disk-lost-write": Actuator[NodeId, bool],
        "disk-misdirect": Actuator[NodeId, bool],
        "disk-lying-fsync": Actuator[NodeId, bool],
        "cpu-squeeze": Actuator[NodeId, float],
        "memory-squeeze": Actuator[NodeId, int],
        "clock-step": Actuator[NodeId, int],
        "clock-drift": Actuator[NodeId, int],
    },
    total=False,
)
"""The actuators of a world by capability; a capability that the world lacks is absent."""


@dataclass(frozen=True, slots=True)
class FaultPort:
    """The hold that nemeses have on one running cluster.

    `leader` returns the live node that believes it leads in the highest generation, if any. `roles` returns the role
    that each node itself believes in (`leader`, `follower` …), or `dead`, or `unknown`. `racks` has the nodes of each
    rack by its name, where the plan has racks.
    """

    nodes: tuple[NodeId, ...]
    leader: Callable[[], NodeId | None]
    roles: Callable[[], dict[NodeId, str]]
    actuators: Actuators
    racks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def capabilities(self) -> frozenset[str]:
        """The capabilities of this world."""
        return frozenset(self.actuators)

    def actuator(self, capability: str) -> Actuator[Target, Setting]:
        """Return the actuator of a `capability` whose name is found at run time. Raises HarnessError for lack of it."""
        # A type checker knows the types of a TypedDict's values for literal keys only; here the caller states them.
        known = cast("Mapping[str, Actuator[Target, Setting]]", self.actuators)
        if capability not in known:
            raise HarnessError(
                f"This world lacks the capability {capability}.", "`faultline doctor` lists what each world can do."
            )
        return known[capability]

    def nodes_up(self) -> tuple[NodeId, ...]:
        """Return the nodes whose processes exist and are not paused."""
        dead = self.actuators["kill"].probe(self.nodes)
        alive = tuple(node for node in self.nodes if not dead[node])
        paused = self.actuators["pause"].probe(alive)
        return tuple(node for node in alive if not paused[node])


def one_by_one(
    strike: Callable[[Target, Setting], str | None],
    probe: Callable[[Target], Setting],
    mend: Callable[[Target], None],
) -> Actuator[Target, Setting]:
    """Return an actuator whose parts take their targets one after the other."""

    def strike_each(targets: Sequence[Target], setting: Setting) -> str:
        return ", ".join(sorted({means for target in targets if (means := strike(target, setting))}))

    def mend_each(targets: Sequence[Target]) -> None:
        for target in targets:
            mend(target)

    return Actuator(strike_each, lambda targets: {target: probe(target) for target in targets}, mend_each)


def switch(
    turn_on: Callable[[Target], str | None], is_on: Callable[[Target], bool], turn_off: Callable[[Target], None]
) -> Actuator[Target, bool]:
    """Return an actuator whose setting is true or false, and whose parts take their targets one after the other."""
    return one_by_one(lambda target, _: turn_on(target), is_on, turn_off)


def switches(
    turn_on: Callable[[Sequence[Target]], None],
    those_on: Callable[[Sequence[Target]], Collection[Target]],
    turn_off: Callable[[Sequence[Target]], None],
) -> Actuator[Target, bool]:
    """Return an actuator whose setting is true or false, and whose parts take all targets at once."""

    def probe(targets: Sequence[Target]) -> dict[Target, bool]:
        found = those_on(targets)
        return {target: target in found for target in targets}

    return Actuator(lambda targets, _: turn_on(targets), probe, turn_off)


def limited_to(capabilities: Collection[str], actuators: Actuators) -> Actuators:
    """Return those of `actuators` whose names are among `capabilities`."""
    kept = {name: actuator for name, actuator in actuators.items() if name in capabilities}
    return cast("Actuators", kept)
