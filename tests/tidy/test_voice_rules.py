"""Each rule of the voice can say no: one thing it refuses and one that it lets pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from tidy_sources import Source
from tidy_voice import (
    COMPLEXITY_WITHOUT_COMMENT_MAX,
    complaints_about_first_words,
    complaints_about_short_docstrings,
    complaints_about_uncommented_complexity,
    complaints_about_unexplained_exceptions,
    complaints_about_words,
)

PATH = "tests/unit/test_a.py"
FIRST_WORDS = (
    *("What", "Whatever", "Who", "Who" + "ever", "Whom", "Whose", "Whether", "How"),
    *("Where", "When", "Which", "Why", "See", "However"),
)
DOCUMENTED = (
    *('"""{}"""', 'def f():\n    """{}"""', 'async def f():\n    """{}"""', 'class C:\n    """{}"""'),
    *('X = 1\n"""{}"""', 'class C:\n    x: int\n    """{}"""', 'def f(c):\n    c.x = 1\n    """{}"""'),
)
"""Source texts with one docstring each: of a module, of functions and a class, and of three kinds of attributes."""


def source(text: str) -> Source:
    return Source(PATH, text)


@pytest.mark.parametrize("word", ["no" + "body", "Every" + "body", "who" + "ever", "what" + " there is"])
def test_a_sentence_without_an_actor_is_refused(word: str) -> None:
    (complaint,) = complaints_about_words("a.md", f"Fine.\nIt is {word} in the cluster.")
    assert complaint.startswith(f"a.md:2: '{word}'")
    assert complaints_about_words("a.md", "No node answers. Each waiting client gets the answer.") == []


@pytest.mark.parametrize("word", FIRST_WORDS)
@pytest.mark.parametrize("text", DOCUMENTED)
def test_a_docstring_that_begins_as_a_question_does_is_refused(word: str, text: str) -> None:
    (complaint,) = complaints_about_first_words(source(text.format(f"{word} a node does.")))
    assert f"docstring begins '{word}'" in complaint


@pytest.mark.parametrize(
    "docstring",
    [
        *("How many nodes vote.", "How often a node asks.", "How long a node waits.", "After how much time it ends."),
        *("By what a node is known.", "For how long a lease lasts.", "At which node it ends.", "To whom it is sent."),
        *("Is the link cut?", "Does a node answer, or not?"),
    ],
)
@pytest.mark.parametrize("text", DOCUMENTED)
def test_a_docstring_that_is_a_question_or_follows_a_preposition_is_refused(docstring: str, text: str) -> None:
    assert len(complaints_about_first_words(source(text.format(docstring)))) == 1


def test_an_attribute_docstring_is_named_with_its_own_line() -> None:
    (complaint,) = complaints_about_first_words(source(f'X = 1\n"""{"How"} many nodes vote."""\n'))
    assert complaint.startswith(f"{PATH}:2:")


@pytest.mark.parametrize("text", DOCUMENTED)
def test_a_docstring_that_is_a_noun_phrase_is_allowed_everywhere(text: str) -> None:
    assert complaints_about_first_words(source(text.format("The time after which no node asks."))) == []


def test_a_docstring_of_two_words_is_refused() -> None:
    (complaint,) = complaints_about_short_docstrings(source('def f():\n    """Refuse it."""'))
    assert complaint.startswith(f"{PATH}:1: docstring 'Refuse it.'")
    assert complaints_about_short_docstrings(source('def f():\n    """Refuse the request."""')) == []


def test_a_docstring_that_is_an_imperative_or_a_noun_phrase_is_allowed() -> None:
    texts = ["Return whether the link is cut.", "The highest index that a quorum stores.", "Howitzers are not clauses."]
    texts += ["After a restart it asks.", "By key: the version.", "Do all that is due.", "Have it ready."]
    texts += ["A node that leads, where one does.", "All nodes refuse it.\n\nWhen they do, it ends."]
    assert [c for text in texts for c in complaints_about_first_words(source(f'"""{text}"""\nX = 1'))] == []


def _branches(count: int, comment: str = "") -> str:
    lines = [f"    if x == {number}:\n        x += 1{comment}" for number in range(count)]
    return "\n".join(["def f(x):", *lines, "    return x\n"])


@pytest.mark.parametrize(
    ("count", "comment", "complains"),
    [
        (COMPLEXITY_WITHOUT_COMMENT_MAX, "", True),
        (COMPLEXITY_WITHOUT_COMMENT_MAX, "  # type: ignore", True),
        (COMPLEXITY_WITHOUT_COMMENT_MAX, "  # The order does not matter, as additions commute.", False),
        (COMPLEXITY_WITHOUT_COMMENT_MAX - 1, "", False),
    ],
)
def test_a_complex_function_needs_a_comment_that_says_why(
    count: int, comment: str, complains: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidy_voice.ROOT", tmp_path)
    (tmp_path / "a.py").write_text(_branches(count, comment), encoding="utf-8")
    complaints = complaints_about_uncommented_complexity([Source("a.py", _branches(count, comment))])
    assert bool(complaints) is complains


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("x = f()  # type: ignore[misc]", True),
        ("x = f()  # type: ignore[misc]  # the library has no types", False),
        ("x = 1  # noqa: E501", True),
        ("x = 1  # noqa: E501, B027  # a hook", False),
        ("x = 1  # noqa: F401 – all of these once", False),
        ("# The rest takes long to load.\nimport _signal  # type: ignore[import-not-found]", False),
        ("import _signal", True),
        ("from json import _default_encoder", True),
        ("from __future__ import annotations", False),
        ("def f():\n    raise NotImplementedError", True),
        ("def f():\n    raise NotImplementedError  # each subclass defines it", False),
        ("x = '# noqa: E501'", False),
    ],
)
def test_an_exception_from_a_rule_must_say_why(text: str, refused: bool) -> None:
    assert bool(complaints_about_unexplained_exceptions(source(text))) is refused
