"""Builder for instructions of the front end `xuantie`, with one method a kind.

It appends to a `Program`, so that a core with both front ends gets both in one program. Registers
come in the order of the assembly text: md, ms2 (B), ms1 (A). Scalar values travel with the
request; where a word names a scalar register whose number has no meaning, a0 or a1 is named.
"""

from __future__ import annotations

from hdl import isa
from hdl.config import Config
from hdl.isa import Form, PointwiseOp

from .program import A0, A1, Program, Request

__all__ = ["FORM_SUFFIX", "XuanTieBuilder", "xmsize_value"]

FORM_SUFFIX = {Form.MM: "mm", Form.MV_X: "mv.x", Form.MV_I: "mv.i", Form.MX: "mx"}
"""Last part of the names of moves and pointwise operations."""


def xmsize_value(m: int, n: int, k: int) -> int:
    """xmsize, as mcfg takes and returns it; `k` in bytes."""
    values = {"m": m, "n": n, "k": k}
    return sum(isa.XMSIZE[name].put(value) for name, value in values.items())


class XuanTieBuilder:
    """Appends instructions of the front end `xuantie` to `program`.

    Parameters
    ----------
    program : what grows.
    """

    def __init__(self, program: Program):
        self.program = program

    @classmethod
    def of(cls, cfg: Config) -> XuanTieBuilder:
        """A builder of a new program."""
        return cls(Program(cfg))

    def emit(self, name: str, *values: int, rs1: int = 0, rs2: int = 0, **named: int) -> Request:
        """Append the instruction `name`; operands as `hdl.isa.encode` takes them.

        `rs1` and `rs2` are register values; operands that are scalar registers go by position.
        """
        return self.program.word(isa.encode(name, *values, table=isa.XUANTIE, **named), rs1, rs2)

    # -- sizes ----------------------------------------------------------------------------------

    def mcfg(self, value: int, rd: int = 0) -> Request:
        """Set M, N and K at once from a packed value (`xmsize_value`)."""
        return self.emit("mcfg", rd, A0, rs1=value)

    def sizes(self, m: int, n: int, k: int, rd: int = 0) -> Request:
        """mcfg with M rows of A, N rows of B, K bytes."""
        return self.mcfg(xmsize_value(m, n, k), rd)

    def mcfgm(self, value: int, rd: int = 0) -> Request:
        """Set M."""
        return self.emit("mcfgm", rd, A0, rs1=value)

    def mcfgn(self, value: int, rd: int = 0) -> Request:
        """Set N."""
        return self.emit("mcfgn", rd, A0, rs1=value)

    def mcfgk(self, value: int, rd: int = 0) -> Request:
        """Set K, in bytes."""
        return self.emit("mcfgk", rd, A0, rs1=value)

    def mcfgmi(self, uimm: int, rd: int = 0) -> Request:
        """Set M to a constant of 7 bits."""
        return self.emit("mcfgmi", rd, uimm)

    def mcfgni(self, uimm: int, rd: int = 0) -> Request:
        """Set N to a constant of 7 bits."""
        return self.emit("mcfgni", rd, uimm)

    def mcfgki(self, uimm: int, rd: int = 0) -> Request:
        """Set K to a constant of 7 bits, in bytes."""
        return self.emit("mcfgki", rd, uimm)

    def mcfgi(self, uimm: int, rd: int) -> Request:
        """mcfg with a constant of 7 bits; with rd and uimm both 0 it is mrelease."""
        return self.emit("mcfgi", rd, uimm)

    # -- multiply-accumulate --------------------------------------------------------------------

    def fmmacc(self, size: str, md: int, ms2: int, ms1: int) -> Request:
        """md += ms1 x ms2^T in floats of `size` (h, s or d)."""
        return self.emit(f"fmmacc.{size}", md, ms2, ms1)

    def fwmmacc(self, size: str, md: int, ms2: int, ms1: int) -> Request:
        """md += ms1 x ms2^T, md in floats twice as wide as `size` (h or s)."""
        return self.emit(f"fwmmacc.{size}", md, ms2, ms1)

    def mmaqa(self, size: str, md: int, ms2: int, ms1: int, signs: str = "") -> Request:
        """md += ms1 x ms2^T in integers of `size` (b or h).

        `signs`: "" both signed, "u" both unsigned, "us" ms1 unsigned, "su" ms2 unsigned.
        """
        return self.emit(f"mmaqa{signs}.{size}", md, ms2, ms1)

    def pmmaqa(self, md: int, ms2: int, ms1: int, signs: str = "") -> Request:
        """md += ms1 x ms2^T in integers of 4 bits; `signs` as `mmaqa`."""
        return self.emit(f"pmmaqa{signs}.b", md, ms2, ms1)

    # -- loads and stores -----------------------------------------------------------------------

    def mld(self, size: str, md: int, base: int, stride: int, stream: bool = False) -> Request:
        """Load M rows of K bytes, `stride` bytes apart; `size` b, h, w or d."""
        return self.emit(f"m{'s' if stream else ''}ld{size}", md, A1, A0, rs1=base, rs2=stride)

    def mst(self, size: str, ms3: int, base: int, stride: int, stream: bool = False) -> Request:
        """Store M rows of K bytes; parameters as `mld`."""
        return self.emit(f"m{'s' if stream else ''}st{size}", ms3, A1, A0, rs1=base, rs2=stride)

    def mldm(self, n: int, md: int, base: int, size: str = "b") -> Request:
        """Load `n` whole registers (1, 2, 4 or 8) that lie one after the other."""
        return self.emit(f"mld{n}m{size}", md, A0, rs1=base)

    def mstm(self, n: int, ms3: int, base: int, size: str = "b") -> Request:
        """Store `n` whole registers one after the other."""
        return self.emit(f"mst{n}m{size}", ms3, A0, rs1=base)

    # -- moves ----------------------------------------------------------------------------------

    def mzero(self, md: int) -> Request:
        """Zero a whole register."""
        return self.emit("mzero", md)

    def mmov(self, md: int, ms1: int) -> Request:
        """Copy a register (mmov.mm)."""
        return self.emit("mmov.mm", md, ms1)

    def mmov_row(self, md: int, ms1: int, row: int) -> Request:
        """One row of ms1, its number a scalar's value, to every row (mmov.mv.x)."""
        return self.emit("mmov.mv.x", md, ms1, A0, rs1=row)

    def mmov_rowi(self, md: int, ms1: int, row: int) -> Request:
        """One row of ms1, its number in the word, to every row (mmov.mv.i)."""
        return self.emit("mmov.mv.i", md, ms1, row)

    def mmov_scalar(self, md: int, value: int) -> Request:
        """A scalar to every lane of 64 bits (mmov.mx)."""
        return self.emit("mmov.mx", md, A0, rs1=value)

    # -- pointwise ------------------------------------------------------------------------------

    def pointwise(
        self,
        op: str | PointwiseOp,
        size: str,
        md: int,
        ms2: int,
        ms1: int | None = None,
        *,
        row: int | None = None,
        rowi: int | None = None,
        value: int | None = None,
    ) -> Request:
        """md = ms2 `op` what follows, in elements of `size` (s or d).

        What follows is ms1; or one row of it, `row` a scalar's value or `rowi` in the word; or
        without ms1 the scalar `value`. Raises ValueError for any other combination.
        """
        name = op.name.lower() if isinstance(op, PointwiseOp) else op
        given = [what for what in (row, rowi, value) if what is not None]
        if len(given) > 1 or (ms1 is None) != (value is not None):
            raise ValueError(f"{name} takes ms1, with row or rowi at most, or value alone")
        if value is not None:
            return self.emit(f"{name}.{size}.mx", md, ms2, A0, rs1=value)
        if row is not None:
            return self.emit(f"{name}.{size}.mv.x", md, ms2, ms1, A0, rs1=row)
        if rowi is not None:
            return self.emit(f"{name}.{size}.mv.i", md, ms2, ms1, rowi)
        return self.emit(f"{name}.{size}.mm", md, ms2, ms1)

    def madd(self, size: str, md: int, ms2: int, ms1: int | None = None, **second) -> Request:
        """ms2 + second; `second` as `pointwise`."""
        return self.pointwise("madd", size, md, ms2, ms1, **second)

    def msub(self, size: str, md: int, ms2: int, ms1: int | None = None, **second) -> Request:
        """ms2 - second."""
        return self.pointwise("msub", size, md, ms2, ms1, **second)

    def msra(self, size: str, md: int, ms2: int, ms1: int | None = None, **second) -> Request:
        """ms2 >> second, rounded by xmxrm."""
        return self.pointwise("msra", size, md, ms2, ms1, **second)

    def mn4clip(self, size: str, md: int, ms2: int, ms1: int | None = None, **second) -> Request:
        """ms2 >> second, rounded, clipped to a quarter of the bits, signed."""
        return self.pointwise("mn4clip", size, md, ms2, ms1, **second)

    def mn4clipu(self, size: str, md: int, ms2: int, ms1: int | None = None, **second) -> Request:
        """mn4clip of unsigned elements to unsigned ones."""
        return self.pointwise("mn4clipu", size, md, ms2, ms1, **second)

    def mmul(self, size: str, md: int, ms2: int, ms1: int | None = None, **second) -> Request:
        """Low half of ms2 * second."""
        return self.pointwise("mmul", size, md, ms2, ms1, **second)

    def mmulh(self, size: str, md: int, ms2: int, ms1: int | None = None, **second) -> Request:
        """High half of ms2 * second, both signed."""
        return self.pointwise("mmulh", size, md, ms2, ms1, **second)

    # -- state ----------------------------------------------------------------------------------

    def mrelease(self) -> Request:
        """Set xmcsr's MS to initial."""
        return self.emit("th.mrelease")

    def store_registers(self, base: int) -> Request:
        """Store all eight registers whole, one after the other (no fence)."""
        return self.mstm(isa.MREGS, 0, base)

    def load_registers(self, base: int) -> Request:
        """Load all eight registers whole (no fence)."""
        return self.mldm(isa.MREGS, 0, base)
