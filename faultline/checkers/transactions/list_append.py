"""List-append: transactions that append unique elements to lists and read whole lists, the data that shows most about
order.

For serializability the dependencies are complete: unread appends can come in any order that respects them. Snapshot
isolation asks in which order two transactions wrote, so that those of unread appends are searched."""

from __future__ import annotations

from functools import partial

from faultline.checkers.transactions.columns import encode
from faultline.checkers.transactions.committed import committed_lists
from faultline.checkers.transactions.inference import Inference
from faultline.checkers.transactions.list_anomalies import list_anomalies
from faultline.checkers.transactions.list_edges import list_edges
from faultline.checkers.transactions.list_versions import find_list_versions
from faultline.checkers.transactions.list_words import ListWords
from faultline.checkers.transactions.models import SNAPSHOTS
from faultline.harness.history import History

__all__ = ["infer_list_append"]


def infer_list_append(history: History) -> Inference:
    """Return the inference on the order of transactions in a list-append history."""
    columns = encode(history, "append")
    versions = find_list_versions(columns)
    return Inference(
        columns,
        list_edges(columns, versions),
        list_anomalies(columns, versions),
        ListWords(columns, versions),
        partial(committed_lists, columns, versions),
        SNAPSHOTS,
    )
