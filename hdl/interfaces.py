"""Every interface between the core's parts, in one place.

Streams follow Amaranth's stream rules: once valid, valid and payload hold until ready, and valid
never waits for ready. Sources: architecture.md section 1, isa.md section 3, seed 001 section 4.4.
"""

from __future__ import annotations

from amaranth.hdl import Shape, unsigned
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from .config import Config
from .units.point_op import point_op
from .units.squares import buffer_words, square_words

__all__ = [
    "ERROR_BADGEOM",
    "ERROR_BUS",
    "ERROR_ILLEGAL",
    "ERROR_NONE",
    "OPERAND_TILES",
    "InstrKind",
    "ReadPort",
    "bits_for",
    "column_bits",
    "group_place",
    "host_members",
    "host_request",
    "host_response",
    "instr",
    "l2_read_members",
    "l2_write_members",
    "ldst_fields",
    "ldst_start",
    "ldst_uop",
    "mac_flags",
    "mac_op",
    "mma_fields",
    "mma_uop",
    "move_fields",
    "move_uop",
    "operand_reads",
    "point_uop",
    "result_write",
    "row_write",
    "slice_place",
    "slot_uop",
    "tile_row",
    "tile_word",
    "transpose_parts",
    "vector_op",
]

ERROR_NONE, ERROR_ILLEGAL, ERROR_BADGEOM, ERROR_BUS = range(4)
"""Codes of the response stream's `error` field."""


def bits_for(count: int) -> Shape:
    """Shape of an index into `count` things, at least one bit."""
    return unsigned(max(1, (count - 1).bit_length()))


# -- host ------------------------------------------------------------------------------------


def host_request(cfg: Config) -> data.StructLayout:
    """One instruction word with the scalar registers it names."""
    return data.StructLayout({"inst": 32, "rs1": 64, "rs2": 64, "tag": cfg.tag_bits})


def host_response(cfg: Config) -> data.StructLayout:
    """The one answer to a request: rd write-back and an error code (`ERROR_*`)."""
    return data.StructLayout({"tag": cfg.tag_bits, "wb": 1, "rd": 5, "data": 64, "error": 2})


def host_members(cfg: Config) -> dict[str, wiring.Member]:
    """Flat host ports of a top level: `host_req_*` in, `host_resp_*` out."""
    members: dict[str, wiring.Member] = {"host_req_valid": In(1), "host_req_ready": Out(1)}
    for name, field in host_request(cfg):
        members[f"host_req_{name}"] = In(field.shape)
    members |= {"host_resp_valid": Out(1), "host_resp_ready": In(1)}
    for name, field in host_response(cfg):
        members[f"host_resp_{name}"] = Out(field.shape)
    return members


# -- L2, with the signal names of seed 001 section 4.4 -----------------------------------------


def l2_read_members(cfg: Config) -> dict[str, wiring.Member]:
    """Read request and response channels. `pad_dsa_resp_rerr` is optional: tie it to 0."""
    return {
        "pad_dsa_req_rready": In(1),
        "dsa_pad_req_rvalid": Out(1),
        "dsa_pad_req_raddr": Out(cfg.addr_bits),
        "dsa_pad_req_rlen": Out(cfg.len_bits),
        "dsa_pad_req_rid": Out(cfg.id_bits),
        "dsa_pad_resp_rready": Out(1),
        "pad_dsa_resp_rvalid": In(1),
        "pad_dsa_resp_rid": In(cfg.id_bits),
        "pad_dsa_resp_rdata": In(cfg.bus_bits),
        "pad_dsa_resp_rlast": In(1),
        "pad_dsa_resp_rerr": In(1),
    }


def l2_write_members(cfg: Config) -> dict[str, wiring.Member]:
    """Write request, data and response channels. `pad_dsa_resp_werr` is optional: tie it to 0."""
    return {
        "pad_dsa_req_wready": In(1),
        "dsa_pad_req_wvalid": Out(1),
        "dsa_pad_req_waddr": Out(cfg.addr_bits),
        "dsa_pad_req_wlen": Out(cfg.len_bits),
        "dsa_pad_req_wid": Out(cfg.id_bits),
        "dsa_pad_req_fullline": Out(1),
        "dsa_pad_resp_wready": Out(1),
        "pad_dsa_resp_wvalid": In(1),
        "pad_dsa_resp_wid": In(cfg.id_bits),
        "pad_dsa_resp_werr": In(1),
        "pad_dsa_req_wdready": In(1),
        "dsa_pad_req_wdvalid": Out(1),
        "dsa_pad_req_wdata": Out(cfg.bus_bits),
        "dsa_pad_req_wstrb": Out(cfg.bus_bytes),
        "dsa_pad_req_wlast": Out(1),
    }


# -- tile file -------------------------------------------------------------------------------


def tile_word(cfg: Config) -> data.StructLayout:
    """Address of a stored word: a tile and one of its blocks of m_par rows.

    Here as everywhere behind the decoder a `tile` is a number among the tiles of all files: the C
    file's tiles, if it has one, follow those of A and B, so the highest bit says which file.
    """
    return data.StructLayout({"tile": cfg.tile_bits, "block": max(1, cfg.blocks_log2)})


def tile_row(cfg: Config) -> data.StructLayout:
    """Address of one row of a tile."""
    return data.StructLayout({"tile": cfg.tile_bits, "row": cfg.rows_log2})


def operand_reads(cfg: Config) -> data.StructLayout:
    """Whether A and B read words in a cycle, and of which tiles."""
    return data.StructLayout({"a": 1, "a_tile": cfg.tile_bits, "b": 1, "b_tile": cfg.tile_bits})


class ReadPort(wiring.Signature):
    """A read of the tile file, seen from the requester.

    Members
    -------
    valid, addr : the request; it holds until `ready`.
    ready : the request won its bank this cycle.
    data : what was read, exactly one cycle after `valid & ready`.
    """

    def __init__(self, addr: data.StructLayout, data_bits: int):
        super().__init__(
            {"valid": Out(1), "addr": Out(addr), "ready": In(1), "data": In(data_bits)}
        )


def result_write(cfg: Config) -> wiring.Signature:
    """A write of any bytes of a stored word, seen from the writer; always taken."""
    return wiring.Signature(
        {
            "valid": Out(1),
            "addr": Out(tile_word(cfg)),
            "data": Out(cfg.word_bits),
            "mask": Out(cfg.word_bits // 8),
        }
    )


def row_write(cfg: Config) -> data.StructLayout:
    """A load's write into one block of a tile.

    `data` is one row; it goes to every row of the block that `rows` names, in the bytes that
    `mask` names.
    """
    return data.StructLayout(
        {
            "tile": cfg.tile_bits,
            "block": max(1, cfg.blocks_log2),
            "rows": cfg.m_par,
            "mask": cfg.row_bytes,
            "data": cfg.row_bits,
        }
    )


# -- load and store uops ---------------------------------------------------------------------


def ldst_uop(cfg: Config) -> data.StructLayout:
    """Part of one tile row, inside one cache line.

    Row bytes `first`..`last` (inclusive) lie at memory bytes `addr`..`addr + last - first`.

    `tail` (loads): the part holds the row's last active byte, so the bytes after `last` become
    zero. `half`: of byte `last` only the low nibble is active, the other is zero. `more`: the
    slot's next uop continues the burst: its row starts exactly row_bytes after
    this one's row in memory, its first byte lies in this part's last beat or the one after, in
    the same line. `zero` (loads): no memory access; the rows of block row / m_par that `rows`
    names become zero.
    """
    return data.StructLayout(
        {
            "tile": cfg.tile_bits,
            "row": cfg.rows_log2,
            "addr": cfg.addr_bits,
            "first": cfg.row_bytes_log2,
            "last": cfg.row_bytes_log2,
            "tail": 1,
            "half": 1,
            "more": 1,
            "zero": 1,
            "rows": cfg.m_par,
        }
    )


# -- MAC array -------------------------------------------------------------------------------


def mac_op(cfg: Config) -> data.StructLayout:
    """What one mma uop computes; it travels with the operands through the array.

    `ft`, `out`: indices into `Config.format_rows` and `Config.output_formats`. `k`: elements of a
    row that take part, 1 or more. `negate` (alpha): every product changes its sign. `overwrite`
    (beta): C takes no part. `sat`: clamp instead of wrapping or overflowing, already resolved for
    this output (numerics.md section 4). `rnd`: rounding mode. `a_unsigned`, `b_unsigned`: integer
    operands without sign. `rows`, `cols`: the elements of the m_par x n_par block that are written
    and so set flags. `c_byte`: byte of the C row where the block's columns start.

    `zero_rows`, `zero_cols` (with the front end "xuantie"): further rows and columns of the block;
    every element in one of these and in another of any kind becomes zero.

    `point` (likewise): the uop computes one word of a pointwise instruction; see `point_uop`. `a`
    is ms2, `b` ms1, and of each row the first `k` bytes count; the others become zero.

    `vector` (with the unit of that name): the uop computes one word of z from a word of x and one
    of y, all its columns; see `vector_op`. `k` then counts the elements of this word of z, and
    `overwrite` means that the old word is not read.
    """
    fields: dict[str, object] = {
        "ft": bits_for(len(cfg.format_rows)),
        "out": bits_for(len(cfg.output_formats)),
        "k": bits_for(cfg.lanes(4) + 1),
        "negate": 1,
        "overwrite": 1,
        "sat": 1,
        "rnd": 2,
        "a_unsigned": 1,
        "b_unsigned": 1,
        "rows": cfg.m_par,
        "cols": cfg.n_par,
        "c_byte": cfg.row_bytes_log2,
    }
    if cfg.xuantie:
        fields |= {"zero_rows": cfg.m_par, "zero_cols": cfg.n_par, "point": point_uop(cfg)}
    if cfg.has_vector:
        fields["vector"] = vector_op()
    return data.StructLayout(fields)


def point_uop(cfg: Config) -> data.StructLayout:
    """What a uop of a pointwise instruction does.

    `on`: it is one. `kind`, `wide`, `rnd`, `source`: as in `units.point_op`. `row`: the row of
    ms1's register, where one is the second operand. `held`: B is not read for this uop. `last`: of
    its instruction.
    """
    fields = point_op(cfg)
    return data.StructLayout(
        {
            "on": 1,
            **{name: fields[name].shape for name in ("kind", "wide", "rnd", "source")},
            "row": bits_for(cfg.x_rows),
            "held": 1,
            "last": 1,
        }
    )


def vector_op() -> data.StructLayout:
    """What a uop of the vector mode does with the elements.

    `on`: it is one. `kind`: `isa.VectorOp`. `same`: z has the format of x and y, not that of
    `out`. `eighth`: eighth of the rows of x and y at which this word of z starts.
    """
    return data.StructLayout({"on": 1, "kind": 3, "same": 1, "eighth": 3})


def mac_flags() -> data.StructLayout:
    """Sticky flags of one uop, in mxstatus order from bit 2 (isa.md section 2)."""
    return data.StructLayout(
        {"inexact": 1, "sat_hit": 1, "invalid": 1, "overflow": 1, "underflow": 1}
    )


# -- instructions and uops -------------------------------------------------------------------


OPERAND_TILES = 4
"""Most tiles of A, and of B, that a mma reads."""

TRANSPOSE_UOPS = 16
"""Most uops that transpose one tile."""


def transpose_parts(cfg: Config) -> int:
    """Uops that read one word of a tile while the tile is being transposed."""
    return min(cfg.blocks, TRANSPOSE_UOPS // cfg.blocks)


class InstrKind(enum.Enum, shape=2):
    """Which unit walks an instruction."""

    MMA = 0
    LOAD = 1
    STORE = 2
    MOVE = 3


def column_bits(cfg: Config) -> int:
    """Bits of the number of a column of C; two registers may hold the rows of B."""
    return max(cfg.rows_log2, cfg.x_rows.bit_length() if cfg.xuantie else 0)


def mma_fields(cfg: Config) -> data.StructLayout:
    """Walk of a mma macro over pairs of tiles (A_i, B_j), i and j counted from 0.

    Only tiles with rows are walked: i up to `i_last`, j up to `j_last`. Every A tile has
    `m_most` + 1 rows but the last, which has `m_last` + 1; likewise `n_most`, `n_last` for B, so
    for columns of C. Pair (i, j) writes the C group at c + i * i_stride + j * j_stride (tiles).
    `shared`: A and B name some tile both, so neither is released before the end. `width_log2`:
    log2 of the bytes of an output. `op`: what is the same for every uop. `a_transposed`,
    `b_transposed` (with `Config.transposes`): before the walk every tile of A, of B, is read word
    by word, `transpose_parts` times each, and the walk multiplies its transpose.

    With `op.vector.on` instead (and `Config.has_vector`): element-wise on tiles x = `a` and
    y = `b`, `m_last` + 1 rows, into z = `c` and the `part_last` tiles after it, one part of the
    rows each: `part_step` eighths of the rows of x and y. The walk starts every row block with
    part `part_first`. The last part has `k_last` elements.

    `registers` (with the front end "xuantie"): the tiles are registers of that front end, which
    lie `Config.x_tiles` apart and of which the first `Config.x_rows` rows count. The rest of a
    pair's B follows in the next register, and so does that of a pair's C. Elements from row
    `m_live` and from column `n_live` on become zero.
    """
    tile, row = cfg.tile_bits, cfg.rows_log2
    fields: dict[str, object] = {
        "a": tile,
        "b": tile,
        "c": tile,
        "i_last": bits_for(OPERAND_TILES),
        "j_last": bits_for(OPERAND_TILES),
        "i_stride": 5,
        "j_stride": 3,
        "m_most": row,
        "m_last": row,
        "n_most": column_bits(cfg),
        "n_last": column_bits(cfg),
        "shared": 1,
        "width_log2": 2,
        "op": mac_op(cfg),
    }
    if cfg.transposes:
        fields |= {"a_transposed": 1, "b_transposed": 1}
    if cfg.xuantie:
        fields |= {
            "registers": 1,
            "m_live": bits_for(cfg.x_rows + 1),
            "n_live": bits_for(2 * cfg.x_rows + 1),
        }
    if cfg.has_vector:
        fields |= {
            "part_first": 3,
            "part_last": 3,
            "part_step": 4,
            "k_last": mac_op(cfg)["k"].shape,
        }
    return data.StructLayout(fields)


def ldst_fields(cfg: Config) -> data.StructLayout:
    """Walk of a load or store over `tiles` + 1 named tiles.

    Tiles lie in groups of 1 << `slices_log2` neighbours (slices of one result); a group starts
    every `group_stride` tiles from `tile`. Along a row (`down` = 0) every group up to `group_last`
    holds bytes of each of the `rows_last` + 1 rows: `bytes_most` + 1 of them, or `bytes_last` + 1
    in the last group; the next group's lie `pitch` bytes further on. Downwards (`down` = 1) each
    tile is a group of its own with `bytes_most` + 1 bytes a row; tiles up to `tile_last` have
    rows: `rows_most` + 1, the last `rows_last` + 1. `half`: the last byte of a row holds one
    nibble. `contiguous`: the next row's first byte follows the walked row's last tile in memory.
    `fill` (loads): something is left to zero after the active rows. `start`: what follows from all
    that for the walk's first uop (see `hdl.issue.walk_start`).

    `registers` (with the front end "xuantie"): each tile is a register of that front end, whose
    first `Config.x_rows` rows alone count.
    """
    extra = {"registers": 1} if cfg.xuantie else {}
    return data.StructLayout(
        {
            "tile": cfg.tile_bits,
            "tiles": 3,
            "down": 1,
            "slices_log2": 3,
            "group_stride": 3,
            "pitch": bits_for(cfg.group_bytes + 1),
            "group_last": 3,
            "tile_last": 3,
            "rows_most": cfg.rows_log2,
            "rows_last": cfg.rows_log2,
            "bytes_most": bits_for(cfg.group_bytes),
            "bytes_last": bits_for(cfg.group_bytes),
            "base": cfg.addr_bits,
            "stride": cfg.addr_bits,
            "half": 1,
            "contiguous": 1,
            "fill": 1,
            "start": ldst_start(),
            **extra,
        }
    )


def ldst_start() -> data.StructLayout:
    """Where the walk of a load or store begins.

    `group`, `next_group`: what is asked of the first group of tiles, and of the one behind it;
    `slice`: of the first slice. `last_row`: the first row is the last of its tile, or group.
    """
    return data.StructLayout(
        {
            "group": group_place(),
            "next_group": group_place(),
            "slice": slice_place(),
            "last_row": 1,
        }
    )


def group_place() -> data.StructLayout:
    """What is asked of a group where the walk of a load or store is."""
    return data.StructLayout(
        {
            "active": 1,  # it has active bytes (downwards: rows)
            "last": 1,  # no later one has
            "last_named": 1,  # the last of the named tiles is one of its
            "few_bytes": 1,  # it has the last group's number of bytes
            "few_rows": 1,  # it has the last tile's number of rows
        }
    )


def slice_place() -> data.StructLayout:
    """Likewise of a slice of the group."""
    return data.StructLayout(
        {
            "active": 1,  # it has active bytes if its group has
            "last": 1,  # no later one of the group has
            "ends_row": 1,  # downwards always; else nothing of the row comes behind it
            "ends_group": 1,  # it is the last named one of the group
            "last_named": 1,  # it is the last of the named tiles
            "needs_fill": 1,  # it has rows that are not active
            "fill_ends": 1,  # the first block to zero is the last of the tile
            "zeroed": 1,  # after its active rows, or those of the whole row, zeros follow
        }
    )


def move_fields(cfg: Config) -> data.StructLayout:
    """A move `op` (`isa.MoveOp`) from `src` to `dst`, of `tiles` + 1 tiles where it is of several.

    `size`: log2 of an element's bytes. `at`: byte of the source tile at which the row, the element
    or, in its first row, the column starts. `registers`: as in `ldst_fields`.
    """
    extra = {"registers": 1} if cfg.xuantie else {}
    return data.StructLayout(
        {
            "dst": cfg.tile_bits,
            "src": cfg.tile_bits,
            "tiles": cfg.tiles_log2,
            "op": 3,
            "size": 2,
            "at": cfg.rows_log2 + cfg.row_bytes_log2,
            **extra,
        }
    )


def instr(cfg: Config) -> data.StructLayout:
    """A checked instruction, whichever front end it came from.

    `reads`: tiles that uops read at issue (operands, store and move sources). `writes`: tiles
    written; for a mma also read, late, unless `mma.op.overwrite`.
    """
    return data.StructLayout(
        {
            "kind": InstrKind,
            "reads": cfg.all_tiles,
            "writes": cfg.all_tiles,
            "mma": mma_fields(cfg),
            "ldst": ldst_fields(cfg),
            "move": move_fields(cfg),
        }
    )


def mma_uop(cfg: Config) -> data.StructLayout:
    """One block of a mma: rows of A block x rows of B, into one chunk of a C word.

    `new_a`: A's block is not the one held from the previous uop. `new_c`: the chunk is the first
    of its C word, so the word is not held either. `b_row`: B's first row.

    With `Config.transposes`: `a_transposed`, `b_transposed`: the tile's transpose is multiplied,
    or, with `transposes`, made. Such a uop computes nothing: it reads A's word, and that of B in
    which `b_row` lies, for part `part` of the words of the transposes. `a_index`, `b_index`: the
    tile's number among those of A, of B.

    With `Config.has_words`: `more`: the next uop is to be of the same instruction.
    """
    fields: dict[str, object] = {
        "a": tile_word(cfg),
        "new_a": 1,
        "b_tile": cfg.tile_bits,
        "b_row": cfg.rows_log2,
        "c": tile_word(cfg),
        "new_c": 1,
        "op": mac_op(cfg),
    }
    if cfg.transposes:
        fields |= {"transposes": 1, "a_transposed": 1, "b_transposed": 1}
        fields |= {"a_index": bits_for(OPERAND_TILES), "b_index": bits_for(OPERAND_TILES)}
        fields |= {"part": bits_for(transpose_parts(cfg))}
    if cfg.has_words:
        fields |= {"more": 1}
    return data.StructLayout(fields)


def move_uop(cfg: Config) -> data.StructLayout:
    """One word read into the move unit's buffer, one written, or both.

    `op`, `size`: as in `move_fields`; `at`: a byte of the word. `read`, `write`: do. `slot`: where
    a word that is read goes; a transposed one is word `pick` of the transpose of the square in the
    first slots. `shift`: afterwards the pair's second square takes the place of the first. `more`:
    the next uop of the unit is to be of the same instruction.
    """
    return data.StructLayout(
        {
            "dst": tile_word(cfg),
            "src": tile_word(cfg),
            "op": 3,
            "size": 2,
            "at": cfg.m_par_log2 + cfg.row_bytes_log2,
            "read": 1,
            "write": 1,
            "slot": bits_for(buffer_words(cfg)),
            "pick": bits_for(square_words(cfg)),
            "shift": 1,
            "more": 1,
        }
    )


def slot_uop(cfg: Config) -> data.StructLayout:
    """The next uop of a slot, of any kind, and what it does to tiles.

    `uop`: its bits, as the unit takes them (`mma_uop`, `ldst_uop`, `move_uop`). `read0`, `read1`:
    tiles that it reads at issue, if `reads0`, `reads1`; `write`: that it writes, if `writes`.
    `free0`, `free1`, `free_write`: after it these are not needed any more. `whole`: the instruction
    needs all its tiles from its first uop to its last. `new_c`, `held_c` (mma): it adds to a word
    of C that must be read; that is read only if another instruction's uop came between.
    """
    uops = (mma_uop(cfg), ldst_uop(cfg), move_uop(cfg))
    return data.StructLayout(
        {
            "uop": max(uop.size for uop in uops),
            "read0": cfg.tile_bits,
            "read1": cfg.tile_bits,
            "write": cfg.tile_bits,
            "reads0": 1,
            "reads1": 1,
            "writes": 1,
            "free0": 1,
            "free1": 1,
            "free_write": 1,
            "whole": 1,
            "new_c": 1,
            "held_c": 1,
        }
    )
