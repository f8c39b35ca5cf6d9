"""The strongest models that a history keeps, among those that can be decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable

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


def strongest(
    models: Iterable[str], kept: Iterable[str], broken: Iterable[str], keeps: Callable[[str], bool | None]
) -> tuple[list[str], list[str]]:
    """Return the strongest of `models` that hold, and those that `keeps` refuted.

    `kept` and `broken` are known already; `keeps` decides another one, None when it cannot. What follows from weaker or
    stronger models is not asked again. A model that was not decided is in neither list.
    """
    holding, broken = list(kept), list(broken)
    refuted = set(broken)
    found: list[str] = []
    for model in sorted(models, key=STRONGEST_FIRST.index):
        if any(model in weaker_models(other) for other in found):
            continue
        if refuted & weaker_models(model):
            continue
        answer = True if any(model in weaker_models(other) for other in holding) else keeps(model)
        if answer:
            found.append(model)
        elif answer is False:
            refuted.add(model)
    return found, sorted(refuted.difference(broken), key=STRONGEST_FIRST.index)
