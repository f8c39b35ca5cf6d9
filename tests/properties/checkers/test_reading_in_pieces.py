"""Readers give the same answer whatever the pieces, and never anything but forms or a named error."""

from __future__ import annotations

import itertools
import json

from hypothesis import given
from hypothesis import strategies as st

from faultline.checkers.importers.edn import EdnError, EdnReader
from faultline.checkers.importers.json_stream import JsonError, JsonReader

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)
SPACE = st.sampled_from([" ", "\n", ", ", " ; a comment\n", ' #_ (left "out") '])


def as_edn(value, space):
    if value is None:
        return "nil"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "[" + space.join(as_edn(part, space) for part in value) + "]"
    if isinstance(value, dict):
        pairs = (f"{as_edn(name, space)}{space}{as_edn(part, space)}" for name, part in value.items())
        return "{" + space.join(pairs) + "}"
    return json.dumps(value)


def read_in_pieces(reader, text, cuts):
    """The forms, or the cause of the error and nothing else."""
    places = sorted({cut % (len(text) + 1) for cut in cuts} | {0, len(text)})
    try:
        forms = [form for start, end in itertools.pairwise(places) for form in reader.feed(text[start:end])]
        return forms + reader.finish()
    except (EdnError, JsonError) as error:
        return str(error) != ""


CUTS = st.lists(st.integers(0, 10_000), max_size=8)


@given(st.lists(VALUES, max_size=4), SPACE, CUTS)
def test_edn_comes_back_as_it_was_written_whatever_the_pieces(values, space, cuts):
    text = space.join(as_edn(value, space) for value in values)
    assert read_in_pieces(EdnReader(), text, cuts) == values


@given(st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), max_size=4), st.booleans(), CUTS)
def test_json_comes_back_as_it_was_written_whatever_the_pieces(values, in_array, cuts):
    text = json.dumps(values) if in_array else "\n".join(map(json.dumps, values))
    assert read_in_pieces(JsonReader(), text, cuts) == values


@given(st.text(st.sampled_from("[](){}#_:;\"\\ \n,ab1-+.NM^'/")), CUTS)
def test_any_text_is_edn_or_refused_alike_whatever_the_pieces(text, cuts):
    assert read_in_pieces(EdnReader(unwrap=True), text, cuts) == read_in_pieces(EdnReader(unwrap=True), text, [])


@given(st.text(st.sampled_from('[]{}:"\\ \n,a1-.eu0tru')), CUTS)
def test_any_text_is_json_or_refused_alike_whatever_the_pieces(text, cuts):
    assert read_in_pieces(JsonReader(), text, cuts) == read_in_pieces(JsonReader(), text, [])
