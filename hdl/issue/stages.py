"""What each stage of the decoder knows: the layouts of its pipeline registers."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .. import isa
from ..config import Config
from ..interfaces import OPERAND_TILES, bits_for, host_response, instr
from .csr import csr_access

__all__ = [
    "C_STRIDE",
    "GROUPS",
    "MODES",
    "MODE_4X4",
    "MODE_A_LOG2",
    "MODE_B_LOG2",
    "WIDE",
    "DecodeStage",
    "answer_layout",
    "carry",
    "register_fields",
    "register_word_fields",
    "stage_layouts",
]

C_STRIDE = 4
"""Tiles between C groups in every mode but 4x4."""

GROUPS = OPERAND_TILES * OPERAND_TILES
"""Most groups of tiles that one operand has: C of a mma."""

MODE_4X4 = len(isa.Tiling)
MODES = MODE_4X4 + 1
"""TILING's modes, then 4x4."""

MODE_A_LOG2 = (*(t.a_tiles.bit_length() - 1 for t in isa.Tiling), 2)
MODE_B_LOG2 = (*(t.b_tiles.bit_length() - 1 for t in isa.Tiling), 2)
"""Tiles of A and of B, log2, by mode."""

WIDE = ("instr", "resp", "from_unit")
"""Fields of stage K that are wide, or decide on many bits (see `ThreePlaces`)."""


def register_word_fields(cfg: Config) -> data.StructLayout:
    """What a word of the front end `xuantie` asks for, whatever the sizes, in stages B and C.

    `on`: the instruction goes to a unit, so it is one of `mma`, `load`, `store`, `move` and
    `point`. `config`: it is an mcfg, of the size `index`. `md`, `ms1`, `ms2`: registers. `whole`,
    `registers`: a load or store of whole registers, so many and one more. `size_log2`: of an
    element, log2 of bytes; `nibbles`: elements are half as long. `ft`, `out`, `width_log2`,
    `a_unsigned`, `b_unsigned`: formats of a mma; `b_pair`, `c_pair`: B, C are two registers.
    `by_row`, `row`: the second operand is that row of ms1; `scalar`: it is the scalar. `zero`: the
    move is mzero. `op`, `wide`: of a pointwise instruction.
    """
    return data.StructLayout(
        {
            "on": 1,
            "config": 1,
            "index": 3,
            "mma": 1,
            "load": 1,
            "store": 1,
            "move": 1,
            "point": 1,
            "md": 3,
            "ms1": 3,
            "ms2": 3,
            "whole": 1,
            "registers": 3,
            "size_log2": 2,
            "nibbles": 1,
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
        }
    )


def register_fields(cfg: Config) -> data.StructLayout:
    """What the front end `xuantie` asks of a unit, from stage D on.

    `m`, `n`, `k_bytes`: sizes; `k`: elements of a row. `rounding`: of a pointwise instruction. The
    others are as in `register_word_fields`.
    """
    word = register_word_fields(cfg)
    dropped = ("config", "index", "size_log2", "nibbles")
    return data.StructLayout(
        {name: field.shape for name, field in word if name not in dropped}
        | {
            "m": bits_for(cfg.x_rows + 1),
            "n": bits_for(2 * cfg.x_rows + 1),
            "k_bytes": bits_for(cfg.row_bytes + 1),
            "k": bits_for(cfg.lanes(4) + 1),
            "rounding": 2,
        }
    )


def answer_layout(cfg: Config) -> data.StructLayout:
    """Stage K: what an instruction answers with, and what goes to the slots.

    `dispatch`: no error, and there is work for a unit; `dirty`: it writes tiles. `scalar`: the
    response's data are for that unit. `element`: the response's data come from it; `from_unit`
    says the same, but as one of the wide fields (see `ThreePlaces`): it decides on 64 bits.
    """
    return data.StructLayout(
        {
            "instr": instr(cfg),
            "resp": host_response(cfg),
            "from_unit": 1,
            "dispatch": 1,
            "dirty": 1,
            "fence": 1,
            "release": 1,
            "fallback": 1,
            "scalar": 1,
            "element": 1,
        }
    )


def stage_layouts(cfg: Config) -> dict[str, data.StructLayout]:
    """Registers of stages B to K (`Decode` says what each adds)."""
    tile = isa.MXTILE
    word = {
        "tag": cfg.tag_bits,
        "wb": 1,
        "data": 64,  # rs1, or what a CSR holds
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
        "stride": cfg.addr_bits,
    }
    index = {"index_far": 1}  # index of a move beyond any tile
    illegal = {"illegal": 1}
    csrs = {"mxcfg": isa.MXCFG_BITS, "reserved_tile": 1}
    modes = {"tiling": tile["tiling"].width}
    guard = {"guard4x4": 1}
    sizes = {name: tile[name].width for name in "mn"}
    k = {"k": tile["k"].width}
    bad = {"bad": 1}  # of its kind, as far as it is known
    fmt = {
        "ft": bits_for(len(cfg.format_rows)),
        "out": bits_for(len(cfg.output_formats)),
        "width_log2": 2,  # log2 of the output's bytes
        "sat": 1,
        "rnd": 2,
    }
    container = {"container_log2": 3}  # log2 of container bits / 4
    mode = {"mode": 3, "fallback": 1}
    lasts = {  # sizes less one
        "k_last": tile["k"].width,
        "row_end": tile["m"].width,  # of what the first tiles of the kind hold
        "column_end": tile["n"].width,
        "square": 1,
    }
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
    named = {"named_groups": 3}  # by a load or store, less one
    checks = {"bad_rows": 1, "bad_columns": 1, "bad_bytes": 1, "bad_mma": 1}
    walk_bits = 8 + cfg.row_bytes_log2
    groups = {
        "groups": GROUPS,  # of tiles that the first operand has
        "ends": GROUPS,  # those of them whose last slice is `slice_last`
        "group_last": GROUPS.bit_length() - 1,
        "slice_most": 3,
        "slice_last": 3,
        "i_stride": 5,
    }
    walk = {
        "walked": walk_bits
    }  # bytes from a row's start to the start, then end, of its last tile
    full = {"full_rows": 1, "full_groups": 1, "full_slices": 1}
    fill = {"fill": 1}
    moves = {
        "move_tiles": cfg.tiles_log2,
        "at": cfg.rows_log2 + cfg.row_bytes_log2,
    }
    shifts = {  # tiles counted from the one that the field of the word names
        "rd_tiles": cfg.tiles,
        "rs1_tiles": cfg.tiles,
        "rs2_tiles": OPERAND_TILES,
        "rd_last": 6,
        "rs1_last": isa.MAX_LOG2_TILES,
        "rs2_last": bits_for(OPERAND_TILES),
        "uses_rd": 1,
        "uses_rs1": 1,
        "uses_rs2": 1,
    }
    apart = {"apart": 1}  # rd's tiles must be others than those of rs1 and rs2
    masks = dict.fromkeys(("rd_mask", "rs1_mask", "rs2_mask"), cfg.tiles)
    contiguous = {"contiguous": 1}
    checked = {"reads": cfg.tiles, "writes": cfg.tiles, "shared": 1, "overlap": 1}
    to_y = {"to_y": 6} if cfg.has_vector else {}  # tiles from z to y
    part = {"part_first": 3} if cfg.has_vector else {}
    x_word = {"x_word": register_word_fields(cfg)} if cfg.xuantie else {}
    x_csrs = (
        {
            "x_size": isa.XUANTIE_CSRS[isa.XCsr.XMSIZE].bits,
            "x_rounding": isa.XUANTIE_CSRS[isa.XCsr.XMXRM].bits,
        }
        if cfg.xuantie
        else {}
    )
    x = {"x": register_fields(cfg)} if cfg.xuantie else {}

    b = word | index | {"known": 1, "csr": csr_access(cfg)} | x_word
    c = word | index | illegal | csrs | modes | guard | sizes | k | x_word | x_csrs
    d = word | index | illegal | modes | guard | sizes | k | bad | fmt | container | x
    e = word | index | illegal | guard | k | bad | fmt | container | mode | lasts | x
    f = word | index | illegal | k | bad | fmt | mode | counts | named | checks | x
    after_f = word | illegal | k | bad | fmt | {"fallback": 1} | counts | x
    g = after_f | index | groups | walk | full
    after_g = after_f | {"i_stride": 5} | fill | moves
    h = after_g | walk | shifts | apart | to_y
    i = after_g | masks | contiguous | apart | part
    j = after_g | contiguous | checked | part
    layouts = dict(zip("bcdefghij", (b, c, d, e, f, g, h, i, j), strict=True))
    return {name: data.StructLayout(fields) for name, fields in layouts.items()} | {
        "k": answer_layout(cfg)
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
