"""Records with length and checksum: read back, or noticed."""

from __future__ import annotations

from random import Random

from faultline.systems_under_test.patterns.data_replication.file_format import (
    HEADER_BYTES,
    WRITE_UNIT_BYTES,
    encode_record,
    next_record,
    read_record,
    record_positions,
    was_torn,
)


def _file(*payloads: bytes, salt: int = 7) -> bytes:
    data = b""
    for payload in payloads:
        data += encode_record(payload, salt, len(data))
    return data


def test_records_are_read_back_in_order_and_the_end_is_found() -> None:
    data = _file(b"one", b"", b"three")
    positions, end = record_positions(data, 7)
    assert [read_record(data, 7, position) for position in positions] == [b"one", b"", b"three"]
    assert end == len(data)


def test_a_run_of_zero_bytes_is_no_record() -> None:
    assert record_positions(bytes(64), 0) == ([], 0)


def test_a_record_in_another_file_or_at_another_place_is_not_valid() -> None:
    record = encode_record(b"value", 1, 0)
    assert read_record(record, 1, 0) == b"value"
    assert read_record(record, 2, 0) is None
    assert read_record(b"x" + record, 1, 1) is None


def test_every_flipped_bit_of_a_record_is_noticed() -> None:
    record = _file(b"some value")
    for bit in range(8 * len(record)):
        damaged = bytearray(record)
        damaged[bit // 8] ^= 1 << bit % 8
        assert read_record(bytes(damaged), 7, 0) is None


def test_a_record_behind_a_changed_length_is_still_found() -> None:
    data = bytearray(_file(b"first", b"second"))
    data[0] ^= 0x40
    assert record_positions(bytes(data), 7) == ([], 0)
    assert next_record(bytes(data), 7, 0) == HEADER_BYTES + len(b"first")
    assert not was_torn(bytes(data), 7, 0)


def test_the_image_of_a_record_inside_a_torn_value_is_not_taken_for_one() -> None:
    image = encode_record(b"looks like a record", 7, 0)
    torn = encode_record(b"before" + image + b"after", 7, 0)[:-1]
    assert image in torn
    assert next_record(torn, 7, 0) == -1
    assert was_torn(torn, 7, 0)


def test_a_unit_of_zeros_before_a_valid_record_is_a_torn_write_and_a_changed_record_is_not() -> None:
    data = _file(*(bytes([number]) * 50 for number in range(1, 5)))
    lost = HEADER_BYTES + 50
    hole = data[:lost] + bytes(WRITE_UNIT_BYTES - lost) + data[WRITE_UNIT_BYTES:]
    assert record_positions(hole, 7) == ([0], lost)
    assert was_torn(hole, 7, lost)
    changed = data[: lost + 20] + bytes(20) + data[lost + 40 :]
    assert not was_torn(changed, 7, lost)


def _changed(data: bytes, position: int, random: Random) -> bytes:
    value = random.choice([value for value in range(1, 256) if value != data[position]])
    return data[:position] + bytes([value]) + data[position + 1 :]


def test_a_changed_byte_of_the_last_record_is_never_taken_for_a_torn_write() -> None:
    random = Random(5)
    for _ in range(60):
        data = _file(*(random.randbytes(random.randint(9, 200)) for _ in range(3)))
        last = record_positions(data, 7)[0][-1]
        for position in range(last, len(data)):
            assert not was_torn(_changed(data, position, random), 7, last)


def test_what_a_crash_leaves_of_the_last_record_is_torn() -> None:
    random = Random(5)
    for _ in range(60):
        durable = _file(*(random.randbytes(random.randint(9, 200)) for _ in range(2)))
        data = durable + encode_record(random.randbytes(random.randint(100, 200)), 7, len(durable))
        for end in range(len(durable) + 1, len(data)):
            assert was_torn(data[:end], 7, len(durable))
        for unit in range(len(durable) // WRITE_UNIT_BYTES + 1, len(data) // WRITE_UNIT_BYTES):
            start = unit * WRITE_UNIT_BYTES
            holed = data[:start] + bytes(WRITE_UNIT_BYTES) + data[start + WRITE_UNIT_BYTES :]
            assert was_torn(holed, 7, len(durable))


def test_a_record_that_lost_the_unit_with_the_first_bytes_of_its_length_is_torn() -> None:
    durable = _file(b"x" * (WRITE_UNIT_BYTES - 3 - HEADER_BYTES))
    data = durable + encode_record(b"y" * 300, 7, len(durable))
    assert was_torn(durable + bytes(3) + data[WRITE_UNIT_BYTES:], 7, len(durable))


def test_the_header_is_what_a_record_takes_on_top_of_its_payload() -> None:
    assert len(_file(b"payload")) == HEADER_BYTES + len(b"payload")
