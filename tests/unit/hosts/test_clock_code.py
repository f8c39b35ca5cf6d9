"""The clock code: its bytes are its listing's, and it tells the time that its setting says."""

from __future__ import annotations

import ctypes
import mmap
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faultline.harness.world.hosts.agent.clock_code import (
    ACTIVE_OFFSET,
    BLOB,
    CODE_OFFSET,
    ENTRIES,
    LISTING,
    Setting,
    Skew,
    active_setting,
    next_place,
)

HOUR_NS = 3_600_000_000_000


def rows() -> Iterator[tuple[int, bytes, str]]:
    """Place, bytes and instruction of each line; labels have no bytes."""
    place = CODE_OFFSET
    for line in LISTING.splitlines():
        code = b"" if line.endswith(":") else bytes.fromhex(line[:26].strip())
        yield place, code, line.rstrip() if line.endswith(":") else line[26:].partition("#")[0].strip()
        place += len(code)


def test_every_jump_and_call_leads_to_the_label_it_names() -> None:
    labels = {text[:-1]: place for place, _, text in rows() if text.endswith(":")} | {"base": 0}
    checked = 0
    for place, code, text in rows():
        named = re.fullmatch(r"(?:j\w+|call) (\w+)|lea r10, \[rip \+ (\w+)\]", text)
        if named:
            width = 1 if text.startswith("j") else 4
            target = place + len(code) + int.from_bytes(code[-width:], "little", signed=True)
            assert target == labels[named[1] or named[2]], text
            checked += 1
    assert checked == 13


def test_an_assembler_makes_the_same_bytes_of_the_instructions(tmp_path: Path) -> None:
    assembler, copier = shutil.which("as"), shutil.which("objcopy")
    if assembler is None or copier is None or platform.machine() != "x86_64":
        # Without one the bytes are held to their jumps above, and to what they do below.
        assert len(BLOB) > CODE_OFFSET
        return
    head = f'.intel_syntax noprefix\n.text\nbase: .ascii "FAULTCLK"\n.quad 16\n.zero {CODE_OFFSET - 16}\n'
    (tmp_path / "clock.s").write_text(head + "\n".join(text for _, _, text in rows()) + "\n")
    subprocess.run([assembler, "--64", tmp_path / "clock.s", "-o", tmp_path / "clock.o"], check=True)
    subprocess.run([copier, "-O", "binary", "-j", ".text", tmp_path / "clock.o", tmp_path / "clock.bin"], check=True)
    assert (tmp_path / "clock.bin").read_bytes() == BLOB


@pytest.fixture
def page() -> Iterator[mmap.mmap]:
    """The code in memory of our own, where it can be called."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page[: len(BLOB)] = BLOB
    yield page
    page.close()


def choose(page: mmap.mmap, setting: Setting) -> None:
    place = next_place(page[:])
    page[place : place + len(setting.packed())] = setting.packed()
    page[ACTIVE_OFFSET : ACTIVE_OFFSET + 8] = place.to_bytes(8, "little")
    assert active_setting(page[:]) == setting


def function(page: mmap.mmap, name: str, *types: type) -> Callable[..., int]:
    address = ctypes.addressof(ctypes.c_char.from_buffer(page)) + ENTRIES[name]
    return ctypes.CFUNCTYPE(ctypes.c_long, *types)(address)


def reading(page: mmap.mmap, clock: int) -> int:
    answer = (ctypes.c_int64 * 2)()
    assert function(page, "__vdso_clock_gettime", ctypes.c_long, ctypes.c_void_p)(clock, ctypes.addressof(answer)) == 0
    assert 0 <= answer[1] < 1_000_000_000
    return answer[0] * 1_000_000_000 + answer[1]


def lies_between(shown_ns: int, low_ns: int, skew: Skew, high_ns: int) -> bool:
    return low_ns + skew.at(low_ns) - 1 <= shown_ns <= high_ns + skew.at(high_ns) + 1


SKEWS = [
    Skew(),
    Skew(HOUR_NS),
    Skew(-1_000_000_001),
    Skew(0, 1, 100_000),
    Skew(-5, 1_000_000_000, -50_000),
]
on_x86_64 = pytest.mark.parametrize("skew", SKEWS if platform.machine() == "x86_64" else [])


@on_x86_64
@pytest.mark.parametrize("clock", [time.CLOCK_REALTIME, time.CLOCK_TAI, time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME])
def test_each_kind_of_clock_follows_its_own_skew(page: mmap.mmap, skew: Skew, clock: int) -> None:
    other = Skew(42 * HOUR_NS)
    is_wall = clock in (time.CLOCK_REALTIME, time.CLOCK_TAI)
    # A drift counts from when it began; a long time ago is many days for a wall clock.
    own = skew._replace(since_ns=time.clock_gettime_ns(clock) - 10**12) if skew.rate_ppm else skew
    choose(page, Setting(own, other) if is_wall else Setting(other, own))
    low_ns = time.clock_gettime_ns(clock)
    shown_ns = reading(page, clock)
    assert lies_between(shown_ns, low_ns, own, time.clock_gettime_ns(clock))


@on_x86_64
def test_all_three_functions_tell_one_time(page: mmap.mmap, skew: Skew) -> None:
    own = skew._replace(since_ns=time.time_ns() - 10**12) if skew.rate_ppm else skew
    choose(page, Setting(own))
    low_ns, parts = time.time_ns(), (ctypes.c_int64 * 2)()
    assert function(page, "__vdso_gettimeofday", ctypes.c_void_p, ctypes.c_void_p)(ctypes.addressof(parts), None) == 0
    stored = ctypes.c_int64()
    tell = function(page, "__vdso_time", ctypes.c_void_p)
    seconds, again = tell(ctypes.addressof(stored)), tell(None)
    high_ns = time.time_ns()
    shown_ns = parts[0] * 1_000_000_000 + parts[1] * 1000
    # Whole microseconds are asked for and told, so up to one is lost on each way.
    assert lies_between(shown_ns, low_ns - 2000, own, high_ns)
    assert seconds == stored.value
    first_s, last_s = (at_ns // 10**9 for at_ns in (low_ns - 2001 + own.at(low_ns), high_ns + 1 + own.at(high_ns)))
    assert first_s <= seconds <= again <= last_s


@on_x86_64
def test_clocks_that_count_work_and_errors_pass_unchanged(page: mmap.mmap, skew: Skew) -> None:
    choose(page, Setting(skew, skew))
    low_ns = time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID)
    shown_ns = reading(page, time.CLOCK_PROCESS_CPUTIME_ID)
    assert low_ns <= shown_ns <= time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID)
    ask = function(page, "__vdso_clock_gettime", ctypes.c_long, ctypes.c_void_p)
    assert ask(99, ctypes.addressof((ctypes.c_int64 * 2)())) & 0xFFFFFFFF == 2**32 - 22
    assert function(page, "__vdso_gettimeofday", ctypes.c_void_p, ctypes.c_void_p)(None, None) == 0


def test_a_setting_is_written_beside_the_one_in_force() -> None:
    assert active_setting(BLOB) == Setting()
    places, blob = [], bytearray(BLOB)
    for _ in range(5):
        places.append(next_place(blob))
        blob[ACTIVE_OFFSET : ACTIVE_OFFSET + 8] = places[-1].to_bytes(8, "little")
    assert len(set(places)) == 4 and places[0] == places[4]


def test_a_drift_begins_where_the_clock_is() -> None:
    skew = Skew(HOUR_NS).drifting(100_000, 1_000).stepped(5)
    assert skew.at(1_000) == HOUR_NS + 5
    assert skew.at(11_000) == HOUR_NS + 5 + 1_000
    assert skew.drifting(0, 11_000).at(10**15) == HOUR_NS + 5 + 1_000
