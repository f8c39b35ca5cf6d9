"""Weather: randomness as a pure function of (seed, stream, time).

A run never draws from a sequential generator, where one draw more would change every later one. Instead each stream
(a link, a node's timer, a disk) has a salt made from the seed and its name, and a draw at a given instant mixes the
salt with the time. Taking an operation or a fault out of a plan therefore leaves the delay of every other message as it
was, which is what lets counterexamples shrink to a handful of operations and survive changes of unrelated code.

Two draws of one stream at the same instant are equal; that is harmless on an ordered channel, and streams that must
differ get different names.
"""

from __future__ import annotations

import hashlib

__all__ = ["DRAW_RANGE", "FIRST_ODD", "MASK", "SECOND_ODD", "draw", "salt", "uniform"]

DRAW_RANGE = 1 << 24
"""Draws are integers in [0, DRAW_RANGE)."""

MASK = (1 << 64) - 1
FIRST_ODD = 0x9E3779B97F4A7C15
SECOND_ODD = 0xD6E8FEB86659FD93


def salt(seed: int, *stream: str | int) -> int:
    """Return the 64-bit salt of a stream: names and numbers, told apart by position."""
    text = "\x1f".join(map(str, (seed, *stream)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def draw(stream_salt: int, now_us: int) -> int:
    """Return a draw in [0, DRAW_RANGE) from the stream at `now_us`; two rounds part neighbouring instants."""
    mixed = ((stream_salt ^ now_us) * FIRST_ODD) & MASK
    return (((mixed ^ (mixed >> 29)) * SECOND_ODD) & MASK) >> 40


def uniform(stream_salt: int, now_us: int, low: int, high: int) -> int:
    """Return an integer in [low, high), or `low` when the range is empty."""
    if high <= low:
        return low
    return low + (draw(stream_salt, now_us) * (high - low) >> 24)
