"""The findings of a verbose check: the data behind any drawing of a history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from faultline.checkers.porcupine.annotation import Annotation
from faultline.checkers.porcupine.model import AnyModel, Operation

if TYPE_CHECKING:
    from faultline.checkers.porcupine.visualization import VisualizationData

__all__ = ["LinearizationInfo"]

Input = TypeVar("Input")
Output = TypeVar("Output")


@dataclass(slots=True)
class LinearizationInfo(Generic[Input, Output]):
    """For each part its operations and its longest partial linearizations.

    A linearization is a tuple of positions in `history[part]`. For a linearizable part there is exactly one, and it is
    complete (but for pending operations); otherwise there is, for every operation that can be linearized at all, one
    that is the longest to contain it.
    """

    history: Sequence[Sequence[Operation[Input, Output]]] = ()
    partial_linearizations: Sequence[Sequence[tuple[int, ...]]] = ()
    annotations: list[Annotation] = field(default_factory=list)

    def partial_linearizations_operations(self) -> list[list[list[Operation[Input, Output]]]]:
        """Return the same with the operations themselves instead of their positions."""
        return [
            [[operations[position] for position in linearization] for linearization in linearizations]
            for operations, linearizations in zip(self.history, self.partial_linearizations, strict=True)
        ]

    def visualization(self, model: AnyModel[Any, Input, Output]) -> VisualizationData:
        """Return the data of a drawing; `model` is the one that was checked."""
        from faultline.checkers.porcupine.visualization import visualization_data

        return visualization_data(model, self)

    def add_annotations(self, annotations: Iterable[Annotation]) -> None:
        """Put notes (faults, phases) beside the history."""
        self.annotations.extend(annotations)
