"""EDN as the specification has it, what is dropped, and what is refused."""

from __future__ import annotations

from decimal import Decimal

import pytest

from faultline.checkers.importers.edn import DEPTH_MAX, EdnError, EdnReader


def forms_of(text: str, piece: int = 1 << 20, *, unwrap: bool = False):
    reader = EdnReader(unwrap=unwrap)
    forms = []
    for start in range(0, len(text), piece):
        forms += reader.feed(text[start : start + piece])
    return forms + reader.finish()


READ = {
    "nil true false": [None, True, False],
    "1 -2 +3 0 12N 0x1F": [1, -2, 3, 0, 12, 31],
    "1.5 -2e3 1.5M 1M 1/3": [1.5, -2000.0, Decimal("1.5"), Decimal(1), "1/3"],
    ":type :foo/bar symbol a.b/c - + <= ->x": ["type", "foo/bar", "symbol", "a.b/c", "-", "+", "<=", "->x"],
    r'"" "a b" "say \"no\"" "\t\n\\" "\u00e9" "\ud83d\ude00"': ["", "a b", 'say "no"', "\t\n\\", "é", "😀"],
    r"\a \newline \space \u00e9 \[ \,": ["a", "\n", " ", "é", "[", ","],
    "[1 [2, (3)] #{4 5}]": [[1, [2, [3]], [4, 5]]],
    "{:a 1, 2 {}, nil 3, true 4}": [{"a": 1, "2": {}, "nil": 3, "true": 4}],
    '; a comment with " and [\n1 ; another\n': [1],
    "1 ; the last line has no end": [1],
    "#_ 1 2 #_ #_ 3 4 5 [#_ 6] #_{:a 1}": [2, 5, []],
    '#inst "2026-01-01" #jepsen.history.Op{:type :ok} #uuid #_ 1 "u"': ["2026-01-01", {"type": "ok"}, "u"],
    '#object[java.net.Socket 0x7f "closed"] #"reg\\s"': [["java.net.Socket", 127, "closed"], "reg\\s"],
    "": [],
    " ,\n ": [],
}


@pytest.mark.parametrize(("text", "forms"), READ.items())
@pytest.mark.parametrize("piece", [1, 3, 1 << 20])
def test_every_kind_of_form_is_read_whatever_the_pieces(text, forms, piece):
    assert forms_of(text, piece) == forms
    assert [type(form) for form in forms_of(text, piece)] == [type(form) for form in forms]


@pytest.mark.parametrize(
    "text", ["[{:a 1} {:a 2}]", "({:a 1} {:a 2})", "{:a 1} {:a 2}", "#foo.Bar [{:a 1} {:a 2}] ;\n"]
)
def test_a_vector_around_the_history_is_opened(text):
    assert forms_of(text, unwrap=True) == [{"a": 1}, {"a": 2}]


def test_only_the_first_vector_is_opened():
    assert forms_of("{:a 1} [2]", unwrap=True) == [{"a": 1}, [2]]
    assert forms_of("#_[1 2] [3 [4]]", unwrap=True) == [3, [4]]


REFUSED = {
    "[1": "ends within a vector",
    "{:a {:b 1}": "ends within a map",
    "#{1": "ends within a set",
    '"open': "ends within a string",
    "#_": "ends within a discarded form",
    "#inst": "ends within the tag #inst",
    "]": "`]` closes nothing",
    "[1}": "`}` within a vector",
    "{:a}": "a key without a value",
    "{:a 1 :a 2}": "a key twice: a",
    "#{1 1}": "an element twice: 1",
    "99999999999999999999": "more than 64 bits",
    "##NaN": "cannot be compared",
    "1e999": "too large",
    "017": "`017` is not a number",
    "1x": "`1x` is not a number",
    "^{:a 1} x": r"`\^` is not a symbol",
    "::auto": "`::auto` is not a symbol",
    "@x": "`@x` is not a symbol",
    "# {:a 1}": "`#` is not a tag",
    r'"\q"': "is not an escape",
    r'"\ud800"': "half a surrogate pair",
    r"\nowhere": "is not a character",
    "[" * (DEPTH_MAX + 1): f"more than {DEPTH_MAX} deep",
}


@pytest.mark.parametrize(("text", "cause"), REFUSED.items())
@pytest.mark.parametrize("piece", [1, 1 << 20])
def test_what_is_no_edn_is_refused_with_its_cause(text, cause, piece):
    with pytest.raises(EdnError, match=cause):
        forms_of(text, piece)


@pytest.mark.parametrize("rest", ["{:a 2}", "2 ", '"x" ', "nil\n"])
@pytest.mark.parametrize("piece", [1, 1 << 20])
def test_nothing_may_follow_the_vector_around_the_history(rest, piece):
    with pytest.raises(EdnError, match="text follows the end of the history"):
        forms_of(f"[{{:a 1}}] {rest}", piece, unwrap=True)


def test_a_string_of_ten_megabytes_is_one_value():
    text = '{:value "' + "x" * 10_000_000 + '"}'
    assert len(forms_of(text, 1 << 20)[0]["value"]) == 10_000_000
