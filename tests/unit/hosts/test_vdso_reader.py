"""The reader of the vDSO, against the one of this very machine, and against what is none."""

from __future__ import annotations

import ctypes
import platform
import time
from pathlib import Path

import pytest

from faultline.harness.world.hosts.agent.vdso import ImageError, VdsoImage, find_mapping, read_image

IS_X86_64 = platform.machine() == "x86_64"
READING = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_long, ctypes.POINTER(ctypes.c_int64 * 2))


def own_image() -> tuple[int, bytes]:
    """The vDSO of this process, and where it is."""
    start, size = find_mapping(Path("/proc/self/maps").read_text())
    return start, ctypes.string_at(start, size)


def read_or_refused(image: bytes) -> VdsoImage | None:
    """Return the content of the image; None on another machine than x86-64, where it must be refused by name."""
    if IS_X86_64:
        return read_image(image)
    with pytest.raises(ImageError, match="not for x86-64|no 64-bit ELF"):
        read_image(image)
    return None


def test_the_functions_of_our_own_vdso_are_where_the_reader_says() -> None:
    start, image = own_image()
    found = read_or_refused(image)
    if found is None:
        return
    assert {"__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time"} <= set(found.functions)
    answer = (ctypes.c_int64 * 2)()
    before_ns = time.monotonic_ns()
    assert READING(start + found.functions["__vdso_clock_gettime"])(time.CLOCK_MONOTONIC, ctypes.byref(answer)) == 0
    assert before_ns <= answer[0] * 1_000_000_000 + answer[1] <= time.monotonic_ns()


def test_behind_the_last_byte_there_is_nothing_but_padding() -> None:
    _, image = own_image()
    found = read_or_refused(image)
    if found is not None:
        assert 0 < found.end <= len(image)
        assert not any(image[found.end :])
        assert all(offset < found.end for offset in found.functions.values())


def test_what_is_no_vdso_of_this_kind_is_refused_with_the_reason() -> None:
    _, image = own_image()
    with pytest.raises(ImageError, match="no 64-bit ELF"):
        read_image(b"\x7fELF\x01\x01" + image[6:])
    with pytest.raises(ImageError, match="for machine 183, not for x86-64"):
        read_image(image[:4] + b"\x02\x01" + image[6:18] + (183).to_bytes(2, "little") + image[20:])


def test_a_process_without_a_vdso_is_named() -> None:
    assert find_mapping("7fff0000-7fff2000 r-xp 00000000 00:00 0    [vdso]") == (0x7FFF0000, 0x2000)
    with pytest.raises(ImageError, match="has no vDSO"):
        find_mapping("00400000-00401000 r-xp 00000000 08:01 42 /bin/true")
