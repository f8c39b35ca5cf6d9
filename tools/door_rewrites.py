"""Histories rewritten with the same meaning, with the verdict that they must keep.

A history is a list of events as the importers give them. It is written anew with other white space and another order of
keys, with processes and keys renamed, with events of the nemesis between, with operations at the end that cannot
matter, and cut off anywhere behind the counterexample. The result is a violation if and only if the history was one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["WRITERS", "KnownHistory", "rewritten", "with_other_spelling"]

Events = list[dict[str, Any]]


class KnownHistory(NamedTuple):
    """A history whose verdict is known. `kind` is register, kv, txn or other; no prefix shorter than `shown_by` events
    shows the violation, and every longer one does. 0 for a history of which only the whole is known.
    """

    name: str
    kind: str
    events: Events
    violates: bool
    shown_by: int = 0

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats it can be written in."""
        if self.kind == "kv":
            return ("porcupine-kv", "jepsen-edn", "jepsen-json", "faultline")
        if self.kind == "txn":
            return ("elle", "jepsen-edn", "jepsen-json", "faultline")
        log = ("jepsen-log",) if self.kind == "register" else ()
        return ("jepsen-edn", "jepsen-json", "faultline", *log)


def rewritten(rng: random.Random, known: KnownHistory, format_name: str) -> bytes:
    """Return the history rewritten in the format."""
    events = [dict(event) for event in known.events]
    if known.shown_by and rng.random() < 0.5:
        events = events[: rng.randrange(known.shown_by, len(events) + 1)]
    if rng.random() < 0.5:
        events = _with_other_processes(rng, events)
    if rng.random() < 0.5:
        events = _with_other_keys(rng, events, known.kind)
    if rng.random() < 0.5:
        events += _harmless(rng, events, known.kind)
    if rng.random() < 0.3 and format_name not in ("jepsen-log", "porcupine-kv"):
        events = _with_a_nemesis(rng, events)
    return WRITERS[format_name](rng, events)


def with_other_spelling(rng: random.Random, data: bytes) -> bytes:
    """Return the lines of `history.jsonl` with other white space and another order of keys."""
    return "".join(f"{_json(rng, json.loads(line))}\n" for line in data.splitlines()).encode()


def _with_other_processes(rng: random.Random, events: Events) -> Events:
    processes = sorted({event["process"] for event in events if "process" in event})
    names = dict(zip(processes, rng.sample(range(max(100, 2 * len(processes))), len(processes))))
    return [event | {"process": names[event["process"]]} if "process" in event else event for event in events]


def _with_other_keys(rng: random.Random, events: Events, kind: str) -> Events:
    names: dict[Any, Any] = {}

    def renamed(key: Any) -> Any:
        return names.setdefault(key, f"{rng.choice(['k', 'key-', 'é'])}{len(names)}")

    if kind == "kv":
        return [event | {"key": renamed(event["key"])} for event in events]
    if kind == "txn":
        return [
            event | {"value": [[f, renamed(key), *rest] for f, key, *rest in event["value"] or ()]} for event in events
        ]
    return events


def _harmless(rng: random.Random, events: Events, kind: str) -> Events:
    """Return reads of new processes that never end, or fail: they cannot change the verdict."""
    read: dict[str, Any] = {"type": "invoke", "f": "read", "value": None}
    if kind == "kv":
        read |= {"f": "get", "key": events[0]["key"]}
    elif kind == "txn":
        read |= {"f": "txn", "value": [["r", "unheard-of", None]]}
    if kind == "other" or any("process" not in event for event in events):
        return []
    first = 1 + max([event["process"] for event in events], default=0)
    added = []
    for process in range(first, first + rng.randrange(1, 4)):
        added.append(read | {"process": process})
        if rng.random() < 0.5 and kind != "kv":
            added.append(read | {"process": process, "type": rng.choice(["fail", "info"])})
    return added


def _with_a_nemesis(rng: random.Random, events: Events) -> Events:
    place = rng.randrange(len(events) + 1)
    event = {"type": "info", "f": rng.choice(["start-partition", "stop-kill"]), "process": "nemesis", "value": {"a": 1}}
    return [*events[:place], event, *events[place:]]


def _in_edn(rng: random.Random, events: Events) -> bytes:
    wrapped = rng.random() < 0.5
    maps = []
    for event in events:
        fields = [f":{name}{_space(rng)}{_edn(rng, value, name)}" for name, value in _shuffled(rng, event)]
        maps.append("{" + _gap(rng).join(fields) + "}")
    text = (rng.choice(["\n", "\n\n", " ; a comment\n", " #_ ignored "]) if rng.random() < 0.5 else "\n").join(maps)
    return (f"[{text}]" if wrapped else text + "\n").encode()


def _edn(rng: random.Random, value: Any, name: str = "") -> str:
    if name in ("type", "f") or (name == "process" and isinstance(value, str)):
        return f":{value}"
    if value is None or isinstance(value, bool):
        return {None: "nil", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return "[" + _gap(rng).join(_edn(rng, part) for part in value) + "]"
    if isinstance(value, dict):
        pairs = [f"{_edn(rng, key)} {_edn(rng, part)}" for key, part in _shuffled(rng, value)]
        return "{" + ", ".join(pairs) + "}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _space(rng: random.Random) -> str:
    return rng.choice([" ", " ", "  ", "\t", "\n", " #_x "])


def _gap(rng: random.Random) -> str:
    return rng.choice([" ", ", ", ",", "\n ", " ,, "])


def _in_json(rng: random.Random, events: Events) -> bytes:
    texts = [_json(rng, event) for event in events]
    if rng.random() < 0.5:
        return ("[" + rng.choice([",", ",\n", " , "]).join(texts) + "]").encode()
    return (rng.choice(["\n", " ", "\n\n"]).join(texts) + "\n").encode()


def _json(rng: random.Random, event: dict[str, Any]) -> str:
    separators = rng.choice([(",", ":"), (", ", ": "), (" , ", " :\t")])
    return json.dumps(dict(_shuffled(rng, event)), separators=separators, ensure_ascii=rng.random() < 0.5)


def _in_lines(rng: random.Random, events: Events) -> bytes:
    """Return the events as `history.jsonl`: with indices and times that grow."""
    index = time_us = rng.randrange(1_000)
    lines = []
    for event in events:
        index, time_us = index + rng.randrange(1, 4), time_us + rng.randrange(1, 1_000)
        told = {name: value for name, value in event.items() if name not in ("index", "time")}
        told |= {"index": index, "time_us": time_us} | ({} if "process" in event else {"process": 0})
        lines.append(_json(rng, told) + "\n")
    return "".join(lines).encode()


def _in_a_log(rng: random.Random, events: Events) -> bytes:
    lines = []
    for event in events:
        value, kind = event.get("value"), event["type"]
        told = ":timed-out" if kind == "info" else "nil" if value is None else str(value).replace(",", "")
        told = "[0 0]" if event["f"] == "cas" and told == "nil" else told
        lines.append(f"INFO  jepsen.util - {event.get('process', 0)}\t:{kind}\t:{event['f']}\t{told}{_end(rng)}")
    return "".join(lines).encode()


def _in_porcupine(rng: random.Random, events: Events) -> bytes:
    lines = []
    for event in events:
        value = "nil" if event["value"] is None else json.dumps(event["value"], ensure_ascii=False)
        key = json.dumps(event["key"], ensure_ascii=False)
        start = f"{{:process {event['process']}, :type :{event['type']}, :f :{event['f']}"
        lines.append(f"{start}, :key {key}, :value {value}}}{_end(rng)}")
    return "".join(lines).encode()


def _end(rng: random.Random) -> str:
    return rng.choice(["\n", "\n", "  \n", "\n\n"])


def _shuffled(rng: random.Random, mapping: dict[str, Any]) -> list[tuple[str, Any]]:
    pairs = list(mapping.items())
    rng.shuffle(pairs)
    return pairs


WRITERS: dict[str, Callable[[random.Random, Events], bytes]] = {
    "jepsen-edn": _in_edn,
    "jepsen-json": _in_json,
    "elle": lambda rng, events: rng.choice([_in_edn, _in_json])(rng, events),
    "faultline": _in_lines,
    "jepsen-log": _in_a_log,
    "porcupine-kv": _in_porcupine,
}
