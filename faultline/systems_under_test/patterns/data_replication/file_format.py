"""The format of the files that a node writes: a header that names it, and checksummed records.

A checksum tells changed data from whole data. It cannot tell a damaged file of this program from a healthy file of
another one, nor from a file that a later version wrote. Those must be *left alone and named*: taken for a torn write, a
foreign file would be cut to nothing, and a later version would be read wrongly. So every file begins with six letters
and a version. A crash can leave a new file that is shorter than its header, as far as it agrees with it, or one that
begins with zero bytes only, as later bytes may reach the disk before them. Such a file is incomplete, but belongs to
this program.

A record of a log file is a length, a checksum and the payload. The checksum also covers the *place* of the record (a
salt of the file and the position in it), for three reasons: a run of zero bytes is not a valid record, a record image
inside a client's value is not taken for one when a torn file is searched, and a record at the wrong place is noticed.

Records make the two ways a log can be damaged distinguishable (write-ahead log, WAL-R10). A torn write was not
acknowledged; stored data that changed may have been. The two differ:

- A crash loses the end of a file, or whole units of it, which then read as zeros. A record that has all its bytes, none
  of its units being zeros, was written whole, and its checksum fits unless stored data changed: in the last record too.
- A record that reaches beyond the end of the file was torn, unless its checksum fits for a shorter one: then its length
  has changed.
- Of other invalid bytes, a valid record after them says that stored data changed. There is one exception. A disk may
  write later bytes before earlier ones, so that a crash leaves a hole of zeros before a valid record. Such a record was
  not acknowledged either.

A lost write looks like a torn one, and two changes of one record may: a log alone cannot tell (Alagappan et al.).

Sources: Patterns of Distributed Systems ch. 3, "Implementation considerations"; Pillai et al., "All File Systems Are
Not Created Equal" (OSDI 2014) on the traces that a crash leaves of an append; `isTornEntry` in etcd's
`wal/decoder.go`, which takes a record with a sector of zeros for torn, and any other for changed; Alagappan et al.,
"Protocol-Aware Recovery for Consensus-Based Storage" (FAST 2018) 3.3; the magic numbers of etcd's and SQLite's files.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from zlib import crc32

__all__ = [
    "FILE_HEADER_BYTES",
    "HEADER_BYTES",
    "WRITE_UNIT_BYTES",
    "CorruptLog",
    "FileHeader",
    "LogUnusable",
    "encode_record",
    "next_record",
    "read_record",
    "record_positions",
    "was_torn",
]

_HEADER = struct.Struct(">II")
_PLACE = struct.Struct(">QQI")
_VERSION = struct.Struct(">H")
_MAGIC_BYTES = 6

FILE_HEADER_BYTES = _MAGIC_BYTES + _VERSION.size
"""Bytes in front of the first record."""

HEADER_BYTES = _HEADER.size
"""Bytes a record takes on top of its payload."""

WRITE_UNIT_BYTES = 64
"""The least that a disk writes whole: a line of persistent memory; the sectors of others are larger."""

_LENGTH_BYTES = 4


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


class CorruptLog(Exception):
    """Stored records changed after they were written: the node must not start, or it would forget its promises."""


class LogUnusable(Exception):
    """The log takes no writes: it was not recovered, or a write failed and the content of the disk is unknown."""


def encode_record(payload: bytes, salt: int, position: int) -> bytes:
    """Return the bytes to append at `position` of the file whose salt is `salt`, so that `payload` can be read back."""
    length = len(payload)
    return _HEADER.pack(length, crc32(payload, crc32(_PLACE.pack(salt, position, length)))) + payload


def read_record(data: bytes, salt: int, position: int) -> bytes | None:
    """Return the payload of the record at `position` of a file's content, or None when there is no valid record."""
    start = position + HEADER_BYTES
    if start > len(data):
        return None
    length, checksum = _HEADER.unpack_from(data, position)
    if start + length > len(data):
        return None
    payload = data[start : start + length]
    return payload if crc32(payload, crc32(_PLACE.pack(salt, position, length))) == checksum else None


def record_positions(
    data: bytes, salt: int, start: int = 0, read: Callable[[bytes, int, int], bytes | None] = read_record
) -> tuple[list[int], int]:
    """Return where the records from `start` on that `read` finds valid begin, and the position after the last."""
    positions: list[int] = []
    position = start
    while (payload := read(data, salt, position)) is not None:
        positions.append(position)
        position += HEADER_BYTES + len(payload)
    return positions, position


def was_torn(data: bytes, salt: int, position: int) -> bool:
    """Return whether the invalid bytes at `position` are what a crash leaves of writes that were not synced.

    False means that stored bytes changed. A changed record that holds a whole unit of zeros is taken for a torn one.
    """
    if _was_written_whole(data, salt, position):
        return False
    following = next_record(data, salt, position)
    if following < 0:
        return True
    for start in (position, *range(_next_unit(position), following, WRITE_UNIT_BYTES)):
        end = _next_unit(start)
        # A record with a payload does not begin with four zeros, and a unit that holds a valid record was written.
        if end - start >= _LENGTH_BYTES and end <= following and not any(data[start:end]):
            return True
    return False


def _was_written_whole(data: bytes, salt: int, position: int) -> bool:
    """Return whether all bytes of the invalid record at `position` reached the disk, so that they changed there."""
    room = len(data) - position - HEADER_BYTES
    if room < 0:
        return False
    length, checksum = _HEADER.unpack_from(data, position)

    def fits(other: int) -> bool:
        payload = data[position + HEADER_BYTES : position + HEADER_BYTES + other]
        return bool(crc32(payload, crc32(_PLACE.pack(salt, position, other))) == checksum)

    first = _next_unit(position) - position
    if first < _LENGTH_BYTES and not any(data[position : position + first]):
        # The unit that holds the first bytes of the length may be lost: the record was longer then.
        step = 1 << 8 * (_LENGTH_BYTES - first)
        if any(fits(longer) for longer in range(length + step, room + 1, step)):
            return False
    if length <= room:
        return not _lacks_a_unit(data, position, position + HEADER_BYTES + length)
    return any(fits(shorter) for shorter in range(1, room + 1))


def _lacks_a_unit(data: bytes, position: int, end: int) -> bool:
    """Return whether a unit between `position` and `end` holds zeros; the length of a record begins with some."""
    first = _next_unit(position)
    if first - position >= _LENGTH_BYTES and not any(data[position : min(first, end)]):
        return True
    return any(not any(data[start : min(_next_unit(start), end)]) for start in range(first, end, WRITE_UNIT_BYTES))


def _next_unit(position: int) -> int:
    return (position // WRITE_UNIT_BYTES + 1) * WRITE_UNIT_BYTES


def next_record(data: bytes, salt: int, position: int) -> int:
    """Return where the first valid record after `position` begins; -1 when there is none.

    It may begin at any byte, as a changed length hides the next beginning.
    """
    places = range(position + 1, len(data))
    return next((start for start in places if read_record(data, salt, start) is not None), -1)
