r"""A reader of EDN, the notation of Clojure in which Jepsen, Knossos and Elle keep histories.

    [{:type :invoke, :f :cas, :value [0 2], :process 4, :time 99286665244}   ; a comment
     #jepsen.history.Op{:type :info, :f :cas, :value [0 2], :process 4, #_:error #_:timeout}]

It follows the specification (github.com/edn-format/edn) and answers plain data, as JSON would hold it: vectors, lists
and sets are lists, maps are dictionaries whose keys are text, keywords and symbols are their names without the colon,
characters are strings. Tags are read and dropped, so that a record is its map and `#inst "…"` its text. `12N` is an
integer, `1.5M` a Decimal, a ratio `1/2` its text. Values that no checker could compare are refused: integers of more
than 64 bits, `##NaN` and the infinities.

The text comes in pieces of any size (`EdnReader.feed`), so that a file need not fit into memory; one form at a time
must. Tokens are found by one regular expression that covers every character, and each distinct atom is parsed once:
histories repeat theirs, which makes this reader fast.

Limits: a keyword and a string of the same name are the same value; forms nest at most DEPTH_MAX deep.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from faultline.checkers.importers.text import Tail

__all__ = ["DEPTH_MAX", "EdnError", "EdnReader"]

DEPTH_MAX = 100
"""The depth to which forms may nest: more than any history needs, and less than the rest of the program can follow."""

_TOKEN = re.compile(
    r"""
    [\s,]*
    (
      \#? " [^"\\]* (?: \\. [^"\\]* )* "?   # a string, or the beginning of one
    | ; [^\n]* \n?                          # a comment, or the beginning of one
    | \#[{_]                                # a set; discard
    | [\[\](){}]
    | \\ (?: \w [^\s,"\[\](){};]* | \S )   # a character
    | [^\s,"\[\](){};]+                     # any other atom
    | \Z                                    # the end: without it, a long run of separators there costs its square
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_WHOLE_STRING = re.compile(r'#?"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_INTEGER = re.compile(r"([+-]?(?:0|[1-9]\d*))N?", re.ASCII)
_HEXADECIMAL = re.compile(r"([+-]?0[xX][0-9a-fA-F]+)N?")
_RATIO = re.compile(r"[+-]?\d+/\d+", re.ASCII)
_DECIMAL = re.compile(r"([+-]?(?:0|[1-9]\d*)(?:\.\d*)?(?:[eE][+-]?\d+)?)(M?)", re.ASCII)
_NAME = re.compile(r"[\w.*+!?$%&=<>/|:#'-]+")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "b": "\b", "f": "\f", "\\": "\\", '"': '"'}
_CHARACTERS = {"newline": "\n", "return": "\r", "space": " ", "tab": "\t", "formfeed": "\f", "backspace": "\b"}
_CONSTANTS = {"nil": None, "true": True, "false": False}

_FILE, _WRAPPER, _DISCARD, _TAG = "file", "wrapper", "#_", "tag"
_PREFIXES = (_DISCARD, _TAG)
_CLOSED_BY = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_CLOSERS = frozenset(_CLOSED_BY.values())
_NAMES = {"[": "a vector", "(": "a list", "{": "a map", "#{": "a set", _DISCARD: "a discarded form"}
_ATOMS_KEPT = 200_000
_ATOM_LENGTH_KEPT = 100
_TIME_DIGITS, _DIGITS_SAFE = 8, 19
_INTEGER_MAX = 2**63 - 1


class EdnError(ValueError):
    """Text that is not EDN, or not a kind that this reader takes; the message is the cause, without the place."""


@dataclass(frozen=True, slots=True)
class _Marker:
    """The meaning of a token that is no value: a comment, or the beginning of a frame that takes the next form."""

    opens: str = ""


class EdnReader:
    """A reader of forms from text that comes piece by piece.

    With `unwrap`, a vector or list with which the text begins is opened: its elements are the forms.
    """

    def __init__(self, *, unwrap: bool = False) -> None:
        self._unwrap = unwrap
        self._atoms = _Atoms()
        self._tail = Tail()
        self._forms: list[Any] = []
        self._frames: list[tuple[str, str, list[Any]]] = [(_FILE, "", self._forms)]

    def feed(self, text: str) -> list[Any]:
        """Return the forms that `text` completes. Raise EdnError."""
        if not self._tail.add(text):
            return []
        text = self._tail.take()
        end = max(map(text.rfind, " \n,]})")) + 1
        tokens = _tokens(text, end)
        open_token = tokens.pop() if tokens and _is_open(tokens[-1]) else ""
        self._tail.keep(open_token + text[end:])
        return self._read(tokens)

    def finish(self) -> list[Any]:
        """Return the last forms, when no more text comes. Raise EdnError when something is still open."""
        text = self._tail.take()
        forms = self._read(_tokens(text, len(text)))
        kind, opener, _ = self._frames[-1]
        if kind != _FILE:
            raise EdnError(f"the text ends within {_within(opener)}")
        return forms

    def _read(self, tokens: list[str]) -> list[Any]:
        frames, atoms = self._frames, self._atoms
        kind, _, items = frames[-1]
        for token in tokens:
            if token in _CLOSED_BY:
                self._open(token)
            elif token in _CLOSERS:
                self._close(token)
            else:
                value = atoms[token]
                if value.__class__ is not _Marker:
                    items.append(value)
                    if kind not in _PREFIXES:
                        continue
                    self._resolve()
                elif value.opens:
                    frames.append((value.opens, token, []))
            kind, _, items = frames[-1]
        forms = self._forms[:]
        self._forms.clear()
        return forms

    def _open(self, token: str) -> None:
        if len(self._frames) > DEPTH_MAX:
            raise EdnError(f"forms are nested more than {DEPTH_MAX} deep")
        outermost = all(kind in (_FILE, _TAG) for kind, _, _ in self._frames[-2:])
        if self._unwrap and outermost and token in "[(":
            self._frames.append((_WRAPPER, token, self._forms))
        else:
            self._frames.append((token, token, []))
        if outermost:
            self._unwrap = False

    def _close(self, token: str) -> None:
        kind, opener, items = self._frames.pop()
        if kind == _FILE:
            raise EdnError(f"`{token}` closes nothing")
        if _CLOSED_BY.get(opener) != token:
            raise EdnError(f"`{token}` within {_within(opener)}")
        if kind == _WRAPPER:
            # In place: `_read` holds this list while it goes through the tokens.
            self._frames[:] = [(_FILE, "", _NothingMore())]
            return
        self._frames[-1][2].append(_BUILDERS[opener](items))
        self._resolve()

    def _resolve(self) -> None:
        """Give tags and discards the form that has just been completed."""
        while self._frames[-1][0] in _PREFIXES:
            kind, _, items = self._frames.pop()
            if kind == _DISCARD:
                return
            self._frames[-1][2].append(items[0])


class _NothingMore(list[Any]):
    """The frame of forms after the end of the vector around the history, which refuses them."""

    def append(self, _form: Any, /) -> None:
        raise EdnError("text follows the end of the history")


def _within(opener: str) -> str:
    return _NAMES.get(opener, f"the tag {opener}")


def _tokens(text: str, end: int) -> list[str]:
    """Return the tokens of the first `end` characters of `text`."""
    tokens = _TOKEN.findall(text, 0, end)
    while tokens and not tokens[-1]:
        tokens.pop()
    return tokens


def _is_open(token: str) -> bool:
    """Return whether the last token of a piece of text may go on in the next piece."""
    if token[0] == ";":
        return not token.endswith("\n")
    return token.startswith(('"', '#"')) and _WHOLE_STRING.fullmatch(token) is None


def _map(items: list[Any]) -> dict[str, Any]:
    if len(items) % 2:
        raise EdnError("a map has a key without a value")
    keys = items[::2]
    names = keys if all(key.__class__ is str for key in keys) else list(map(_key, keys))
    mapping = dict(zip(names, items[1::2]))
    if len(mapping) != len(keys):
        raise EdnError(f"a map has a key twice: {_first_repeated(names)}")
    return mapping


def _key(key: Any) -> str:
    """Return a key as JSON would write it: text."""
    if isinstance(key, str):
        return key
    return _CONSTANT_NAMES.get(str(key), str(key))


_CONSTANT_NAMES = {"None": "nil", "True": "true", "False": "false"}


def _set(items: list[Any]) -> list[Any]:
    texts = list(map(repr, items))
    if len(set(texts)) != len(texts):
        raise EdnError(f"a set has an element twice: {_first_repeated(texts)}")
    return items


def _first_repeated(texts: list[str]) -> str:
    return next(text for place, text in enumerate(texts) if text in texts[:place])[:80]


def _same(items: list[Any]) -> list[Any]:
    return items


_BUILDERS: dict[str, Callable[[list[Any]], Any]] = {"[": _same, "(": _same, "{": _map, "#{": _set}


class _Atoms(dict[str, Any]):
    """The meaning of each atom by its text; a new atom is parsed and, within bounds, remembered."""

    def __missing__(self, token: str) -> Any:
        if token.isdecimal() and token.isascii() and _TIME_DIGITS <= len(token) < _DIGITS_SAFE and token[0] != "0":
            return int(token)  # Times are many, and almost all different, so remembering them would only take memory.
        value = _atom(token)
        if len(self) < _ATOMS_KEPT and len(token) < _ATOM_LENGTH_KEPT:
            self[token] = value
        return value


def _atom(token: str) -> Any:
    first = token[0]
    if token in _CONSTANTS:
        return _CONSTANTS[token]
    if first == ":":
        return _name(token, token[1:])
    if first == '"' or token.startswith('#"'):
        return _string(token)
    if first.isdigit() or (first in "+-" and token[1:2].isdigit()):
        return _number(token)
    if first == ";":
        return _Marker()
    if first == "#":
        return _prefix(token)
    return _character(token) if first == "\\" else _name(token, token)


def _name(token: str, name: str) -> str:
    if _NAME.fullmatch(name) is None or name[0] in ":#'" or (name[0] == "/" and name != "/"):
        raise EdnError(f"`{token[:80]}` is not a symbol, keyword or number")
    return name


def _prefix(token: str) -> _Marker:
    if token == _DISCARD:
        return _Marker(_DISCARD)
    if token.startswith("##"):
        raise EdnError(f"`{token[:80]}` cannot be compared with other values")
    if len(token) < 2 or not token[1].isalpha():
        raise EdnError(f"`{token[:80]}` is not a tag")
    _name(token, token[1:])
    return _Marker(_TAG)


def _number(token: str) -> Any:
    match = _INTEGER.fullmatch(token) or _HEXADECIMAL.fullmatch(token)
    if match:
        if len(match[1]) > 20 or abs(integer := int(match[1], 0)) > _INTEGER_MAX:
            raise EdnError(f"the integer {token[:80]} has more than 64 bits")
        return integer
    if _RATIO.fullmatch(token):
        return token
    match = _DECIMAL.fullmatch(token)
    if match is None:
        raise EdnError(f"`{token[:80]}` is not a number")
    if match[2]:
        return Decimal(match[1])
    number = float(match[1])
    if number in (float("inf"), float("-inf")):
        raise EdnError(f"the number {token[:80]} is too large")
    return number


def _string(token: str) -> str:
    if _WHOLE_STRING.fullmatch(token) is None:
        raise EdnError("the text ends within a string")
    text = token[token.index('"') + 1 : -1]
    if token[0] == "#" or "\\" not in text:
        return text
    return _whole_characters(_ESCAPE.sub(_unescaped, text))


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 1:
        return chr(int(code[1:], 16))
    if code not in _ESCAPES:
        raise EdnError(f"`\\{code}` is not an escape in a string")
    return _ESCAPES[code]


def _whole_characters(text: str) -> str:
    r"""Return text in which a surrogate pair, written as two `\uXXXX`, is one character."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        raise EdnError("a string holds half a surrogate pair") from error


def _character(token: str) -> str:
    name = token[1:]
    if len(name) == 1:
        return name
    if re.fullmatch(r"u[0-9a-fA-F]{4}", name):
        return _whole_characters(chr(int(name[1:], 16)))
    if name not in _CHARACTERS:
        raise EdnError(f"`{token[:80]}` is not a character")
    return _CHARACTERS[name]
