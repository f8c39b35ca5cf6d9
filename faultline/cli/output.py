"""The output of the command. Every verb prints through `say`, so that failing output is handled in one way.

A terminal may lack characters of a name in a history, and a history may hold lone surrogates: both are printed escaped.
A reader that closes the pipe (`faultline list systems | head -1`) wants no more; a full disk behind standard output is
a failure. Neither changes a verdict."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import Any, TextIO

__all__ = ["OutputLost", "complain", "json_line", "say"]


class OutputLost(Exception):
    """Standard output failed; `wanted` says whether its reader is still there."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.wanted = error.errno != errno.EPIPE


def say(text: str | bytes = "", *, err: bool = False) -> None:
    """Print `text` and a newline: a result on standard output, or with `err` a remark on standard error.

    Raise OutputLost when standard output cannot be written; text that standard error does not take is dropped.
    """
    if err:
        complain(_decoded(text))
        return
    stream = sys.stdout
    if stream is None:
        return
    try:
        stream.write(_printable(f"{_decoded(text)}\n", stream))
        stream.flush()
    except OSError as error:
        _discard(stream)
        raise OutputLost(error) from error


def json_line(record: Any) -> str:
    """Return `record` as one line of JSON; lone surrogates, which UTF-8 cannot hold, are escaped."""
    import msgspec

    try:
        return msgspec.json.encode(record).decode()
    except UnicodeEncodeError:
        import json

        return json.dumps(msgspec.to_builtins(record))


def complain(text: str) -> None:
    """Print `text` on standard error, as far as it can be written."""
    stream = sys.stderr
    if stream is None:
        return
    try:
        stream.write(_printable(f"{text}\n", stream))
        stream.flush()
    except (OSError, ValueError):
        return


def _decoded(text: str | bytes) -> str:
    return text.decode() if isinstance(text, bytes) else text


def _printable(text: str, stream: TextIO) -> str:
    """Return `text`, with characters that the encoding of `stream` lacks as escapes."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _discard(stream: TextIO) -> None:
    """Discard the buffer of `stream`, which the interpreter would write when it ends."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
