"""The machine code that tells a process another time, as a listing: bytes, instruction, why.

It stands in for three functions of the vDSO (x86-64). Each makes the system call that the function would save, and then
moves the answer by a *setting*, which stands in front of the code and which the agent rewrites at run time:

    reading = true time + offset + (true time - since) * parts per million / 1,000,000

once for the wall clocks and once for the monotonic ones. So a drift needs no process that keeps moving the clock. There
is room for several settings, of which `active` chooses one: the next is written beside it and then chosen by one write
of eight bytes, so that no reader meets a half-written setting.

    offset  0   a word to know it by          8   active: where the setting in force begins
           16   settings, each six numbers   208   the code

Everything is relative to its own place, so it runs wherever it is put. A test assembles the instructions and compares.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

__all__ = [
    "ACTIVE_OFFSET",
    "BLOB",
    "CODE_OFFSET",
    "ENTRIES",
    "LISTING",
    "MAGIC",
    "Setting",
    "Skew",
    "active_setting",
    "next_place",
]

MAGIC = b"FAULTCLK"
ACTIVE_OFFSET = 8
_SETTINGS_OFFSET = 16
_SETTINGS = 4
_SETTING = struct.Struct("<6q")
CODE_OFFSET = _SETTINGS_OFFSET + _SETTINGS * _SETTING.size
_PARTS = 1_000_000

LISTING = """\
clock_gettime:
    b8 e4 00 00 00         mov eax, 228                 # the system call clock_gettime, whose arguments are in place
    0f 05                  syscall
    85 c0                  test eax, eax
    75 41                  jnz answered                 # it failed: let it say so
    83 ff 0b               cmp edi, 11
    77 3c                  ja answered                  # a clock of a process or thread: it counts work, not time
    4c 8d 15 19 ff ff ff   lea r10, [rip + base]
    4d 03 52 08            add r10, [r10 + 8]           # the setting in force
    b9 21 09 00 00         mov ecx, 0x921               # wall clocks: realtime 0, coarse 5, alarm 8, TAI 11
    0f a3 f9               bt ecx, edi
    72 0e                  jc skew
    b9 d2 02 00 00         mov ecx, 0x2d2               # monotonic ones: 1, raw 4, coarse 6, since boot 7, its alarm 9
    0f a3 f9               bt ecx, edi
    73 1d                  jnc answered                 # 2 and 3 count work too
    49 83 c2 18            add r10, 24                  # the second half of the setting
skew:
    48 69 06 00 ca 9a 3b   imul rax, [rsi], 1000000000  # nanoseconds = seconds times 1e9 ...
    48 03 46 08            add rax, [rsi + 8]           # ... plus nanoseconds
    e8 90 00 00 00         call skewed
    48 89 06               mov [rsi], rax
    48 89 56 08            mov [rsi + 8], rdx
    31 c0                  xor eax, eax
answered:
    c3                     ret
gettimeofday:
    b8 60 00 00 00         mov eax, 96                  # the system call gettimeofday
    0f 05                  syscall
    85 c0                  test eax, eax
    75 3c                  jnz refused
    48 85 ff               test rdi, rdi
    74 37                  jz refused                   # only the time zone was wanted
    4c 8d 15 cc fe ff ff   lea r10, [rip + base]
    4d 03 52 08            add r10, [r10 + 8]
    48 69 07 40 42 0f 00   imul rax, [rdi], 1000000     # microseconds = seconds times 1e6 ...
    48 03 47 08            add rax, [rdi + 8]           # ... plus microseconds
    48 69 c0 e8 03 00 00   imul rax, rax, 1000
    e8 54 00 00 00         call skewed
    48 89 07               mov [rdi], rax
    89 d0                  mov eax, edx
    99                     cdq
    b9 e8 03 00 00         mov ecx, 1000
    f7 f9                  idiv ecx                     # nanoseconds to microseconds
    48 98                  cdqe
    48 89 47 08            mov [rdi + 8], rax
    31 c0                  xor eax, eax
refused:
    c3                     ret
time:
    48 83 ec 18            sub rsp, 24                  # room for seconds and nanoseconds
    49 89 f9               mov r9, rdi
    48 89 e6               mov rsi, rsp
    31 ff                  xor edi, edi
    b8 e4 00 00 00         mov eax, 228                 # clock_gettime: the call time tells no parts of a second
    0f 05                  syscall
    4c 89 cf               mov rdi, r9
    4c 8d 15 7e fe ff ff   lea r10, [rip + base]
    4d 03 52 08            add r10, [r10 + 8]
    48 69 06 00 ca 9a 3b   imul rax, [rsi], 1000000000
    48 03 46 08            add rax, [rsi + 8]
    e8 0d 00 00 00         call skewed
    48 83 c4 18            add rsp, 24
    48 85 ff               test rdi, rdi
    74 03                  jz told
    48 89 07               mov [rdi], rax
told:
    c3                     ret
skewed:
    49 89 c1               mov r9, rax                  # true nanoseconds in
    49 2b 42 08            sub rax, [r10 + 8]           # elapsed = true - since
    49 f7 6a 10            imul qword ptr [r10 + 16]    # times parts per million, in 128 bits
    41 b8 40 42 0f 00      mov r8d, 1000000
    49 f7 f8               idiv r8
    4c 01 c8               add rax, r9
    49 03 02               add rax, [r10]               # plus offset
    48 99                  cqo
    41 b8 00 ca 9a 3b      mov r8d, 1000000000
    49 f7 f8               idiv r8                      # seconds and nanoseconds out, in rax and rdx
    c3                     ret
"""
"""Registers: rdi and rsi are the arguments, r10 is the setting, rax, rcx, rdx, r8, r9 and r11 may be lost."""


class Skew(NamedTuple):
    """The error of one kind of clock; the same sum as in the listing."""

    offset_ns: int = 0
    since_ns: int = 0
    rate_ppm: int = 0

    def at(self, true_ns: int) -> int:
        """Return how far the clock is off at true time `true_ns`."""
        return self.offset_ns + (true_ns - self.since_ns) * self.rate_ppm // _PARTS

    def stepped(self, delta_ns: int) -> Skew:
        """Return the same, moved by `delta_ns`."""
        return self._replace(offset_ns=self.offset_ns + delta_ns)

    def drifting(self, rate_ppm: int, true_ns: int) -> Skew:
        """Return the same clock, which runs fast by `rate_ppm` from true time `true_ns` on."""
        return Skew(self.at(true_ns), true_ns, rate_ppm)


class Setting(NamedTuple):
    """The errors of both kinds of clock of a process."""

    wall: Skew = Skew()
    monotonic: Skew = Skew()

    def packed(self) -> bytes:
        """As the code reads it."""
        return _SETTING.pack(*self.wall, *self.monotonic)


def _assembled(listing: str) -> tuple[bytes, dict[str, int]]:
    code, labels = bytearray(), {}
    for line in listing.splitlines():
        if line.endswith(":"):
            labels[line[:-1]] = CODE_OFFSET + len(code)
        else:
            code += bytes.fromhex(line[:26].strip())
    return bytes(code), labels


_CODE, _LABELS = _assembled(LISTING)
ENTRIES = {
    "__vdso_clock_gettime": _LABELS["clock_gettime"],
    "__vdso_gettimeofday": _LABELS["gettimeofday"],
    "__vdso_time": _LABELS["time"],
}
"""The place where each function of the vDSO goes on, from the start of the blob."""
BLOB = MAGIC + struct.pack("<q", _SETTINGS_OFFSET) + bytes(_SETTINGS * _SETTING.size) + _CODE
"""The bytes that are written into a process: right clocks to begin with."""


def active_setting(blob: bytes) -> Setting:
    """Return the setting in force in a blob that was read back."""
    numbers = _SETTING.unpack_from(blob, struct.unpack_from("<q", blob, ACTIVE_OFFSET)[0])
    return Setting(Skew(*numbers[:3]), Skew(*numbers[3:]))


def next_place(blob: bytes) -> int:
    """Return the place in the blob at which the next setting is to be written."""
    number = (struct.unpack_from("<q", blob, ACTIVE_OFFSET)[0] - _SETTINGS_OFFSET) // _SETTING.size
    return int(_SETTINGS_OFFSET + (number + 1) % _SETTINGS * _SETTING.size)
