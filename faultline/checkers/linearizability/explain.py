"""One sentence that says, in words and with times, what a register did wrong."""

from __future__ import annotations

import json
from typing import Any

from faultline.checkers.linearizability.classify import Anomaly
from faultline.harness.history import OPEN, History

__all__ = ["describe_value", "explain", "seconds"]

_LONGEST_VALUE = 60


def explain(history: History, key: str | None, anomaly: Anomaly, core_size: int) -> str:
    """The anomaly as a sentence: who saw what when, what it contradicts, how few operations show it."""
    accused = f"At {_ended(history, anomaly.accused)} {_client(history, anomaly.accused)} {_did(history, anomaly, key)}"
    reason = _reason(history, anomaly)
    total = len(history)
    enough = f"{core_size} of {total} operations {'suffice' if core_size > 1 else 'suffices'} to show it"
    return f"{accused} {reason}; {enough}."


def seconds(time_us: int) -> str:
    """A time in microseconds, as seconds for readers."""
    return f"{time_us / 1_000_000:.3f} s"


def describe_value(value: Any) -> str:
    """A JSON value in a sentence, cut when it is long; None is `nothing`."""
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def _ended(history: History, row: int) -> str:
    time_us = history.complete_us[row]
    return seconds(time_us if time_us != OPEN else history.invoke_us[row])


def _client(history: History, row: int) -> str:
    return f"client {history.process[row]}"


def _did(history: History, anomaly: Anomaly, key: str | None) -> str:
    row, place = anomaly.accused, key if key is not None else "the register"
    if history.f[row] != "cas":
        return f"read {describe_value(history.result[row])} from {place}"
    expected, new = map(describe_value, history.value[row])
    if anomaly.name == "refused-cas":
        return f"was refused to replace {expected} by {new} in {place}"
    return f"replaced {expected} by {new} in {place}"


def _reason(history: History, anomaly: Anomaly) -> str:
    other = anomaly.against
    if anomaly.name == "phantom-read":
        return "although nobody ever wrote that value"
    if other is None:
        return _REASONS_ALONE.get(anomaly.name, "which no order of the operations that respects real time can explain")
    if anomaly.name == "dirty-read":
        return f"although {_whose(history, other)} of it had definitely failed ({history.error[other]})"
    if anomaly.name == "future-read":
        return f"although {_whose(history, other)} of it began only at {seconds(history.invoke_us[other])}"
    if anomaly.name == "double-cas":
        _, new = map(describe_value, history.value[other])
        return f"although {_client(history, other)} replaced the same value by {new} at {_ended(history, other)}"
    known = f"although {_fact(history, other)} at {_ended(history, other)}"
    return f"{known}, and nobody has seen it since" if anomaly.name in ("lost-update", "lost-cas") else known


_REASONS_ALONE = {"refused-cas": "although nothing else can have been there"}


def _whose(history: History, row: int) -> str:
    return f"{_client(history, row)}'s {'compare-and-set' if history.f[row] == 'cas' else 'write'}"


def _fact(history: History, row: int) -> str:
    """What the contradicting operation had established, up to the time at which it had."""
    f = history.f[row]
    if f == "read":
        return f"{_client(history, row)} had already read {describe_value(history.result[row])}"
    if f == "cas":
        expected, new = map(describe_value, history.value[row])
        return f"{_client(history, row)}'s compare-and-set from {expected} to {new} had completed"
    return f"{_whose(history, row)} of {describe_value(history.value[row])} had completed"
