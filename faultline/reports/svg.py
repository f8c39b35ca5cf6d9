"""A minimal SVG writer: elements as escaped text, and the hatches that figures share.

The style sheet chooses colours through classes, so that one figure serves the light and the dark theme, print, and
forced colours.
"""

from __future__ import annotations

from markupsafe import Markup, escape

from faultline.reports.legend import FAULT_FAMILIES
from faultline.reports.text import shorten, visible

__all__ = ["LONGEST_TEXT", "Child", "group", "hatch_definitions", "number", "tag"]

LONGEST_TEXT = 1_000
"""The largest number of characters of a figure's text, and of an attribute that is not `Markup`."""

Child = Markup | str
"""An element (`Markup`), or plain text that still has to be escaped (`str`)."""


def number(value: float) -> str:
    """Return a coordinate with one decimal, so that the same figure is the same bytes everywhere."""
    return f"{value:.1f}".removesuffix(".0")


def tag(name: str, *children: Child, **attributes: str | float) -> Markup:
    """Return the element `name`. `class_` is written as `class`; other underscores become hyphens."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if not children:
        return Markup(f"<{name}{written}/>")
    content = "".join(map(_content, children))
    return Markup(f"<{name}{written}>{content}</{name}>")


def group(title: str, *children: Child, **attributes: str | float) -> Markup:
    """Return a group with an accessible name, which a pointer shows as well."""
    return tag("g", tag("title", title), *children, role="img", aria_label=title, **attributes)


def _shown(text: str) -> str:
    return visible(shorten(text, LONGEST_TEXT))


def _attribute(key: str, value: str | float) -> str:
    if isinstance(value, float | int):
        text = number(value)
    else:
        text = value if isinstance(value, Markup) else escape(_shown(value))
    return f' {_ATTRIBUTE_NAMES.get(key) or key.replace("_", "-")}="{text}"'


_ATTRIBUTE_NAMES = {
    "class_": "class",
    "viewBox": "viewBox",
    "patternUnits": "patternUnits",
    "refX": "refX",
    "refY": "refY",
}


def _content(child: Child) -> str:
    return str(child) if isinstance(child, Markup) else str(escape(_shown(child)))


_HATCH_PATHS = {
    "partition": ("M-2,2 L2,-2 M0,8 L8,0 M6,10 L10,6", 8),
    "kill": ("M0,0 L8,8 M0,8 L8,0", 8),
    "pause": ("M2,0 V6", 6),
    "clock": ("M3,3 h1.6 M7,7 h1.6", 8),
    "packet": ("M0,3 H6", 6),
    "other": ("M-2,6 L2,10 M0,0 L8,8 M6,-2 L10,2", 8),
}


def hatch_definitions(prefix: str) -> Markup:
    """Return the `<pattern>` of every family of faults, with ids `PREFIX-FAMILY`."""
    patterns = [_hatch(prefix, family.name) for family in FAULT_FAMILIES]
    return tag("defs", *patterns)


def _hatch(prefix: str, family: str) -> Markup:
    path, size = _HATCH_PATHS[family]
    line = tag("path", d=path, class_="hatch")
    return tag("pattern", line, id=f"{prefix}-{family}", width=size, height=size, patternUnits="userSpaceOnUse")
