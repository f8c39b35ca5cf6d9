"""The controller: one of the data nodes, elected by a lease, that decides about the partition table.

    no controller's key ─▶ register its lease ─▶ attach the key ─▶ claim the table ─▶ read the members ─▶ act

**Claiming the table.** The end of a lease does not stop a write that its owner sent before. So a controller begins by
storing the table as it is, under its own token, and every store is a compare-and-set with the whole table that it was
computed from, token included. A late write of a former controller finds another table, and changes nothing. A
controller that finds a greater token than its own in the table is a former one, whatever its clock says. So each table
of a controller is computed from its own last one, with none of another controller in between.

**Members after the claim.** The members are read, linearizably, after the table is claimed. Before, the former
controller may have appointed a member that an older reading does not know, and would take for dead. The watch only says
when to read again.

Wishes of leaders, and deaths of members, are collected, and each store answers all of them together. The next table is
computed when the last is known to be stored, from that table.

Sources: Patterns of Distributed Systems ch. 26, the cluster controller; Kafka's controller in ZooKeeper, with the
controller's epoch and the versions of its nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.outcome import Outcome
from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import NotEnoughClusterNodes
from faultline.systems_under_test.reference.coordinated_kv.core import Core, WatchedPath
from faultline.systems_under_test.reference.coordinated_kv.membership import MEMBERS
from faultline.systems_under_test.reference.coordinated_kv.messages import (
    AlterInSync,
    ControllerActed,
    LeadershipResigned,
)
from faultline.systems_under_test.reference.coordinated_kv.settings import DataNodeSettings
from faultline.systems_under_test.reference.coordinated_kv.table import (
    Appointments,
    ClusterTable,
    Entry,
    Members,
    balanced,
    first_entries,
    table_of,
    value_of,
)

__all__ = ["CONTROLLER", "TABLE", "Controller"]

CONTROLLER = "controller"
"""The lease of the controller, and the key that names it."""

TABLE = "table"
"""The key of the partition table."""

Wish = AlterInSync | LeadershipResigned


class Controller:
    """One data node's part in control: a candidate at first, and for as long as its lease lasts the controller."""

    appointments: type[Appointments] = Appointments

    def __init__(self, ports: Ports, settings: DataNodeSettings, session: Core) -> None:
        self._ports = ports
        self._settings = settings
        self._session = session
        self._elected = WatchedPath(self._consider)
        self._is_candidate = False
        self._is_storing = False
        self._knows_members = False
        self._must_balance = False
        self.token = 0
        self.table = ClusterTable()
        self.members: dict[str, int] = {}
        self._wishes: dict[int, tuple[str, Wish]] = {}

    def start(self) -> None:
        """Begin to wait for the place to be free."""
        self._elected = self._session.watch(CONTROLLER, self._consider)
        self._ports.timers.every(self._settings.rebalance_every_us, self._look_around)

    @property
    def elected(self) -> str | None:
        """The controller, as far as this node knows."""
        return self._elected.values.get(CONTROLLER)

    @property
    def acts(self) -> bool:
        """True if this node is the controller."""
        return self.token != 0

    def _consider(self) -> None:
        """Stand for election when there is no controller."""
        if self._elected.is_known and self.elected is None and not self._is_candidate and not self.acts:
            self._is_candidate = True
            self._session.ask("acquire", CONTROLLER, None, self._handle_lease)

    def _handle_lease(self, outcome: Outcome) -> None:
        held = self._session.held(CONTROLLER)
        self._is_candidate = False
        if held is None:
            self._ports.trace.sometimes("another-controller-elected")
            return
        self.token = held.token
        self._attach()

    def _attach(self) -> None:
        """Name this node as the controller, for as long as the lease lasts."""
        value = {"value": self._ports.node_id, "lease": CONTROLLER}
        self._ask(
            "attach", CONTROLLER, value, lambda outcome: self._claim() if outcome.kind == "ok" else self._attach()
        )

    def _look_around(self) -> None:
        """Balance, when this is the controller; else stand for election if there is none."""
        if self._still_acts():
            self._must_balance = True
            self._revise()
        else:
            self._consider()

    def _still_acts(self) -> bool:
        """Return whether the lease lasts; without it, forget the knowledge of a controller."""
        if self.acts and not self._holds_the_lease():
            self._step_down()
        return self.acts

    def _step_down(self) -> None:
        self._ports.trace.sometimes("controller-deposed")
        self.token = 0
        self._is_storing = self._knows_members = False
        self._wishes.clear()
        self._session.close(MEMBERS)

    def _holds_the_lease(self) -> bool:
        held = self._session.held(CONTROLLER)
        return held is not None and held.token == self.token

    def _claim(self) -> None:
        """Read the table, to store it under this controller's own token."""
        self._knows_members = False
        self._ask("read", TABLE, None, self._handle_table)

    def _handle_table(self, outcome: Outcome) -> None:
        if outcome.kind != "ok":
            self._claim()
            return
        self.table = table_of(outcome.value)
        if self._is_superseded(self.table):
            self._step_down()
        else:
            self._store(self.table.entries, self._claimed)

    def _is_superseded(self, table: ClusterTable) -> bool:
        """Return whether a later controller claimed the table: the lease is over then, whatever the clock says."""
        return table.token > self.token

    def _claimed(self) -> None:
        # The watch before the reading: a member that comes in between is told by the watch, and read then.
        self._ports.trace.sometimes("table-claimed")
        self._session.watch(MEMBERS, self._read_members)
        self._read_members()

    def _read_members(self) -> None:
        self._ask("list", MEMBERS, None, self._handle_members)

    def _handle_members(self, outcome: Outcome) -> None:
        if outcome.kind != "ok":
            self._read_members()
            return
        values = outcome.value["values"]
        self.members = {key.partition("/")[2]: values[key] for key in sorted(values)}
        self._knows_members = True
        self._revise()

    def wish(self, source: str, wish: Wish) -> None:
        """Take a leader's wish; the last about each partition counts."""
        if self._still_acts():
            self._wishes[wish.partition] = (source, wish)
            self._revise()

    def _revise(self) -> None:
        """Compute the table anew, and store it if it changes."""
        # One store at a time, from the table that was stored last: two under way would overwrite each other.
        if not self._still_acts() or self._is_storing or not self._knows_members:
            return
        try:
            entries = self._revised(self.table.entries, self.members)
        except NotEnoughClusterNodes:
            return
        if entries != self.table.entries:
            self._store(entries, self._revise)

    def _revised(self, entries: tuple[Entry, ...], members: Members) -> tuple[Entry, ...]:
        replication_factor = self._settings.replication_factor
        if not entries:
            return first_entries(self._settings.partitions, members, replication_factor)
        appointments = self.appointments(members)
        revised = self._with_wishes(appointments.after_failures(entries), appointments)
        if self._must_balance:
            self._must_balance = False
            revised = balanced(revised, members, replication_factor)
        return revised

    def _with_wishes(self, entries: tuple[Entry, ...], appointments: Appointments) -> tuple[Entry, ...]:
        changed = list(entries)
        wishes, self._wishes = self._wishes, {}
        for partition, (source, wish) in wishes.items():
            entry = changed[partition]
            if (entry.leader, entry.generation) != (source, wish.generation):
                self._ports.trace.sometimes("late-wish-ignored")
            elif isinstance(wish, LeadershipResigned):
                changed[partition] = appointments.handed_over(entry)
                self._ports.trace.sometimes("leadership-handed-over")
            elif self._is_up_to_date(wish, entry):
                changed[partition] = appointments.in_sync_altered(entry, wish.in_sync)
        return tuple(changed)

    def _is_up_to_date(self, wish: AlterInSync, entry: Entry) -> bool:
        """Return whether the wish is about the present revision of the entry, and did not come late."""
        return wish.revision == entry.revision

    def _store(self, entries: tuple[Entry, ...], then: Callable[[], None]) -> None:
        """Store `entries` in place of the table they were computed from; start over if another table stands there."""
        self._is_storing = True
        old, new = self.table, ClusterTable(self.table.version + 1, self._ports.node_id, self.token, entries)

        def handle(outcome: Outcome) -> None:
            self._is_storing = False
            if outcome.kind != "ok":
                self._ports.trace.sometimes("table-store-failed")
                self._claim()
                return
            self._ports.trace.emit(ControllerActed(new))
            self.table = new
            then()

        self._ask(*self.storing(old, new), handle)

    def storing(self, old: ClusterTable, new: ClusterTable) -> tuple[str, str, Any]:
        """Return the operation that puts `new` in the place of `old`, and of no other table."""
        return "cas", TABLE, [value_of(old) if old.version else None, value_of(new)]

    def _ask(self, f: str, key: str, value: Any, handle: Callable[[Outcome], None]) -> None:
        """Ask the core as the controller of this token; an answer to one of before is of no interest."""
        token = self.token

        def answered(outcome: Outcome) -> None:
            if self._still_acts() and self.token == token:
                handle(outcome)

        if self._still_acts():
            self._session.ask(f, key, value, answered)
