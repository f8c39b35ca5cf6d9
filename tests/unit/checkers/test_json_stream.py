"""JSON that comes in pieces: an array's objects, or objects in a row, and nothing that cannot be compared."""

from __future__ import annotations

import pytest

from faultline.checkers.importers.json_stream import JsonError, JsonReader


def objects_of(text: str, piece: int = 1 << 20):
    reader = JsonReader()
    objects = []
    for start in range(0, len(text), piece):
        objects += reader.feed(text[start : start + piece])
    return objects + reader.finish()


READ = {
    '[{"a":1}, {"b":[2, {"c":"\\u00e9\\ud83d\\ude00"}]}]': [{"a": 1}, {"b": [2, {"c": "é😀"}]}],
    '{"a":1}\n{"a":2}\n': [{"a": 1}, {"a": 2}],
    '{"a":1.5e3,"b":null}': [{"a": 1500.0, "b": None}],
    " [ ] ": [],
    "": [],
}


@pytest.mark.parametrize(("text", "objects"), READ.items())
@pytest.mark.parametrize("piece", [1, 5, 1 << 20])
def test_objects_are_read_whatever_the_pieces(text, objects, piece):
    assert objects_of(text, piece) == objects


REFUSED = {
    "[": "ends within the array",
    '[{"a":1},]': "']' is in the place of an object",
    '[{"a":1}{"a":2}]': "is in the place of a comma",
    '{"a":1},{"a":2}': "is in the place of an object",
    "[1]": "is in the place of an object",
    '[{"a":1}] 2': "text follows the end of the history",
    '{"a":1': "ends within an object",
    '{"a":"x': "ends within an object",
    '{"a":tru, "and so on": 1}': "not JSON",
    '{"a":NaN}': "NaN cannot be compared",
    '{"a":99999999999999999999}': "more than 64 bits",
    '{"a":1e999}': "too large",
    '{"a":1,"a":2}': "a key twice",
    '{"a":"\\ud800"}': "half a surrogate pair",
    '{"a":' + "[" * 100_000: "nested too deep",
}


@pytest.mark.parametrize(("text", "cause"), REFUSED.items())
def test_what_is_no_json_is_refused_with_its_cause(text, cause):
    with pytest.raises(JsonError, match=cause):
        objects_of(text)


def test_a_string_of_ten_megabytes_is_one_value():
    text = '[{"value":"' + "x" * 10_000_000 + '"}]'
    assert len(objects_of(text, 1 << 20)[0]["value"]) == 10_000_000
