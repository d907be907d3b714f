"""One random program replayed on the emitted Verilog: the same answers and writes, cycle by cycle.

The program runs in Amaranth's simulator first; what went into the core's ports is then fed to the
Verilog, and what comes out is compared in every cycle, payloads where their valid is high.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from lockstep import check

from hdl.config import Config, preset
from hdl.top import module_name, verilog_file
from sim.engines import pysim
from sim.engines.ports import Port, core_ports
from sim.personality import STALLING
from sim.random_program import random_program

SEED = int(os.environ.get("TEST_SEED", "31"))

# payload prefix: the valid that gives it a meaning
VALIDS = {
    "host_resp_": "host_resp_valid",
    "dsa_pad_req_r": "dsa_pad_req_rvalid",
    "dsa_pad_req_wd": "dsa_pad_req_wdvalid",
    "dsa_pad_req_wstrb": "dsa_pad_req_wdvalid",
    "dsa_pad_req_wlast": "dsa_pad_req_wdvalid",
    "dsa_pad_req_w": "dsa_pad_req_wvalid",
    "dsa_pad_req_fullline": "dsa_pad_req_wvalid",
}

BENCH = """
`timescale 1ns/1ps
module bench;
  reg clk = 0, rst = 1;
  reg [{n_in}-1:0] inputs, stimuli [0:{last}];
  reg [{n_out}-1:0] expected [0:{last}], cared [0:{last}];
  wire [{n_out}-1:0] outputs;
  integer cycle, wrong = 0;
  {module} dut(.clk(clk), .rst(rst){connections});
  initial begin
    $readmemh("stimuli.hex", stimuli);
    $readmemh("expected.hex", expected);
    $readmemh("cared.hex", cared);
    inputs = stimuli[0];
    repeat (3) begin #5 clk = 1; #5 clk = 0; end
    rst = 0;
    for (cycle = 0; cycle <= {last}; cycle = cycle + 1) begin
      inputs = stimuli[cycle];
      #4;
      if ((outputs & cared[cycle]) !== (expected[cycle] & cared[cycle])) begin
        wrong = wrong + 1;
        if (wrong <= 3)
          $display("cycle %0d: %h, not %h", cycle, outputs & cared[cycle],
                   expected[cycle] & cared[cycle]);
      end
      #1 clk = 1; #5 clk = 0;
    end
    $display("%0d cycles, %0d wrong", cycle, wrong);
    $finish;
  end
endmodule
"""


def record(cfg: Config, monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict, dict]]:
    """(inputs, outputs) of every cycle of a random program, itself checked against the model."""
    cycles: list[tuple[dict, dict]] = []

    class Recorder(pysim.Session):
        def step(self, outs: dict[str, int]) -> bool:
            cycles.append((dict(self.inputs), dict(outs)))
            return super().step(outs)

    monkeypatch.setattr(pysim, "Session", Recorder)
    program = random_program(cfg, random.Random(SEED), 24)
    check(pysim.PySimulator(cfg), program, STALLING, SEED, runs=1)
    return cycles


def valid_of(name: str) -> str | None:
    """The valid of a payload; None for what always has a meaning."""
    if name == "busy" or name.endswith(("valid", "ready")):
        return None
    return VALIDS[max((prefix for prefix in VALIDS if name.startswith(prefix)), key=len)]


def pack(ports: list[Port], values: dict[str, int]) -> str:
    """Hexadecimal digits of all ports side by side, the first in the high bits."""
    word = 0
    for port in ports:
        word = word << port.bits | values[port.name]
    return f"{word:x}\n"


def wiring(ports: list[Port], vector: str) -> str:
    """Connections of ports to slices of a vector, as `pack` lays them out."""
    text, high = "", sum(port.bits for port in ports)
    for port in ports:
        text += f",\n    .{port.name}({vector}[{high - 1}:{high - port.bits}])"
        high -= port.bits
    return text


@pytest.mark.parametrize("name", ["icepi_zero", pytest.param("tiny", marks=pytest.mark.slow)])
def test_random_program_on_the_emitted_verilog(name: str, tmp_path: Path, monkeypatch) -> None:
    if shutil.which("iverilog") is None:
        pytest.skip("iverilog is not installed")
    cfg = preset(name)
    cycles = record(cfg, monkeypatch)
    inputs = [port for port in core_ports(cfg) if port.is_input]
    outputs = [port for port in core_ports(cfg) if not port.is_input]
    valids = {port.name: valid_of(port.name) for port in outputs}
    cared = [
        {
            port.name: (1 << port.bits) - 1
            if valids[port.name] is None or outs[valids[port.name]]
            else 0
            for port in outputs
        }
        for _, outs in cycles
    ]
    writes = sum(outs["dsa_pad_req_wdvalid"] for _, outs in cycles)
    assert len(cycles) > 300 and writes > 50, "the program hardly does anything"
    (tmp_path / "stimuli.hex").write_text("".join(pack(inputs, ins) for ins, _ in cycles))
    (tmp_path / "expected.hex").write_text("".join(pack(outputs, outs) for _, outs in cycles))
    (tmp_path / "cared.hex").write_text("".join(pack(outputs, mask) for mask in cared))
    (tmp_path / "core.v").write_text(verilog_file(cfg))
    bench = BENCH.format(
        n_in=sum(port.bits for port in inputs),
        n_out=sum(port.bits for port in outputs),
        last=len(cycles) - 1,
        module=module_name(cfg),
        connections=wiring(inputs, "inputs") + wiring(outputs, "outputs"),
    )
    (tmp_path / "bench.v").write_text(bench)
    for command in (
        ["iverilog", "-g2005", "-o", "bench.vvp", "bench.v", "core.v"],
        ["vvp", "bench.vvp"],
    ):
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{len(cycles)} cycles, 0 wrong", (
        f"seed {SEED}:\n{done.stdout}"
    )
