"""One offline HTML file: templates, style sheet, the little script, and the policy that lets nothing else in.

A page opens from a mail attachment, on a plane, in ten years: nothing is fetched, nothing links out, everything can be
read with scripts switched off. Every value printed by a template goes through `finalize`, so that a hostile value is
made visible and short in one place; autoescaping then makes it text. The content security policy allows exactly this
style sheet and this script, by hash. The same input gives the same bytes: there is no "generated at".
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from faultline.harness.results import write_whole
from faultline.reports.legend import FAULT_FAMILIES, STATUSES, status
from faultline.reports.text import count, duration, percent, shorten, time_point, value_text, visible

__all__ = ["LONGEST_TEXT", "asset", "render", "write_page"]

LONGEST_TEXT = 4_000
"""No single value on a page is longer than this many characters."""


def render(template: str, values: dict[str, Any]) -> str:
    """The page `template` filled with `values`."""
    style, script = asset("report.css"), asset("report.js")
    shared = {
        "style": Markup(style),
        "script": Markup(script),
        "style_hash": _hash(style),
        "script_hash": _hash(script),
    }
    return _environment().get_template(template).render(shared | values)


def write_page(path: Path, template: str, values: dict[str, Any]) -> Path:
    """Render `template` into the file `path`; the file appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, render(template, values).encode(), durable=False)
    return path


@cache
def asset(name: str) -> str:
    """The template, style sheet or script `name` from the package."""
    return files("faultline.reports").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@cache
def _environment() -> Environment:
    environment = Environment(
        # Not PackageLoader: inside a zip file that stands in sys.path by a relative name, as on Spark's executors, it
        # finds nothing.
        loader=FunctionLoader(asset),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        duration=duration, time_point=time_point, percent=percent, value=value_text, shorten=shorten, count=count
    )
    environment.globals.update(status=status, statuses=STATUSES, fault_families=FAULT_FAMILIES)
    return environment


def _finalize(value: Any) -> Any:
    """Markup is the project's own and passes; any other text is made visible and kept to `LONGEST_TEXT`."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(shorten(value, LONGEST_TEXT))
    return value
