"""The packages users choose with `--faults`, and the nemeses that carry them out."""

from __future__ import annotations

from faultline.harness.nemesis import Nemesis
from faultline.nemesis.clock import CLOCK_DRIFT, ClockStep, ClockStrobe
from faultline.nemesis.connection import CONNECTION_RESET, LINK_DOWN, ConnectionKill
from faultline.nemesis.data_centre import DATA_CENTRE, RACKS
from faultline.nemesis.disk import DISK_FAULTS
from faultline.nemesis.packages import Package, Recipe, aimed_recipe, combined
from faultline.nemesis.packet import PACKET_FAULTS
from faultline.nemesis.partition import Partition
from faultline.nemesis.process import PROCESS_FAULTS
from faultline.nemesis.storage_packages import STORAGE_PACKAGES

__all__ = ["NEMESES", "PACKAGES"]

NEMESES: dict[str, Nemesis] = {
    nemesis.kind: nemesis
    for nemesis in (
        Partition(),
        *PROCESS_FAULTS,
        ClockStep(),
        ClockStrobe(),
        CLOCK_DRIFT,
        *PACKET_FAULTS,
        ConnectionKill(),
        CONNECTION_RESET,
        LINK_DOWN,
        *DISK_FAULTS,
    )
}
"""Every nemesis by its kind."""


def _cut(shape: str, targets: tuple[str, ...] = ("one",), *, long_share: float = 0.5, nodes_min: int = 2) -> Recipe:
    return Recipe("partition", targets, (("shape", (shape,)),), long_share, nodes_min)


_STEPS_US = (-5_000_000, -1_000_000, -300_000, -100_000, 100_000, 300_000, 1_000_000, 5_000_000)
# Leases are safe only while rates differ by less than their margin (a fifth by default), so drift stays within a tenth.
_RATES_PPM = (-100_000, -50_000, -20_000, 20_000, 50_000, 100_000)

_PARTITION = Package(
    "partition",
    "cuts links in eight shapes",
    (
        _cut("one", ("one", "leader", "follower")),
        _cut("halves", nodes_min=3),
        _cut("random-halves"),
        _cut("majority-minority", ("one", "leader"), nodes_min=3),
        _cut("majorities-ring", nodes_min=3),
        _cut("bridge", nodes_min=3),
        _cut("one-way", ("one", "leader", "follower")),
        _cut("leader-alone", ("leader",), long_share=0.7),
    ),
)

_KILL = Package(
    "kill",
    "kills processes and restarts them",
    (
        Recipe("kill", ("leader",)),
        Recipe("kill", ("one", "follower")),
        Recipe("kill", ("minority",)),
        Recipe("kill", ("majority",)),
        Recipe("kill", ("all",), long_share=0.1),
    ),
)

_PAUSE = Package(
    "pause",
    "stops processes for a while",
    (
        Recipe("pause", ("leader",), long_share=0.7),
        Recipe("pause", ("one", "follower")),
        Recipe("pause", ("minority",)),
        Recipe("pause", ("majority",)),
        Recipe("pause", ("all",), long_share=0.2),
    ),
)

_CLOCK = Package(
    "clock",
    "steps, strobes and drifts clocks",
    (
        Recipe("clock-step", ("one", "leader", "minority", "majority"), (("delta_us", _STEPS_US),)),
        Recipe("clock-strobe", ("one", "leader", "majority"), (("delta_us", _STEPS_US),)),
        Recipe("clock-drift", ("one", "leader", "minority", "majority"), (("rate_ppm", _RATES_PPM),)),
    ),
)

_PACKET = Package(
    "packet",
    "loses, delays and duplicates messages between nodes",
    (
        Recipe("packet-loss", ("all", "leader", "one"), (("loss", (0.05, 0.2, 0.5)),), nodes_min=2),
        Recipe(
            "packet-delay",
            ("all", "leader", "one"),
            (("delay_us", (5_000, 30_000, 100_000)), ("jitter_us", (1_000, 10_000, 50_000))),
            nodes_min=2,
        ),
        Recipe("packet-duplicate", ("all", "leader", "one"), (("duplicate", (0.2, 0.6, 0.95)),), nodes_min=2),
    ),
)

_LEADERSHIP = Package(
    "leadership",
    "isolates, kills and pauses leaders",
    (
        _cut("leader-alone", ("leader",), long_share=0.75),
        _cut("majority-minority", ("leader",), long_share=0.75, nodes_min=3),
        _cut("one-way", ("leader",)),
        _cut("majorities-ring", nodes_min=3),
        Recipe("kill", ("leader",)),
        Recipe("pause", ("leader",), long_share=0.75),
    ),
)

_DURABILITY = Package(
    "durability",
    "kills all or most nodes again and again, shortly",
    (
        Recipe("kill", ("all",), long_share=0.0, is_main=True),
        Recipe("kill", ("majority",), long_share=0.1),
        Recipe("kill", ("leader",), long_share=0.2),
    ),
    pace=0.6,
)

_CLOCKS = Package(
    "clocks",
    "moves the leader's clocks, and cuts the leader off meanwhile",
    (
        Recipe("clock-step", ("leader",), (("delta_us", _STEPS_US),), long_share=0.8),
        Recipe("clock-strobe", ("leader",), (("delta_us", _STEPS_US),), long_share=0.8),
        Recipe("clock-drift", ("leader",), (("rate_ppm", _RATES_PPM),), long_share=0.8),
        _cut("leader-alone", ("leader",), long_share=0.8),
    ),
)

_SKEW_US = (-90_000, -50_000, -20_000, 20_000, 50_000, 90_000)

_SKEW = Package(
    "skew",
    "puts clocks wrong by less than a tenth of a second, which designs that trust clocks must bear",
    (
        Recipe("clock-step", ("one", "minority", "majority"), (("delta_us", _SKEW_US),), long_share=0.8),
        Recipe("clock-strobe", ("one", "majority"), (("delta_us", _SKEW_US),)),
    ),
)

# In a second of a short run a clock that is 2.5 % wrong gains 25 ms, in the four seconds of a long one 100 ms.
_GENTLE_DRIFT = Package(
    "gentle-drift",
    "lets clocks run so little too fast or too slow that they stay within a tenth of a second of the true time",
    (
        Recipe(
            "clock-drift",
            ("one", "minority", "majority"),
            (("rate_ppm", (-25_000, -10_000, 10_000, 25_000)),),
            long_share=0.8,
        ),
    ),
)

_FAST_NODE = Package(
    "fast-node",
    "lets the clock of one node, always the same, run ahead of all others by up to five seconds",
    (
        Recipe("clock-step", ("first",), (("delta_us", (300_000, 1_000_000, 5_000_000)),), long_share=1.0),
        Recipe("clock-drift", ("first",), (("rate_ppm", (100_000, 500_000, 1_000_000)),), long_share=1.0),
    ),
)

_RUNAWAY = Package(
    "runaway-clocks",
    "lets the leader's clocks run at a third to twice their rate, beyond any margin, and cuts the leader off",
    (
        Recipe("clock-drift", ("leader",), (("rate_ppm", (-700_000, -500_000, 1_000_000)),), long_share=1.0),
        _cut("leader-alone", ("leader",), long_share=1.0),
    ),
    pace=0.6,
)

_RETRIES = Package(
    "retries",
    "loses, repeats and delays messages, with short partitions between",
    (
        Recipe("packet-loss", ("all", "leader"), (("loss", (0.1, 0.3, 0.5)),), nodes_min=2),
        Recipe("packet-duplicate", ("all", "leader"), (("duplicate", (0.4, 0.9)),), nodes_min=2),
        Recipe(
            "packet-delay",
            ("all", "leader"),
            (("delay_us", (20_000, 80_000)), ("jitter_us", (5_000, 50_000))),
            nodes_min=2,
        ),
        _cut("leader-alone", ("leader",), long_share=0.2),
        _cut("one-way", ("leader",), long_share=0.2),
    ),
    pace=0.8,
)


def _late(delay_us: int) -> Recipe:
    return Recipe("packet-delay", ("all",), (("delay_us", (delay_us,)), ("jitter_us", (100_000,))), 1.0, 2)


# Two recipes of each kind, so that most seeds have both: answers must outlive the process that waits for them, and find
# one that has come as far.
_RESTARTS = Package(
    "restarts",
    "kills nodes for moments, over and over, while messages are late",
    (
        Recipe("kill", ("all",), long_share=0.0),
        Recipe("kill", ("majority",), long_share=0.0),
        _late(100_000),
        _late(150_000),
    ),
    pace=0.2,
)

# What only some worlds can do stands apart, so that no seed of the packages above ever asks for it.
_WIRE = Package(
    "wire",
    "reorders and corrupts packets and narrows links, as bad cables and switches do (on hosts)",
    (
        Recipe(
            "packet-reorder",
            ("all", "leader", "one"),
            (("delay_us", (5_000, 20_000, 50_000)), ("reorder", (0.1, 0.3))),
            nodes_min=2,
        ),
        Recipe("packet-corrupt", ("all", "leader", "one"), (("corrupt", (0.05, 0.2)),), nodes_min=2),
        Recipe("packet-rate", ("all", "leader", "one"), (("rate_kbit_per_s", (256, 1_000, 8_000)),), nodes_min=2),
    ),
)

_LOSS = Package(
    "loss",
    "loses packets and nothing else, which more hosts can do than the rest of `packet`",
    (
        Recipe("packet-loss", ("all",), (("loss", (0.05, 0.2, 0.5)),), nodes_min=2),
        Recipe("packet-loss", ("leader", "one"), (("loss", (0.2, 0.5, 0.9)),), nodes_min=2),
    ),
)

_CONNECTIONS = Package(
    "connections",
    "kills connections and lets them be reset (in the local world and on hosts)",
    (
        Recipe("connection-kill", ("all",), long_share=0.0, nodes_min=2),
        Recipe("connection-kill", ("leader", "one"), long_share=0.0, nodes_min=2),
        Recipe("connection-reset", ("leader", "one", "follower"), nodes_min=2),
        Recipe("connection-reset", ("minority", "all"), long_share=0.2, nodes_min=2),
    ),
)

_LINK_DOWN = Package(
    "link-down",
    "takes nodes' network links down (on hosts)",
    (
        Recipe("link-down", ("leader",), long_share=0.7),
        Recipe("link-down", ("one", "follower")),
        Recipe("link-down", ("minority", "all"), long_share=0.2),
    ),
)

_FREEZE = Package(
    "freeze",
    "freezes all processes of a node at the same moment (on hosts)",
    (
        Recipe("freeze", ("leader",), long_share=0.7),
        Recipe("freeze", ("one", "follower")),
        Recipe("freeze", ("minority", "majority")),
        Recipe("freeze", ("all",), long_share=0.2),
    ),
)

_CPU_SQUEEZE = Recipe("cpu-squeeze", ("leader", "one", "minority", "all"), (("share", (0.02, 0.05, 0.2)),), 0.8)
_MEMORY_SQUEEZE = Recipe("memory-squeeze", ("leader", "one"), (("headroom_kib", (1024, 4096, 16_384)),), 0.8)

_SQUEEZE = Package(
    "squeeze", "gives nodes little processor time, or no more memory (on hosts)", (_CPU_SQUEEZE, _MEMORY_SQUEEZE)
)

_STEPS = Package(
    "steps",
    "steps and strobes wall clocks and lets none drift, for hosts whose real clock is struck",
    (
        Recipe("clock-step", ("one", "leader", "minority", "majority"), (("delta_us", _STEPS_US),), long_share=0.8),
        Recipe("clock-strobe", ("one", "leader"), (("delta_us", _STEPS_US),)),
    ),
)

# Stores take a second or more to replace a leader, so these cuts are few and long. The two are each other's control,
# which is why `followers` keeps to one: a node that was cut off still believes for a moment that the leader is down,
# and if another is cut off meanwhile, the two are a majority that replaces a leader which no fault touched.
_FAIL_OVER = Package(
    "fail-over",
    "cuts the leader off for so long that a store puts another in its place",
    (_cut("leader-alone", ("leader",), long_share=1.0),),
    pace=5.0,
)

_FOLLOWERS = Package(
    "followers",
    "cuts one follower off, always the same and as long as fail-over does, and leaves the leader alone",
    (_cut("one", ("last-follower",), long_share=1.0),),
    pace=5.0,
)

_AIMED = Package(
    "aimed",
    "kills, pauses and cuts nodes off at events that they report (in the simulated world)",
    (),
    aimed=tuple(
        aimed_recipe(recipe)
        for recipe in (
            Recipe("kill", ("one", "leader"), long_share=0.2),
            Recipe("kill", ("majority", "all"), long_share=0.1),
            Recipe("pause", ("one", "leader")),
            _cut("one", ("one", "leader")),
            _cut("one-way", ("one", "leader")),
        )
    ),
)

_FAMILIES = (_PARTITION, _KILL, _PAUSE, _CLOCK, _PACKET)
_COMPOUNDS = (_LEADERSHIP, _DURABILITY, _CLOCKS, _SKEW, _GENTLE_DRIFT, _FAST_NODE, _RUNAWAY, _RETRIES, _RESTARTS)
_FOR_SOME_WORLDS = (
    *(_LOSS, _WIRE, _CONNECTIONS, _LINK_DOWN, _FREEZE, _SQUEEZE, _STEPS),
    *STORAGE_PACKAGES,
    *(_AIMED, RACKS, DATA_CENTRE),
)

_ALL = Package("all", "every fault that every world can inject", combined(_FAMILIES).recipes)

_EVERY = (*_FAMILIES, *_COMPOUNDS, _ALL, *_FOR_SOME_WORLDS, _FAIL_OVER, _FOLLOWERS)

PACKAGES: dict[str, Package] = {package.name: package for package in _EVERY}
"""Every package by its name."""
