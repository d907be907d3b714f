"""Memory regions and byte permissions."""

import numpy as np
import pytest

from sim.memory import FILL, READ, READ_ERROR, WRITE, Memory

BEAT = 16


def test_bytes_written_are_read_across_touching_regions():
    memory = Memory()
    memory.add_region(0x1000, 16)
    memory.add_region(0x1010, 16)
    memory.write(0x100C, bytes(range(8)))
    assert memory.read(0x100A, 12) == bytes([0, 0, *range(8), 0, 0])
    assert memory.view(0x1010, 4).tolist() == [4, 5, 6, 7]
    with pytest.raises(ValueError, match="do not lie in one region"):
        memory.view(0x100F, 2)


def test_array_is_used_in_place():
    array = np.arange(64, dtype=np.uint8)
    memory = Memory()
    memory.add_region(0x80, array)
    memory.write(0x84, np.array([0x0102, 0x0304], np.uint16))
    assert array[4:8].tolist() == [2, 1, 4, 3]
    memory.write_beat(0x80, 0xFFEE, 0b11, BEAT)
    assert array[:3].tolist() == [0xEE, 0xFF, 2]


@pytest.mark.parametrize(
    "base, content, message",
    [
        (0x1008, 16, "overlaps 0x1000..0x100f"),
        (0xFF1, 16, "overlaps 0x1000..0x100f"),
        (0x2000, 0, "no region of 0 bytes fits"),
        (-1, 4, "no region of 4 bytes fits"),
        ((1 << 40) - 4, 8, "no region of 8 bytes fits at 0xfffffffffc in 40 bits"),
        (0x2000, np.zeros(4, np.int8), "array of uint8"),
        (0x2000, np.zeros((4, 4), np.uint8), "one-dimensional"),
        (0x2000, np.zeros(8, np.uint8)[::2], "contiguous"),
        (0x2000, np.frombuffer(b"abcd", np.uint8), "can be written"),
    ],
)
def test_bad_region(base, content, message):
    memory = Memory()
    memory.add_region(0x1000, 16)
    with pytest.raises(ValueError, match=message):
        memory.add_region(base, content)
    assert len(memory.regions) == 1


def test_outside_every_region():
    memory = Memory()
    memory.add_region(0x1000, 16)
    for addr, size in ((0xFFF, 1), (0x1010, 1), (0x1008, 9)):
        with pytest.raises(ValueError, match="no memory at"):
            memory.read(addr, size)
    with pytest.raises(ValueError, match="no memory at 0x1010"):
        memory.write(0x1008, b"123456789")
    assert memory.read(0x1000, 16) == bytes(16)  # refused before anything was written
    assert memory.read(0x5000, 0) == b""


def test_addresses_wrap():
    memory = Memory(addr_bits=16)
    memory.add_region(0, 16)
    memory.add_region(0xFFF0, 16)
    memory.write(0xFFFE, b"abcd")
    assert memory.read(0x1FFFE, 4) == b"abcd"
    assert memory.read(0, 2) == b"cd"


def test_beat_is_readable_when_one_byte_is():
    memory = Memory()
    memory.add_region(0x1000, 64, readable=False)
    memory.allow_read(0x1013, 1)
    allowed = [memory.read_beat(0x1000 + BEAT * i, BEAT)[1] & READ for i in range(4)]
    assert allowed == [0, READ, 0, 0]
    memory.allow_read(0x1013, 1, on=False)
    assert not memory.read_beat(0x1010, BEAT)[1] & READ


def test_beat_over_the_edges_of_small_regions():
    memory = Memory()
    memory.add_region(0x1003, np.array([1, 2], np.uint8))
    memory.add_region(0x1006, np.array([3], np.uint8), readable=False)
    value, perms = memory.read_beat(0x1000, BEAT)
    expected = [FILL] * 16
    expected[3:7] = [1, 2, FILL, 3]
    assert value.to_bytes(16, "little") == bytes(expected)
    assert perms & READ
    assert memory.read_beat(0x2000, BEAT) == (int.from_bytes([FILL] * 16, "little"), 0)


def test_write_permission_is_byte_precise():
    memory = Memory()
    memory.add_region(0x1000, 32)
    memory.forbid_all()
    memory.allow_write(0x1005, 3)
    assert memory.forbidden_byte(0x1000, 0b1110_0000, BEAT) is None
    assert memory.forbidden_byte(0x1000, 0b1111_0000, BEAT) == 0x1004
    assert memory.forbidden_byte(0x1000, 0b1_1110_0000, BEAT) == 0x1008
    assert memory.forbidden_byte(0x1000, 0, BEAT) is None
    assert memory.forbidden_byte(0x2000, 1, BEAT) == 0x2000
    assert not memory.read_beat(0x1000, BEAT)[1] & READ
    assert memory.regions[0].perms[5] == WRITE


def test_read_only_and_write_only():
    memory = Memory()
    memory.add_region(0x1000, 16, writable=False)
    memory.add_region(0x1010, 16, readable=False)
    assert memory.read_beat(0x1000, BEAT)[1] == READ
    assert memory.forbidden_byte(0x1000, 1, BEAT) == 0x1000
    assert memory.read_beat(0x1010, BEAT)[1] == WRITE
    assert memory.forbidden_byte(0x1010, 1, BEAT) is None


def test_failing_bytes():
    memory = Memory()
    memory.add_region(0x1000, 32)
    memory.fail_read(0x1004, 1)
    assert memory.read_beat(0x1000, BEAT)[1] & READ_ERROR
    assert not memory.read_beat(0x1010, BEAT)[1] & READ_ERROR
    memory.fail_write(0x1011, 1)
    assert not memory.write_beat(0x1010, 0x111111, 0b101, BEAT)
    assert memory.write_beat(0x1010, 0x222222, 0b111, BEAT)
    assert memory.read(0x1010, 4) == bytes([0x22, 0, 0x22, 0])
