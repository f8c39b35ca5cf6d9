"""File header: the first bytes of a file, which say what it is before anything in it is believed.

A checksum tells changed data from whole data; it cannot tell a damaged file of ours from a healthy file of someone
else's, nor from one that a later version wrote. Those must be *left alone and named*: taken for a torn write, the
former would be cut to nothing, and the latter read wrongly. So every file begins with six letters and a version.

A file shorter than its header, as far as it agrees with it, and one of zero bytes only, are what a crash leaves of a
file that was just made: incomplete, but ours.

Sources: Patterns of Distributed Systems ch. 3, "Implementation considerations", on detecting corrupted files; the
magic numbers of etcd's and SQLite's files.
"""

from __future__ import annotations

import struct

__all__ = ["FILE_HEADER_BYTES", "FileHeader"]

_VERSION = struct.Struct(">H")
_MAGIC_BYTES = 6

FILE_HEADER_BYTES = _MAGIC_BYTES + _VERSION.size
"""Bytes in front of the first record."""


class FileHeader:
    """The header of one kind of file, and the errors that say a file is not of this kind, or of a later version."""

    __slots__ = ("_foreign", "_future", "_magic", "_version", "encoded")

    def __init__(self, magic: bytes, *, version: int, foreign: type[Exception], future: type[Exception]) -> None:
        assert len(magic) == _MAGIC_BYTES
        self._magic = magic
        self._version = version
        self._foreign = foreign
        self._future = future
        self.encoded = magic + _VERSION.pack(version)

    def is_complete_in(self, data: bytes, file: str) -> bool:
        """Does `data`, the content of `file`, begin with the whole header? False for what a crash left of a new file.

        Raises the error for a foreign file, or that for a future version.
        """
        if self.encoded.startswith(data[:FILE_HEADER_BYTES]):
            return len(data) >= FILE_HEADER_BYTES
        if not any(data):
            return False
        if data[:_MAGIC_BYTES] != self._magic or len(data) < FILE_HEADER_BYTES:
            raise self._foreign(
                f"{file} is not what its name says: it begins with {data[:_MAGIC_BYTES]!r}, not {self._magic!r}."
                " Nothing was changed; move the file away if another program put it there, or restore it from a backup."
            )
        (version,) = _VERSION.unpack_from(data, _MAGIC_BYTES)
        raise self._future(
            f"{file} has version {version} of its format; this program knows version {self._version}. Nothing was"
            " changed; start the version that wrote it."
        )
