"""What the tables of the front end `xuantie` do not say: words about its instructions and CSRs.

`scripts.xuantie_doc` puts them beside the tables; a test demands a text for every name and none for
others. `{...}` is filled in from the configuration that the document is for.
"""

from __future__ import annotations

from hdl.isa import FixedRounding, PointwiseOp, XCsr

from .isa_text import Text

__all__ = [
    "CSRS",
    "GROUPS",
    "INSTRUCTIONS",
    "OPERANDS",
    "POINTWISE",
    "READINGS",
    "ROUNDINGS",
    "SIZES",
]

GROUPS: dict[str, Text] = {
    "Sizes": Text(
        "Sizes",
        "",
        "never, but with MS off. What does not fit is found where it is used.",
        """none. Every instruction takes the sizes along when it is decoded, so that they may change
at once.""",
    ),
    "Multiply-accumulate": Text(
        "Multiply-accumulate",
        """A multiply-accumulate, mma for short, is C = C + A x B^T: C[i][j] becomes C[i][j] + the
sum over k of A[i][k] * B[j][k]. A is ms1, M rows of K elements. **B is ms2 and lies N x K**: its
rows are the columns of the product. C is md, M rows of N elements. K is sizeK divided by the bytes
of an element.

**Everything of md outside M x N becomes zero**, over the whole register, or both of a pair.

Integers wrap modulo the width of C and set no flags. Floats are summed and rounded once, to nearest
even ([numerics.md](numerics.md)); flags gather in mxstatus.

- A pair of B (C of 16 bits): rows 0 to R - 1 of B are those of ms2, R to 2R - 1 those of ms2 + 1.
- A pair of C (64 bits): columns 0 to R/2 - 1 lie in md, R/2 to R - 1 in md + 1.
- A pair begins with an even register, whatever N is.""",
        """M zero or above R; N zero or above R, with a pair of B 2R; sizeK zero, above {row_bytes}
or no multiple of the element; ms2 of a pair of B or md of a pair of C odd; md not among
`Config.mma_destinations` (a pair counts by its lower register; {destinations} here); md, or its
pair, one of the registers of A or B; formats that are not built.""",
        """one uop a cycle. The whole of C is walked for its zeros, whatever M and N are: every
block of {m_par} rows ({x_blocks} a register) times every {n_par} columns (64-bit C:
{wide_columns}). {banks}

A word of C is read again W = {loop} cycles after its last uop at the earliest. `turns` says in how
many destinations in turn instructions must accumulate so that the array never waits. With fewer it
does: with one, there is an instruction every {alone} cycles instead of every {uops} (C of 32 bits).
The last result is written {depth} cycles after the last uop's operands are read.""",
    ),
    "Loads and stores": Text(
        "Loads and stores",
        """Any address and any stride; no alignment. The letter of the size (b, h, w, d) says only
what sizeK must be a multiple of.""",
        "{ldst_traps}",
        """a row of {row_bytes} bytes takes {beats}, if memory keeps up: the port moves {bus_bytes}
bytes a cycle, aligned, and {l2_ids} requests are under way in each direction. A row that crosses a
line of {line_bytes} bytes becomes two requests; with a stride of {row_bytes}, neighbouring rows of
one line are one. A load of fewer than R rows takes one
cycle more for every block of {m_par} rows to be zeroed.""",
    ),
    "Moves": Text(
        "Moves",
        """Whole registers, whatever the sizes. md may be ms1.""",
        "a row of R or more.",
        """{x_blocks}, of a row {x_blocks} + 1; results of mma and pointwise instructions are
written first. Of instructions with a scalar, pointwise ones included, there is at most one in
{scalar} cycles.""",
    ),
    "Pointwise": Text(
        "Pointwise",
        """Element by element, md = **ms2 op second**: M rows of sizeK bytes, of 32-bit (.s) or
64-bit (.d) elements. The second operand is

- `.mm`: the element of ms1 in the same place,
- `.mv.x`: that of one row of ms1, for all rows; its number is in the scalar register rs1',
- `.mv.i`: likewise, the number is in the word,
- `.mx`: a scalar for all elements, .s takes its low 32 bits.

The rest of md becomes zero. md may be ms2 or ms1, or all three one register: the old values are
read. Numbers are signed and wrap, but for mn4clipu.""",
        """M zero or above R; sizeK zero, above {row_bytes} or no multiple of the element; a row of
R or more (one that is below R but not below M is read as it is).""",
        """one stored word ({m_par} rows) a cycle, {x_blocks} an instruction, in turn with the uops
of mma and with their latency: {latency} from issue to the last result. One that uses the
destination of another starts {dependent} cycles after it; independent ones follow without a bubble.
Of those with a scalar, moves included, there is at most one in {scalar} cycles.""",
    ),
    "System": Text(
        "System",
        """mfence, the CSR instructions, mxstatus and xmcsr are those of [isa.md](isa.md), in every
core. Loads, stores and everything else behave as if run in order as far as registers go; memory
accesses of different instructions that overlap are ordered only by mfence.""",
        "never, but with MS off.",
        "none.",
    ),
}

INSTRUCTIONS: dict[str, Text] = {
    "mcfg": Text(
        "set xmsize",
        """mcfgm, mcfgn and mcfgk set M, N or sizeK from the low bits of rs1, as many as the field
has, and mcfg all of xmsize from its low 32, laid out as above. Higher bits are ignored. The forms
with i take uimm instead; mcfgi sets M to it, N and sizeK to 0. rd receives the new xmsize,
zero-extended; with x0 nothing is written.""",
        "",
        "",
    ),
    "fmmacc": Text("floats, C of the operands' format", "", "", ""),
    "fwmmacc": Text("floats, C twice as wide", "", "", ""),
    "mmaqa": Text(
        "integers, C four times as wide",
        "u: both without sign; us: A without, B with; su: A with, B without; else both with.",
        "",
        "",
    ),
    "pmmaqa": Text(
        "4-bit integers, two a byte",
        "The low nibble is the lower k. sizeK counts bytes, any number: K is twice that.",
        "",
        "",
    ),
    "mld": Text(
        "load",
        """Row i of md is the sizeK bytes from rs1 + i * rs2 on, modulo 2^{addr_bits}, for M rows;
the stride rs2 is signed. The rest of md becomes zero. N plays no part.""",
        "",
        "",
    ),
    "msld": Text(
        "load, streaming",
        "As mld. The hint, that the data serves once, changes nothing in this core.",
        "",
        "",
    ),
    "mst": Text(
        "store",
        """M rows of sizeK bytes, as mld; nothing else is written. Where rows overlap in memory, the
later one stays.""",
        "",
        "",
    ),
    "msst": Text("store, streaming", "As mst; the hint changes nothing.", "", ""),
    "mldm": Text(
        "load whole registers",
        """n registers (1, 2, 4 or 8) from md on, R rows of {row_bytes} bytes each, row after row
without gaps from rs1 on, whatever the sizes. The letter does not matter.""",
        "",
        "",
    ),
    "mstm": Text("store whole registers", "As `mld<n>m`: to save and restore everything.", "", ""),
    "mmov": Text(
        "copy",
        """`.mm`: ms1. `.mv.x`, `.mv.i`: one row of ms1 to every row of md. `.mx`: a scalar of 64
bits to every 64 bits of md.""",
        "",
        "",
    ),
    "mzero": Text(
        "zero",
        "md becomes zero. XuanTie's v0.2 has no such instruction; this is v0.3's in its layout.",
        "",
        "",
    ),
    "pointwise": Text("element by element", "", "", ""),
    "th.mrelease": Text(
        "the registers are free",
        """xmcsr's MS becomes initial: an operating system need not save the registers. They and the
sizes stay as they are. Its word is what `mcfgi x0, 0` would be.""",
        "",
        "",
    ),
}

OPERANDS: dict[str, str] = {
    "md": "destination, m0 to m7; C of a mma",
    "ms1": "matrix register; A of a mma, second operand of a pointwise instruction",
    "ms2": "matrix register; B of a mma, first operand of a pointwise instruction",
    "ms3": "matrix register to be stored",
    "rs1": "scalar register: address, in parentheses, or size",
    "rs2": "scalar register with the distance of rows in memory, in bytes",
    "rs1'": "one of the scalar registers x8 to x15 (field + 8); the host sends its value as rs1",
    "row": "number of a row, 0 to {row_most}; in rs1' 64 bits of it count",
    "rd": "scalar register for the new xmsize",
    "uimm": "number, 0 to {uimm_most}",
}

POINTWISE: dict[PointwiseOp, str] = {
    PointwiseOp.MADD: "x + y",
    PointwiseOp.MSUB: "x - y",
    PointwiseOp.MSRA: "x >> y, arithmetic, rounded by xmxrm; y counts by its low 5 bits (.d: 6)",
    PointwiseOp.MN4CLIP: (
        "the same, clipped to a signed 8-bit (.d: 16-bit) number; the results are packed into the "
        "first sizeK / 4 bytes of the row; a clip that changes a value sets xmxsat"
    ),
    PointwiseOp.MN4CLIPU: "as mn4clip, with x unsigned, shifted logically and clipped unsigned",
    PointwiseOp.MMUL: "x * y, the low 32 (.d: 64) bits",
    PointwiseOp.MMULH: "x * y, the high 32 (.d: 64) bits, signed by signed",
}
"""Results, x being the element of ms2 and y the second operand."""

SIZES: dict[str, str] = {
    "m": "M, rows of A and C",
    "n": "N, rows of B and columns of C",
    "k": "sizeK, **bytes** of a row of A and B",
}

CSRS: dict[XCsr, str] = {
    XCsr.XMRSTART: "plain storage; no instruction uses it",
    XCsr.XMXRM: "rounding of msra, mn4clip and mn4clipu",
    XCsr.XMXSAT: "a clip has changed a value",
    XCsr.XMSIZE: "the sizes; mcfg sets them",
    XCsr.XMREGSIZE: "bytes of a register: {register_bytes}",
    XCsr.XMLENB: "bytes of a row: {row_bytes}",
    XCsr.XMISA: "what is built: {xmisa}",
}

ROUNDINGS: dict[FixedRounding, str] = {
    FixedRounding.RNU: "to nearest, ties up",
    FixedRounding.RNE: "to nearest, ties to even",
    FixedRounding.RDN: "down",
    FixedRounding.ROD: "to odd: any bit shifted out that is 1 sets the last bit",
}

READINGS: tuple[tuple[str, str], ...] = (
    ("version", "the fields are those of v0.2; later ones have md in another place"),
    ("errors", "whatever an instruction finds wrong is illegal (1); badgeom never occurs"),
    ("when sizes are checked", "where they are used, never in mcfg; only those that are used"),
    ("the rest of the destination", "zero: over the whole register, or pair, that is written"),
    ("who reads ms2 + 1", "fmmacc.h alone, whose 16-bit C has 2R columns in one register"),
    (
        "which register may be md of a mma",
        "any, so that kernels may accumulate in m4 to m7; `Config.mma_destinations` allows fewer, "
        "m0 and m4 for instance",
    ),
    ("C on A or B", "illegal for a mma; moves and pointwise instructions may be in place"),
    ("16-bit floats", "FP16; with `Config.xuantie_bf16` BF16, in both fmmacc.h and fwmmacc.h"),
    ("fwmmacc.s", "needs both FP32 and FP64 to be built"),
    ("row numbers", "all 64 bits of the scalar count; R or more is illegal, M or more is not"),
    ("shift amounts", "their low bits, 5 or 6; the others are ignored"),
    ("mmulh", "signed by signed"),
    ("mn4clipu", "x has no sign either; it sets xmxsat as mn4clip does"),
    ("sign of what rd gets", "xmsize is zero-extended"),
    ("sizes after reset", "zero: nothing that uses them is legal before the first mcfg"),
    (
        "xmxsat, with a number of the read-only range",
        "csrrw clears it, and so does csrrs or csrrc with another operand than 0, whatever it is; "
        "the host must forward such a write",
    ),
    ("state of the registers", "mma, loads, moves, mzero and pointwise make MS dirty; others not"),
    ("whole registers in memory", "one after the other, row after row, no gaps"),
)
"""Where the published text leaves a choice or contradicts itself, and what holds here."""
