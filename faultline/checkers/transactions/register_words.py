"""The reasons why one transaction must precede another, in words, for registers."""

from __future__ import annotations

from faultline.checkers.transactions.columns import TransactionColumns
from faultline.checkers.transactions.component import Step
from faultline.checkers.transactions.edges import EdgeKind
from faultline.checkers.transactions.inference import Reason
from faultline.checkers.transactions.observations import shown
from faultline.checkers.transactions.register_order import VersionOrder
from faultline.checkers.transactions.register_versions import RegisterVersions

__all__ = ["RegisterWords"]

_BECAUSE = {
    "store": "the store says so",
    "writes-follow-reads": "the writer of {later} had read {earlier}",
    "process": "one process used {earlier} before {later}",
    "realtime": "{earlier} was used before {later} in real time",
}


class RegisterWords:
    """The words for edges that `register_edges` drew."""

    def __init__(self, columns: TransactionColumns, versions: RegisterVersions, order: VersionOrder) -> None:
        self._columns = columns
        self._versions = versions
        self._order = order
        self._sources: dict[tuple[int, int], str] | None = None

    def reason(self, step: Step, source: str, target: str) -> Reason:
        """Return why `step.source`, called `source`, precedes `step.target`, called `target`, by a ww, wr or rw
        edge."""
        columns, versions = self._columns, self._versions
        key = columns.keys[columns.key[step.reason]]
        value = shown(columns.values[step.reason])
        if step.kind & EdgeKind.WR:
            return Reason(f"{target} read {value} from {key}, which {source} had written", key)
        seen = int(versions.version[step.reason])
        if step.kind & EdgeKind.RW:
            missed = self._written(step.target, step.reason, after=seen)
            new = shown(columns.values[int(versions.write[missed])])
            return Reason(
                f"{source} read {value} from {key}, before {target} wrote {new} there ({self._why(seen, missed)})", key
            )
        earlier = self._written(step.source, step.reason, before=seen)
        old = shown(columns.values[int(versions.write[earlier])])
        why = self._why(earlier, seen)
        return Reason(f"{target} wrote {value} to {key} after {source} had written {old} ({why})", key)

    def _written(self, transaction: int, micro: int, after: int = -1, before: int = -1) -> int:
        """Return the version that `transaction` wrote to the key of `micro`: preferably one known to follow or
        precede another."""
        columns, versions = self._columns, self._versions
        own = [
            int(versions.version[step])
            for step in range(int(columns.start[transaction]), int(columns.start[transaction + 1]))
            if columns.key[step] == columns.key[micro] and not columns.is_read[step]
        ]
        known = self._known()
        fitting = [version for version in own if (after, version) in known or (version, before) in known]
        return fitting[-1] if fitting else own[-1]

    def _why(self, earlier: int, later: int) -> str:
        name = self._known().get((earlier, later))
        if name is None:
            return "every key is unset at first"
        columns, versions = self._columns, self._versions
        names = [shown(columns.values[int(versions.write[version])]) for version in (earlier, later)]
        return _BECAUSE[name].format(earlier=names[0], later=names[1])

    def _known(self) -> dict[tuple[int, int], str]:
        if self._sources is None:
            order = self._order
            triples = zip(order.earlier.tolist(), order.later.tolist(), order.source.tolist())
            self._sources = {}
            for earlier, later, source in triples:
                self._sources.setdefault((earlier, later), order.names[source])
        return self._sources
