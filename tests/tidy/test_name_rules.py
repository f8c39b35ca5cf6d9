"""Each rule of names can say no: one name it refuses and one that it lets pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from tidy_names import PERSONS, complaints_about_coined_names, complaints_about_persons_in_names, named_files
from tidy_sources import CODE_FOLDERS, Source

CODE = {
    "a test": ("tests/unit/test_a.py", "def test_{}_leads(): ...", "test_{}_leads"),
    "a function": ("faultline/a.py", "def _is_{}_ready(): ...", "_is_{}_ready"),
    "a constant": ("faultline/a.py", "ASKED_BY_{} = 1", "ASKED_BY_{}"),
    "a variable": ("tools/a.py", "def f():\n    {} = 1", "{}"),
    "a parameter": ("tools/a.py", "def f({}): ...", "{}"),
    "a macro of C": ("faultline/native/a.h", "#define {} (-1)", "{}"),
    "a variable of C": ("faultline/native/a.c", "int of_{} = 1;", "of_{}"),
}


@pytest.mark.parametrize("person", PERSONS)
@pytest.mark.parametrize("kind", CODE)
@pytest.mark.parametrize("case", [str.lower, str.upper])
def test_a_name_that_holds_a_person_is_refused(kind: str, person: str, case: type[str]) -> None:
    path, text, name = CODE[kind]
    (complaint,) = complaints_about_persons_in_names(path, text.format(case(person)))
    assert f": {name.format(case(person))} holds a person" in complaint


def test_a_class_whose_name_holds_a_person_is_refused() -> None:
    (complaint,) = complaints_about_persons_in_names("faultline/a.py", f"\nclass {PERSONS[0].title()}Leads: ...")
    assert complaint.startswith(f"faultline/a.py:2: {PERSONS[0].title()}Leads")


def test_a_name_that_occurs_often_is_refused_once_where_it_first_stands() -> None:
    text = f"x = 1\n{PERSONS[0]} = x\ny = {PERSONS[0]}\n"
    (complaint,) = complaints_about_persons_in_names("tools/a.py", text)
    assert complaint.startswith("tools/a.py:2:")


def test_a_file_whose_name_holds_a_person_is_refused() -> None:
    (complaint,) = complaints_about_persons_in_names(f"tests/scenarios/transcripts/{PERSONS[1]}-crashes.txt", "")
    assert "the file's name" in complaint


def test_names_of_actors_and_words_of_texts_are_no_persons_in_names() -> None:
    assert complaints_about_persons_in_names("tests/test_a.py", "def test_no_node_leads(): ...") == []
    assert complaints_about_persons_in_names("tests/test_a.py", f"x = '{PERSONS[0]}'") == []
    assert complaints_about_persons_in_names("tests/scenarios/a.txt", f"{PERSONS[0]} leads") == []


def test_files_of_all_suffixes_are_named_but_generated_ones_and_caches(tmp_path: Path) -> None:
    for name in ("a.py", "b", "__pycache__/c.pyc", "generated/d.md", "e/f.txt"):
        path = tmp_path / CODE_FOLDERS[0] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert list(named_files(tmp_path)) == [f"{CODE_FOLDERS[0]}/{name}" for name in ("a.py", "b", "e/f.txt")]


@pytest.mark.parametrize(
    ("text", "path"), [("X = 1", "faultline/a/node_keeper.py"), ("class LogMinder: ...", "faultline/a/b.py")]
)
def test_a_coined_name_is_refused(text: str, path: str) -> None:
    assert len(complaints_about_coined_names(Source(path, text))) == 1


def test_names_that_only_contain_a_coined_word_are_allowed() -> None:
    text = "class ZooKeeper: ...\ndef keep(): ...\ndef black_box(): ..."
    assert complaints_about_coined_names(Source("faultline/a/zoo.py", text)) == []
