"""Ways to damage bytes: blindly, by tokens, and by the structure of JSON. All are functions of their random numbers.

A mutation takes random numbers, the bytes, and others of the same kind to splice with.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["MUTATIONS", "UNITS", "Mutation", "mutated"]

Mutation = Callable[[random.Random, bytes, Sequence[bytes]], bytes]

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\w.+:/-]+|\s+|.', re.DOTALL)
_TOKENS_LOOKED_AT = 4_000
_DEEP = 3_000
_LONG = 200_000
_SHARE_OF_LONG_RUNS = 0.1
UNITS = (
    b" ", b",", b"\n", b"\t", b"\r", b" ,", b"\xc2\xa0", b"\x00", b'"', b'\\"', b"\\", b"[", b"{", b"(", b"#_", b"#",
    b";", b":", b"-", b".", b"1", b"1.", b"a", b"a.", b"[],", b"{} ", b'"a",', b'"a" ', b"a=1\n", b"[a]\n", b"0,",
    b"\xf0\x9f\x98\x80",
)  # fmt: skip
_NASTY_TOKENS = (
    b"", b"null", b"nil", b"true", b"false", b"0", b"-1", b"1", b"1.5", b"-0.0", b"1e999", b"NaN", b"##NaN",
    b"9223372036854775807", b"-9223372036854775808", b"9223372036854775808", b"18446744073709551616",
    b"1152921504606846976", b"1" * 30, b"9" * 400, b"9" * 5_000, b'""', b'"x"', b'"\\ud800"', b'"\\u0000"',
    b'"\x1b[31m"',
    b'"\xc3\xa9"', b'"\xff"', b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\x00", b"[]", b"{}", b"[[]]", b"[1 [2]]", b"[1, [2]]",
    b'{"a": 1}', b"{:a 1}", b"#{1}", b"#inst", b"#_", b"\\a", b";", b":", b"::", b"'", b"\\", b"[" * 120, b"[" * _DEEP,
    b"[" * _DEEP + b"]" * _DEEP, b'{"a":' * _DEEP + b"1" + b"}" * _DEEP, b"(" * _DEEP, b"{" * _DEEP, b"a." * 300 + b"b",
    b'"nemesis"', b":nemesis", b"invoke", b":invoke", b":ok", b":info", b":fail", b"txn", b"simulated", b"2147483648",
    b'"' + b"x" * 3_000 + b'"', b"~daemon/x", b"../../x", b"namespaces:3", b"\n", b"\r\n", b"\xe2\x80\xa8",
)  # fmt: skip
_NASTY_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 7, 1.5, -0.0, 1e308, 2**31, 2**53, 2**60, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30,
    10**400,
    "", "x", "\ud800", "\x00", "\x1b[31m", "é", "nemesis", "invoke", "ok", "violation", "x" * 3_000, "../../x", [], {},
    [[]], [None], [1, [2]], {"a": 1}, {"": {}}, ["r", "x", None], [["append", "x", 1]], [["w"]], [[["r"], "x", 1]],
)  # fmt: skip


def mutated(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return `data`, damaged once or a few times."""
    for _ in range(1 + (rng.random() < 0.35) * rng.randrange(1, 4)):
        data = rng.choice(MUTATIONS)(rng, data, others)
    return data


def _with_a_bit_flipped(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    place = rng.randrange(len(data) or 1)
    return (
        data[:place] + bytes([byte ^ (1 << rng.randrange(8)) for byte in data[place : place + 1]]) + data[place + 1 :]
    )


def _with_other_bytes(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    place = rng.randrange(len(data) + 1)
    new = rng.choice([rng.randbytes(1), rng.randbytes(4), b"\xff", b"\x00", b'"', b"{", b"]", b"\n", b"\\", b",", b"-"])
    return data[:place] + new + data[place + rng.randrange(3) :]


def _truncated(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] if rng.random() < 0.8 else data[place:]


def _with_a_piece_moved(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    begin, end, to = sorted(rng.randrange(len(data) + 1) for _ in range(3))
    piece = data[begin:end]
    return rng.choice([data[:begin] + data[end:], data[:to] + piece + data[to:], data[:begin] + data[to:] + piece])


def _spliced(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others)
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _with_lines_changed(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    one, two = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            lines[one], lines[two] = lines[two], lines[one]
        case 1:
            lines.insert(one, lines[two])
        case 2:
            del lines[one]
        case _:
            lines.insert(one, rng.choice(rng.choice(others).splitlines(keepends=True) or [b""]))
    return b"".join(lines)


def _with_a_long_run(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Return `data` with up to _LONG bytes that repeat a few: readers in which they cost their square show it."""
    if rng.random() > _SHARE_OF_LONG_RUNS:
        return _with_another_token(rng, data, ())
    unit, place = rng.choice(UNITS), rng.choice([0, rng.randrange(len(data) + 1), len(data)])
    return data[:place] + unit * (rng.choice([100, 10_000, _LONG]) // len(unit)) + data[place:]


def _with_another_token(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    begin = rng.randrange(max(1, len(data) - _TOKENS_LOOKED_AT))
    tokens = list(_TOKEN.finditer(data, begin, begin + _TOKENS_LOOKED_AT))
    if not tokens:
        return rng.choice(_NASTY_TOKENS)
    one, two = rng.choice(tokens), rng.choice(tokens)
    new = rng.choice([rng.choice(_NASTY_TOKENS), two[0], one[0] + two[0], one[0] + b" " + one[0]])
    return data[: one.start()] + new + data[one.end() :]


def _with_another_value(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Return `data` with one value of its JSON, or of one of its lines, replaced, doubled, wrapped or removed."""
    lines = data.splitlines(keepends=True)
    chosen = [] if data[:2] in (b"{\n", b"[\n", b"[{") else [rng.randrange(len(lines))] if lines else []
    text = lines[chosen[0]] if chosen else data
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _with_another_token(rng, data, ())
    new = json.dumps(_changed(rng, value)).encode()
    if rng.random() < 0.1:
        new = _with_a_key_twice(rng, new)
    if not chosen:
        return new
    lines[chosen[0]] = new + b"\n"
    return b"".join(lines)


def _changed(rng: random.Random, value: Any) -> Any:
    """Return `value` with one of its parts changed, at any depth."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        name = rng.choice(list(value))
        match rng.randrange(10):
            case 0:
                return {key: part for key, part in value.items() if key != name}
            case 1:
                return value | {rng.choice(["x", "", "\ud800", name + "x"]): value[name]}
        return value | {name: _changed(rng, value[name])}
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        match rng.randrange(10):
            case 0:
                return value[:place] + value[place + 1 :]
            case 1:
                return [*value, value[place]]
        return [*value[:place], _changed(rng, value[place]), *value[place + 1 :]]
    if type(value) is int and value.bit_length() < 900 and rng.random() < 0.4:
        return rng.choice(
            [-value, value + 1, value - 1, value * 10, value * 10**9, value // 2, float(value), str(value)]
        )
    return rng.choice([*_NASTY_VALUES, [value], {"a": value}])


def _with_a_key_twice(rng: random.Random, text: bytes) -> bytes:
    keys = list(re.finditer(rb'"[a-z_]+": ', text))
    if not keys:
        return text
    key = rng.choice(keys)
    return text[: key.start()] + key[0] + rng.choice([b"1", b"null", b'"x"']) + b", " + text[key.start() :]


MUTATIONS: tuple[Mutation, ...] = (
    _with_a_bit_flipped,
    _with_other_bytes,
    _truncated,
    _with_a_piece_moved,
    _spliced,
    _with_lines_changed,
    _with_a_long_run,
    _with_another_token,
    _with_another_token,
    _with_another_value,
    _with_another_value,
)
"""The mutations; each is chosen as often as it is listed."""
