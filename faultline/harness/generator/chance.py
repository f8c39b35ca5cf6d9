"""Chance without a random number generator: every draw is a pure function of the seed and the operations so far.

A mutable generator of random numbers would make asking twice different from asking once, and taking one operation out
of a plan would move every later draw. So the engine computes one 64-bit number per operation, its *chance*, from the
seed and the number of operations emitted before; each combinator that draws folds its own salt into that number.

The mixing steps are the finalizers of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014) and a multiplicative hash (Knuth, TAOCP vol. 3, section 6.4).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

__all__ = ["below", "by_weight", "chance_of", "chance_of_text", "reseeded"]

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_GOLDEN = 0x9E37_79B9_7F4A_7C15
_FIRST = 0xBF58_476D_1CE4_E5B9
_SECOND = 0x94D0_49BB_1331_11EB


def chance_of(seed: int, count: int) -> int:
    """Return the 64-bit chance of the operation before which `count` others were emitted, under `seed`."""
    mixed = ((seed * _SECOND) ^ (count * _GOLDEN + _FIRST)) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * _FIRST) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * _SECOND) & _MASK
    return mixed ^ (mixed >> 31)


def chance_of_text(*parts: object) -> int:
    """Return a 64-bit chance from the texts of `parts`: for decisions made once, where speed does not matter."""
    text = "\x1f".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def reseeded(chance: int, salt: int) -> int:
    """Return the chance that a combinator hands to its children, unrelated to `chance` and to those of other salts."""
    mixed = ((chance ^ (salt * _SECOND)) * _FIRST) & _MASK
    return mixed ^ (mixed >> 32)


def below(chance: int, bound: int, salt: int) -> int:
    """Return an integer in [0, bound) drawn from `chance`; draws under different odd `salt`s do not follow each
    other."""
    return ((((chance * salt) & _MASK) >> 32) * bound) >> 32


def by_weight(weights: Iterable[tuple[str, int]], chance: int, salt: int) -> str:
    """Return one of the names, drawn with the probability of its weight; the weights add up to 100."""
    percent = below(chance, 100, salt)
    for name, weight in weights:
        percent -= weight
        if percent < 0:
            return name
    raise ValueError("the weights do not add up to 100")
