"""The findings of an inference besides edges: anomalies that need no cycle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from faultline.checkers.transactions.columns import TransactionColumns

__all__ = ["Observation", "Observations", "shown"]

_SHOWN = 80
_EXAMPLES = 8


@dataclass(frozen=True, slots=True)
class Observation:
    """An anomaly seen at these transactions, on this key, with the reason in one sentence."""

    anomaly: str
    transactions: tuple[int, ...]
    sentence: str
    key: Any = None
    detail: dict[str, Any] = field(default_factory=dict)


class Observations:
    """A collector of observations: a few examples of each anomaly, and its count."""

    def __init__(self, columns: TransactionColumns) -> None:
        self._columns = columns
        self.examples: list[Observation] = []
        self.counts: dict[str, int] = {}

    def wants(self, anomaly: str) -> bool:
        """Return whether another example of `anomaly` would be kept."""
        return self.counts.get(anomaly, 0) < _EXAMPLES

    def count(self, anomaly: str) -> None:
        """Count one more of `anomaly`, without an example."""
        self.counts[anomaly] = self.counts.get(anomaly, 0) + 1

    def add(self, anomaly: str, transactions: Iterable[int], sentence: str, key: Any = None, **detail: Any) -> None:
        """Count one more of `anomaly`, and keep it as an example if there are few."""
        if self.wants(anomaly):
            ordered = tuple(dict.fromkeys(int(t) for t in transactions))
            self.examples.append(Observation(anomaly, ordered, sentence, key, detail))
        self.count(anomaly)

    def name(self, transaction: int) -> str:
        """Return the name of a transaction in sentences: its client and the event of the history with which it
        began."""
        columns = self._columns
        return f"client {columns.process[transaction]}'s transaction of event {columns.invoke[transaction] + 1}"


def shown(value: Any) -> str:
    """Return a value for sentences, cut to a readable length."""
    text = "nothing" if value is None else str(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]} … {text[-_SHOWN // 2 :]}"
