"""Seeded random programs for cores with the front end `xuantie`, traps included.

They begin and end as those of `random_program` do, with fences where accesses overlap and what
occurred counted by name. In a core with both front ends, instructions of both are mixed.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from hdl import isa
from hdl.config import Config
from hdl.isa import Form, XuanTieInstruction, XuanTieKind

from .program import Request
from .program_xuantie import XuanTieBuilder, xmsize_value
from .random_program import TRIES, Generator, RandomProgram
from .random_xuantie_traps import random_xuantie_trap
from .reference.traps import ERROR_ILLEGAL, ERROR_NONE, Response

__all__ = ["XUANTIE_POINTS", "XuanTieGenerator", "random_xuantie_program"]

Build = Callable[[XuanTieBuilder], Request]

ROUNDED = (isa.PointwiseOp.MSRA, isa.PointwiseOp.MN4CLIP, isa.PointwiseOp.MN4CLIPU)
CONSTANT_MAX = isa.UIMM7.max

XUANTIE_POINTS = (
    *("M tail", "N tail", "K tail", "no tail", "columns from the second register of B"),
    *("mma again into the same C", "mma of one register twice", "mma raises a flag"),
    *("pointwise apart", "pointwise into ms2", "pointwise into ms1", "pointwise of one register"),
    *(f"{op.name.lower()} rounds {mode.name}" for op in ROUNDED for mode in isa.FixedRounding),
    *("row of ms1 at or above M", "xmxsat becomes 1", "move in place"),
    *("base aligned", "base unaligned", "stride zero", "stride negative", "stride unaligned"),
    *("stride below a row", "stride with bits above the address", "access near the wrap"),
    *("a row crosses a line", "fence between overlapping accesses"),
    *("sizes by one mcfg", "sizes one by one", "sizes by constants", "sizes with bits above"),
    *("mcfg to x0", "mcfg to a register", "xmxsat written", "xmxsat read", "xmrstart written"),
    *("mxstatus written", "constants read", "illegal while off"),
)
"""Coverage points of every such core, besides the names of its rows and its traps."""


class XuanTieGenerator(Generator):
    """A program that grows by random instructions of the front end, with the model along.

    Parameters
    ----------
    cfg, rng, arena_bytes : as for `random_program`.
    """

    def __init__(self, cfg: Config, rng: random.Random, arena_bytes: int):
        super().__init__(cfg, rng, arena_bytes)
        self.rows = isa.built_xuantie(cfg)
        self._by_kind: dict[XuanTieKind, list[XuanTieInstruction]] = {}
        for row in self.rows:
            self._by_kind.setdefault(row.kind, []).append(row)

    # -- appending ------------------------------------------------------------------------------

    def put(self, build: Build) -> Response:
        """Append one instruction of the front end; legal ones are counted by name."""
        response = self.append(lambda p: build(XuanTieBuilder(p)))
        decoded = isa.decode(self.program[-1].inst)
        if decoded is not None and response.error == ERROR_NONE:
            self.count(f"xuantie {decoded.name}")
        return response

    def drawn(self, build: Build) -> Request:
        """An instruction that is not part of the program yet."""
        return self.draft(lambda p: build(XuanTieBuilder(p)))

    def expect_illegal(self, name: str, build: Build) -> None:
        """Append what should be illegal; count it under its name if the model agrees."""
        if self.append(lambda p: build(XuanTieBuilder(p))).error == ERROR_ILLEGAL:
            self.count(f"illegal: {name}")

    # -- sizes ----------------------------------------------------------------------------------

    @property
    def sizes(self) -> dict[str, int]:
        """m, n and k of xmsize."""
        return self.machine.xuantie.sizes

    def set_sizes(self, m: int, n: int, k: int) -> None:
        """Make xmsize these sizes, in one of the ways there are."""
        rng = self.rng

        def rd() -> int:
            number = rng.choice((0, 0, rng.randrange(32)))
            self.count("mcfg to a register" if number else "mcfg to x0")
            return number

        if rng.random() < 0.4:
            value = xmsize_value(m, n, k)
            if rng.random() < 0.2:
                value |= rng.getrandbits(32) << 32
                self.count("sizes with bits above")
            number = rd()
            self.put(lambda x: x.mcfg(value, number))
            self.count("sizes by one mcfg")
            return
        if rng.random() < 0.2:
            # mcfgi sets M and zeroes the others; with both fields 0 it would be mrelease.
            self.put(lambda x: x.mcfgi(m & CONSTANT_MAX, rng.randrange(1, 32)))
        for letter, value, bits in rng.sample((("m", m, 8), ("n", n, 8), ("k", k, 16)), 3):
            number = rd()
            if value <= CONSTANT_MAX and rng.random() < 0.5:
                self.put(lambda x, a=letter, v=value, r=number: getattr(x, f"mcfg{a}i")(v, r))
                self.count("sizes by constants")
            else:
                above = rng.getrandbits(64 - bits) << bits if rng.random() < 0.2 else 0
                self.put(
                    lambda x, a=letter, v=value | above, r=number: getattr(x, f"mcfg{a}")(v, r)
                )
                self.count("sizes one by one")

    def _size(self, most: int, step: int = 1) -> int:
        """A multiple of `step` from `step` to `most`, often the largest."""
        rng = self.rng
        return step * rng.choice((most // step, most // step, rng.randint(1, most // step), 1))

    def legal_sizes(self, row: XuanTieInstruction | None = None) -> None:
        """New sizes that `row`, or any row, may use."""
        cfg, rng = self.cfg, self.rng
        columns = cfg.x_rows * (2 if row is not None and row.mma and row.mma.b_pair else 1)
        step = 8 if row is None else 1 << row.size
        n = self._size(columns)
        if row is not None and row.mma is None and rng.random() < 0.2:
            n = rng.choice((0, 255))  # takes no part
        self.set_sizes(self._size(cfg.x_rows), n, self._size(cfg.row_bytes, step))

    def _fits(self, row: XuanTieInstruction, build: Build) -> bool:
        """Is the instruction legal, with the sizes as they are or with new ones?"""
        if self.rng.random() < 0.6 and not self.trap_of(self.drawn(build)):
            return True
        self.legal_sizes(row)
        return not self.trap_of(self.drawn(build))

    def _count_tails(self, row: XuanTieInstruction) -> None:
        cfg, sizes = self.cfg, self.sizes
        columns = cfg.x_rows * (2 if row.mma and row.mma.b_pair else 1)
        points = {
            "M tail": sizes["m"] < cfg.x_rows,
            "N tail": row.mma is not None and sizes["n"] < columns,
            "K tail": sizes["k"] < cfg.row_bytes,
        }
        found = [point for point, occurred in points.items() if occurred]
        self.count(*(found or ["no tail"]))

    # -- one instruction of each kind -------------------------------------------------------------

    def register(self) -> int:
        """One of the eight registers."""
        return self.rng.randrange(isa.MREGS)

    def mma(self) -> bool:
        """A legal multiply-accumulate; False where none was found."""
        rng = self.rng
        rows = self._by_kind.get(XuanTieKind.MMA)
        if not rows:
            return False
        row = rng.choice(rows)
        allowed = sorted(isa.destinations(self.cfg))
        for _ in range(TRIES):
            ms2, ms1 = self.register(), self.register()
            if rng.random() < 0.2:
                ms1 = ms2
            md = rng.choice(allowed)
            ms2 &= ~int(row.mma.b_pair)
            md &= ~int(row.mma.c_pair)

            def build(x: XuanTieBuilder, md=md, ms2=ms2, ms1=ms1) -> Request:
                return x.emit(row.name, md, ms2, ms1)

            written = {md, md + row.mma.c_pair}
            if written & {ms1, ms2, ms2 + row.mma.b_pair} or not self._fits(row, build):
                continue
            before = self.machine.status
            times = rng.choice((1, 1, 1, 2, 3))
            for _ in range(times):
                self.put(build)
            self._count_tails(row)
            points = {
                "columns from the second register of B": (
                    row.mma.b_pair and self.sizes["n"] > self.cfg.x_rows
                ),
                "mma again into the same C": times > 1,
                "mma of one register twice": ms1 == ms2,
                "mma raises a flag": self.machine.status != before,
            }
            self.count(*(point for point, occurred in points.items() if occurred))
            return True
        return False

    def _second(self, row: XuanTieInstruction, ms1: int) -> tuple[tuple[int, ...], int, int]:
        """Operands behind md and ms2, the value of rs1, and the row number."""
        rng, a0 = self.rng, 10
        number = rng.randrange(self.cfg.x_rows)
        match row.form:
            case Form.MM:
                return (ms1,), 0, 0
            case Form.MV_X:
                return (ms1, a0), number, number
            case Form.MV_I:
                number %= isa.RS1_LOW.max + 1
                return (ms1, number), 0, number
            case Form.MX:
                small = rng.randrange(70)
                value = rng.choice((rng.getrandbits(64), small, -small, (1 << 32) - small))
                return (a0,), value, 0

    def pointwise(self) -> bool:
        """A legal pointwise operation; False where none was found."""
        rng = self.rng
        row = rng.choice(self._by_kind[XuanTieKind.POINTWISE])
        ms2, ms1 = self.register(), self.register()
        if rng.random() < 0.15:
            ms1 = ms2
        md = rng.choice((self.register(), ms1, ms2))
        second, value, number = self._second(row, ms1)

        def build(x: XuanTieBuilder) -> Request:
            return x.emit(row.name, md, ms2, *second, rs1=value)

        if not self._fits(row, build):
            return False
        before = self.machine.xuantie.csrs[isa.XCsr.XMXSAT]
        self.put(build)
        self._count_tails(row)
        state = self.machine.xuantie.csrs
        reads_ms1 = row.form is not Form.MX
        place = "into ms1" if reads_ms1 and md == ms1 else "apart"
        place = "into ms2" if md == ms2 else place
        if reads_ms1 and ms1 == ms2:
            place = "of one register"
        self.count(f"pointwise {place}")
        if row.op in ROUNDED:
            mode = isa.FixedRounding(state[isa.XCsr.XMXRM])
            self.count(f"{row.op.name.lower()} rounds {mode.name}")
        if row.form in (Form.MV_X, Form.MV_I) and number >= self.sizes["m"]:
            self.count("row of ms1 at or above M")
        if state[isa.XCsr.XMXSAT] and not before:
            self.count("xmxsat becomes 1")
        return True

    def xmove(self) -> bool:
        """A move, or mzero."""
        row = self.rng.choice(self._by_kind[XuanTieKind.MMOV])
        md, ms1 = self.register(), self.register()
        if self.rng.random() < 0.2:
            self.put(lambda x: x.mzero(md))
            return True
        second, value, _ = self._second(row, ms1)
        self.put(lambda x: x.emit(row.name, md, *second, rs1=value))
        if row.form is not Form.MX and md == ms1:
            self.count("move in place")
        return True

    def memory_access(self) -> bool:
        """A legal load or store inside a region; False where none was found."""
        rng, cfg = self.rng, self.cfg
        kind = XuanTieKind.LOAD if rng.random() < 0.6 else XuanTieKind.STORE
        whole = rng.random() < 0.4
        row = rng.choice([row for row in self._by_kind[kind] if bool(row.registers) == whole])
        register = self.register()
        stride = cfg.row_bytes if whole else self._stride(cfg.x_rows)
        if whole:
            register -= register % row.registers

        def build(x: XuanTieBuilder, base: int = 0, stride: int = stride) -> Request:
            if whole:
                return x.emit(row.name, register, 10, rs1=base)
            return x.emit(row.name, register, 11, 10, rs1=base, rs2=stride)

        if not self._fits(row, build):
            return False
        base = self._base(self.drawn(build), stride)
        if base is None:
            return False
        if not whole:
            self._count_tails(row)
            self._count_rows(base, stride)
            if rng.random() < 0.1:
                stride += rng.getrandbits(63 - cfg.addr_bits) << cfg.addr_bits
                self.count("stride with bits above the address")
        self.count("base unaligned" if base % cfg.bus_bytes else "base aligned")
        if base >= self.arenas[1][0] or base < self.arenas[1][1] // 2:
            self.count("access near the wrap")
        self.put(lambda x: build(x, base, stride))
        return True

    def _count_rows(self, base: int, stride: int) -> None:
        cfg, sizes = self.cfg, self.sizes
        starts = [(base + i * stride) % cfg.line_bytes for i in range(sizes["m"])]
        points = {
            "stride zero": stride == 0,
            "stride negative": stride < 0,
            "stride unaligned": stride % cfg.bus_bytes != 0,
            "stride below a row": 0 < abs(stride) < sizes["k"],
            "a row crosses a line": any(s + sizes["k"] > cfg.line_bytes for s in starts),
        }
        self.count(*(point for point, occurred in points.items() if occurred))

    def xcsr_access(self) -> bool:
        """A CSR instruction of any kind that is legal."""
        rng = self.rng
        rd = rng.randrange(32)
        kind = rng.randrange(6)
        if kind == 0:
            self.append(lambda p: p.csrrwi("xmxrm", rng.randrange(4), rd))
        elif kind == 1:
            name = rng.choice(("csrrw", "csrrs", "csrrc", "csrrwi", "csrrsi", "csrrci"))
            value = rng.randrange(1, 32)  # 0 would only read, in the forms with a constant
            self.append(lambda p: getattr(p, name)("xmxsat", value, rd))
            self.count("xmxsat written")
        elif kind == 2:
            self.append(lambda p: p.csrr("xmxsat", rd))
            self.count("xmxsat read")
        elif kind == 3:
            name, value = rng.choice(("csrrw", "csrrs", "csrrc")), rng.getrandbits(64)
            csr = rng.choice(("xmrstart", "xmrstart", "xmxrm"))
            self.append(lambda p: getattr(p, name)(csr, value, rd))
            self.count(f"{csr} written")
        elif kind == 4:
            name, value = rng.choice(("csrrw", "csrrs", "csrrc")), rng.getrandbits(64)
            self.append(lambda p: getattr(p, name)("mxstatus", value, rd))
            self.count("mxstatus written")
        else:
            csr = rng.choice(("xmsize", "xmregsize", "xmlenb", "xmisa", "xmcsr", "mxstatus"))
            self.append(lambda p: p.csrr(csr, rd))
            self.count("constants read")
        return True

    def xrelease(self) -> bool:
        """The release, and what xmcsr says."""
        if self.rng.random() < 0.5:
            self.put(lambda x: x.mrelease())
        self.append(lambda p: p.csrr("xmcsr", self.rng.randrange(1, 32)))
        return True

    def xoff(self) -> bool:
        """Everything but CSR accesses while the registers are off."""
        rng = self.rng
        self.append(lambda p: p.csrrwi("xmcsr", isa.MsState.OFF))
        for row in rng.sample(self.rows, 3):
            operands = {operand.name: operand.lowest for operand in row.operands}
            word = isa.encode_row(row, **operands)
            values = self.arenas[0][0], self.cfg.row_bytes
            if self.append(lambda p, w=word, v=values: p.word(w, *v)).error == ERROR_ILLEGAL:
                self.count("illegal while off")
        self.append(lambda p: p.mfence())
        self.append(lambda p: p.csrrsi("xmcsr", rng.choice((1, 2, 3)), rng.randrange(32)))
        return True

    def xtrap(self) -> bool:
        """One trap of a random kind."""
        random_xuantie_trap(self)
        return True

    # -- whole program ----------------------------------------------------------------------------

    def begin(self) -> None:
        """Set all state, so that nothing of an earlier program shows."""
        if self.cfg.ame:
            super().begin()
        else:
            self.append(lambda p: p.csrrwi("xmcsr", isa.MsState.INITIAL))
            self.append(lambda p: p.mfence())
            self.append(lambda p: p.csrrw("mxstatus", 0))
            self.put(lambda x: x.load_registers(self.init))
        self.append(lambda p: p.csrrwi("xmxrm", self.rng.randrange(4)))
        self.append(lambda p: p.csrrwi("xmxsat", 0))
        self.append(lambda p: p.csrrw("xmrstart", self.rng.getrandbits(64)))
        self.put(lambda x: x.sizes(self.cfg.x_rows, self.cfg.x_rows, self.cfg.row_bytes))

    def body(self, length: int) -> None:
        """`length` random instructions or more."""
        kinds = {
            self.memory_access: 26,
            self.mma: 24,
            self.pointwise: 24,
            self.xmove: 7,
            self.xcsr_access: 7,
            self.xtrap: 10,
            self.fence: 2,
            self.xrelease: 1,
            self.xoff: 1,
        }
        end = len(self.program) + length
        while len(self.program) < end:
            if self.rng.random() < 0.08:
                self.legal_sizes()
            elif self.cfg.ame and self.rng.random() < 0.4:
                super().body(1)
            else:
                self.rng.choices(list(kinds), list(kinds.values()))[0]()

    def end(self) -> None:
        """All state to memory and responses."""
        if self.cfg.ame:
            super().end()
        else:
            self._fence()
            self.put(lambda x: x.store_registers(self.dump))
            self.append(lambda p: p.mfence())
            self.append(lambda p: p.csrr("mxstatus"))
            self.append(lambda p: p.csrr("xmcsr"))
        for csr in ("xmsize", "xmxrm", "xmxsat", "xmrstart"):
            self.append(lambda p, csr=csr: p.csrr(csr))


def random_xuantie_program(
    cfg: Config, rng: random.Random, length: int = 30, *, arena_bytes: int = 1 << 14
) -> RandomProgram:
    """A program of `length` random instructions (a few more), with its first and last ones.

    Parameters
    ----------
    cfg : a core with the front end `xuantie`.
    rng : the only source of chance; the same state gives the same program.
    length : random instructions between setting all state and storing it.
    arena_bytes : size of the region that most loads and stores work in.

    In a core without `ame` the dump holds the eight registers whole, one after the other.
    """
    generator = XuanTieGenerator(cfg, rng, arena_bytes)
    generator.begin()
    generator.body(length)
    generator.end()
    return RandomProgram(
        cfg,
        generator.program,
        generator.regions,
        generator.dump,
        generator.responses,
        generator.coverage,
    )
