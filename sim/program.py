"""Instruction programs as the host sends them: requests, and a builder with one method a kind.

Every word comes from `hdl.isa.encode`. Values of scalar registers travel with the request, so a
program names registers only where the number itself has a meaning (rd, and rs1 = x0 of csrrs and
csrrc); elsewhere the builder uses a0 and a1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hdl import isa
from hdl.config import Config
from hdl.formats import lookup

__all__ = ["Program", "Request", "mxcfg_value", "mxtile_value"]

A0, A1 = 10, 11
VALUE_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Request:
    """One instruction word with the values of the scalar registers it names (64 bits each)."""

    inst: int
    rs1: int = 0
    rs2: int = 0

    def __str__(self) -> str:
        return f"{isa.disassemble(self.inst):<40} # rs1={self.rs1:#x} rs2={self.rs2:#x}"


def mxcfg_value(
    ft: str | int = "int8", *, bovf: int = 0, rnd: int = 0, sat: int = 0, acc: int = 0
) -> int:
    """A value of mxcfg. `ft` is a format's name, or any Ft code as a number."""
    code = ft if isinstance(ft, int) else lookup(ft).code
    values = {"ft": code, "bovf": int(bovf), "rnd": int(rnd), "sat": int(sat), "acc": int(acc)}
    return sum(isa.MXCFG[name].put(value) for name, value in values.items())


def mxtile_value(
    k: int, m: int, n: int = 0, *, tiling: int = isa.Tiling.T1X1, guard4x4: int = 0
) -> int:
    """A value of mxtile. `n` = 0 means N equals M."""
    values = {"k": k, "m": m, "n": n, "tiling": int(tiling), "guard4x4": int(guard4x4)}
    return sum(isa.MXTILE[name].put(value) for name, value in values.items())


@dataclass
class Program:
    """A list of requests for one core, built call by call.

    Parameters
    ----------
    cfg : the core; it gives the CSRs' numbers and the size of a tile.
    requests : what has been built so far, in order.
    """

    cfg: Config
    requests: list[Request] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.requests)

    def __iter__(self) -> Iterator[Request]:
        return iter(self.requests)

    def __getitem__(self, index: int) -> Request:
        return self.requests[index]

    def listing(self) -> str:
        """The program as assembly text, one request a line."""
        return "".join(f"{request}\n" for request in self.requests)

    # -- any instruction ----------------------------------------------------------------------

    def word(self, inst: int, rs1: int = 0, rs2: int = 0) -> Request:
        """Append any 32-bit word; negative register values become two's complement."""
        request = Request(inst, rs1 & VALUE_MASK, rs2 & VALUE_MASK)
        self.requests.append(request)
        return request

    def emit(
        self, name: str, *values: int | str, rs1: int = 0, rs2: int = 0, **named: int | str
    ) -> Request:
        """Append the instruction `name`; operands as `hdl.isa.encode` takes them.

        `rs1` and `rs2` are register values (the operand of csrrw and its kin that is called rs1
        is a register number: give it by position).
        """
        word = isa.encode(name, *values, csr_base=self.cfg.csr_base, **named)
        return self.word(word, rs1, rs2)

    # -- CSRs ---------------------------------------------------------------------------------

    def csrrw(self, csr: str | int, value: int, rd: int = 0) -> Request:
        """Write `value`, return the old one in rd."""
        return self.emit("csrrw", rd, csr, A0, rs1=value)

    def csrrs(self, csr: str | int, value: int, rd: int = 0) -> Request:
        """Set the bits of `value`, return the old value in rd."""
        return self.emit("csrrs", rd, csr, A0, rs1=value)

    def csrrc(self, csr: str | int, value: int, rd: int = 0) -> Request:
        """Clear the bits of `value`, return the old value in rd."""
        return self.emit("csrrc", rd, csr, A0, rs1=value)

    def csrrwi(self, csr: str | int, uimm: int, rd: int = 0) -> Request:
        """csrrw with a 5-bit constant."""
        return self.emit("csrrwi", rd, csr, uimm)

    def csrrsi(self, csr: str | int, uimm: int, rd: int = 0) -> Request:
        """csrrs with a 5-bit constant; 0 only reads."""
        return self.emit("csrrsi", rd, csr, uimm)

    def csrrci(self, csr: str | int, uimm: int, rd: int = 0) -> Request:
        """csrrc with a 5-bit constant; 0 only reads."""
        return self.emit("csrrci", rd, csr, uimm)

    def csrr(self, csr: str | int, rd: int = A0) -> Request:
        """Only read: csrrs with rs1 = x0."""
        return self.emit("csrrs", rd, csr, 0)

    def set_cfg(
        self, ft: str | int = "int8", *, bovf: int = 0, rnd: int = 0, sat: int = 0, acc: int = 0
    ) -> Request:
        """Write mxcfg field by field."""
        return self.csrrw("mxcfg", mxcfg_value(ft, bovf=bovf, rnd=rnd, sat=sat, acc=acc))

    def set_tile(
        self, k: int, m: int, n: int = 0, *, tiling: int = isa.Tiling.T1X1, guard4x4: int = 0
    ) -> Request:
        """Write mxtile field by field."""
        return self.csrrw("mxtile", mxtile_value(k, m, n, tiling=tiling, guard4x4=guard4x4))

    # -- matrix instructions ------------------------------------------------------------------

    def mmacc(
        self,
        tc: int,
        ta: int,
        tb: int,
        *,
        beta: int = 0,
        alpha: int = 0,
        btr: int = isa.BTR_NATIVE,
    ) -> Request:
        """mmacc.t: beta 1 overwrites C, alpha 1 subtracts the product, btr as seed 000 has it."""
        return self.emit("mmacc.t", tc, ta, tb, isa.mmacc_imm(btr=btr, beta=beta, alpha=alpha))

    def mld(
        self,
        what: str,
        tile: int,
        base: int,
        stride: int,
        n: int = 1,
        down: bool = False,
        stream: bool = False,
        cfile: bool = False,
    ) -> Request:
        """mlda, mldb, mldc or mldr (`what` is the letter) of `n` tiles from `tile` on.

        `base` and `stride` are in bytes; `down` puts the next tile a tile's rows further down,
        not along the row; `cfile` means tiles of the C file.
        """
        options = {"n": n, "down": int(down), "stream": int(stream), "cfile": int(cfile)}
        return self.emit(f"mld{what}", tile, A0, A1, rs1=base, rs2=stride, **options)

    def mst(
        self,
        what: str,
        tile: int,
        base: int,
        stride: int,
        n: int = 1,
        down: bool = False,
        stream: bool = False,
        cfile: bool = False,
    ) -> Request:
        """msta, mstb, mstc or mstr; parameters as `mld`."""
        options = {"n": n, "down": int(down), "stream": int(stream), "cfile": int(cfile)}
        return self.emit(f"mst{what}", tile, A0, A1, rs1=base, rs2=stride, **options)

    def mzero(self, td: int, n: int = 1, *, cfile: bool = False) -> Request:
        """Zero `n` tiles from `td` on; `cfile` means tiles of the C file."""
        return self.emit("mzero", td, n=n, cfile=int(cfile))

    def mmov(self, td: int, ts: int, n: int = 1, *, cfile: bool = False) -> Request:
        """Copy `n` tiles from `ts` on to `td` on, both in one file; `cfile` means the C file."""
        return self.emit("mmov", td, ts, n=n, cfile=int(cfile))

    def mmovf(self, td: int, ts: int, n: int = 1, *, cfile: bool = False) -> Request:
        """Copy `n` tiles from the other file; `cfile` means to the C file."""
        return self.emit("mmovf", td, ts, n=n, cfile=int(cfile))

    def mtrans(self, size: str, td: int, ts: int, *, cfile: bool = False) -> Request:
        """Transpose a group of elements of `size` (b, h, w or d), as many tiles as its bytes."""
        return self.emit(f"mtrans.{size}", td, ts, cfile=int(cfile))

    def mbcrow(self, td: int, ts: int, index: int, *, cfile: bool = False) -> Request:
        """Row `index` of a tile to every row."""
        return self.emit("mbcrow.b", td, ts, A1, rs2=index, cfile=int(cfile))

    def mbccol(self, size: str, td: int, ts: int, index: int, *, cfile: bool = False) -> Request:
        """Column `index` of elements of `size` to every column."""
        return self.emit(f"mbccol.{size}", td, ts, A1, rs2=index, cfile=int(cfile))

    def mbcast(self, size: str, td: int, value: int, *, cfile: bool = False) -> Request:
        """The low bits of `value` to every element of `size`."""
        return self.emit(f"mbcast.{size}", td, A0, rs1=value, cfile=int(cfile))

    def mget(self, size: str, rd: int, ts: int, index: int, *, cfile: bool = False) -> Request:
        """Element `index` of `size`, counted along the rows, to rd."""
        return self.emit(f"mget.{size}", rd, ts, A1, rs2=index, cfile=int(cfile))

    def vector(
        self, name: str, tz: int, tx: int, ty: int, *, wide: bool = False, cfile: bool = False
    ) -> Request:
        """Vector mode (`name`: mvmadd, mvmul, mvaddx, mvaddy, mvmax, mvmin).

        `wide`: z in the output format of mxcfg; `cfile`: z in the C file.
        """
        return self.emit(name, tz, tx, ty, wide=int(wide), cfile=int(cfile))

    def mfence(self) -> Request:
        """Wait until all older work, memory included, is done."""
        return self.emit("mfence")

    def mrelease(self) -> Request:
        """Set xmcsr's MS to initial."""
        return self.emit("mrelease")

    # -- whole tile file ----------------------------------------------------------------------

    @property
    def tile_bytes(self) -> int:
        """Bytes of one tile."""
        return self.cfg.rows * self.cfg.row_bytes

    @property
    def file_bytes(self) -> int:
        """Bytes that `store_tiles` writes for the tiles of all files."""
        return self.cfg.all_tiles * self.tile_bytes

    def store_tiles(self, base: int, first: int = 0, count: int | None = None) -> None:
        """Store tiles whole to `base`, each in one piece, row after row (mstr, no fence).

        `first` counts the tiles of all files, those of the C file last.
        """
        self._whole_tiles(self.mst, base, first, count)

    def load_tiles(self, base: int, first: int = 0, count: int | None = None) -> None:
        """Load tiles whole from `base`, laid out as `store_tiles` does (mldr, no fence)."""
        self._whole_tiles(self.mld, base, first, count)

    def _whole_tiles(self, move, base: int, first: int, count: int | None) -> None:
        tiles = self.cfg.tiles
        tile, end = first, self.cfg.all_tiles if count is None else first + count
        while tile < end:
            in_c, place = divmod(tile, tiles)
            n = min(8, 1 << min(end - tile, tiles - place).bit_length() - 1)
            address = base + (tile - first) * self.tile_bytes
            move("r", place, address, self.cfg.row_bytes, n=n, down=True, cfile=bool(in_c))
            tile += n
