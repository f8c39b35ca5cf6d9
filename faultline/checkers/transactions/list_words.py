"""The reasons why one transaction must precede another, in words, for append-only lists."""

from __future__ import annotations

from faultline.checkers.transactions.columns import TransactionColumns
from faultline.checkers.transactions.component import Step
from faultline.checkers.transactions.edges import EdgeKind
from faultline.checkers.transactions.inference import Reason
from faultline.checkers.transactions.list_versions import ListVersions
from faultline.checkers.transactions.observations import shown

__all__ = ["ListWords"]


class ListWords:
    """The words for edges that `list_edges` drew."""

    def __init__(self, columns: TransactionColumns, versions: ListVersions) -> None:
        self._columns = columns
        self._versions = versions

    def reason(self, step: Step, source: str, target: str) -> Reason:
        """Return why `step.source`, called `source`, precedes `step.target`, called `target`, by a ww, wr or rw
        edge."""
        columns = self._columns
        key = columns.keys[columns.key[step.reason]]
        value = shown(columns.values[step.reason])
        if step.kind & EdgeKind.WR:
            return Reason(f"{target} read {value} from {key}, the last element of which {source} had appended", key)
        if step.kind & EdgeKind.RW:
            return Reason(f"{source} read {_list(value)} from {key}, before {target} appended {self._next(step)}", key)
        earlier = self._before(step)
        if self._versions.position[step.reason] < 0:
            return Reason(
                f"{source} appended {earlier} to {key}, the last that was ever read there, and {target} appended "
                f"{value}, which had not been read",
                key,
            )
        return Reason(f"{target} appended {value} to {key} right after {source} had appended {earlier}", key)

    def _next(self, step: Step) -> str:
        """Return the element by which the target overwrote the source's read: the first of its own that was missing."""
        columns, versions = self._columns, self._versions
        seen = len(columns.values[step.reason] or ())
        key = columns.key[step.reason]
        for micro in range(int(columns.start[step.target]), int(columns.start[step.target + 1])):
            place = int(versions.position[micro] - versions.first[key]) if versions.position[micro] >= 0 else seen
            if not columns.is_read[micro] and columns.key[micro] == key and place >= seen:
                return shown(columns.values[micro])
        raise AssertionError("the target of an rw edge appended nothing to its key")

    def _before(self, step: Step) -> str:
        """Return the element of the source that precedes the target's append."""
        columns, versions = self._columns, self._versions
        key = columns.key[step.reason]
        own = [
            micro
            for micro in range(int(columns.start[step.source]), int(columns.start[step.source + 1]))
            if not columns.is_read[micro] and columns.key[micro] == key and versions.position[micro] >= 0
        ]
        limit = int(versions.position[step.reason])
        before = [micro for micro in own if limit < 0 or versions.position[micro] < limit]
        return shown(columns.values[max(before, key=lambda micro: int(versions.position[micro]))])


def _list(text: str) -> str:
    return "[]" if text in ("nothing", "[]") else text
