"""The planted bugs of the election whose leader collects entries (`election=collecting`).

Each overrides one step of the collection, or lets reads not wait for its end. They break
consistent-core for good: never use them outside the harness.
"""

from __future__ import annotations

from faultline.systems_under_test.patterns.data_replication.collecting_election import CollectingElection
from faultline.systems_under_test.patterns.data_replication.leader_reads import ReadIndexReads
from faultline.systems_under_test.patterns.data_replication.log_entry import LogEntry
from faultline.systems_under_test.reference.consistent_core.parts import CoreParts
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

BUGS = PlantedBugs(
    "consistent-core",
    CoreParts,
    pattern="replicated-log",
    campaign="collecting-elections",
    options={"election": "collecting", "low_water_mark": "off"},
    caught_by=("LDR-I3", "LOG-I2", "linearizability"),
)


@BUGS.plant("collects-its-own-entries", "LOG-R18", part="elections.collecting")
class _CollectsItsOwnEntries(CollectingElection):
    """The leader stamps its own entries anew, and takes none of the others' entries.

    Shows as: a write that was acknowledged is gone when a server without it is elected.
    """

    def _to_choose_from(self) -> list[list[LogEntry]]:
        return super()._to_choose_from()[:1]


@BUGS.plant(
    "keeps-its-own-entry",
    "LOG-R18 SYS-S5",
    part="elections.collecting",
    caught_by=("LOG-I2", "IDR-I1", "linearizability"),
)
class _KeepsItsOwnEntry(CollectingElection):
    """The leader keeps its own entry where another server has one of a higher generation at the same place.

    Shows as: an old leader that comes back puts an entry of its own in the place of an acknowledged one.
    """

    def _is_newer(self, entry: LogEntry, present: LogEntry) -> bool:
        return False


@BUGS.plant(
    "adopts-without-stamping",
    "LOG-R18",
    part="elections.collecting",
    caught_by=("GEN-I2", "LOG-I2", "linearizability"),
)
class _AdoptsWithoutStamping(CollectingElection):
    """The leader keeps the generation of the entries that it collects.

    Shows as: an acknowledged entry loses against one of a leader in between, which was never copied.
    """

    def _stamped(self, entry: LogEntry) -> LogEntry:
        return entry


@BUGS.plant(
    "serves-before-synchronisation",
    "LOG-R18 HWM-R8",
    part="read_index_reads",
    pattern="high-water-mark",
    caught_by=("LOG-R15", "linearizability"),
)
class _ServesBeforeSynchronisation(ReadIndexReads):
    """The leader answers reads before a majority has what it collected, and so before it has executed it.

    Shows as: right after a change of leaders a read misses a write that was acknowledged.
    """

    def start_leading(self, no_op_index: int) -> None:
        super().start_leading(0)
