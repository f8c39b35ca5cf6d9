"""A checked history as plain records: everything a drawing of it needs, and nothing that knows how to draw.

For each part: the operations with the row of their client, the longest partial linearizations with the state after each
step, and for each operation which of them is the longest that contains it (`largest`; an operation that is in none
cannot be placed at all). Pointing at an operation shows that linearization; Porcupine's own page works so, and
`visualize` draws one without scripts. `plain` gives it all as what JSON has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from faultline.checkers.porcupine.annotation import Annotation
from faultline.checkers.porcupine.model import PENDING, AnyModel, Model, NondeterministicModel, Operation

__all__ = [
    "AnnotationElement",
    "Checked",
    "HistoryElement",
    "LinearizationStep",
    "PartitionVisualization",
    "VisualizationData",
    "plain",
    "visualization_data",
]

State = TypeVar("State")
Input = TypeVar("Input")
Output = TypeVar("Output")


class HistoryElement(msgspec.Struct, frozen=True):
    """One operation: who, from when until when (`end` is None when it never returned), and what, in words.

    `metadata` is what the model says of its metadata, empty without any.
    """

    client_id: int
    start: float
    end: float | None
    description: str
    metadata: str = ""


class LinearizationStep(msgspec.Struct, frozen=True):
    """One step of a linearization: the operation's position in `history`, and the state after it in words."""

    index: int
    state: str


class PartitionVisualization(msgspec.Struct, frozen=True):
    """One part. `lanes` are its clients from top to bottom; `largest` maps positions to `partial_linearizations`."""

    history: tuple[HistoryElement, ...]
    lanes: tuple[int, ...]
    partial_linearizations: tuple[tuple[LinearizationStep, ...], ...]
    largest: Mapping[int, int]

    @property
    def unplaced(self) -> tuple[int, ...]:
        """The completed operations that are in no partial linearization."""
        return tuple(
            position
            for position, element in enumerate(self.history)
            if position not in self.largest and element.end is not None
        )


class AnnotationElement(msgspec.Struct, frozen=True):
    """A note on the time axis, at a client's row or under a tag; a point in time has equal `start` and `end`."""

    start: float
    end: float
    description: str
    details: str
    client_id: int | None
    tag: str
    text_color: str
    background_color: str


class VisualizationData(msgspec.Struct, frozen=True):
    """A whole checked history."""

    partitions: tuple[PartitionVisualization, ...]
    annotations: tuple[AnnotationElement, ...]


class Checked(Protocol[Input, Output]):
    """The contents of `information.LinearizationInfo`."""

    @property
    def history(self) -> Sequence[Sequence[Operation[Input, Output]]]: ...
    @property
    def partial_linearizations(self) -> Sequence[Sequence[tuple[int, ...]]]: ...
    @property
    def annotations(self) -> Sequence[Annotation]: ...


def visualization_data(model: AnyModel[State, Input, Output], information: Checked[Input, Output]) -> VisualizationData:
    """Return the data of a verbose check. Raises ValueError when a linearization is not one of `model`."""
    plain: Model[Any, Input, Output] = model.to_model() if isinstance(model, NondeterministicModel) else model
    parts = zip(information.history, information.partial_linearizations, strict=True)
    return VisualizationData(
        tuple(_partition(plain, operations, linearizations) for operations, linearizations in parts),
        tuple(map(_annotation, information.annotations)),
    )


def plain(data: VisualizationData) -> dict[str, Any]:
    """Return `data` as dictionaries and lists, as JSON has them; keys of `largest` become text."""
    built: dict[str, Any] = _listed(msgspec.to_builtins(data, str_keys=True))
    return built


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, list | tuple) else value


def _partition(
    model: Model[State, Input, Output],
    operations: Sequence[Operation[Input, Output]],
    linearizations: Sequence[Sequence[int]],
) -> PartitionVisualization:
    longest_first = sorted(linearizations, key=len, reverse=True)
    largest: dict[int, int] = {}
    for number, linearization in enumerate(longest_first):
        for position in linearization:
            largest.setdefault(position, number)
    return PartitionVisualization(
        history=tuple(_element(model, operation) for operation in operations),
        lanes=tuple(sorted({operation.client_id for operation in operations})),
        partial_linearizations=tuple(_steps(model, operations, order) for order in longest_first),
        largest=dict(sorted(largest.items())),
    )


def _element(model: Model[State, Input, Output], operation: Operation[Input, Output]) -> HistoryElement:
    end = None if operation.return_ == PENDING else operation.return_
    description = model.describe_operation(operation.input, operation.output)
    metadata = model.describe_operation_metadata(operation.metadata)
    return HistoryElement(operation.client_id, operation.call, end, description, metadata)


def _steps(
    model: Model[State, Input, Output], operations: Sequence[Operation[Input, Output]], order: Sequence[int]
) -> tuple[LinearizationStep, ...]:
    state = model.init()
    steps = []
    for position in order:
        legal, state = model.step(state, operations[position].input, operations[position].output)
        if not legal:
            raise ValueError(f"operation {position} is not legal where the linearization has it: another model's?")
        steps.append(LinearizationStep(position, model.describe_state(state)))
    return tuple(steps)


def _annotation(note: Annotation) -> AnnotationElement:
    return AnnotationElement(
        start=note.start,
        end=note.start if note.end is None else max(note.start, note.end),
        description=note.description,
        details=note.details,
        client_id=note.client_id,
        tag=note.tag,
        text_color=note.text_color,
        background_color=note.background_color,
    )
