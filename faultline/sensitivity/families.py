"""The anomalies of each workload."""

from __future__ import annotations

from collections.abc import Mapping

from faultline.harness.sensitivity import Anomalies
from faultline.sensitivity.bookings import bookings, causal_pairs
from faultline.sensitivity.collections import carts, lists, ordered_lists, sequential_sets, sets
from faultline.sensitivity.counters import counters, identifiers, sessions_on_counters
from faultline.sensitivity.groups import groups
from faultline.sensitivity.list_transactions import list_transactions, skewed_transactions
from faultline.sensitivity.locks import leases
from faultline.sensitivity.queues import queues
from faultline.sensitivity.register_transactions import forked_transactions, register_transactions
from faultline.sensitivity.registers import (
    bounded_registers,
    registers,
    registers_of_causes,
    registers_of_sessions,
    registers_of_writers,
)
from faultline.sensitivity.scanned_keys import scanned_keys
from faultline.sensitivity.selected_rows import selected_rows
from faultline.sensitivity.siblings import siblings, spreading_values
from faultline.sensitivity.transfers import accounts
from faultline.sensitivity.watched_keys import watched_keys

__all__ = ["ANOMALIES"]

ANOMALIES: Mapping[str, Anomalies] = {
    "register": registers,
    "read-write": registers,
    "follower-reads": registers_of_sessions,
    "read-your-writes": registers_of_writers,
    "bounded-staleness": bounded_registers,
    "set": sets,
    "sequential": sequential_sets,
    "cart": carts,
    "append": lists,
    "log-order": ordered_lists,
    "counter": counters,
    "sessions": sessions_on_counters,
    "unique-ids": identifiers,
    "siblings": siblings,
    "metadata": spreading_values,
    "transfer": accounts,
    "bank": accounts,
    "booking": bookings,
    "causal-pairs": causal_pairs,
    "causal-writes": registers_of_causes,
    "dependent-writes": registers,
    "moved-sessions": registers_of_causes,
    "queue": queues,
    "txn-append": list_transactions,
    "txn-register": register_transactions,
    "lost-update": register_transactions,
    "write-skew": skewed_transactions,
    "long-fork": forked_transactions,
    "predicates": selected_rows,
    "membership": groups,
    "scans": scanned_keys,
    "locks": leases,
    "watches": watched_keys,
    "key-watches": watched_keys,
}
"""The anomalies of the workloads that come with Faultline, by name; other workloads have a method `anomalies`."""
