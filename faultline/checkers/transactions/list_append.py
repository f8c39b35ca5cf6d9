"""List-append: transactions that append unique elements to lists and read whole lists, the data that shows most about
order."""

from __future__ import annotations

from faultline.checkers.transactions.columns import encode
from faultline.checkers.transactions.inference import Inference
from faultline.checkers.transactions.list_anomalies import list_anomalies
from faultline.checkers.transactions.list_edges import list_edges
from faultline.checkers.transactions.list_versions import find_list_versions
from faultline.checkers.transactions.list_words import ListWords
from faultline.harness.history import History

__all__ = ["infer_list_append"]


def infer_list_append(history: History) -> Inference:
    """Return the inference on the order of transactions in a list-append history."""
    columns = encode(history, "append")
    versions = find_list_versions(columns)
    return Inference(
        columns, list_edges(columns, versions), list_anomalies(columns, versions), ListWords(columns, versions)
    )
