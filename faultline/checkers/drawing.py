"""The pictures of checked histories: the one door from the checkers to the reports that draw.

It is a room of its own in ARCHITECTURE.md, so that no other checker comes to depend on how something is shown, and it
is imported only when a picture is asked for. As the reports do, it knows the shape of what it draws and not its types.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TextIO

from faultline.reports.page import render, write_page
from faultline.reports.porcupine_page import Visualization, porcupine_values

__all__ = ["Information", "visualize", "visualize_path"]

_TITLE = "A history and its linearizations"
_PORCUPINE = "porcupine.html"


class Information(Protocol):
    """The result of a verbose check, which can describe itself with the model that was checked."""

    def visualization(self, model: Any, /) -> Visualization: ...


def visualize(model: Any, information: Information, output: TextIO, title: str = _TITLE) -> None:
    """Write the page of a verbose check to `output`: `result, information = check_operations_verbose(model, …)`."""
    output.write(render(_PORCUPINE, porcupine_values(information.visualization(model), title)))


def visualize_path(model: Any, information: Information, path: Path | str, title: str = _TITLE) -> Path:
    """Write the page of a verbose check to the file `path`, and return its path."""
    return write_page(Path(path), _PORCUPINE, porcupine_values(information.visualization(model), title))
