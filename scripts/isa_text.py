"""What the tables of `hdl.isa` do not say: words about each instruction and field, by name.

`scripts.isa_doc` puts them beside the tables; its test demands a text for every name and none for
others. `{...}` is filled in from the configuration that the document is for.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CSRS", "CSR_FIELDS", "INSTRUCTIONS", "OPERANDS", "TWO_FRONT_ENDS", "Text"]


@dataclass(frozen=True)
class Text:
    """About the instructions of one stem (the mnemonic up to its dot or letter).

    Parameters
    ----------
    title : what they are.
    meaning : what they do.
    traps : what answers an error, beyond what every instruction may trap on.
    cycles : how long they take.
    """

    title: str
    meaning: str
    traps: str
    cycles: str


_LDST_MEANING = """The instruction names the macro; TILING plays no part. `n` tiles (1, 2, 4 or 8)
from {tile} on lie along the rows, or with `down` {rows} rows further down each. Row i of the
macro is at base + i * stride, modulo 2^{addr_bits}; the stride is signed.

- **a**: M rows of K elements of A. **b**: N rows of K elements of B, which lies N x K. Tile t is
  {tile} + t, with K elements of its own: {row_bytes} bytes further along the row, or the next
  {rows} rows.
- **c**: M rows of N outputs. Without `down` the tiles are column slices in order, as many to a
  group of {rows} columns as a result has (below); group g starts at {tile} + stride * g and
  at column {rows} * g. With `down` tile t is {tile} + stride * t, its first slice only. The stride
  of groups is 4 tiles; with GUARD4x4 = 1 and outputs of at most 16 bits groups are packed.
- **r**: whole tiles, {rows} rows of {row_bytes} bytes, whatever mxcfg and mxtile hold: to save
  and restore everything.
"""

_LDST_TRAPS = """badgeom: mxcfg or mxtile hold what is not built, K, M or N zero or more than the
macro has (not **r**); more columns of C than the named tiles hold; a tile past {last_tile}. bus:
a base address of more than {addr_bits} bits."""

INSTRUCTIONS: dict[str, Text] = {
    "mmacc.t": Text(
        "matrix multiply-accumulate",
        """C = round(C + A x B^T), with one rounding to the output format of mxcfg
([numerics.md](numerics.md)). TILING says how many tiles of A and of B there are, and which group of
tiles of C each pair goes to (below). Rows and columns outside M x N keep their value; elements
beyond K take no part.

`imm` is the sum of: bits 1:0, bTR of seed 000 xor 01, so that 0 is A x B^T, with B held N x K (bit
1 set: A is transposed first, bit 0 set: B is); bit 2, beta: C is overwritten, not accumulated;
bit 3, alpha: the product is subtracted.""",
        """badgeom: mxcfg or mxtile hold what is not built; K, M or N zero or more than the macro
has; a tile past {last_tile}; without a C file, C on A or B; 64-bit outputs outside 1x1; `imm` bits
1:0 other than 0 unless elements fill 8 bits and K = M = N = {rows}. Only tiles with rows and slices
with columns count.""",
        """one uop a cycle, as many as the table of format pairs says, without a bubble between
instructions. A C word is read again {loop} cycles after its last uop at the earliest (not with
beta). A transpose takes {transpose_cycles} cycles a tile before that, A's and B's side by side.
The last result is written {mma_latency} cycles after the last uop's operands are read.""",
    ),
    "mmacc.mx": Text(
        "multiply-accumulate with block scales", "As mmacc.t, scaled through mxscale.", "", ""
    ),
    "mld": Text(
        "load tiles",
        _LDST_MEANING.replace("{tile}", "td")
        + """
The rest of every named tile becomes zero.""",
        _LDST_TRAPS,
        """one row of {row_bytes} bytes a cycle, if memory delivers it: neighbouring rows and tiles
of one {line_bytes}-byte line are one request, {l2_ids} requests are under way. A part that crosses
a line, and a block of {m_par} rows to be zeroed, take a cycle each.""",
    ),
    "mst": Text(
        "store tiles",
        _LDST_MEANING.replace("{tile}", "ts")
        + """
Only the active part is written. Where rows overlap in memory, the later one stays.""",
        _LDST_TRAPS + " Only tiles with an active element count.",
        """one row a cycle; whole {line_bytes}-byte lines are one request with `fullline`.""",
    ),
    "mmov": Text(
        "copy tiles",
        """`n` whole tiles (1 to 32) from ts on to td on, both in the file that `cfile` says.""",
        """badgeom: a tile past {last_tile}; groups that overlap in part (equal ones are fine).""",
        """{blocks} a tile.""",
    ),
    "mzero": Text(
        "zero tiles",
        "`n` whole tiles (1 to 32) from td on become zero.",
        "badgeom: a tile past {last_tile}.",
        "{blocks} a tile.",
    ),
    "mtrans": Text(
        "transpose",
        """A group of {rows} x {rows} elements of 1, 2, 4 or 8 bytes (b, h, w, d): its columns are
cut over as many neighbouring tiles as an element has bytes, as C is. td may be ts.""",
        """badgeom: a tile past {last_tile}; groups that overlap in part.""",
        """{trans_cycles} a tile: every word is read once and written once.""",
    ),
    "mbcrow": Text(
        "broadcast a row",
        "Row `index` of ts to every row of td; the size does not matter. td may be ts.",
        "badgeom: index of {rows} or more.",
        "{blocks} + 1.",
    ),
    "mbccol": Text(
        "broadcast a column",
        """In every row of td, every element becomes element `index` of that row of ts. td may be
ts.""",
        "badgeom: index beyond the row.",
        "{blocks}.",
    ),
    "mbcast": Text(
        "broadcast a scalar",
        "Every element of td becomes the low bits of register `value`.",
        "",
        "{blocks}; the next one waits until the value has been written.",
    ),
    "mget": Text(
        "element to a scalar register",
        """Element `index` of ts, counted along the rows (row * elements of a row + column),
zero-extended into rd. The answer waits until older instructions have written it. xmcsr stays.""",
        "badgeom: index beyond the tile.",
        "1, and {get_latency} until the answer; younger instructions wait behind it.",
    ),
    "mmovf": Text(
        "copy tiles from the other file",
        "As mmov, but ts is in the other file than td. Only with a C file.",
        "badgeom: a tile past {last_tile}.",
        "{blocks} a tile.",
    ),
    "mvmadd": Text("round(x * y + z)", "", "", ""),
    "mvmul": Text("round(x * y)", "", "", ""),
    "mvaddx": Text("round(x + z)", "", "", ""),
    "mvaddy": Text("round(y + z)", "", "", ""),
    "mvmax": Text("max(x, y)", "", "", ""),
    "mvmin": Text("min(x, y)", "", "", ""),
    "mpool": Text("pooling", "", "", ""),
    "mfence": Text(
        "wait for everything",
        """Answers when all older work is done, memory and its responses included; nothing younger
starts before. Memory accesses of different instructions are ordered by nothing else.""",
        "bus: a bus error since the last mfence; it is then forgotten (mxstatus keeps its bit).",
        "2 after the last older work.",
    ),
    "mrelease": Text(
        "the tiles are free",
        "xmcsr's MS becomes initial: an operating system need not save the tiles.",
        "",
        "none.",
    ),
    "msymstat": Text("symbol statistics", "", "", ""),
    "csr": Text(
        "CSR access",
        """The standard instructions, forwarded by the host with the value of rs1; the old value
returns in rd. csrrs and csrrc with x0 or 0 do not write. Accesses to mxstatus wait until all older
work is done, memory included, so that flags are complete; xmcsr waits for older decoding; the
others never wait: every instruction takes mxcfg and mxtile along when it is decoded.""",
        "illegal: an unknown CSR; a write to mxinfo.",
        "none, unless it waits.",
    ),
}

OPERANDS: dict[str, str] = {
    "tc": "first tile of C",
    "ta": "first tile of A",
    "tb": "first tile of B",
    "imm": "options",
    "tile": "first tile (td of a load, ts of a store)",
    "base": "scalar register with the address",
    "stride": "scalar register with the distance of rows, in bytes",
    "n": "number of tiles, a power of two; the field holds its log2",
    "down": "the next tile lies further down, not along the row",
    "stream": "hint: the lines will not be used again soon",
    "cfile": "tiles of the C file (illegal where there is none)",
    "td": "destination tile",
    "ts": "source tile",
    "index": "scalar register with the index",
    "value": "scalar register with the value",
    "rd": "scalar register for the answer",
    "tz": "z, first tile",
    "tx": "x, tile of the A and B file",
    "ty": "y, tile of the A and B file",
    "wide": "z in the output format of mxcfg, not in Ft's",
    "csr": "number of the CSR",
    "rs1": "scalar register with the operand",
    "uimm": "the operand",
}

TWO_FRONT_ENDS = """## Two front ends

This is one of two instruction sets. The other, that of the XuanTie matrix extension with its eight
registers, is in [xuantie.md](xuantie.md), which also says what the two share in a core that has
both. Their words differ in the opcode, so that a program may mix them freely: one decoder takes
them in order, and everything behind it is the same.

"""

CSRS: dict[str, str] = {
    "mxcfg": "Formats and rounding.",
    "mxtile": "Sizes and tiling.",
    "mxstatus": """Sticky flags, read and written as fflags is; reads and writes wait for all older
work.""",
    "mxscale": "Block scales; exists only with the unit `mx`.",
    "mxinfo": "What is built; read-only.",
    "xmcsr": "State of the tiles for an operating system; its number does not move with the base.",
}

CSR_FIELDS: dict[tuple[str, str], str] = {
    ("mxcfg", "ft"): "operand format, a code of [numerics.md](numerics.md); 0 is INT8",
    ("mxcfg", "bovf"): "1: the narrow output, 0: the full one; counts where ACC is 0",
    ("mxcfg", "rnd"): "0 to nearest even, 1 up, 2 down, 3 to zero; above: traps at use",
    ("mxcfg", "sat"): "saturate (numerics.md says where that counts)",
    ("mxcfg", "acc"): "output: 0 by bOVF, 1 wide, 2 BF16 to TF32, 3 UE8M0 to BF16; else traps",
    ("mxcfg", "reserved"): "must be 0 at use",
    ("mxtile", "k"): "K, elements of an operand row",
    ("mxtile", "m"): "M, rows: of every tile up to {rows}, above that of the whole macro",
    ("mxtile", "tiling"): "0 1x1, 1 2x2, 2 1x4, 3 4x1",
    ("mxtile", "guard4x4"): "ask for 4x4; TILING then does not count",
    ("mxtile", "reserved"): "must be 0 at use",
    ("mxtile", "n"): "N, columns of C and rows of B, as M; 0 means M",
    ("mxstatus", "guard_fallback"): "4x4 was asked for and 2x2 was run",
    ("mxstatus", "badgeom"): "an instruction answered badgeom",
    ("mxstatus", "inexact"): "bits were dropped",
    ("mxstatus", "sat_hit"): "a result was clamped",
    ("mxstatus", "invalid"): "0 x Inf, Inf - Inf, or a signalling NaN",
    ("mxstatus", "overflow"): "a float result beyond the largest finite value",
    ("mxstatus", "underflow"): "a tiny float result that is inexact",
    ("mxstatus", "bus_error"): "memory answered with an error",
    ("mxinfo", "formats"): "formats built, one bit each, in order of their codes",
    ("mxinfo", "tiles_log2"): "log2 of the tiles of a file",
    ("mxinfo", "rows_log2"): "log2 of the rows of a tile",
    ("mxinfo", "banks_log2"): "log2 of the banks of a file",
    ("mxinfo", "vector"): "the vector mode is built",
    ("mxinfo", "mx"): "block scales are built",
    ("mxinfo", "pool"): "pooling is built",
    ("mxinfo", "symstat"): "symbol statistics are built",
    ("mxinfo", "split"): "C has a file of its own",
    ("mxinfo", "version"): "version of this register map",
    ("xmcsr", "ms"): "0 off, 1 initial, 2 clean, 3 dirty; any write of a tile sets 3",
}
