"""A hook of MkDocs: links to files of the repository that are not pages.

A page may link to a source file, an example's folder or ARCHITECTURE.md. On the site such a link becomes the path
alone, since the site has no copy of them. A path that does not exist is a warning, which fails a strict build.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path

from mkdocs.structure.pages import Page

__all__ = ["on_page_markdown"]

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

_LINK = re.compile(r"\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])+)\]\((?P<path>\.\./[^)\s#]+)(?:#[^)\s]*)?\)")
_LOG = logging.getLogger("mkdocs.plugins.site_hooks")


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Return the page with each link that leaves docs/ replaced by its text and the path in the repository."""
    folder = (DOCS / page.file.src_uri).parent
    return _LINK.sub(lambda link: _on_site(link, folder, page.file.src_uri), markdown)


def _on_site(link: re.Match[str], folder: Path, page: str) -> str:
    target = (folder / link["path"]).resolve()
    if target.is_relative_to(DOCS):
        return link[0]
    if not target.exists():
        _LOG.warning("%s links to %s, which does not exist.", page, link["path"])
    path = target.relative_to(ROOT).as_posix()
    return link["text"] if path in link["text"] else f"{link['text']} (`{path}`)"
