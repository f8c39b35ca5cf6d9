"""Lost updates: two transactions read the same version of an object and both overwrote it (Berenson et al. 1995, P4).

They are found without a cycle, in one sort, and so also where the order of the two writes is unknown.
"""

from __future__ import annotations

import numpy as np

from faultline.checkers.transactions.columns import OK, Integers, TransactionColumns
from faultline.checkers.transactions.observations import Observations, shown

__all__ = ["lost_updates"]


def lost_updates(columns: TransactionColumns, state: Integers, found: Observations) -> None:
    """Report lost updates. `state[m]` is a number for the version of its key that read `m` saw, -1 where it is unknown.

    Only a transaction's first use of a key counts as reading it from others.
    """
    alive = np.flatnonzero(columns.outcome[columns.owner] == OK)
    order = alive[np.argsort(columns.owner[alive] * len(columns.keys) + columns.key[alive], kind="stable")]
    code = columns.owner[order] * len(columns.keys) + columns.key[order]
    opening = np.concatenate(([True], code[1:] != code[:-1])) if len(code) else np.zeros(0, dtype=np.bool_)
    group = np.cumsum(opening) - 1
    writes = np.bincount(group, weights=~columns.is_read[order]) > 0 if len(code) else np.zeros(0, dtype=np.bool_)
    first = order[opening]
    updating = first[writes & columns.is_read[first] & (state[first] >= 0)]
    by_version = updating[np.lexsort((state[updating], columns.key[updating]))]
    same = (columns.key[by_version[:-1]] == columns.key[by_version[1:]]) & (
        state[by_version[:-1]] == state[by_version[1:]]
    )
    for place in np.flatnonzero(same).tolist():
        one, other = sorted((int(columns.owner[by_version[place]]), int(columns.owner[by_version[place + 1]])))
        key = columns.keys[columns.key[by_version[place]]]
        found.add(
            "lost-update",
            [one, other],
            f"{found.name(one).capitalize()} and {found.name(other)} both read "
            f"{shown(columns.values[by_version[place]])} from {key} and both wrote to it, so that one of them did not "
            "know of the other.",
            key,
        )
