"""Registers: transactions that write unique values to keys and read them. They show less, but every store has them."""

from __future__ import annotations

from functools import partial

from faultline.checkers.transactions.columns import encode
from faultline.checkers.transactions.committed import committed_registers
from faultline.checkers.transactions.inference import Inference
from faultline.checkers.transactions.models import DECIDED
from faultline.checkers.transactions.observations import Observations
from faultline.checkers.transactions.register_anomalies import observe_registers
from faultline.checkers.transactions.register_edges import register_edges
from faultline.checkers.transactions.register_order import VersionSources, order_versions
from faultline.checkers.transactions.register_versions import find_register_versions
from faultline.checkers.transactions.register_words import RegisterWords
from faultline.harness.history import History

__all__ = ["infer_rw_register"]


def infer_rw_register(history: History, sources: VersionSources) -> Inference:
    """Return the inference on the order of transactions in a register history, with these sources of version order."""
    columns = encode(history, "w")
    versions = find_register_versions(columns)
    found = Observations(columns)
    observe_registers(columns, versions, found)
    order = order_versions(columns, versions, sources, found)
    edges = register_edges(columns, versions, order)
    committed = partial(committed_registers, columns, versions)
    return Inference(columns, edges, found, RegisterWords(columns, versions, order), committed, DECIDED)
