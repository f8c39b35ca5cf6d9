"""Reading a page back as a person without JavaScript sees it, with the parser of the standard library."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

from faultline.harness.judgement import Judgement
from faultline.harness.run_record import RunRecord
from faultline.reports.run_page import write_run_report

VOID = {"meta", "link", "br", "hr", "img", "input"}
BLOCKS = {"td", "th", "dt", "dd", "li", "p", "div", "h1", "h2", "h3"}
SVG = "{http://www.w3.org/2000/svg}"


class Page(HTMLParser):
    """The text, headings, tables, links and policies of a page; fails on tags that do not match."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.open: list[str] = []
        self.texts: list[str] = []
        self.headings: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.by_id: dict[str, str] = {}
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._open_ids: list[str | None] = []
        self.feed(html)
        self.close()
        assert self.open == [], f"tags left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag == "a":
            self.links.append(attributes.get("href") or "")
        if attributes.get("id"):
            self.ids.append(str(attributes["id"]))
        if tag not in VOID:
            self.open.append(tag)
            self._open_ids.append(attributes.get("id"))
        if tag in ("h1", "h2", "h3"):
            self.headings.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1:] == [tag], f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()
        if tag in BLOCKS:
            self.handle_data(" ")
        self._open_ids.pop()

    def handle_data(self, data: str) -> None:
        inside = set(self.open)
        if "script" in inside:
            self.scripts.append(data)
            return
        if "style" in inside:
            self.styles.append(data)
            return
        self.texts.append(data)
        for name in filter(None, self._open_ids):
            self.by_id[name] = self.by_id.get(name, "") + data
        if inside & {"h1", "h2", "h3"}:
            self.headings[-1] += data

    @property
    def text(self) -> str:
        """All that can be read, on one line."""
        return " ".join("".join(self.texts).split())

    def section(self, name: str) -> str:
        """Return the text of the element with this id, on one line."""
        return " ".join(self.by_id.get(name, "").split())

    def figures(self) -> list[ElementTree.Element]:
        """Every SVG element of the page, parsed as XML."""
        return [ElementTree.fromstring(source) for source in re.findall(r"<svg .*?</svg>", self.html, flags=re.DOTALL)]


def svg_texts(figure: ElementTree.Element) -> list[str]:
    """Return the texts of a figure, in order."""
    return ["".join(text.itertext()) for text in figure.iter(f"{SVG}text")]


def svg_of_class(figure: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    """The elements of a figure that carry the class `name`."""
    return [element for element in figure.iter() if name in (element.get("class") or "").split()]


def run_page(folder: Path, record: RunRecord, judged: Judgement) -> Page:
    """Return the page of a run, written into `folder`."""
    return Page(write_run_report(folder, record, judged).read_text("utf-8"))
