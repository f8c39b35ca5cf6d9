"""The door for bytes of strangers: what is too large, silent, no text, too deep or of another kind is refused."""

import os
import threading

import msgspec
import pytest

from faultline.harness.errors import UsageError
from faultline.harness.untrusted import (
    DEPTH_MAX,
    DamagedInput,
    converted,
    decoded,
    from_json,
    from_toml,
    is_nested_too_deep,
    opened,
    read_json,
    read_toml,
    read_whole,
)


class Point(msgspec.Struct):
    """Something to be read."""

    x: int
    y: int


def test_a_file_of_the_right_kind_is_read(tmp_path):
    (tmp_path / "point.json").write_bytes(b'{"x": 1, "y": 2}')
    assert read_json(tmp_path / "point.json", Point) == Point(1, 2)


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b'{"x": 1}', "missing required field `y`"),
        (b'{"x": "\xff", "y": 2}', r"\$\.x|UTF-8"),
        (b'{"x": 1, "y": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested more than 100 deep"),
        (b'{"x": 1, "y": ' + b'{"a":' * 100_000, "nested more than 100 deep"),
        (b'{"x": 1, "y": ' + b"9" * 100_000 + b"}", r"\$\.y"),
    ],
    ids=["empty", "cut off", "lacks a key", "not UTF-8", "deep", "deep and cut off", "many digits"],
)
def test_what_cannot_be_a_record_is_refused_with_file_and_cause(tmp_path, data, cause):
    (tmp_path / "point.json").write_bytes(data)
    with pytest.raises(DamagedInput, match=cause) as caught:
        read_json(tmp_path / "point.json", Point)
    assert "point.json" in caught.value.message and caught.value.next_step and caught.value.exit_code == 2


def test_the_place_stands_in_the_message():
    with pytest.raises(DamagedInput, match=r"^plan\.json, line 7: "):
        from_json("nonsense", Point, "plan.json", place="line 7")
    with pytest.raises(DamagedInput, match=r"^an answer, of n1: .*\$\.y"):
        converted({"x": 1, "y": "2"}, Point, "an answer", place="of n1")


def test_a_file_that_is_larger_than_it_may_be_is_not_read(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(DamagedInput, match="has more than 1024 MiB"):
        read_whole(tmp_path / "sparse")


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("absent", "No such file"),
        (".", "it is a folder"),
        ("x" * 300, "name too long"),
        ("a\0b", "not the name of a file"),
    ],
    ids=["absent", "folder", "long", "null"],
)
def test_what_is_no_file_is_refused(tmp_path, name, cause):
    with pytest.raises(DamagedInput, match=f"(?i){cause}"):
        read_whole(tmp_path / name)


# -- pipes -----------------------------------------------------------------------------------------------------------


def test_a_pipe_into_which_nothing_is_written_has_a_deadline(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (
        pytest.raises(DamagedInput, match=r"it sent nothing for 0\.05 s"),
        opened(tmp_path / "pipe", deadline_s=0.05),
    ):
        pass


def test_a_pipe_that_goes_silent_has_a_deadline(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    descriptor = os.open(tmp_path / "pipe", os.O_RDWR)
    os.write(descriptor, b"a beginning")
    with pytest.raises(DamagedInput, match="it sent nothing"), opened(tmp_path / "pipe", deadline_s=0.05):
        pass
    os.close(descriptor)


def test_what_came_out_of_a_pipe_can_be_read_again(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"x" * 1_000_000,))
    writer.start()
    with opened(tmp_path / "pipe") as file:
        assert file.read(10) == b"x" * 10
    assert read_whole(tmp_path / "pipe") == b"x" * 1_000_000
    writer.join()


def test_a_device_without_end_is_refused():
    with pytest.raises(DamagedInput, match="/dev/zero cannot be read: it has more than 256 MiB"), opened("/dev/zero"):
        pass


def test_a_device_without_anything_is_empty():
    assert read_whole("/dev/null") == b""


# -- depth -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_depth_is_counted_in_brackets_around_each_other(brackets):
    def nested(depth):
        return brackets[0] * depth + brackets[1] * depth

    assert not is_nested_too_deep(nested(DEPTH_MAX))
    assert is_nested_too_deep(nested(DEPTH_MAX + 1))
    assert not is_nested_too_deep(nested(DEPTH_MAX) * 3)
    assert is_nested_too_deep(nested(DEPTH_MAX + 1).encode())
    assert is_nested_too_deep(brackets[0] * (DEPTH_MAX + 1))


@pytest.mark.parametrize("text", ["[" * 200, '\\"' + "[" * 200, "\\\\\\" + '"' + "{" * 200])
def test_brackets_in_a_string_do_not_count(text):
    assert not is_nested_too_deep(f'["{text}"]')


def test_many_values_beside_each_other_are_not_deep():
    assert decoded(b"[" + b",".join([b'{"a": [1, {"b": []}]}'] * 10_000) + b"]")[9_999] == {"a": [1, {"b": []}]}


# -- TOML ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("a = 1\nb = = 2", "line 2, column 5: not valid TOML"),
        ("a = " + "[" * 5_000, "nested more than 100 deep"),
        ("a = ['\"', " + "[" * 5_000, "not valid TOML"),
        ("a." * 5_000 + "b = 1", "line 1: it has more than 200 dots"),
        ("a = " + "9" * 5_000, "not valid TOML"),
        ("a = 1979-99-99", "not valid TOML"),
    ],
    ids=["syntax", "deep", "deep behind quotation marks", "key of many parts", "many digits", "date"],
)
def test_toml_that_cannot_be_read_is_refused_with_its_place(text, cause):
    with pytest.raises(DamagedInput, match=cause):
        from_toml(text, "plan.toml")


def test_toml_that_is_no_text_is_refused_with_its_line(tmp_path):
    (tmp_path / "hosts.toml").write_bytes(b"a = 1\nb = '\xff'")
    with pytest.raises(UsageError, match=r"hosts\.toml, line 2: it is not text in UTF-8"):
        read_toml(tmp_path / "hosts.toml")
