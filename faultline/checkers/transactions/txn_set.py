"""Sets: transactions that add unique elements to grow-only sets and read whole sets.

`wr` goes from the adder of each element to all transactions that saw it. Since no element is ever removed, a read
without an element came before its addition: `rw`. Adds commute and no read shows their order, so there is no `ww`. For
serializability these edges are complete: in any order of the transactions, a read returns exactly the elements that
were added before it.

Limits: each read of a key is compared with each add to it, so the edges of a key are as many as its reads times the
transactions that add to it. As with list-append, use many keys with some hundred elements each.
"""

from __future__ import annotations

from faultline.checkers.transactions.columns import TransactionColumns, encode
from faultline.checkers.transactions.component import Step
from faultline.checkers.transactions.edges import DependencyEdges, EdgeKind, EdgeList
from faultline.checkers.transactions.inference import Inference, Reason
from faultline.checkers.transactions.observations import shown
from faultline.checkers.transactions.set_anomalies import set_anomalies
from faultline.checkers.transactions.set_members import SetMembers, find_set_members
from faultline.harness.history import History

__all__ = ["SetWords", "infer_sets", "set_edges"]


def infer_sets(history: History) -> Inference:
    """Return the inference on the order of transactions in a history of sets."""
    columns = encode(history, "add")
    members = find_set_members(columns)
    return Inference(columns, set_edges(columns, members), set_anomalies(columns, members), SetWords(columns, members))


def set_edges(columns: TransactionColumns, members: SetMembers) -> DependencyEdges:
    """Return all wr and rw edges. The reason of an edge is the read."""
    edges = EdgeList(len(columns))
    owner, happened = columns.owner.tolist(), members.happened.tolist()
    for read in members.seen:
        reader = owner[read]
        for adder in dict.fromkeys(owner[add] for add in members.seen_adds(columns, read)):
            if happened[adder]:
                edges.add(adder, reader, EdgeKind.WR, read)
        for adder in dict.fromkeys(owner[add] for add in members.missed_adds(columns, read)):
            if happened[adder]:
                edges.add(reader, adder, EdgeKind.RW, read)
    return edges.finish()


class SetWords:
    """The words for edges that `set_edges` drew."""

    def __init__(self, columns: TransactionColumns, members: SetMembers) -> None:
        self._columns = columns
        self._members = members

    def reason(self, step: Step, source: str, target: str) -> Reason:
        """Return why `step.source`, called `source`, precedes `step.target`, called `target`, by a wr or rw edge."""
        columns, members = self._columns, self._members
        key = columns.keys[columns.key[step.reason]]
        if step.kind & EdgeKind.WR:
            element = self._added_by(step.source, members.seen_adds(columns, step.reason))
            return Reason(f"{target} read {element} in {key}, which {source} had added", key)
        element = self._added_by(step.target, members.missed_adds(columns, step.reason))
        return Reason(f"{source} read {key} without {element}, which {target} added, and nothing is ever removed", key)

    def _added_by(self, transaction: int, adds: list[int]) -> str:
        columns = self._columns
        return next(shown(columns.values[add]) for add in adds if columns.owner[add] == transaction)
