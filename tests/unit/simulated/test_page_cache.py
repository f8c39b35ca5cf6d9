"""A simulated disk behind a page cache: the data that survive a crash, and the data that are lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from faultline.harness.world.simulated.page_cache import WRITE_UNIT_BYTES, PageCacheDisk
from faultline.harness.world.weather import salt

UNIT = WRITE_UNIT_BYTES
CRASHES = 400


def synced(*names: str) -> PageCacheDisk:
    disk = PageCacheDisk()
    for name in names:
        disk.append(name, b"durable")
        disk.want_sync(name)
    disk.want_folder_sync()
    disk.begin_sync().finish()
    return disk


def after_power_losses(change: Callable[[PageCacheDisk], None], *names: str) -> list[PageCacheDisk]:
    disks = []
    for number in range(CRASHES):
        disk = synced(*names)
        change(disk)
        disk.crash(salt(number, "disk"), 1_000)
        disks.append(disk)
    return disks


def contents(change: Callable[[PageCacheDisk], None]) -> set[bytes]:
    return {disk.read("log") for disk in after_power_losses(change, "log")}


def names_left(change: Callable[[PageCacheDisk], None], *names: str) -> set[tuple[str, ...]]:
    return {tuple(disk.files()) for disk in after_power_losses(change, *names)}


def test_what_was_synced_survives_every_crash() -> None:
    assert all(content.startswith(b"durable") for content in contents(lambda disk: disk.append("log", b"-more")))


def test_a_sync_that_is_put_off_leaves_its_files_and_names_to_the_next_one() -> None:
    def change(disk: PageCacheDisk) -> None:
        for name in ("log", "new"):
            disk.append(name, b"-more")
            disk.want_sync(name)
        disk.want_folder_sync()
        disk.begin_sync().put_off()

    def change_and_sync(disk: PageCacheDisk) -> None:
        change(disk)
        assert disk.want_folder_sync()
        disk.begin_sync().finish()

    assert len(names_left(change, "log")) > 1
    for disk in after_power_losses(change_and_sync, "log"):
        assert (disk.read("log"), disk.read("new")) == (b"durable-more", b"-more")


def test_a_later_write_survives_an_earlier_one_which_then_reads_as_zeros() -> None:
    def two(disk: PageCacheDisk) -> None:
        disk.append("log", b"A" * (2 * UNIT - 7))
        disk.append("log", b"B" * UNIT)

    seen = contents(two)
    assert b"durable" in seen and b"durable" + b"A" * (2 * UNIT - 7) + b"B" * UNIT in seen
    assert any(content.endswith(b"B") and b"\0" * UNIT in content for content in seen)


def test_the_end_of_what_survives_is_torn_anywhere() -> None:
    seen = contents(lambda disk: disk.append("log", b"12345678"))
    assert {content.rstrip(b"\0") for content in seen} == {b"durable" + b"12345678"[:size] for size in range(9)}


def test_an_append_that_a_sync_parts_from_a_truncation_never_mixes_with_what_was_cut_off() -> None:
    def change(disk: PageCacheDisk, *, parted: bool) -> None:
        disk.append("log", b"o" * 4 * UNIT)
        disk.want_sync("log")
        disk.begin_sync().finish()
        disk.truncate("log", 7)
        if parted:
            disk.want_sync("log")
        disk.append("log", b"n" * 4 * UNIT)

    def mixed(seen: set[bytes]) -> bool:
        return any(b"o" in content and b"n" in content for content in seen)

    assert mixed(contents(lambda disk: change(disk, parted=False)))
    assert not mixed(contents(lambda disk: change(disk, parted=True)))


def test_a_name_is_durable_only_when_the_folder_was_synced() -> None:
    def create(disk: PageCacheDisk) -> None:
        disk.append("new", b"x")
        disk.want_sync("new")
        disk.begin_sync().finish()

    def create_and_sync_folder(disk: PageCacheDisk) -> None:
        create(disk)
        assert disk.want_folder_sync()
        disk.begin_sync().finish()

    assert names_left(create, "old") == {("old",), ("new", "old")}
    assert names_left(create_and_sync_folder, "old") == {("new", "old")}


def test_a_name_can_be_durable_before_the_content_that_no_sync_went_before() -> None:
    def replace(disk: PageCacheDisk) -> None:
        disk.write("new", b"content")
        disk.rename("new", "log")

    assert {b"durable", b"", b"content"} <= contents(replace)


def test_changes_of_names_keep_their_order() -> None:
    def delete_both(disk: PageCacheDisk) -> None:
        disk.delete("b")
        disk.delete("a")

    assert names_left(delete_both, "a", "b") == {("a", "b"), ("a",), ()}


def test_a_sync_of_the_folder_takes_none_when_no_name_has_changed() -> None:
    disk = synced("log")
    disk.append("log", b"-more")
    assert not disk.want_folder_sync()


@pytest.mark.parametrize("syncs", [False, True])
def test_what_a_killed_process_wrote_is_read_by_the_next_and_lost_by_a_later_loss_of_power_unless_it_is_synced(
    syncs: bool,
) -> None:
    left = set()
    for number in range(CRASHES):
        disk = synced("log")
        disk.append("log", b"-more")
        disk.crash(salt(number, "disk"), 1, process_only=True)
        assert disk.read("log") == b"durable-more"
        if syncs:
            disk.want_sync("log")
            disk.begin_sync().finish()
        disk.crash(salt(number, "disk"), 2)
        left.add(disk.read("log"))
    assert (b"durable" in left) is not syncs
    assert b"durable-more" in left


def test_a_killed_process_leaves_nothing_that_it_would_have_written_after_a_sync_of_which_it_never_heard() -> None:
    seen = set()
    for number in range(CRASHES):
        disk = synced("old")
        disk.append("old", b"!")
        disk.want_sync("old")
        disk.append("new", b"x")
        disk.crash(salt(number, "disk"), 1, process_only=True)
        assert disk.read("old") == b"durable!"
        seen.add(tuple(disk.files()))
    assert seen == {("old",), ("new", "old")}


def test_one_seed_is_one_crash() -> None:
    def twice() -> list[bytes]:
        disks = after_power_losses(lambda disk: disk.append("log", bytes(range(200))), "log")
        return [disk.read("log") for disk in disks]

    assert twice() == twice()


def test_a_sync_that_fails_takes_nothing_from_one_that_is_under_way() -> None:
    disk = synced("log")
    disk.append("log", b"-asked for")
    disk.want_sync("log")
    under_way = disk.begin_sync()
    disk.append("log", b"-forgotten")
    disk.forget_unsynced("log")
    under_way.finish()
    disk.crash(salt(1, "disk"), 1_000)
    assert disk.read("log") == b"durable-asked for"


def test_a_sync_that_fails_makes_no_later_one_durable_for_it() -> None:
    disk = synced("log")
    disk.append("log", b"-forgotten")
    disk.forget_unsynced("log")
    disk.want_sync("log")
    disk.begin_sync().finish()
    disk.crash(salt(1, "disk"), 1_000)
    assert disk.read("log") == b"durable"
