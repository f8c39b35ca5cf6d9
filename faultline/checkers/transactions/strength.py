"""The strongest models that a history keeps, among those that can be decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from faultline.checkers.transactions.models import weaker_models

__all__ = ["STRONGEST_FIRST", "strongest"]

STRONGEST_FIRST = (
    "strict-serializable",
    "strong-session-serializable",
    "strong-snapshot-isolation",
    "serializable",
    "strong-session-snapshot-isolation",
    "snapshot-isolation",
    "causal-cerone",
    "read-atomic",
    "read-committed",
)
"""The models of `DECIDED`, none before one that is stronger."""


Model = TypeVar("Model", bound=str)


def strongest(
    models: Sequence[Model], kept: Iterable[str], broken: Iterable[str], keeps: Callable[[Model], bool | None]
) -> tuple[list[Model], list[Model]]:
    """Return the strongest of `models` that hold, and those that `keeps` refuted. `models` has the stronger ones first.

    `kept` and `broken` are known already; `keeps` decides another one, None when it cannot. What follows from weaker or
    stronger models is not asked again. A model that was not decided is in neither list.
    """
    holding, broken = list(kept), list(broken)
    refuted = set(broken)
    found: list[Model] = []
    for model in models:
        if any(model in weaker_models(other) for other in found):
            continue
        if refuted & weaker_models(model):
            continue
        answer = True if any(model in weaker_models(other) for other in holding) else keeps(model)
        if answer:
            found.append(model)
        elif answer is False:
            refuted.add(model)
    return found, [model for model in models if model in refuted.difference(broken)]
