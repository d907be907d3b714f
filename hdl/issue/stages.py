"""What each stage of the `ame` decoder knows: the layouts of its pipeline registers."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .. import isa
from ..config import Config
from ..interfaces import bits_for, host_response, instr

__all__ = [
    "C_STRIDE",
    "MODES",
    "MODE_4X4",
    "MODE_A_LOG2",
    "MODE_B_LOG2",
    "DecodeStage",
    "carry",
    "register_fields",
    "stage_layouts",
]

C_STRIDE = 4
"""Tiles between C groups in every mode but 4x4."""

MODE_4X4 = len(isa.Tiling)
MODES = MODE_4X4 + 1
"""TILING's modes, then 4x4."""

MODE_A_LOG2 = (*(t.a_tiles.bit_length() - 1 for t in isa.Tiling), 2)
MODE_B_LOG2 = (*(t.b_tiles.bit_length() - 1 for t in isa.Tiling), 2)
"""Tiles of A and of B, log2, by mode."""


def register_fields(cfg: Config) -> data.StructLayout:
    """What the front end `xuantie` asks of a unit, from stage B to stage F.

    `on`: the instruction is one of these; then one of `mma`, `load`, `store`, `move` and `point`.
    `md`, `ms1`, `ms2`: registers. `m`, `n`, `k_bytes`: sizes; `k`: elements of a row. `whole`,
    `registers`: a load or store of whole registers, so many and one more. `ft`, `out`,
    `width_log2`, `a_unsigned`, `b_unsigned`: formats of a mma; `b_pair`, `c_pair`: B, C are two
    registers. `by_row`, `row`: the second operand is that row of ms1; `scalar`: it is the scalar.
    `zero`: the move is mzero. `op`, `wide`, `rounding`: of a pointwise instruction.
    """
    return data.StructLayout(
        {
            "on": 1,
            "mma": 1,
            "load": 1,
            "store": 1,
            "move": 1,
            "point": 1,
            "md": 3,
            "ms1": 3,
            "ms2": 3,
            "m": bits_for(cfg.x_rows + 1),
            "n": bits_for(2 * cfg.x_rows + 1),
            "k_bytes": bits_for(cfg.row_bytes + 1),
            "k": bits_for(cfg.lanes(4) + 1),
            "whole": 1,
            "registers": 3,
            "ft": bits_for(len(cfg.format_rows)),
            "out": bits_for(len(cfg.output_formats)),
            "width_log2": 2,
            "a_unsigned": 1,
            "b_unsigned": 1,
            "b_pair": 1,
            "c_pair": 1,
            "by_row": 1,
            "row": bits_for(cfg.x_rows),
            "scalar": 1,
            "zero": 1,
            "op": 3,
            "wide": 1,
            "rounding": 2,
        }
    )


def stage_layouts(cfg: Config) -> dict[str, data.StructLayout]:
    """Registers of stages B to F (`Decode` says what each adds)."""
    word = {
        "tag": cfg.tag_bits,
        "rd": 5,
        "wb": 1,
        "data": 64,
        "error": 2,  # none yet, or illegal
        "mmacc": 1,
        "load": 1,
        "store": 1,
        "move": 1,
        "vector": 1,
        "fence": 1,
        "release": 1,
        "f7": isa.FUNCT7.width,
        "rd_tile": 5,
        "rs1_tile": 5,
        "rs2_tile": 5,
        "far": 1,  # base address above addr_bits
        "index_far": 1,  # index of a move beyond any tile
        "base": cfg.addr_bits,
        "stride": cfg.addr_bits,
        "tiling": isa.MXTILE["tiling"].width,
        "guard4x4": 1,
        "k": isa.MXTILE["k"].width,
        "m": isa.MXTILE["m"].width,
        "n": isa.MXTILE["n"].width,
    }
    if cfg.xuantie:
        word["x"] = register_fields(cfg)
    csrs = {"mxcfg": isa.MXCFG_BITS, "reserved_tile": 1}
    fmt = {
        "bad": 1,
        "ft": bits_for(len(cfg.format_rows)),
        "out": bits_for(len(cfg.output_formats)),
        "container_log2": 3,  # log2 of container bits / 4
        "width_log2": 2,  # log2 of the output's bytes
        "sat": 1,
        "rnd": 2,
    }
    mode = {"mode": 3, "fallback": 1}
    counts = {
        "tiles": 3,  # named by a load or store, less one
        "down": 1,
        "slices_log2": 3,
        "stride_c": 3,
        "pitch": bits_for(cfg.group_bytes + 1),
        "half": 1,  # K elements end in the middle of a byte
        "i_last": 3,
        "j_last": 3,
        "m_most": cfg.rows_log2,
        "m_last": cfg.rows_log2,
        "n_most": cfg.rows_log2,
        "n_last": cfg.rows_log2,
        "bytes_most": bits_for(cfg.group_bytes),
        "bytes_last": bits_for(cfg.group_bytes),
    }
    if cfg.has_vector:
        counts |= {
            "z_last": 3,  # last word of z that a word of x spreads over, elements beyond K apart
            "z_step": 4,  # eighths of a row of x for one word of z
            "z_k": bits_for(cfg.lanes(4) + 1),  # elements of the last one
            "z_spare": 1,  # they end in the middle of a byte
        }
    return {
        "b": data.StructLayout(word | csrs),
        "c": data.StructLayout(word | fmt),
        "d": data.StructLayout(word | fmt | mode),
        "e": data.StructLayout(word | fmt | mode | counts),
        "f": data.StructLayout(
            {
                "instr": instr(cfg),
                "resp": host_response(cfg),
                "dispatch": 1,
                "fence": 1,
                "release": 1,
                "fallback": 1,
                "scalar": 1,  # the response's data are for the move unit
                "element": 1,  # the response's data come from it
            }
        ),
    }


def carry(m: Module, before: data.View, after: data.View) -> None:
    """Pass on every field that both stages have."""
    names = {name for name, _ in before.shape()}
    for name, _ in after.shape():
        if name in names:
            m.d.comb += after[name].eq(before[name])


class DecodeStage(wiring.Component):
    """What stands between two registers of the decoder; combinational.

    Members
    -------
    before : the register of the stage before.
    after : what this stage's register is to hold.
    """

    BEFORE: str
    AFTER: str
    """Names of the two registers in `stage_layouts`."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        layouts = stage_layouts(cfg)
        super().__init__({"before": In(layouts[self.BEFORE]), "after": Out(layouts[self.AFTER])})
