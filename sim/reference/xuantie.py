"""The front end `xuantie` in the architectural model (isa.md section 1).

Where isa.md leaves a choice, this is the reading, and so does the hardware:

====================  ==============================================================================
point                 reading
====================  ==============================================================================
errors                every condition of section 1 answers illegal and leaves mxstatus alone; a base
                      address beyond the bus answers bus, as in the other front end
sizes                 checked where they are used: mma M, N and K; loads, stores and pointwise M and
                      K; whole registers, mmov and mzero none. pmmaqa: any number of bytes
formats               an mma whose operand or output format is not built is illegal; fwmmacc.s needs
                      both fp32 and fp64
pairs                 ms2 of fmmacc.h must be even, whatever N; so must md of 64-bit results
mma_destinations      looks at md alone, the lower register of a pair
md and operands       may be one register in mmov and pointwise, the old values are read; a mma
                      whose md, or pair, is a register of A or B is illegal
mmov                  whole registers, whatever the sizes; its row, too, must be below R
.mv rows              below R, even at or above M; all 64 bits of the scalar count
.mx                   .s takes the low 32 bits of the scalar, .d all of it
shift amounts         the low 5 bits of an element of 32, the low 6 of one of 64
mmulh                 signed by signed
mn4clipu              the element is unsigned; it sets xmxsat too
mcfg                  the register's low bits, as many as the field has (mcfg: 32); the others are
                      ignored; rd gets the new xmsize, not sign-extended; rd = x0: no write-back
mcfgi                 M = uimm7, N = K = 0
mzero                 legal only with ms1 = ms2 = 0
MS                    0 makes all of it illegal but CSR accesses; mma, loads, mmov, mzero, pointwise
                      set 3; stores, mcfg and traps do not
reset                 xmsize, xmxrm, xmxsat, xmrstart 0: nothing that uses sizes is legal before
xmxsat                any instruction that writes clears it, whatever it writes
whole registers       lie one after the other without gaps, row after row
without `ame`         besides these: mfence, the CSR instructions, mxstatus and xmcsr
====================  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from hdl import isa
from hdl.isa import Form, SizeIndex, XCsr, XuanTieAccess, XuanTieInstruction, XuanTieKind

from .traps import IllegalError, Response
from .xuantie_mma import multiply_accumulate, unpacked
from .xuantie_pointwise import NARROWING, pointwise

if TYPE_CHECKING:
    from .machine import Machine

__all__ = ["XuanTie"]

SCALAR_BYTES = 8


def _require(holds: bool) -> None:
    """Raises `IllegalError` unless it holds."""
    if not holds:
        raise IllegalError


class XuanTie:
    """State and instructions that the front end adds to a `Machine`.

    Parameters
    ----------
    core : the machine; its tiles hold the registers, and MS, mxstatus and memory are its own.

    Members
    -------
    csrs : value of each CSR that is no constant.
    """

    def __init__(self, core: Machine):
        self.core, self.cfg = core, core.cfg
        self._built = {row.name for row in isa.built_xuantie(self.cfg)}
        self._destinations = isa.destinations(self.cfg)
        self._constants = {
            XCsr.XMREGSIZE: self.cfg.x_rows * self.cfg.row_bytes,
            XCsr.XMLENB: self.cfg.row_bytes,
            XCsr.XMISA: isa.xmisa_value(self.cfg),
        }
        self.reset()

    def reset(self) -> None:
        """CSRs to their reset values."""
        self.csrs = {
            csr: info.reset for csr, info in isa.XUANTIE_CSRS.items() if info.reset is not None
        }

    # -- CSRs ---------------------------------------------------------------------------------

    def csr(self, number: int) -> XCsr | None:
        """The CSR of this front end with this number, or None."""
        return XCsr(number) if number in isa.XUANTIE_CSRS else None

    def csr_read(self, csr: XCsr) -> int:
        """Its value."""
        return self._constants[csr] if csr in self._constants else self.csrs[csr]

    def csr_is_read_only(self, csr: XCsr) -> bool:
        """An instruction that writes it is illegal."""
        return isa.XUANTIE_CSRS[csr].access is XuanTieAccess.READ_ONLY

    def csr_write(self, csr: XCsr, value: int) -> None:
        """What an instruction that writes does."""
        info = isa.XUANTIE_CSRS[csr]
        cleared = info.access is XuanTieAccess.CLEARED
        self.csrs[csr] = 0 if cleared else value & (1 << info.bits) - 1

    @property
    def sizes(self) -> dict[str, int]:
        """m, n and k of xmsize."""
        return {name: field.get(self.csrs[XCsr.XMSIZE]) for name, field in isa.XMSIZE.items()}

    # -- instructions -------------------------------------------------------------------------

    def prepare(
        self, row: XuanTieInstruction, operands: Mapping[str, int], rs1: int, rs2: int
    ) -> Callable[[], Response | None]:
        """Check all that can trap; what it returns does the work, and cannot.

        `rs1` is the value of whichever scalar register the word names first; `rs2` is signed.
        """
        _require(row.name in self._built and self.core.ms != isa.MsState.OFF)
        match row.kind:
            case XuanTieKind.MMA:
                return self._prepare_mma(row, operands)
            case XuanTieKind.LOAD:
                return self._prepare_load(row, operands["md"], rs1, rs2)
            case XuanTieKind.STORE:
                return self._prepare_store(row, operands["ms3"], rs1, rs2)
            case XuanTieKind.MMOV:
                return self._prepare_mmov(row, operands, rs1)
            case XuanTieKind.POINTWISE:
                return self._prepare_pointwise(row, operands, rs1)
            case XuanTieKind.ZERO:
                return lambda: self._write(operands["md"], 0)
            case XuanTieKind.CONFIG:
                value = operands["uimm"] if row.immediate else rs1
                return lambda: self._configure(row.index, operands["rd"], value)
            case XuanTieKind.RELEASE:
                return self.core.release

    def footprint(
        self, row: XuanTieInstruction, operands: Mapping[str, int], rs1: int, rs2: int
    ) -> list[tuple[int, int]]:
        """(address, bytes) of all memory that a legal word touches now, in order."""
        if not row.is_memory:
            return []
        address_bits = (1 << self.cfg.addr_bits) - 1
        if row.registers:
            return [(rs1, row.registers * self.cfg.x_rows * self.cfg.row_bytes)]
        sizes = self.sizes
        return [(rs1 + i * rs2 & address_bits, sizes["k"]) for i in range(sizes["m"])]

    # -- registers ----------------------------------------------------------------------------

    def _registers(self, first: int, count: int = 1) -> np.ndarray:
        """The bytes of registers, (count, rows, row bytes), as a view."""
        step = self.cfg.x_tiles
        return self.core.tiles[first * step :: step, : self.cfg.x_rows][:count]

    def _write(self, first: int, content: np.ndarray | int, count: int = 1) -> None:
        self._registers(first, count)[...] = content
        self.core.tiles_written()

    def _check_rows(self, size: int) -> tuple[int, int]:
        """M and K, if rows of elements of 2^size bytes may have them."""
        m, k = self.sizes["m"], self.sizes["k"]
        _require(1 <= m <= self.cfg.x_rows)
        _require(1 <= k <= self.cfg.row_bytes and k % (1 << size) == 0)
        return m, k

    # -- mma ----------------------------------------------------------------------------------

    def _prepare_mma(
        self, row: XuanTieInstruction, operands: Mapping[str, int]
    ) -> Callable[[], None]:
        b_registers, c_registers = 1 + row.mma.b_pair, 1 + row.mma.c_pair
        m, k = self._check_rows(row.size)
        n = self.sizes["n"]
        _require(1 <= n <= b_registers * self.cfg.x_rows)
        md, ms1, ms2 = (operands[name] for name in ("md", "ms1", "ms2"))
        _require(ms2 % b_registers == 0 and md % c_registers == 0)
        _require(md in self._destinations)
        sources = {ms1, *range(ms2, ms2 + b_registers)}
        _require(sources.isdisjoint(range(md, md + c_registers)))
        operand, output = isa.mma_formats(row, self.cfg)

        def perform() -> None:
            b_rows = self._registers(ms2, b_registers).reshape(-1, self.cfg.row_bytes)
            a = unpacked(self._registers(ms1)[0, :m, :k], operand.container)
            b = unpacked(b_rows[:n, :k], operand.container)
            # Half of a row's columns lie in each register of a pair.
            c_rows = np.concatenate(list(self._registers(md, c_registers)), axis=1)
            c = unpacked(c_rows, output.container)
            d = np.zeros_like(c)
            d[:m, :n], flags = multiply_accumulate(
                a,
                b,
                c[:m, :n],
                operand=operand,
                output=output,
                a_signed=row.mma.a_signed,
                b_signed=row.mma.b_signed,
                config=self.cfg,
            )
            halves = np.split(d.view(np.uint8), c_registers, axis=1)
            self._write(md, np.stack(halves), c_registers)
            self.core.set_flags(flags)

        return perform

    # -- loads and stores ---------------------------------------------------------------------

    def _check_memory(
        self, row: XuanTieInstruction, register: int, base: int
    ) -> tuple[int, int, int]:
        """Registers, rows and bytes of a row that a load or store moves."""
        if row.registers:
            _require(register % row.registers == 0)
            sizes = row.registers, self.cfg.x_rows, self.cfg.row_bytes
        else:
            sizes = 1, *self._check_rows(row.size)
        self.core.check_base(base)
        return sizes

    def _prepare_load(
        self, row: XuanTieInstruction, md: int, base: int, stride: int
    ) -> Callable[[], None]:
        count, m, k = self._check_memory(row, md, base)

        def perform() -> None:
            content = np.zeros((count, self.cfg.x_rows, self.cfg.row_bytes), np.uint8)
            pieces = self.footprint(row, {}, base, stride)
            loaded = np.concatenate([self.core.read_bytes(*piece) for piece in pieces])
            content[:, :m, :k] = loaded.reshape(count, m, k)
            self._write(md, content, count)

        return perform

    def _prepare_store(
        self, row: XuanTieInstruction, ms3: int, base: int, stride: int
    ) -> Callable[[], None]:
        count, m, k = self._check_memory(row, ms3, base)

        def perform() -> None:
            content = self._registers(ms3, count)[:, :m, :k].ravel()
            for address, size in self.footprint(row, {}, base, stride):
                self.core.write_bytes(address, content[:size])
                content = content[size:]

        return perform

    # -- moves and pointwise ------------------------------------------------------------------

    def _scalar_row(self, value: int) -> np.ndarray:
        """A row with a scalar in every lane of 64 bits."""
        lanes = self.cfg.row_bytes // SCALAR_BYTES
        return np.frombuffer(value.to_bytes(SCALAR_BYTES, "little") * lanes, np.uint8)

    def _check_row(self, form: Form, operands: Mapping[str, int], rs1: int) -> int:
        """The row of ms1 that .mv.x and .mv.i name; 0 in the other forms."""
        row = {Form.MV_X: rs1, Form.MV_I: operands.get("row")}.get(form, 0)
        _require(row < self.cfg.x_rows)
        return row

    def _prepare_mmov(
        self, row: XuanTieInstruction, operands: Mapping[str, int], rs1: int
    ) -> Callable[[], None]:
        number = self._check_row(row.form, operands, rs1)

        def perform() -> None:
            if row.form is Form.MX:
                content = self._scalar_row(rs1)
            else:
                content = self._registers(operands["ms1"])[0].copy()
                content = content if row.form is Form.MM else content[number]
            self._write(operands["md"], content)

        return perform

    def _prepare_pointwise(
        self, row: XuanTieInstruction, operands: Mapping[str, int], rs1: int
    ) -> Callable[[], None]:
        m, k = self._check_rows(row.size)
        number = self._check_row(row.form, operands, rs1)
        bits = 8 << row.size

        def second() -> np.ndarray:
            """ms1 or what stands for it, (M, elements)."""
            if row.form is Form.MX:
                mask = (1 << bits) - 1
                return np.full((m, k // (bits // 8)), rs1 & mask, f"<u{bits // 8}")
            whole = unpacked(self._registers(operands["ms1"])[0, :, :k], bits)
            return whole[:m] if row.form is Form.MM else np.tile(whole[number], (m, 1))

        def perform() -> None:
            x = unpacked(self._registers(operands["ms2"])[0, :m, :k], bits)
            result, clipped = pointwise(row.op, x, second(), bits, self.csrs[XCsr.XMXRM])
            content = np.zeros((self.cfg.x_rows, self.cfg.row_bytes), np.uint8)
            width = k // 4 if row.op in NARROWING else k
            content[:m, :width] = result.view(np.uint8)
            self._write(operands["md"], content)
            if clipped:
                self.csrs[XCsr.XMXSAT] = 1

        return perform

    # -- sizes --------------------------------------------------------------------------------

    def _configure(self, index: SizeIndex, rd: int, value: int) -> Response:
        if index is SizeIndex.ALL:
            new = value & (1 << isa.XUANTIE_CSRS[XCsr.XMSIZE].bits) - 1
        else:
            field = isa.XMSIZE[index.name.lower()]
            new = self.csrs[XCsr.XMSIZE] & ~field.mask | field.put(value & field.max)
        self.csrs[XCsr.XMSIZE] = new
        return Response(wb=1, rd=rd, data=new) if rd else Response()
