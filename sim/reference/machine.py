"""The architectural model: executes instruction words on numpy state (isa.md sections 2 and 3).

The front end `xuantie` is in the module of that name.

Where isa.md leaves a choice, this model takes the most literal reading, and so does the hardware:

====================  ==============================================================================
point                 reading
====================  ==============================================================================
ignored fields        rd, rs1 and rs2 fields that an instruction does not use may hold anything
wb                    1 only for a CSR instruction or mget without error whose rd is not x0; else
                      rd and data have no meaning (0 here)
csrrs, csrrc          write unless the rs1 field (the uimm field) is 0; csrrw always writes, so a
                      csrrw or csrrwi of mxinfo is illegal
mxscale               exists only with the unit mx (hdl.isa.built); without it unknown, illegal
MS                    0 makes every non-CSR word illegal, mfence and mrelease too; an accepted mld,
                      mmacc, move (but mget) or vector operation sets 3, a trapped one does not
loads a, b, c         check all of mxcfg and the reserved bits of mxtile, K in 1..lanes and M > 0,
                      whichever letter; the upper limit only of what their macro has: a M, b N,
                      c M and N; TILING and GUARD4x4 never trap them
C stride              GUARD4x4 = 1 and w <= 16 change it for loads and stores of c in every release
tile range, overlap   only tiles really read or written count: rows and slices of C without an
                      active element do not; a load writes every tile that it names
n = 1 and down        the same as n = 1, but c then is its first slice only, as always with down
mmov, mzero           whole tiles; equal groups are fine; MS becomes 3 all the same
mmovf                 exists only with a second file
mtrans                equal groups are fine; beside a square in wider rows everything becomes zero
vector mode           checks all of mxcfg, also where z has Ft's format; M of more than one tile is
                      badgeom; z may overlap x and y: their old values are read
base above the bus    rs1 >= 2^addr_bits, even if no byte is active; a stride may be anything
mfence                answers bus once after a bus error, then the pending error is gone
====================  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

import numpy as np

from hdl import formats, isa
from hdl.config import VERSION_CODE, Config

from . import moves
from .geometry import (
    BadGeometryError,
    Block,
    Mma,
    Settings,
    check_range,
    named_blocks,
    plan_mma,
    require,
)
from .numerics import mma
from .traps import (
    ERROR_BADGEOM,
    ERROR_BUS,
    ERROR_ILLEGAL,
    ERROR_NONE,
    BusTrapError,
    IllegalError,
    Response,
)
from .vector import saturates, vector
from .xuantie import XuanTie

__all__ = ["Machine", "MachineMemory", "Response"]

VALUE_MASK = (1 << 64) - 1
SPARE_NIBBLE = 0x0F
"""What is kept of a row's last byte when its last element ends in the middle of it."""

STATUS_FLAGS_LO = isa.MXSTATUS["inexact"].lo

SIZE_SUFFIXES = "bhwd"
"""Suffixes of the moves of elements, in order of log2 of their bytes."""

VECTOR_OPS = dict(
    zip(("mvmadd", "mvmul", "mvaddx", "mvaddy", "mvmax", "mvmin"), isa.VectorOp, strict=True)
)
"""Operations of the vector mode by mnemonic."""


class MachineMemory(Protocol):
    """What the machine needs of a memory; addresses wrap at the bus's width.

    A memory that can fail has a true `can_fail`, `read_fails(addr, size)`, asked for whole beats,
    and `write_fails(addr, size)`; its `write` leaves failing bytes alone.
    """

    def read(self, addr: int, size: int) -> bytes: ...

    def write(self, addr: int, content: bytes) -> None: ...


_TRAPS = {
    IllegalError: ERROR_ILLEGAL,
    BadGeometryError: ERROR_BADGEOM,
    BusTrapError: ERROR_BUS,
}


def _signed(value: int) -> int:
    """A scalar register as two's complement."""
    return (value & VALUE_MASK) - ((value & 1 << 63) << 1)


class Machine:
    """State of one core of `cfg` and what its instructions do to it.

    Parameters
    ----------
    cfg : the core.
    memory : the L2 memory, a `MachineMemory`.

    Members
    -------
    tiles : uint8, (tiles, rows, row_bytes); the C file's, if it has one, follow those of A and B.
    csrs : value of each CSR of the core that can be written; xmcsr's MS is `ms`.
    xuantie : the front end `xuantie` with its own CSRs, or None.
    bus_pending : a bus error that the next mfence reports.
    """

    def __init__(self, cfg: Config, memory: MachineMemory):
        self.cfg = cfg
        self.memory = memory
        self.tiles = np.zeros((cfg.all_tiles, cfg.rows, cfg.row_bytes), np.uint8)
        self._built = isa.built_instructions(cfg)
        self._numbers = {cfg.csr_base + csr: csr for csr in isa.built_csrs(cfg)}
        self._info = self._mxinfo()
        self._settings: dict[tuple[int, int], Settings] = {}
        self.xuantie = XuanTie(self) if cfg.xuantie else None
        self.reset()

    def reset(self) -> None:
        """CSRs to their reset values; tiles have none and stay as they are."""
        self.csrs = dict(isa.CSR_RESET)
        self.ms = int(isa.XMCSR_RESET)
        self.bus_pending = False
        if self.xuantie is not None:
            self.xuantie.reset()

    @property
    def status(self) -> int:
        """mxstatus."""
        return self.csrs[isa.Csr.MXSTATUS]

    def run(self, requests: Iterable) -> list[Response]:
        """Execute requests (`inst`, `rs1`, `rs2`) in order."""
        return [self.execute(r.inst, r.rs1, r.rs2) for r in requests]

    def execute(self, inst: int, rs1: int = 0, rs2: int = 0) -> Response:
        """Execute one word with the values of its scalar registers."""
        try:
            perform = self._prepare(inst, rs1 & VALUE_MASK, rs2 & VALUE_MASK)
        except tuple(_TRAPS) as trap:
            error = _TRAPS[type(trap)]
            if error == ERROR_BADGEOM:
                self._set_status(isa.MXSTATUS["badgeom"].mask)
            return Response(error=error)
        return perform() or Response()

    def trap(self, inst: int, rs1: int = 0, rs2: int = 0) -> int:
        """The error with which the word would trap now, 0 for none; nothing changes."""
        try:
            self._prepare(inst, rs1 & VALUE_MASK, rs2 & VALUE_MASK)
        except tuple(_TRAPS) as trap:
            return _TRAPS[type(trap)]
        return ERROR_NONE

    def footprint(self, inst: int, rs1: int = 0, rs2: int = 0) -> list[tuple[int, int]]:
        """(address, bytes) of all memory that the word would touch now; nothing changes."""
        decoded = isa.decode(inst)
        if decoded is None or self.trap(inst, rs1, rs2):
            return []
        if isinstance(decoded.row, isa.XuanTieInstruction):
            return self.xuantie.footprint(decoded.row, decoded.operands, rs1, _signed(rs2))
        if "base" not in decoded.operands:
            return []
        blocks = self._blocks(decoded.name[3], decoded.operands)
        return [
            (address, sum(block.bytes for block in run) * (rows.stop - rows.start))
            for run, rows, address in self._transfers(blocks, rs1, _signed(rs2))
        ]

    def mma_plan(self, inst: int) -> Mma:
        """The tiles that a legal mmacc would read and write now; nothing changes."""
        operands = isa.decode(inst).operands
        btr = isa.IMM["btr"].get(operands["imm"]) ^ isa.BTR_NATIVE
        tiles = (operands[name] for name in ("tc", "ta", "tb"))
        return plan_mma(self.cfg, self._check_settings(), *tiles, btr)

    def _prepare(self, inst: int, rs1: int, rs2: int) -> Callable[[], Response | None]:
        """Check all that can trap; what it returns does the work, and cannot."""
        decoded = isa.decode(inst)
        if decoded is None:
            raise IllegalError
        if isinstance(decoded.row, isa.XuanTieInstruction):
            if self.xuantie is None:
                raise IllegalError
            return self.xuantie.prepare(decoded.row, decoded.operands, rs1, _signed(rs2))
        if decoded.name not in self._built:
            raise IllegalError
        name, operands = decoded.name, decoded.operands
        if "csr" in operands:
            return self._prepare_csr(name, operands, rs1)
        if self.ms == isa.MsState.OFF or (operands.get("cfile") and not self.cfg.split):
            raise IllegalError
        if name == "mmacc.t":
            return self._prepare_mmacc(operands)
        if name.startswith("mld"):
            return self._prepare_load(name[3], operands, rs1, _signed(rs2))
        if name.startswith("mst"):
            return self._prepare_store(name[3], operands, rs1, _signed(rs2))
        if name in isa.MOVE_INSTRUCTIONS:
            return self._prepare_move(name, operands, rs1, rs2)
        if name in isa.VECTOR_INSTRUCTIONS:
            return self._prepare_vector(name, operands)
        return {"mfence": self._mfence, "mrelease": self.release}[name]

    def _mfence(self) -> Response:
        pending, self.bus_pending = self.bus_pending, False
        return Response(error=ERROR_BUS if pending else ERROR_NONE)

    def release(self) -> None:
        """mrelease of either front end."""
        self.ms = int(isa.MsState.INITIAL)

    def tiles_written(self) -> None:
        """An instruction has written registers."""
        self.ms = int(isa.MsState.DIRTY)

    # -- CSRs ---------------------------------------------------------------------------------

    def _mxinfo(self) -> int:
        cfg = self.cfg
        built = sum(
            1 << bit for bit, name in enumerate(formats.PROFILE_ORDER) if name in cfg.formats
        )
        values = {
            "formats": built,
            "tiles_log2": cfg.tiles_log2,
            "rows_log2": cfg.rows_log2,
            "banks_log2": cfg.banks_log2,
            **{unit: int(unit in cfg.units) for unit in ("vector", "mx", "pool", "symstat")},
            "split": int(self.cfg.split),
            "version": VERSION_CODE,
        }
        return sum(isa.MXINFO[name].put(value) for name, value in values.items())

    def _xuantie_csr(self, number: int) -> isa.XCsr | None:
        return None if self.xuantie is None else self.xuantie.csr(number)

    def _csr_is_read_only(self, number: int) -> bool:
        own = self._xuantie_csr(number)
        if own is not None:
            return self.xuantie.csr_is_read_only(own)
        return self._numbers.get(number) in isa.READ_ONLY

    def _csr_read(self, number: int) -> int:
        if number == isa.XMCSR:
            return self.ms
        own = self._xuantie_csr(number)
        if own is not None:
            return self.xuantie.csr_read(own)
        csr = self._numbers.get(number)
        if csr is None:
            raise IllegalError
        return self._info if csr is isa.Csr.MXINFO else self.csrs[csr]

    def _csr_write(self, number: int, value: int) -> None:
        if number == isa.XMCSR:
            self.ms = isa.XMCSR_FIELDS["ms"].get(value)
            return
        own = self._xuantie_csr(number)
        if own is not None:
            self.xuantie.csr_write(own, value)
            return
        csr = self._numbers[number]
        bits = {
            isa.Csr.MXCFG: isa.MXCFG_BITS,
            isa.Csr.MXTILE: isa.MXTILE_BITS,
            isa.Csr.MXSTATUS: isa.MXSTATUS_BITS,
        }.get(csr, 64)
        self.csrs[csr] = value & ((1 << bits) - 1)

    def _prepare_csr(
        self, name: str, operands: Mapping[str, int], rs1: int
    ) -> Callable[[], Response]:
        number, rd = operands["csr"], operands["rd"]
        old = self._csr_read(number)
        immediate = name.endswith("i")
        source = operands["uimm"] if immediate else operands["rs1"]
        operand = source if immediate else rs1
        kind = name[4]
        writes = kind == "w" or source != 0
        if writes and self._csr_is_read_only(number):
            raise IllegalError
        new = {"w": operand, "s": old | operand, "c": old & ~operand}[kind]

        def perform() -> Response:
            if writes:
                self._csr_write(number, new)
            return Response(wb=1, rd=rd, data=old) if rd else Response()

        return perform

    def _set_status(self, bits: int) -> None:
        self.csrs[isa.Csr.MXSTATUS] |= bits

    def set_flags(self, flags: int) -> None:
        """Set the bits of mxstatus for `numerics.FLAG_NAMES`."""
        self._set_status(flags << STATUS_FLAGS_LO)

    def _check_settings(self) -> Settings:
        key = self.csrs[isa.Csr.MXCFG], self.csrs[isa.Csr.MXTILE]
        found = self._settings.get(key)
        if found is None:
            found = self._settings[key] = Settings.check(self.cfg, *key)
        return found

    # -- elements -----------------------------------------------------------------------------

    @staticmethod
    def _elements(rows: np.ndarray, container: int) -> np.ndarray:
        """Codes in rows of bytes, low nibble first."""
        if container == 4:
            return np.stack([rows & 15, rows >> 4], axis=-1).reshape(*rows.shape[:-1], -1)
        return np.ascontiguousarray(rows).view(f"<u{container // 8}")

    # -- mmacc --------------------------------------------------------------------------------

    def _operand(
        self, tiles: list[tuple[int, int]], settings: Settings, transposed: bool
    ) -> np.ndarray:
        """The active rows of all tiles of A or of B, one under the other."""
        container = settings.fmt.container
        parts = []
        for tile, rows in tiles:
            if rows:
                elements = self._elements(self.tiles[tile], container)
                elements = elements.T if transposed else elements
                parts.append(elements[:rows, : settings.k])
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def _prepare_mmacc(self, operands: Mapping[str, int]) -> Callable[[], None]:
        imm = {name: field.get(operands["imm"]) for name, field in isa.IMM.items()}
        btr = imm["btr"] ^ isa.BTR_NATIVE
        s = self._check_settings()
        plan = plan_mma(self.cfg, s, operands["tc"], operands["ta"], operands["tb"], btr)
        return lambda: self._mmacc(s, plan, btr, imm["alpha"], imm["beta"])

    def _mmacc(self, s: Settings, plan: Mma, btr: int, alpha: int, beta: int) -> None:
        # Bit 1 of bTR transposes A; B is held N x K, so B itself is transposed when bit 0 is clear.
        a = self._operand(plan.a_tiles, s, bool(btr & 2))
        b = self._operand(plan.b_tiles, s, not btr & 1)
        c = np.zeros((len(a), len(b)), f"<u{s.out.container // 8}")
        places = list(self._c_places(plan, s))
        if not beta:
            for view, rows, columns in places:
                c[rows, columns] = view
        fields = {"bovf": s.bovf, "acc": s.acc, "rnd": s.rnd, "sat": s.sat}
        d, flags = mma(s.fmt.name, a, b, c, alpha=alpha, beta=beta, config=self.cfg, **fields)
        for view, rows, columns in places:
            view[...] = d[rows, columns]
        self.set_flags(int(np.bitwise_or.reduce(flags, axis=None)))
        if plan.fallback:
            self._set_status(isa.MXSTATUS["guard_fallback"].mask)
        self.tiles_written()

    def _c_places(self, plan: Mma, s: Settings) -> Iterator[tuple[np.ndarray, slice, slice]]:
        """Views of the active part of each tile of C, with its rows and columns in the macro."""
        dtype = f"<u{s.out.container // 8}"
        per_slice = s.slice_columns(self.cfg)
        top = 0
        for i, (_, rows) in enumerate(plan.a_tiles):
            left = 0
            for j, (_, columns) in enumerate(plan.b_tiles):
                for first in range(0, columns, per_slice) if rows else ():
                    width = min(per_slice, columns - first)
                    tile = self._c_tile(plan.groups[i][j] + first // per_slice)
                    yield (
                        tile[:rows].view(dtype)[:, :width],
                        slice(top, top + rows),
                        slice(left + first, left + first + width),
                    )
                left += columns
            top += rows

    def _c_tile(self, tile: int) -> np.ndarray:
        """A tile of the file that holds C."""
        return self.tiles[self.cfg.c_first + tile]

    # -- loads and stores ---------------------------------------------------------------------

    @property
    def _can_fail(self) -> bool:
        return getattr(self.memory, "can_fail", False)

    def _blocks(self, what: str, operands: Mapping[str, int]) -> list[Block]:
        settings = None if what == "r" else self._check_settings()
        return named_blocks(
            self.cfg, what, operands["tile"], operands["n"], bool(operands["down"]), settings
        )

    def _file(self, operands: Mapping[str, int], other: bool = False) -> np.ndarray:
        """The tiles of the file that an instruction names; `other`: of the one it does not."""
        in_c = bool(operands["cfile"]) != other
        return self.tiles[self.cfg.c_first :] if in_c else self.tiles

    def check_base(self, base: int) -> None:
        """Raises `BusTrapError` for an address beyond the bus."""
        if base >> self.cfg.addr_bits:
            raise BusTrapError

    def _transfers(
        self, blocks: list[Block], base: int, stride: int
    ) -> Iterator[tuple[list[Block], slice, int]]:
        """(neighbouring blocks, rows, address) of every piece of memory, in the order of its rows.

        The blocks' rows lie there one after the other, each as far as it is active.
        """
        mask = (1 << self.cfg.addr_bits) - 1
        active = [block for block in blocks if block.active]
        for first in sorted({block.mem_row for block in active}):
            runs: list[list[Block]] = []
            for block in active:
                if block.mem_row == first:
                    if runs and runs[-1][-1].mem_byte + runs[-1][-1].bytes == block.mem_byte:
                        runs[-1].append(block)
                    else:
                        runs.append([block])
            rows = runs[0][0].rows
            start = base + first * stride
            whole = len(runs) == 1 and stride == sum(block.bytes for block in runs[0])
            step = rows if whole else 1
            for row in range(0, rows, step):
                for run in runs:
                    address = start + row * stride + run[0].mem_byte
                    yield run, slice(row, row + step), address & mask

    def _prepare_load(
        self, what: str, operands: Mapping[str, int], base: int, stride: int
    ) -> Callable[[], None]:
        blocks = self._blocks(what, operands)
        check_range([block.tile for block in blocks], self.cfg)
        self.check_base(base)
        return lambda: self._load(self._file(operands), blocks, base, stride)

    def _load(self, tiles: np.ndarray, blocks: list[Block], base: int, stride: int) -> None:
        for block in blocks:
            tiles[block.tile] = 0
        for run, rows, address in self._transfers(blocks, base, stride):
            width = sum(block.bytes for block in run)
            size = width * (rows.stop - rows.start)
            content = self.read_bytes(address, size).reshape(-1, width)
            first = 0
            for block in run:
                part = content[:, first : first + block.bytes]
                tiles[block.tile, rows, : block.bytes] = part
                first += block.bytes
        for block in blocks:
            if block.active and block.bits % 8:
                tiles[block.tile, : block.rows, block.bytes - 1] &= SPARE_NIBBLE
        self.tiles_written()

    def read_bytes(self, address: int, size: int) -> np.ndarray:
        """Bytes of memory as a load gets them, errors of the bus noted."""
        content = np.frombuffer(self.memory.read(address, size), np.uint8)
        return self._failed_beats(content, address) if self._can_fail else content

    def write_bytes(self, address: int, content: np.ndarray) -> None:
        """Write memory as a store does, errors of the bus noted."""
        if self._can_fail and self.memory.write_fails(address, content.size):
            self._bus_error()
        self.memory.write(address, content.tobytes())

    def _failed_beats(self, content: np.ndarray, address: int) -> np.ndarray:
        """`content` with zeros where a beat came with an error."""
        size = self.cfg.bus_bytes
        content = content.copy()
        for beat in range(address - address % size, address + len(content), size):
            if self.memory.read_fails(beat, size):
                content[max(0, beat - address) : beat + size - address] = 0
                self._bus_error()
        return content

    def _prepare_store(
        self, what: str, operands: Mapping[str, int], base: int, stride: int
    ) -> Callable[[], None]:
        blocks = self._blocks(what, operands)
        check_range([block.tile for block in blocks if block.active], self.cfg)
        self.check_base(base)
        return lambda: self._store(self._file(operands), blocks, base, stride)

    def _store(self, tiles: np.ndarray, blocks: list[Block], base: int, stride: int) -> None:
        for run, rows, address in self._transfers(blocks, base, stride):
            parts = []
            for block in run:
                part = tiles[block.tile, rows, : block.bytes]
                if block.bits % 8:
                    part = part.copy()
                    part[:, -1] &= SPARE_NIBBLE
                parts.append(part)
            content = np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
            self.write_bytes(address, content)

    def _bus_error(self) -> None:
        self.bus_pending = True
        self._set_status(isa.MXSTATUS["bus_error"].mask)

    # -- moves --------------------------------------------------------------------------------

    def _group(self, file: np.ndarray, first: int, count: int) -> np.ndarray:
        require(first + count <= self.cfg.tiles)
        return file[first : first + count]

    def _prepare_move(
        self, name: str, operands: Mapping[str, int], rs1: int, rs2: int
    ) -> Callable[[], Response | None]:
        cfg = self.cfg
        kind, _, suffix = name.partition(".")
        size = 1 << SIZE_SUFFIXES.index(suffix) if suffix else 1
        count = operands.get("n", 1)
        if kind == "mtrans":
            count = moves.group_tiles(cfg.rows, cfg.row_bytes, size)
        source = target = None
        if "ts" in operands:
            file = self._file(operands, other=kind == "mmovf")
            source = self._group(file, operands["ts"], count)
        if "td" in operands:
            target = self._group(self._file(operands), operands["td"], count)
        if kind in ("mmov", "mtrans"):
            distance = abs(operands["td"] - operands["ts"])
            require(distance == 0 or distance >= count)
        limits = {
            "mbcrow": cfg.rows,
            "mbccol": cfg.row_bytes // size,
            "mget": cfg.rows * cfg.row_bytes // size,
        }
        require(kind not in limits or rs2 < limits[kind])
        if kind == "mget":
            return lambda: self._mget(source[0], rs2, size, operands["rd"])
        result = {
            "mzero": lambda: 0,
            "mmov": lambda: source,
            "mmovf": lambda: source,
            "mtrans": lambda: moves.transposed(source, size),
            "mbcrow": lambda: moves.broadcast_row(source[0], rs2),
            "mbccol": lambda: moves.broadcast_column(source[0], rs2, size),
            "mbcast": lambda: moves.broadcast_scalar(cfg.rows, cfg.row_bytes, rs1, size),
        }[kind]

        def perform() -> None:
            target[...] = result()
            self.tiles_written()

        return perform

    @staticmethod
    def _mget(tile: np.ndarray, index: int, size: int, rd: int) -> Response:
        return Response(wb=1, rd=rd, data=moves.element(tile, index, size)) if rd else Response()

    # -- vector mode --------------------------------------------------------------------------

    def _prepare_vector(self, name: str, operands: Mapping[str, int]) -> Callable[[], None]:
        s = self._check_settings()
        require(s.m <= self.cfg.rows)
        x, y = (self._group(self.tiles, operands[tile], 1)[0] for tile in ("tx", "ty"))
        out = s.out if operands["wide"] else s.fmt
        per_tile = self.cfg.lanes(out.container)
        written = self._group(self._file(operands), operands["tz"], -(-s.k // per_tile))
        return lambda: self._vector(VECTOR_OPS[name], s, out, x, y, written)

    def _vector(
        self,
        op: isa.VectorOp,
        s: Settings,
        out: formats.Format,
        x: np.ndarray,
        y: np.ndarray,
        written: np.ndarray,
    ) -> None:
        x, y = (self._elements(tile, s.fmt.container)[: s.m, : s.k] for tile in (x, y))
        rows = np.concatenate(list(written), axis=1)
        z = self._elements(rows, out.container).copy()
        sat = saturates(s.fmt, out, bovf=s.bovf, acc=s.acc, sat=s.sat)
        z[: s.m, : s.k], flags = vector(s.fmt, out, op, x, y, z[: s.m, : s.k], rnd=s.rnd, sat=sat)
        rows = z.view(np.uint8) if out.container > 4 else z[:, 0::2] | z[:, 1::2] << 4
        written[...] = np.stack(np.split(rows, len(written), axis=1))
        self.set_flags(int(np.bitwise_or.reduce(flags, axis=None)))
        self.tiles_written()
