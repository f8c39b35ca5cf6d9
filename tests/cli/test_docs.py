"""The documents tell the truth: their commands run, and the pages made from listings are up to date."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from documented_commands import Block, Ran, blocks_of, complaints_about, run_block

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES_THAT_RUN = [
    page for page in PAGES if any(block.expected_exit is not None for block in blocks_of(page.read_text()))
]


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES_THAT_RUN, ids=_name)
def test_the_commands_of_a_page_do_what_the_page_says(page: Path, tmp_path: Path) -> None:
    complaints = []
    for block in blocks_of(page.read_text()):
        if block.expected_exit is not None:
            complaints += complaints_about(block, run_block(block, tmp_path))
    assert not complaints, "\n".join([_name(page), *complaints])


def test_each_history_of_a_users_own_test_is_checked_by_ten_lines_or_less() -> None:
    page = (ROOT / "docs" / "how-to" / "check-histories-from-your-own-tests.md").read_text()
    scripts = [block for block in blocks_of(page) if block.kind == "python" and "check(" in block.text]
    assert len(scripts) >= 10
    assert [block.line for block in scripts if not block.shown_output] == []
    assert [block.line for block in scripts if _lines_of_code(block.text) > 10] == []


def _lines_of_code(text: str) -> int:
    return sum(bool(line.strip()) and not line.startswith("#") for line in text.splitlines())


def test_every_block_of_commands_says_whether_it_is_run() -> None:
    silent = [
        f"{_name(page)}:{block.line}"
        for page in PAGES
        for block in blocks_of(page.read_text())
        if block.expected_exit is None and not block.is_run_elsewhere
    ]
    assert silent == []


def test_the_pages_made_from_listings_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import generate_reference

    made = generate_reference.figures() | generate_reference.pages()
    stale = [_name(page) for page in generate_reference.outdated(made)]
    assert stale == [], "run: make docs"


# -- the reader of documents can say no -----------------------------------------------------------------------------

PAGE = """
<!-- run, exit 3 -->
```console
$ echo one \\
  two three; exit 3
one … three
…
```

```sh
echo unmarked
```

<!-- run elsewhere: nowhere yet -->
```sh
sleep 1000
```
"""


def test_blocks_are_found_with_their_comments() -> None:
    run, unmarked, elsewhere = blocks_of(PAGE)
    assert (run.expected_exit, run.script, run.shown_output) == (3, "echo one \\\n  two three; exit 3", ["one … three"])
    assert (unmarked.expected_exit, unmarked.is_run_elsewhere) == (None, False)
    assert (elsewhere.expected_exit, elsewhere.is_run_elsewhere) == (None, True)


def test_a_block_that_behaves_as_shown_is_accepted(tmp_path: Path) -> None:
    block = blocks_of(PAGE)[0]
    assert complaints_about(block, run_block(block, tmp_path)) == []


def test_another_exit_code_or_another_output_is_a_complaint() -> None:
    block = blocks_of(PAGE)[0]
    assert len(complaints_about(block, Ran(0, "one two three"))) == 1
    assert len(complaints_about(block, Ran(3, "one two"))) == 1


def test_a_block_of_python_is_run_where_its_comment_says_so_and_prints_what_it_says(tmp_path: Path) -> None:
    page = "```python\nraise SystemExit(9)\n```\n\n<!-- run -->\n```python\nprint('one two')\n# → one …\n```\n"
    (block,) = blocks_of(page)
    assert complaints_about(block, run_block(block, tmp_path)) == []
    assert len(complaints_about(block, Ran(0, "two"))) == 1


def test_the_commands_are_those_of_this_environment(tmp_path: Path) -> None:
    ran = run_block(Block(1, "sh", "command -v python && faultline --version", " run "), tmp_path)
    assert str(Path(sys.executable).parent) in ran.output
    assert ran.exit_code == 0
