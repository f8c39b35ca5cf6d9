"""The pictures and words of checked histories: the one door from the checkers to the reports.

It is a room of its own in ARCHITECTURE.md, so that no other checker comes to depend on how something is shown, and it
is imported only when a picture is asked for. As the reports do, it knows the shape of what it draws and not its types.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TextIO

from faultline.reports.checked_page import checked_values
from faultline.reports.explanation import CheckedHistory, explanation
from faultline.reports.page import render, write_page
from faultline.reports.porcupine_page import Visualization, porcupine_values

__all__ = [
    "Information",
    "checked_page",
    "explanation",
    "linearizations_page",
    "visualize",
    "visualize_path",
    "write_page",
]

_TITLE = "A history and its linearizations"


class Information(Protocol):
    """The result of a verbose check, which can describe itself with the model that was checked."""

    def visualization(self, model: Any, /) -> Visualization: ...


def visualize(model: Any, information: Information, output: TextIO, title: str = _TITLE) -> None:
    """Write the page of a verbose check to `output`: `result, information = check_operations_verbose(model, …)`."""
    output.write(linearizations_page(model, information, title))


def visualize_path(model: Any, information: Information, path: Path | str, title: str = _TITLE) -> Path:
    """Write the page of a verbose check to the file `path`, and return its path."""
    return write_page(path, linearizations_page(model, information, title))


def linearizations_page(model: Any, information: Information, title: str = _TITLE, verdict: str = "") -> str:
    """Return the page of a verbose check: its operations and the longest partial linearizations.

    Without a `verdict` it is a pass when the linearizations hold every operation that returned, else a violation.
    """
    return render("porcupine.html", porcupine_values(information.visualization(model), title, verdict))


def checked_page(checked: CheckedHistory) -> str:
    """Return the page of a history that was checked under a model by name."""
    return render("checked.html", checked_values(checked))
