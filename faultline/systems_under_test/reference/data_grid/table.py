"""The table of partitions: an owner and backups for each, handed out by the coordinator under versions that grow.

A coordinator makes a table from the one before and from the copies that the members hold. It cannot know by itself
which copies are good: a member that was cut off may hold an old one. So each copy carries the *generation* of its
partition, the version of the table that changed its entry last, and an owner answers clients only once all backups hold
the content of its generation. From this follows which copies have every acknowledged write:

- a copy of the entry's generation, whichever holder has it;
- copies of the generation that the entry was *based* on, if some holder is known not to have reached the entry's
  generation: then no client can have been answered in it;
- no other copy. While the holders of such copies do not answer, the partition is *away*. It begins anew only when all
  holders of its generation have come back with empty memories.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

__all__ = ["AWAY", "NO_TABLE_YET", "CopyReport", "Entry", "GridTable", "Holder", "MemberReport", "next_table"]

AWAY = ""
"""The owner of a partition whose copies do not answer."""


class Holder(msgspec.Struct, frozen=True, array_like=True):
    """A start of the process at `address`, whose memory is empty at first."""

    address: str
    instance: int


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """The place of one partition: its holders, the owner first.

    `basis` is the oldest generation of copies that are good as long as `generation` was not reached; 0 when there was
    nothing before. `after_silence` says that the owner before did not answer, so its lease must run out first.
    """

    generation: int
    holders: tuple[Holder, ...]
    basis: int = 0
    after_silence: bool = False
    is_away: bool = False

    @property
    def owner(self) -> str:
        """The address of the owner, `AWAY` when the partition has none."""
        return AWAY if self.is_away else self.holders[0].address

    def is_owned_by(self, holder: Holder) -> bool:
        """Return whether this start of a process is the owner."""
        return not self.is_away and self.holders[0] == holder

    def is_backed_up_by(self, holder: Holder) -> bool:
        """Return whether this start of a process is a backup of a partition that is not away."""
        return not self.is_away and holder in self.holders[1:]


class GridTable(msgspec.Struct, frozen=True, array_like=True):
    """All entries, in the order of the partitions, and the members among which they are spread."""

    version: int = 0
    members: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()


NO_TABLE_YET = GridTable()
"""The table before the first."""


class CopyReport(msgspec.Struct, frozen=True, array_like=True):
    """A copy that a member holds: its generation, the number of its writes, and whether its owner still waits."""

    partition: int
    generation: int
    number: int
    is_waiting: bool = False


class MemberReport(msgspec.Struct, frozen=True, array_like=True):
    """The report of one member to the coordinator: itself, the newest table that it followed, and its copies."""

    holder: Holder
    table: GridTable
    copies: tuple[CopyReport, ...]


class _Reports:
    """The reports of all members, by the questions that are asked of them."""

    def __init__(self, reports: Sequence[MemberReport]) -> None:
        self.addresses = tuple(report.holder.address for report in reports)
        self._holders = {report.holder.address: report.holder for report in reports}
        self._copies: Mapping[str, Mapping[int, CopyReport]] = {
            report.holder.address: {copy.partition: copy for copy in report.copies} for report in reports
        }

    def holder(self, address: str) -> Holder:
        return self._holders[address]

    def is_intact(self, holder: Holder) -> bool:
        """Return whether the process still runs that the table meant, so that its memory is what it was."""
        return self._holders.get(holder.address) == holder

    def is_silent(self, holder: Holder) -> bool:
        """Return whether no process answered at the holder's address."""
        return holder.address not in self._holders

    def copy(self, address: str, partition: int) -> CopyReport | None:
        return self._copies[address].get(partition)

    def copies(self, partition: int, generation_min: int) -> list[tuple[str, CopyReport]]:
        """Return the copies of `partition` that are of `generation_min` or later, the newest first."""
        found = [
            (address, copy)
            for address in self.addresses
            if (copy := self.copy(address, partition)) is not None and copy.generation >= generation_min
        ]
        return sorted(found, key=lambda each: (-each[1].generation, -each[1].number))


class _Plan:
    """The plan for one partition: its holders by address, the owner first, and the generation it rests on."""

    def __init__(self, entry: Entry | None, holders: list[str], basis: int, current: frozenset[str]) -> None:
        self.entry = entry
        self.holders = holders
        self.basis = basis
        self.current = current
        """The members whose copies have reached the generation of the entry: each may own it."""


def next_table(
    previous: GridTable, version: int, reports: Sequence[MemberReport], partitions: int, copies: int, *, waits: bool
) -> GridTable:
    """Return the table `version` for the members that sent `reports`, the oldest first.

    Each partition gets `copies` holders as far as there are members. An entry whose holders stay is kept as it is. With
    `waits` a partition stays away while its good copies may come back; else it begins anew at once.
    """
    known = _Reports(reports)
    entries: tuple[Entry | None, ...] = previous.entries or (None,) * partitions
    plans = [_standing(known, partition, entry, waits=waits) for partition, entry in enumerate(entries)]
    wanted = min(copies, len(reports))
    _fill(known, [plan for plan in plans if plan is not None], wanted)
    _spread_owners(known, [plan for plan in plans if plan is not None])
    return GridTable(
        version,
        known.addresses,
        tuple(
            _away(entry, version) if plan is None else _entry(known, partition, plan, version)
            for partition, (entry, plan) in enumerate(zip(entries, plans, strict=True))
        ),
    )


def _standing(known: _Reports, partition: int, entry: Entry | None, *, waits: bool) -> _Plan | None:
    """Return the holders that a partition keeps, with a good copy as the owner's; None while it is away."""
    if entry is None:
        return _Plan(None, [], 0, frozenset())
    intact = [holder.address for holder in entry.holders if known.is_intact(holder)]
    reached = [address for address, copy in known.copies(partition, entry.generation) if address in intact]
    if reached:
        return _Plan(entry, _first(_preferred(entry, reached), intact), entry.generation, frozenset(reached))
    if intact and not entry.basis:
        # Nothing came before this generation, and it was not reached: the partition is as empty as it began.
        return _Plan(entry, intact, 0, frozenset())
    good = [address for address, _ in known.copies(partition, entry.basis)]
    if intact and good:
        return _Plan(entry, _first(_preferred(entry, good), intact), entry.basis, frozenset())
    if waits and (intact or any(known.is_silent(holder) for holder in entry.holders)):
        return None
    # All copies are lost. An old one is better than none, but it is no promise.
    return _Plan(entry, good[:1], 0, frozenset())


def _preferred(entry: Entry, candidates: Sequence[str]) -> str:
    """Return the owner so far if it is one of the candidates, else the first of them."""
    return entry.holders[0].address if entry.holders[0].address in candidates else candidates[0]


def _first(owner: str, others: Sequence[str]) -> list[str]:
    return [owner, *(address for address in others if address != owner)]


def _fill(known: _Reports, plans: Sequence[_Plan], wanted: int) -> None:
    """Give each partition as many holders as are wanted, and move backups until no member holds too many."""
    held = dict.fromkeys(known.addresses, 0)
    for plan in plans:
        del plan.holders[wanted:]
        for address in plan.holders:
            held[address] += 1
    for plan in plans:
        while len(plan.holders) < wanted:
            address = min((each for each in known.addresses if each not in plan.holders), key=held.__getitem__)
            plan.holders.append(address)
            held[address] += 1
    for plan in plans:
        for place, address in enumerate(plan.holders[1:], start=1):
            free = [each for each in known.addresses if each not in plan.holders]
            idle = min(free, key=held.__getitem__, default=address)
            if held[address] - held[idle] > 1:
                plan.holders[place] = idle
                held[address] -= 1
                held[idle] += 1


def _spread_owners(known: _Reports, plans: Sequence[_Plan]) -> None:
    """Hand partitions on to backups that own fewer, as long as a backup has all the data."""
    owned = dict.fromkeys(known.addresses, 0)
    for plan in plans:
        owned[plan.holders[0]] += 1
    for plan in plans:
        owner = plan.holders[0]
        fresh = plan.entry is None
        heirs = [each for each in plan.holders[1:] if fresh or each in plan.current]
        heir = min(heirs, key=owned.__getitem__, default=owner)
        if owned[owner] - owned[heir] > 1:
            plan.holders = _first(heir, plan.holders)
            owned[owner] -= 1
            owned[heir] += 1


def _away(entry: Entry | None, version: int) -> Entry:
    assert entry is not None, f"partition of table {version} is away before it was anywhere"
    return msgspec.structs.replace(entry, is_away=True)


def _entry(known: _Reports, partition: int, plan: _Plan, version: int) -> Entry:
    """Return the entry of a plan: the one before if it says the same, else one of a new generation."""
    holders = tuple(known.holder(address) for address in plan.holders)
    before = plan.entry
    if before is None:
        return Entry(version, holders)
    if before.holders == holders and not before.is_away:
        return before
    former = before.holders[0]
    if known.is_silent(former):
        after_silence = True
    elif known.is_intact(former):
        copy = known.copy(former.address, partition)
        after_silence = copy is not None and copy.is_waiting
    else:
        # That process has ended. The one before it may not have, if its lease was still to be waited for.
        after_silence = before.after_silence
    return Entry(version, holders, plan.basis, after_silence)
