"""The activity that the core tells: every cycle has one state of MAC issue, and the right one."""

from __future__ import annotations

import pytest
from directed import engine
from gemm_cases import compiled

from hdl.activity import ACTIVITY, MAC_STATES
from hdl.config import Config, preset
from hdl.core import Core
from hdl.describe import result_latency
from hdl.emit import rtlil_text
from hdl.issue.slots import Slots
from hdl.mac.pipe import MacTiming
from sim.bench_rows import counts, moments
from sim.driver import RunResult
from sim.memory import Memory
from sim.personality import IDEAL
from sim.program import Program

CFG = preset("ame32-int8")
BASE = 0x10_0000
C, A, B = 0, 16, 24
FAR = IDEAL.replace(name="far", latency=200)


def run(body, *, cfg: Config = CFG, personality=IDEAL, m=16, n=16) -> RunResult:
    """Cycles from the first of `body(program)`'s requests on, everything done before."""
    compiled()
    program = Program(cfg)
    program.set_cfg("int8")
    program.set_tile(16, m, n)
    program.mfence()
    simulator = engine(cfg)
    simulator.memory = Memory(cfg.addr_bits)
    simulator.memory.add_region(BASE, 0x10000)
    simulator.run(program)
    program = Program(cfg)
    body(program)
    program.mfence()
    result = simulator.run(program, personality=personality, probes=True)
    assert not any(response.error for response in result.responses)
    check(result)
    return result


def check(result: RunResult) -> None:
    """One state of MAC issue a cycle; the counters are those of the recorded cycles."""
    activity, values = result.activity, result.probes["activity"]
    assert list(activity) == list(ACTIVITY)
    assert sum(activity[name] for name in MAC_STATES) == result.cycles
    first = result.first_request_cycle
    assert activity == counts(values[first : first + result.cycles])
    whole = counts(values)
    assert sum(whole[name] for name in MAC_STATES) == result.total_cycles
    t = result.traffic
    bus = ("read_request", "read_beat", "write_request", "write_beat")
    assert [whole[name] for name in bus] == [
        *(t.read_requests, t.read_beats, t.write_requests, t.write_beats)
    ]
    stalls = ("read_request_wait", "read_beat_wait", "write_request_wait", "write_beat_wait")
    assert [whole[name] for name in stalls] == [
        *(t.read_request_stalls, t.read_response_stalls, t.write_request_stalls),
        t.write_data_stalls,
    ]
    assert whole["dispatch"] <= len(result.responses)


def test_uops_and_results() -> None:
    result = run(lambda p: [p.mmacc(C, A, B) for _ in range(5)])
    assert result.activity["mac_uop"] == 5 * 16
    values = result.probes["activity"]
    uops, writes = moments(values, "mac_uop"), moments(values, "mac_write")
    assert len(writes) == 80
    assert uops[-1] - uops[0] == 79
    # The issue register comes first, then the pipe.
    assert set(writes - uops) == {1 + MacTiming.of(CFG).depth}
    assert writes[15] - result.request_cycles[0] == result_latency(CFG, 16)


def test_nothing_to_do() -> None:
    """A fence alone, and the cycles before and after the uops of a mmacc."""
    result = run(lambda p: None)
    assert result.activity["mac_instruction"] == result.cycles
    result = run(lambda p: p.mmacc(C, A, B))
    # A free slot, and the issue register at the other end, are not waited for.
    assert result.activity["mac_start"] == Slots.LATENCY - 2
    states = ("mac_uop", "mac_start", "mac_instruction")
    assert sum(result.activity[name] for name in states) == result.cycles


def test_operands() -> None:
    """A load of B from far away: all of its latency is waited for B."""

    def body(program: Program) -> None:
        program.mld("r", B, BASE, 16)
        program.mmacc(C, A, B)

    near, far = run(body), run(body, personality=FAR)
    more = far.cycles - near.cycles
    assert more == FAR.latency - IDEAL.latency
    assert far.activity["mac_operands"] - near.activity["mac_operands"] == more
    assert far.activity["mac_operands"] > FAR.latency
    assert far.activity["mac_c_tile"] == far.activity["mac_c_word"] == 0


@pytest.mark.parametrize("what", ["load", "store"])
def test_tile_of_c(what: str) -> None:
    """C is loaded from far away, or stored slowly, before a mmacc into it."""

    def body(program: Program) -> None:
        if what == "load":
            program.mld("r", C, BASE, 16)
        else:
            program.mst("r", C, BASE, 16)
        program.mmacc(C, A, B)

    slow = FAR if what == "load" else IDEAL.replace(name="stuck", write_request_stall=0.9)
    near, far = run(body), run(body, personality=slow)
    assert near.activity["mac_c_tile"] > 0
    assert near.activity["mac_operands"] == near.activity["mac_c_word"] == 0
    if what == "load":
        more = far.cycles - near.cycles
        assert far.activity["mac_c_tile"] - near.activity["mac_c_tile"] == more


def test_word_of_c() -> None:
    """One uop a mmacc into one word: it comes back every W cycles (architecture.md)."""
    number, loop = 20, MacTiming.of(CFG).loop
    result = run(lambda p: [p.mmacc(C, A, B) for _ in range(number)], m=4, n=4)
    uops = moments(result.probes["activity"], "mac_uop")
    assert set(uops[1:] - uops[:-1]) == {loop}
    assert result.activity["mac_c_word"] == (number - 1) * (loop - 1)
    assert result.activity["mac_c_tile"] == result.activity["mac_operands"] == 0
    result = run(lambda p: [p.mmacc(C, A, B, beta=1) for _ in range(number)], m=4, n=4)
    assert result.activity["mac_c_word"] == 0


def test_slots_full_of_loads() -> None:
    """A slow memory, more loads than slots, and the mmacc behind them."""

    def body(program: Program) -> None:
        for index in range(2 * CFG.slots):
            program.mld("r", A + index % 8, BASE, 64)
        program.mmacc(C, A, B)

    result = run(body, personality=IDEAL.replace(name="stuck", read_request_stall=0.9))
    assert result.activity["mac_slots"] > 500
    assert result.activity["dispatch_wait"] > 500
    assert result.activity["read_request_wait"] > 500


def test_bank() -> None:
    """C, A and B in one bank of two reads: B loses whenever a word of C is read."""

    def body(program: Program, a: int, b: int) -> None:
        program.set_cfg("int8", acc=1)  # a word of C for each uop
        for _ in range(8):
            program.mmacc(C, a, b)

    others = run(lambda p: body(p, A, B))
    shared = run(lambda p: body(p, C + 4, C + 5))
    assert others.activity["mac_bank"] == 0
    # A is read once for four uops, and B loses if a word of C is read then: it may be, or a gap.
    assert 8 <= shared.activity["mac_bank"] <= 8 * 4
    assert shared.cycles - others.cycles == shared.activity["mac_bank"]
    assert shared.activity["mac_uop"] == others.activity["mac_uop"] == 8 * 16


def test_gaps_for_starving_loads() -> None:
    """Loads into the bank that results are written to, without a break: each gap is counted."""

    def body(program: Program) -> None:
        program.mld("r", C + 4, BASE, 64, n=4, down=True)
        for _ in range(20):
            program.mmacc(C, A, B)

    result = run(body)
    assert result.activity["mac_skip"] > 0
    assert result.activity["load_bank"] > 15 * result.activity["mac_skip"] / 2


def test_transposes() -> None:
    """bTR makes a transpose of B first, in as many uops as --describe says."""
    result = run(lambda p: p.mmacc(C, A, B, btr=0))
    assert result.activity["mac_uop"] == 16
    assert 4 <= result.activity["mac_transpose"] <= 16
    assert run(lambda p: p.mmacc(C, A, B)).activity["mac_transpose"] == 0


def test_ids() -> None:
    """Requests of one beat, further away than ids reach."""
    result = run(lambda p: [p.mld("r", A, BASE, 64, n=8, down=True)], personality=FAR)
    assert result.activity["read_ids"] > 100
    assert run(lambda p: [p.mld("r", A, BASE, 64)], personality=FAR).activity["read_ids"] == 0
    slow = IDEAL.replace(name="slow", write_latency=200)
    result = run(lambda p: [p.mst("r", A, BASE, 64, n=8, down=True)], personality=slow)
    assert result.activity["write_ids"] > 100


def test_moves() -> None:
    result = run(lambda p: p.mmov(A, B, n=4))
    assert result.activity["move_uop"] > 0
    assert result.activity["mac_uop"] == 0


def test_the_plain_core_does_not_tell() -> None:
    """What is emitted has no trace of it."""
    cfg = Config(name="small", m_par=1, n_par=1, banks=2, slots=2)
    core = Core(cfg)
    assert "activity" not in core.signature.members
    text = rtlil_text(core, "core")
    assert "activity" not in text
    assert "mac_state" not in text
    told = Core(cfg, activity=True)
    assert told.signature.members.keys() - core.signature.members.keys() == {"activity"}
    assert "mac_state" in rtlil_text(told, "core")
