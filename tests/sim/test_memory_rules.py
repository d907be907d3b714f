"""Every rule of the L2 channels, broken on purpose."""

from pathlib import Path

import pytest

from hdl.config import preset
from sim.l2_model import L2Model
from sim.memory import Memory
from sim.personality import IDEAL
from sim.protocol import Channel, ProtocolError, Rule

CFG = preset("ame32-int8")
FAST = IDEAL.replace(latency=1)
STALLED = IDEAL.replace(latency=1, read_request_stall=0.99, stall_length=1000)
QUIET = {
    "dsa_pad_req_rvalid": 0,
    "dsa_pad_req_raddr": 0,
    "dsa_pad_req_rlen": 0,
    "dsa_pad_req_rid": 0,
    "dsa_pad_resp_rready": 1,
    "dsa_pad_req_wvalid": 0,
    "dsa_pad_req_waddr": 0,
    "dsa_pad_req_wlen": 0,
    "dsa_pad_req_wid": 0,
    "dsa_pad_req_fullline": 0,
    "dsa_pad_resp_wready": 1,
    "dsa_pad_req_wdvalid": 0,
    "dsa_pad_req_wdata": 0,
    "dsa_pad_req_wstrb": 0,
    "dsa_pad_req_wlast": 0,
}
ALL = 0xFFFF


def model(personality=FAST, **kwargs):
    memory = Memory()
    memory.add_region(0x1000, 0x1000, **kwargs)
    return L2Model(CFG, memory, personality)


def step(m, **drive):
    m.step(QUIET | drive)


def read(addr=0x1000, beats=1, id=0):
    return {
        "dsa_pad_req_rvalid": 1,
        "dsa_pad_req_raddr": addr,
        "dsa_pad_req_rlen": beats - 1,
        "dsa_pad_req_rid": id,
    }


def write(addr=0x1000, beats=1, id=0, fullline=0):
    return {
        "dsa_pad_req_wvalid": 1,
        "dsa_pad_req_waddr": addr,
        "dsa_pad_req_wlen": beats - 1,
        "dsa_pad_req_wid": id,
        "dsa_pad_req_fullline": fullline,
    }


def beat(data=0, strobe=ALL, last=1):
    return {
        "dsa_pad_req_wdvalid": 1,
        "dsa_pad_req_wdata": data,
        "dsa_pad_req_wstrb": strobe,
        "dsa_pad_req_wlast": last,
    }


def broken(rule, channel, cycle, m, **drive):
    with pytest.raises(ProtocolError) as caught:
        step(m, **drive)
    error = caught.value
    assert (error.rule, error.channel, error.cycle) == (rule, channel, cycle)
    assert str(error).startswith(f"cycle {cycle}, {channel.label}: ")
    assert "{" not in str(error)


@pytest.mark.parametrize("addr", [0x1001, 0x1008, 0x100F])
def test_unaligned(addr):
    broken(Rule.UNALIGNED, Channel.READ_REQUEST, 0, model(), **read(addr))
    broken(Rule.UNALIGNED, Channel.WRITE_REQUEST, 0, model(), **write(addr))


@pytest.mark.parametrize("start, beats", [(0, 4), (1, 3), (2, 2), (3, 1)])
def test_line_crossing(start, beats):
    addr = 0x1040 + 16 * start
    step(model(), **read(addr, beats))
    step(model(), **write(addr, beats))
    if beats < 4:
        broken(Rule.LINE_CROSSED, Channel.READ_REQUEST, 0, model(), **read(addr, beats + 1))
        broken(Rule.LINE_CROSSED, Channel.WRITE_REQUEST, 0, model(), **write(addr, beats + 1))


def test_read_id_returns_one_cycle_after_its_last_beat():
    m = model()
    step(m, **read(0x1000, 2, id=3))  # cycle 0; beats in 1 and 2
    step(m, **read(0x1000, 1, id=4))
    assert m.outputs()["pad_dsa_resp_rlast"]
    assert m.reads_in_flight == [3, 4]
    broken(Rule.ID_IN_USE, Channel.READ_REQUEST, 2, m, **read(0x1020, 1, id=3))
    m = model()
    step(m, **read(0x1000, 2, id=3))
    step(m)
    step(m)
    assert m.idle
    step(m, **read(0x1020, 1, id=3))  # cycle 3
    assert m.traffic.read_requests == 2


def test_write_id_returns_one_cycle_after_its_response():
    for wait, fine in ((1, False), (2, True)):
        m = model()
        step(m, **write(id=3))
        step(m, **beat())  # cycle 1; response in 2
        for _ in range(wait - 1):
            step(m)
        if fine:
            step(m, **write(id=3))
            assert m.traffic.write_requests == 2
        else:
            assert m.outputs()["pad_dsa_resp_wvalid"]
            broken(Rule.ID_IN_USE, Channel.WRITE_REQUEST, 2, m, **write(id=3))


def test_id_is_busy_while_its_response_waits():
    m = model()
    step(m, **read(id=1))
    for _ in range(5):
        step(m, dsa_pad_resp_rready=0)
    assert m.traffic.read_response_stalls == 5
    broken(Rule.ID_IN_USE, Channel.READ_REQUEST, 6, m, **read(id=1))


def test_read_and_write_ids_are_independent():
    m = model(IDEAL)
    step(m, **read(id=7), **write(id=7))
    assert m.reads_in_flight == m.writes_in_flight == [7]


def test_id_beyond_the_ids():
    memory = Memory()
    memory.add_region(0x1000, 64)
    m = L2Model(CFG.replace(l2_ids=1), memory, FAST)
    broken(Rule.ID_UNKNOWN, Channel.READ_REQUEST, 0, m, **read(id=1))


def test_read_outside_memory_or_permission():
    broken(Rule.READ_FORBIDDEN, Channel.READ_REQUEST, 0, model(), **read(0x3000))
    broken(Rule.READ_FORBIDDEN, Channel.READ_REQUEST, 0, model(readable=False), **read())
    m = model(readable=False)
    m.read_side.memory.allow_read(0x1010, 16)
    step(m, **read(0x1010))
    with pytest.raises(ProtocolError, match="the beat at 0x1020 may not be read"):
        step(m, **read(0x1010, 2, id=1))


def test_write_outside_memory_or_permission():
    m = model(writable=False)
    m.write_side.memory.allow_write(0x1003, 2)
    step(m, **write())
    step(m, **beat(0xFFFFFFFFFF, 0b11000))
    assert m.write_side.memory.read(0x1000, 8) == bytes([0, 0, 0, 255, 255, 0, 0, 0])
    step(m, **write(id=1))
    with pytest.raises(ProtocolError, match="the byte at 0x1005 may not be written"):
        step(m, **beat(0, 0b111000))
    m = model()
    step(m, **write(0x5000))
    broken(Rule.WRITE_FORBIDDEN, Channel.WRITE_DATA, 1, m, **beat())


def test_forbidden_even_while_not_ready():
    m = model(STALLED)
    assert not m.outputs()["pad_dsa_req_rready"]
    broken(Rule.READ_FORBIDDEN, Channel.READ_REQUEST, 0, m, **read(0x3000))


def test_data_before_without_and_with_their_request():
    broken(Rule.DATA_WITHOUT_REQUEST, Channel.WRITE_DATA, 0, model(), **beat())
    m = model()
    step(m, **write(), **beat())  # in the same cycle is not before
    broken(Rule.DATA_WITHOUT_REQUEST, Channel.WRITE_DATA, 1, m, **beat())
    m = model(IDEAL.replace(write_request_stall=0.99, stall_length=1000))
    broken(Rule.DATA_WITHOUT_REQUEST, Channel.WRITE_DATA, 0, m, **write(), **beat())
    m = model(IDEAL.replace(write_data_stall=0.99, stall_length=1000))
    broken(Rule.DATA_WITHOUT_REQUEST, Channel.WRITE_DATA, 0, m, **beat())


def test_wlast():
    m = model()
    step(m, **write(beats=3))
    step(m, **beat(last=0))
    broken(Rule.LAST_EARLY, Channel.WRITE_DATA, 2, m, **beat(last=1))
    m = model()
    step(m, **write(beats=2))
    step(m, **beat(last=0))
    broken(Rule.LAST_MISSING, Channel.WRITE_DATA, 2, m, **beat(last=0))


def test_fullline():
    m = model()
    step(m, **write(beats=4, fullline=1))
    for i in range(4):
        step(m, **beat(last=i == 3))
    assert m.traffic.fullline_requests == 1
    broken(Rule.FULLLINE_LENGTH, Channel.WRITE_REQUEST, 0, model(), **write(beats=3, fullline=1))
    m = model()
    step(m, **write(beats=4, fullline=1))
    step(m, **beat(last=0))
    broken(Rule.FULLLINE_STROBE, Channel.WRITE_DATA, 2, m, **beat(strobe=0x7FFF, last=0))


REQUEST_CHANGES = [
    ("read", read(), read(addr=0x1010)),
    ("read", read(), read(beats=2)),
    ("read", read(), read(id=1)),
    ("write", write(), write(addr=0x1010)),
    ("write", write(), write(beats=2)),
    ("write", write(), write(id=1)),
    ("write", write(beats=4), write(beats=4, fullline=1)),
]


@pytest.mark.parametrize("side, first, second", REQUEST_CHANGES)
def test_request_changed_or_dropped_while_stalled(side, first, second):
    lazy = IDEAL.replace(**{f"{side}_request_stall": 0.99}, stall_length=1000)
    channel = Channel.READ_REQUEST if side == "read" else Channel.WRITE_REQUEST
    m = model(lazy)
    step(m, **first)
    step(m, **first)
    broken(Rule.PAYLOAD_CHANGED, channel, 2, m, **second)
    m = model(lazy)
    step(m, **first)
    broken(Rule.VALID_DROPPED, channel, 1, m)


@pytest.mark.parametrize("changed", [beat(data=1), beat(strobe=1), beat(last=0)])
def test_data_changed_or_dropped_while_stalled(changed):
    lazy = IDEAL.replace(write_data_stall=0.99, stall_length=1000)
    m = model(lazy)
    step(m, **write(beats=1))
    step(m, **beat())
    broken(Rule.PAYLOAD_CHANGED, Channel.WRITE_DATA, 2, m, **changed)
    m = model(lazy)
    step(m, **write(beats=1))
    step(m, **beat())
    broken(Rule.VALID_DROPPED, Channel.WRITE_DATA, 2, m)


def test_payload_may_change_after_it_was_taken():
    m = model()
    step(m, **read(id=0))
    step(m, **read(0x1040, id=1))
    step(m)
    assert m.traffic.read_requests == 2


def test_every_l2_rule_is_broken_above():
    host_only = {
        Rule.RESPONSE_UNASKED,
        Rule.RESPONSE_TAG,
        Rule.TRAFFIC_WHEN_IDLE,
        Rule.BUSY_LOW,
        Rule.BUSY_ROSE,
    }
    source = Path(__file__).read_text()
    assert [r.name for r in Rule if r not in host_only and f"Rule.{r.name}, " not in source] == []
