"""Latent damage: stored bytes that differ from those that were written, although every write and sync was answered.

A process goes on with the pages that it has in memory; the next process reads the medium, and meets the damage. So the
place is drawn when a process starts, of all that is stored then: the last record that the process before it wrote is as
likely to be hit as any other. The damage lies over what the disk holds, so that a mended disk holds again what was
written. What is written over damaged bytes replaces them, and they are well again.

Three ways in which a disk damages data (Bairavasundaram et al., "An Analysis of Data Corruption in the Storage Stack",
FAST 2008):

- *corrupt*: a byte has changed;
- *lost*: a unit of 64 bytes never reached the disk, and reads as zeros;
- *misdirected*: a unit was written in the place of another one, and its own place reads as zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from faultline.harness.world.weather import salt, uniform

__all__ = ["Damage", "LatentDamage"]

UNIT_BYTES = 64

Damage = Literal["corrupt", "lost", "misdirected"]


class LatentDamage:
    """The damage of one disk, and the part of it that the present process meets."""

    __slots__ = ("_due", "_masks")

    def __init__(self) -> None:
        self._due: list[tuple[Damage, int, int]] = []
        self._masks: dict[str, dict[int, int]] = {}
        """For each file and position the bits that differ."""

    def __bool__(self) -> bool:
        return bool(self._due or self._masks)

    def strike(self, damage: Damage, stream: int, now_us: int) -> None:
        """Let the next process that starts meet damage, at a place that is drawn from `stream` and `now_us`."""
        self._due.append((damage, stream, now_us))

    def meet(self, stored: Mapping[str, bytes]) -> None:
        """Damage the `stored` files of the process that starts now as is due. Files are drawn alike, short or long."""
        files = sorted(file for file, content in stored.items() if content)
        while files and self._due:
            self._damage(files, stored, *self._due.pop())

    def _damage(
        self, files: Sequence[str], stored: Mapping[str, bytes], damage: Damage, stream: int, now_us: int
    ) -> None:
        file, position = _place(files, stored, salt(stream, "from"), now_us)
        content = stored[file]
        if damage == "corrupt":
            self._replace(file, position, content, bytes([_changed(content[position], stream, now_us)]))
            return
        unit = content[position // UNIT_BYTES * UNIT_BYTES :][:UNIT_BYTES]
        if damage == "misdirected":
            other, place = _place(files, stored, salt(stream, "to"), now_us)
            self._replace(other, place // UNIT_BYTES * UNIT_BYTES, stored[other], unit)
        self._replace(file, position // UNIT_BYTES * UNIT_BYTES, content, bytes(len(unit)))

    def _replace(self, file: str, start: int, written: bytes, there: bytes) -> None:
        """Let the bytes `there` be found from `start` on, up to the end of what was `written`."""
        masks = self._masks.setdefault(file, {})
        for position, (was, seen) in enumerate(zip(written[start:], there, strict=False), start):
            masks[position] = was ^ seen

    def seen_in(self, file: str, content: bytes) -> bytes:
        """Return the content of `file` as a process reads it, where `content` is what was written."""
        masks = self._masks.get(file)
        if not masks:
            return content
        changed = bytearray(content)
        for position, bits in masks.items():
            if position < len(changed):
                changed[position] ^= bits
        return bytes(changed)

    def write_over(self, file: str, size: int = 0) -> None:
        """Note that the bytes of `file` from `size` on were cut off or replaced."""
        kept = {position: bits for position, bits in self._masks.pop(file, {}).items() if position < size}
        if kept:
            self._masks[file] = kept

    def rename(self, old: str, new: str) -> None:
        """Note the new name of the file `old`, which replaces the file `new`."""
        self._masks.pop(new, None)
        if old in self._masks:
            self._masks[new] = self._masks.pop(old)

    def mend(self) -> None:
        """Put back what was written."""
        self._due.clear()
        self._masks.clear()


def _place(files: Sequence[str], stored: Mapping[str, bytes], stream: int, now_us: int) -> tuple[str, int]:
    file = files[uniform(stream, now_us, 0, len(files))]
    return file, uniform(salt(stream, file), now_us, 0, len(stored[file]))


def _changed(byte: int, stream: int, now_us: int) -> int:
    """Return another byte: not zero, as zeros are what a torn write leaves."""
    others = [other for other in range(1, 256) if other != byte]
    return others[uniform(salt(stream, "bits"), now_us, 0, len(others))]
