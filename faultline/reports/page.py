"""One offline HTML file: templates, style sheet, a small script, and the policy that allows no other content.

A page opens from a mail attachment, on a plane, in ten years: it fetches no file, links to no site, and can be read
with scripts switched off. Every value that a template prints goes through `finalize`, which makes a hostile value
visible and short in one place; autoescaping then makes it text. The content security policy allows exactly this style
sheet and this script, by hash. The same input gives the same bytes: there is no "generated at"."""

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
"""The largest number of characters of one value on a page."""


def render(template: str, values: dict[str, Any]) -> str:
    """Return the page `template` filled with `values`."""
    style, script = asset("report.css"), asset("report.js")
    shared = {
        "style": Markup(style),
        "script": Markup(script),
        "style_hash": _hash(style),
        "script_hash": _hash(script),
    }
    return _environment().get_template(template).render(shared | values)


def write_page(path: Path | str, page: str) -> Path:
    """Write `page` to the file `path`, which appears whole or not at all, and return its path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, page.encode(), durable=False)
    return path


@cache
def asset(name: str) -> str:
    """Return the template, style sheet or script `name` from the package."""
    return files("faultline.reports").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@cache
def _environment() -> Environment:
    environment = Environment(
        # Not PackageLoader: it fails inside a zip file with a relative name in sys.path, as on Spark's executors.
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
    """Pass markup, which is the project's own; make any other text visible and cut it to `LONGEST_TEXT`."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(shorten(value, LONGEST_TEXT))
    return value
