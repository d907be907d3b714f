"""ECP5's multiplier block in place of the plain one: the same products in the same cycles."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from yosys_tool import run_yosys

from boards.ecp5 import Ecp5
from boards.l2 import L2Memory
from hdl.config import Config
from hdl.emit import rtlil_text
from hdl.mac.multiply import MultiplierBlock

SEED = int(os.environ.get("TEST_SEED", "20250919"))
MODEL = Path(__file__).with_name("ecp5_multiplier.v")
COUNT = 2000

BENCH = """
module bench;
  reg clk = 0, rst = 0;
  reg signed [{a_bits}-1:0] a = 0;
  reg signed [{b_bits}-1:0] b = 0;
  wire signed [{a_bits}+{b_bits}-1:0] plain, block;
  reg signed [{a_bits}+{b_bits}-1:0] expected [0:{latency}-1];
  integer n, wrong = 0, seed = {seed};
  plain plain_block(.clk(clk), .rst(rst), .a(a), .b(b), .p(plain));
  block ecp5_block(.clk(clk), .rst(rst), .a(a), .b(b), .p(block));
  initial begin
    for (n = 0; n < {count}; n = n + 1) begin
      a = $random(seed);
      b = $random(seed);
      if (n % 3 == 0) a = 1 << ({a_bits} - 1);
      if (n % 5 == 0) b = 1 << ({b_bits} - 1);
      #1;
      if (n >= {latency} && (plain !== expected[n % {latency}] || block !== plain))
        wrong = wrong + 1;
      expected[n % {latency}] = a * b;
      #1 clk = 1;
      #1 clk = 0;
    end
    $display("%0d of %0d wrong", wrong, n);
  end
endmodule
"""


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs iverilog")
@pytest.mark.parametrize("a_bits, b_bits", [(9, 9), (18, 18), (3, 17)])
def test_block_gives_the_same_products_in_the_same_cycles(a_bits, b_bits, tmp_path):
    for name, platform in (("plain", None), ("block", Ecp5())):
        text = rtlil_text(MultiplierBlock(a_bits, b_bits), name, platform=platform)
        (tmp_path / f"{name}.il").write_text(text)
        run_yosys(f"read_rtlil {name}.il\nproc\nwrite_verilog -noattr {name}.v\n", tmp_path)
    netlist = (tmp_path / "block.v").read_text()
    assert netlist.count("MULT18X18D") == 1 and "reg " not in netlist
    bench = BENCH.format(
        a_bits=a_bits, b_bits=b_bits, latency=MultiplierBlock.LATENCY, seed=SEED, count=COUNT
    )
    (tmp_path / "bench.v").write_text(bench)
    sources = ("bench.v", "plain.v", "block.v", str(MODEL))
    for command in (
        ["iverilog", "-g2012", "-s", "bench", "-o", "bench.vvp", *sources],
        ["vvp", "bench.vvp"],
    ):
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
    assert f"0 of {COUNT} wrong" in done.stdout, f"seed {SEED}: {done.stdout}"


def test_registers_of_memory_lanes_are_not_joined(tmp_path):
    """Every byte of L2 memory keeps address, data and enable of its own before its blocks, and the
    PC's address is kept for all of them."""
    cfg = Config(bus_bits=64, addr_bits=16, l2_ids=4, m_par=1, n_par=1)
    size = 1 << 15
    lane = 2 * (size // cfg.bus_bytes - 1).bit_length() + 8 + 1
    pc = (size - 1).bit_length()
    (tmp_path / "dut.il").write_text(
        rtlil_text(L2Memory(cfg, size), "dut", share=False, platform=Ecp5())
    )
    run_yosys(
        "read_rtlil dut.il\nsynth_ecp5 -top dut\n"
        f"select -assert-count {lane * cfg.bus_bytes + pc} t:TRELLIS_FF a:keep=1 %i\n"
        "select -assert-any t:DP16KD\n",
        tmp_path,
    )
