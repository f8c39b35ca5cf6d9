"""The vDSO of a process: the small library that the Linux kernel maps into every process, read from its memory.

Programs ask for the time so often that the kernel answers without a system call: it maps code that reads the time from
a page it keeps up to date (vdso(7)). A change to that code in one process changes the time that this one process
sees. The library is an ELF file in memory; what is needed of it is where its functions start, and where behind its last
byte the kernel's padding to whole pages leaves room for code of ours.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

__all__ = ["ImageError", "VdsoImage", "find_mapping", "read_image"]

_ELF_64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
_X86_64 = 62
_NO_BITS = 8
_DYNAMIC_SYMBOLS = 11
_LOADED_SEGMENT = 1
_FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


class ImageError(Exception):
    """This is no vDSO that can be dealt with, and why."""


class VdsoImage(NamedTuple):
    """Offsets from the start of the mapping: of each function by its name, and of the first byte behind everything."""

    functions: dict[str, int]
    end: int


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    information: int
    alignment: int
    entry_size: int


def find_mapping(maps: str) -> tuple[int, int]:
    """Return the start and the size of the vDSO in a text as `/proc/PID/maps`. Raises ImageError."""
    for line in maps.splitlines():
        if line.endswith("[vdso]"):
            start, _, end = line.split()[0].partition("-")
            return int(start, 16), int(end, 16) - int(start, 16)
    raise ImageError("the process has no vDSO")


def read_image(image: bytes) -> VdsoImage:
    """Return the parts of `image`, the whole mapping. Raises ImageError when it is not one of x86-64."""
    if image[:6] != _ELF_64_LITTLE_ENDIAN:
        raise ImageError("its vDSO is no 64-bit ELF file")
    header = _FILE_HEADER.unpack_from(image)
    machine, segments_at, sections_at = header[2], header[5], header[6]
    segment_count, section_size, section_count = header[10], header[11], header[12]
    if machine != _X86_64:
        raise ImageError(f"its vDSO is for machine {machine}, not for x86-64")
    sections = [
        _Section(*_SECTION.unpack_from(image, sections_at + number * section_size)) for number in range(section_count)
    ]
    base = _load_address(image, segments_at, segment_count)
    ends = [section.offset + section.size for section in sections if section.kind != _NO_BITS]
    return VdsoImage(_functions(image, sections, base), max([*ends, sections_at + section_count * section_size]))


def _load_address(image: bytes, segments_at: int, count: int) -> int:
    for number in range(count):
        kind, _, _, address = _SEGMENT.unpack_from(image, segments_at + number * _SEGMENT.size)[:4]
        if kind == _LOADED_SEGMENT:
            return int(address)
    raise ImageError("its vDSO has no segment that is loaded")


def _functions(image: bytes, sections: list[_Section], base: int) -> dict[str, int]:
    tables = [section for section in sections if section.kind == _DYNAMIC_SYMBOLS]
    if not tables:
        raise ImageError("its vDSO names no functions")
    names_at, found = sections[tables[0].link].offset, {}
    for offset in range(tables[0].offset, tables[0].offset + tables[0].size, _SYMBOL.size):
        name, _, _, section, address, _ = _SYMBOL.unpack_from(image, offset)
        if 0 < section < len(sections):
            found[_text(image, names_at + name)] = address - base
    return found


def _text(image: bytes, offset: int) -> str:
    return image[offset : image.index(b"\0", offset)].decode()
