"""The site of the documentation builds strictly, checks links and anchors, and loads nothing from another machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(
    r"<(?:script|img|iframe|source)[^>]*\ssrc=\"?(?:https?:)?//|<link[^>]*rel=\"?stylesheet[^>]*href=\"?(?:https?:)?//"
)

CONFIGURATION = """
site_name: A part
docs_dir: docs
use_directory_urls: false
hooks: [tools/site_hooks.py]
validation: {absolute_links: warn, unrecognized_links: warn, anchors: warn}
"""


def _build(configuration: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", configuration, "--site-dir", site]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_the_site_has_no_broken_link_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    built = _build(ROOT / "mkdocs.yml", tmp_path)
    assert built.returncode == 0, built.stderr
    pages = [page.relative_to(tmp_path).as_posix() for page in tmp_path.rglob("*.html")]
    assert {"index.html", "how-to/run-on-hosts.html", "reference/generated/systems.html"} <= set(pages)
    assert [page for page in pages if LOADED.search((tmp_path / page).read_text(encoding="utf-8"))] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("link", "complaint"),
    [
        ("[gone](gone.md)", "gone.md"),
        ("[an anchor](other.md#nowhere)", "nowhere"),
        ("[a source file](../faultline/nowhere.py)", "faultline/nowhere.py"),
    ],
)
def test_a_broken_link_fails_the_build(tmp_path: Path, link: str, complaint: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "site_hooks.py", tmp_path / "tools")
    (tmp_path / "mkdocs.yml").write_text(CONFIGURATION, encoding="utf-8")
    (tmp_path / "docs" / "index.md").write_text(f"# Start\n\n{link}\n", encoding="utf-8")
    (tmp_path / "docs" / "other.md").write_text("# Other\n", encoding="utf-8")
    built = _build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert built.returncode != 0
    assert complaint in built.stderr
