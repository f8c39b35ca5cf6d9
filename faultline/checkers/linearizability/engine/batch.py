"""One call for all keys: `check_columns`.

Keys are checked apart (linearizability is local: Herlihy & Wing 1990, section 3). Those the monitor cannot judge are
searched, each with a few hundred steps at first; only when every key had its turn do the undecided ones get eight times
as many, and so on, so that a key that is easily refuted is not kept waiting by one that is hard.

Every answer that a key is legal comes with a linearization that was replayed (see `replay`).
"""

from __future__ import annotations

from typing import Literal

from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.engine.native import check_natively, kernel
from faultline.checkers.porcupine.budget import UNLIMITED, Budget
from faultline.harness.errors import HarnessError

__all__ = ["FIRST_STEPS", "Method", "check_columns"]

Method = Literal["auto", "search"]

FIRST_STEPS = 500
"""The steps of search that every key gets before any gets more."""


def check_columns(
    columns: Columns, budget: Budget = UNLIMITED, *, method: Method = "auto", engine: str | None = None
) -> list[Decision]:
    """Judge every key of `columns`, in the order of `columns.keys`; positions in a decision are those in `columns`.

    `budget` counts the steps of each key and the time of all; `method` may forbid the monitor, and `engine` (`native`,
    `python`) names one, for tests. Raises HarnessError when a linearization does not hold when it is replayed.
    """
    module, reason = (None, "") if engine == "python" else kernel()
    if engine == "native" and module is None:
        raise HarnessError(f"The native engine is not there: {reason}.", "Leave the choice to Faultline.")
    if module is not None:
        return check_natively(module, columns, budget, FIRST_STEPS, with_zones=method == "auto")
    from faultline.checkers.linearizability.engine.dovetail import check_in_python

    return check_in_python(columns, budget, FIRST_STEPS, with_zones=method == "auto")
