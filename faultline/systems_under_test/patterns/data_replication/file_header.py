"""File header: the first bytes of a file, which name its format before any of its content is trusted.

A checksum tells changed data from whole data. It cannot tell a damaged file of this program from a healthy file of
another one, nor from a file that a later version wrote. Those must be *left alone and named*: taken for a torn write, a
foreign file would be cut to nothing, and a later version would be read wrongly. So every file begins with six letters
and a version.

A crash can leave a new file that is shorter than its header, as far as it agrees with it, or one that begins with zero
bytes only, as later bytes may reach the disk before them. Such a file is incomplete, but belongs to this
program.

Sources: Patterns of Distributed Systems ch. 3, "Implementation considerations", on detecting corrupted files; the
magic numbers of etcd's and SQLite's files.
"""

from __future__ import annotations

import struct

from faultline.systems_under_test.patterns.data_replication.checksummed_record import WRITE_UNIT_BYTES

__all__ = ["FILE_HEADER_BYTES", "FileHeader"]

_VERSION = struct.Struct(">H")
_MAGIC_BYTES = 6

FILE_HEADER_BYTES = _MAGIC_BYTES + _VERSION.size
"""Bytes in front of the first record."""


class FileHeader:
    """The header of one kind of file, with the errors for a file of another kind and for one of a later version."""

    __slots__ = ("_foreign", "_future", "_magic", "_version", "encoded")

    def __init__(self, magic: bytes, *, version: int, foreign: type[Exception], future: type[Exception]) -> None:
        assert len(magic) == _MAGIC_BYTES
        self._magic = magic
        self._version = version
        self._foreign = foreign
        self._future = future
        self.encoded = magic + _VERSION.pack(version)

    def is_complete_in(self, data: bytes, file: str) -> bool:
        """Return whether `data`, the content of `file`, begins with the whole header; False for an incomplete new file.

        Raises the error for a foreign file, or that for a future version.
        """
        if self.encoded.startswith(data[:FILE_HEADER_BYTES]):
            return len(data) >= FILE_HEADER_BYTES
        if not any(data[:WRITE_UNIT_BYTES]):
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
