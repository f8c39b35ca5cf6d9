"""The bytes that a simulated disk keeps and loses."""

from faultline.harness.world.simulated.storage import SimulatedDisk
from faultline.harness.world.weather import salt


def synced(*names: str) -> SimulatedDisk:
    disk = SimulatedDisk()
    for name in names:
        disk.append(name, b"durable")
        disk.want_sync(name)
    disk.begin_sync().finish()
    return disk


def survivors(change, crashes: int = 200) -> set[bytes]:
    contents = set()
    for number in range(crashes):
        disk = synced("log")
        change(disk)
        disk.crash(salt(number, "disk"), 1_000)
        contents.add(disk.read("log"))
    return contents


def test_what_was_synced_survives_every_crash():
    assert all(content.startswith(b"durable") for content in survivors(lambda disk: disk.append("log", b"-more")))


def test_an_unsynced_append_is_lost_kept_or_torn_anywhere():
    seen = survivors(lambda disk: disk.append("log", b"12345678"), crashes=600)
    assert {b"durable", b"durable12345678"} <= seen
    assert len(seen) == 9, "and every length between"


def test_only_a_suffix_of_unsynced_appends_is_lost():
    def two(disk):
        disk.append("log", b"A")
        disk.append("log", b"B")

    assert survivors(two) == {b"durable", b"durableA", b"durableAB"}


def test_the_process_reads_what_it_wrote_before_any_sync():
    disk = synced("log")
    disk.append("log", b"-more")
    disk.truncate("log", 3)
    disk.append("log", b"!")
    assert disk.read("log") == b"dur!"


def test_what_is_appended_during_a_sync_is_not_covered_by_it():
    left = set()
    for number in range(50):
        disk = synced("log")
        disk.append("log", b"-first")
        disk.want_sync("log")
        sync = disk.begin_sync()
        disk.append("log", b"-second")
        sync.finish()
        disk.crash(salt(number, "disk"), 1)
        left.add(disk.read("log"))
    assert all(content.startswith(b"durable-first") for content in left)
    assert b"durable-first" in left, "what came later may be lost"


def test_a_file_that_was_never_synced_is_gone_after_a_crash_and_names_go_back():
    disk = synced("old")
    disk.append("new", b"x")
    disk.rename("old", "renamed")
    disk.crash(salt(1, "disk"), 1)
    assert disk.files() == ["old"]


def test_a_sync_makes_names_durable_too():
    disk = synced("log.new")
    disk.rename("log.new", "log")
    disk.want_sync("log")
    disk.begin_sync().finish()
    disk.crash(salt(1, "disk"), 1)
    assert disk.files() == ["log"]
