"""The common shape of faults as data: strike some targets, probe each of them, mend them.

Most kinds of faults are a `StandardNemesis`, a record that names the capability they need, the targets they choose, the
setting they read from the plan and the sentences that reports show. Kinds of another shape (partitions, steps and
strobes of clocks, kills of connections) are classes in the modules of their families.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from faultline.harness.nemesis import Injection
from faultline.harness.plan import PlannedFault
from faultline.harness.world.faults import Actuator, FaultPort
from faultline.nemesis.atlas import within_atlas
from faultline.nemesis.targets import aimed, aimed_at_nodes_up, links_around

__all__ = ["StandardNemesis", "name_of", "struck"]

Setting = TypeVar("Setting")


def struck(_: PlannedFault) -> bool:
    """Return the setting of a fault that either strikes or does not."""
    return True


@dataclass(slots=True, kw_only=True)
class StandardNemesis(Generic[Setting]):
    """A `Nemesis` that is described by its fields. Not changed once made.

    The `capability` that it needs bears the name of its kind unless another one is given. `acts_on` says whether the
    actuator of the capability takes the nodes of the fault's target, or all links between them and the rest. `setting`
    reads from the plan how hard to strike. `aims_at_nodes_up` leaves out nodes that are down or paused, and
    `keeps_to_atlas` those whose disks no fault of the run may damage (`faultline.nemesis.atlas`). Where `healthy`
    is given, targets that are found under another setting are spared, so that the fault ends nothing that another
    began.

    `description` and `complaint` are sentences for reports, formatted with the hit `{nodes}`, the `{remark}` on how the
    target had to be understood, the `{setting}` and the `{means}` of the world; and with all `{missed}` targets, the
    first `{target}` of them, and the setting `{seen}` there instead of the one `{wanted}`. `shown` prints a setting.
    `also_probes` names switches that the strike must have thrown as well, `is_in_force` compares the setting seen with
    the one wanted.
    """

    kind: str
    summary: str
    mark: str
    setting: Callable[[PlannedFault], Setting]
    description: str
    complaint: str
    capability: str = ""
    acts_on: Literal["nodes", "links"] = "nodes"
    aims_at_nodes_up: bool = True
    keeps_to_atlas: bool = False
    healthy: Setting | None = None
    shown: Callable[[Setting], str] = str
    is_in_force: Callable[[Setting, Setting], bool] = lambda seen, wanted: seen == wanted
    also_probes: tuple[str, ...] = ()
    needs: frozenset[str] = field(init=False)
    tick_us: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.capability = self.capability or self.kind
        self.needs = frozenset({self.capability})

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Strike the target."""
        resolution = (aimed_at_nodes_up if self.aims_at_nodes_up else aimed)(port, fault, seed)
        if self.keeps_to_atlas:
            resolution = within_atlas(resolution, port.nodes, fault, seed)
        links = tuple(links_around(port, resolution)) if self.acts_on == "links" else ()
        targets: Sequence[Hashable] = links if self.acts_on == "links" else resolution.nodes
        actuator = self._actuator(port)
        setting = self.setting(fault)
        mine = targets
        if self.healthy is not None:
            mine = [target for target, seen in actuator.probe(targets).items() if seen == self.healthy]
        means = actuator.strike(mine, setting) if mine else ""
        description = self.description.format(
            nodes=" ".join(resolution.nodes) or "no node",
            remark=resolution.remark,
            setting=self.shown(setting),
            means=f" by {means}" if means else "",
        )
        # A link has one quality at a time, so those of another fault are not to be proved; a node is down or it is not.
        proved = mine if self.acts_on == "links" else targets
        state = {"mine": mine, "proved": proved, "setting": setting}
        return Injection(nodes=resolution.nodes, links=links, description=description, state=state)

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe every target that was struck."""
        if self.acts_on == "links" and not injection.links:
            return f"there are no links for {self.kind} in a cluster of one node"
        wanted = injection.state["setting"]
        for capability in (self.capability, *self.also_probes):
            actuator: Actuator[Hashable, Setting] = port.actuator(capability)
            seen = actuator.probe(injection.state["proved"])
            missed = {target: found for target, found in seen.items() if not self.is_in_force(found, wanted)}
            if missed:
                return self._complaint(missed, wanted)
        return None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """Do nothing: the fault lasts by itself."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Mend the targets that this injection struck."""
        mine = injection.state.get("mine", ())
        if mine:
            self._actuator(port).mend(mine)

    def _actuator(self, port: FaultPort) -> Actuator[Hashable, Setting]:
        return port.actuator(self.capability)

    def _complaint(self, missed: Mapping[Hashable, Setting], wanted: Setting) -> str:
        first = next(iter(missed))
        return self.complaint.format(
            missed=(", " if self.acts_on == "links" else " ").join(map(name_of, missed)),
            target=name_of(first),
            seen=self.shown(missed[first]),
            wanted=self.shown(wanted),
        )


def name_of(target: Hashable) -> str:
    """Return the name of a node, or of a link as `athens->byzantium`."""
    return "->".join(target) if isinstance(target, tuple) else str(target)
