"""Real histories that were damaged get a verdict or a named error, never a crash; torn ones never pass unnoticed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from faultline.checkers.files import check_file
from faultline.harness.errors import UsageError
from faultline.harness.verdict import Verdict

DATA = Path(__file__).parents[2] / "data" / "histories"
FILES = sorted(path for path in DATA.glob("**/*") if path.suffix in (".edn", ".json", ".log") or path.stem == "c01-ok")
DAMAGES = 8


def truncated(rng, lines):
    text = "".join(lines)
    return text[: rng.randrange(len(text))]


def without_a_line(rng, lines):
    place = rng.randrange(len(lines))
    return "".join(lines[:place] + lines[place + 1 :])


def with_a_line_twice(rng, lines):
    place = rng.randrange(len(lines))
    return "".join([*lines[: place + 1], *lines[place:]])


def with_lines_exchanged(rng, lines):
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines = lines[:]
    lines[first], lines[second] = lines[second], lines[first]
    return "".join(lines)


def with_another_character(rng, lines):
    text = "".join(lines)
    place = rng.randrange(len(text))
    return text[:place] + rng.choice('[]{}":;#\\ 019nx-') + text[place + 1 :]


def verdict_or_refusal(path):
    try:
        return check_file(path, steps_max=50_000).verdict
    except UsageError as error:
        return error


@pytest.mark.parametrize(
    "damage", [truncated, without_a_line, with_a_line_twice, with_lines_exchanged, with_another_character]
)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_damaged_history_is_judged_or_refused_by_name(path, damage, tmp_path):
    lines = path.read_text().splitlines(keepends=True)
    rng = random.Random(f"{path.name} {damage.__name__}")
    for _ in range(DAMAGES):
        (tmp_path / "damaged").write_text(damage(rng, lines))
        answer = verdict_or_refusal(tmp_path / "damaged")
        assert isinstance(answer, Verdict) or ("damaged" in answer.message and answer.next_step)


@pytest.mark.parametrize("path", [path for path in FILES if path.read_text()[0] in "[("], ids=lambda path: path.name)
def test_a_vector_or_array_that_was_cut_off_is_always_refused(path, tmp_path):
    text = path.read_text().rstrip()
    for cut in range(1, len(text), max(1, len(text) // 40)):
        (tmp_path / "cut").write_text(text[:cut])
        with pytest.raises(UsageError):
            check_file(tmp_path / "cut", "jepsen-json" if path.suffix == ".json" else "jepsen-edn")
