"""Seeded random programs over everything that is built, traps included.

A program sets all state first, so that it may run again without a reset, and ends with the whole
tile file in memory and the CSRs in responses. Overlapping memory accesses of different
instructions are kept apart by mfence, as isa.md section 3 demands; the architectural model, run
along, says what each instruction touches. What really occurred is counted by name.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hdl import isa
from hdl.config import Config
from hdl.formats import FORMATS, acc_mode, by_code, output_format

from .memory import Memory
from .program import Program, Request, mxcfg_value, mxtile_value
from .random_moves import random_move, random_vector
from .random_traps import random_trap
from .reference.geometry import Mma
from .reference.machine import Machine, Response

__all__ = ["Generator", "RandomProgram", "random_program"]

ERROR_NAMES = ("none", "illegal", "badgeom", "bus")
TRIES = 12
"""Random operands tried for one legal instruction before another kind is drawn."""

EXTREME_BYTES = (0x00, 0x01, 0x7F, 0x80, 0x81, 0xFF)


@dataclass
class RandomProgram:
    """A program, the memory it starts from, and what it covers.

    Parameters
    ----------
    cfg : the core it is for.
    program : the requests.
    regions : base and first content of every region; nothing outside is touched.
    dump : address of the tile file at the end, as `Program.store_tiles` lays it out.
    responses : what the model answers, request by request.
    coverage : how often each named point occurred.
    """

    cfg: Config
    program: Program
    regions: list[tuple[int, np.ndarray]]
    dump: int
    responses: list[Response] = field(default_factory=list)
    coverage: Counter[str] = field(default_factory=Counter)

    def memory(self) -> Memory:
        """A new memory with the regions' first content."""
        memory = Memory(self.cfg.addr_bits)
        for base, content in self.regions:
            memory.add_region(base, content.copy())
        return memory


def _random_bytes(rng: random.Random, size: int) -> np.ndarray:
    """Random bytes with runs of extreme ones."""
    content = np.frombuffer(rng.randbytes(size), np.uint8).copy()
    at = 0
    while at < size:
        length = rng.randint(1, 96)
        if rng.random() < 0.4:
            choice = rng.sample(EXTREME_BYTES, rng.randint(1, 3))
            run = rng.choices(choice, k=min(length, size - at))
            content[at : at + len(run)] = run
        at += length
    return content


class _Ranges:
    """Byte ranges of accesses that no fence has ordered yet."""

    def __init__(self) -> None:
        self.read: list[tuple[int, int]] = []
        self.written: list[tuple[int, int]] = []

    @staticmethod
    def _meet(ones: list[tuple[int, int]], others: list[tuple[int, int]]) -> bool:
        return any(a < d and c < b for a, b in ones for c, d in others)

    def conflict(self, ranges: list[tuple[int, int]], writes: bool) -> bool:
        """Must a fence come before an access to these ranges?"""
        if self._meet(ranges, self.written):
            return True
        return writes and self._meet(ranges, self.read)

    def add(self, ranges: list[tuple[int, int]], writes: bool) -> None:
        """Note an access."""
        (self.written if writes else self.read).extend(ranges)


class Generator:
    """A program that grows by random instructions, with the model running along.

    Parameters
    ----------
    cfg, rng, arena_bytes : as for `random_program`.
    """

    def __init__(self, cfg: Config, rng: random.Random, arena_bytes: int):
        self.cfg, self.rng = cfg, rng
        self.program = Program(cfg)
        self.coverage: Counter[str] = Counter()
        self.responses: list[Response] = []
        self.pending = _Ranges()
        self.fmts = [fmt.name for fmt in cfg.format_rows]
        self._place(arena_bytes)
        memory = Memory(cfg.addr_bits)
        for base, content in self.regions:
            memory.add_region(base, content.copy())
        self.machine = Machine(cfg, memory)

    # -- memory layout ------------------------------------------------------------------------

    def _place(self, arena_bytes: int) -> None:
        """Regions: first tiles, last tiles, an arena, and one that wraps round the address 0."""
        rng, space = self.rng, 1 << self.cfg.addr_bits
        size = self.program.file_bytes
        edge = min(2048, space // 16)
        room = space - 2 * edge - 2 * size - arena_bytes
        if room < 0:
            raise ValueError(
                f"no room for {arena_bytes} bytes in {self.cfg.addr_bits} address bits: use fewer"
            )
        gaps = sorted(rng.randint(0, min(room, 1 << 30)) for _ in range(3))
        start = edge + gaps[0]
        self.init = start if rng.random() < 0.3 else start & ~0x3F
        self.init = max(self.init, edge)
        self.dump = self.init + size + gaps[1] - gaps[0]
        arena = self.dump + size + gaps[2] - gaps[1]
        self.arenas = [(arena, arena_bytes), (space - edge, 2 * edge)]
        self.regions = [
            (base, _random_bytes(rng, length))
            for base, length in (
                (self.init, size),
                (self.dump, size),
                (arena, arena_bytes),
                (space - edge, edge),
                (0, edge),
            )
        ]

    # -- appending ----------------------------------------------------------------------------

    def count(self, *points: str) -> None:
        """Note that these points occurred."""
        self.coverage.update(points)

    def _ranges(self, request: Request) -> list[tuple[int, int]]:
        """Byte ranges of an access, cut where addresses wrap."""
        space = 1 << self.cfg.addr_bits
        found = []
        for address, size in self.machine.footprint(request.inst, request.rs1, request.rs2):
            end = address + size
            found.append((address, min(end, space)))
            if end > space:
                found.append((0, end - space))
        return found

    def append(self, build: Callable[[Program], Request]) -> Response:
        """Add one request, after a fence if it needs one, and let the model execute it."""
        request = self.draft(build)
        name = getattr(isa.decode(request.inst), "name", "")
        ranges = self._ranges(request)
        writes = name.startswith(("mst", "msst"))
        if self.pending.conflict(ranges, writes):
            self.count("fence between overlapping accesses")
            self._fence()
        self.pending.add(ranges, writes)
        self.program.requests.append(request)
        response = self.machine.execute(request.inst, request.rs1, request.rs2)
        self.responses.append(response)
        if name == "mfence" and response.error == 0:
            self.pending = _Ranges()
        self.count(f"error {ERROR_NAMES[response.error]}")
        if not response.error:
            self.count(name)
        return response

    def draft(self, build: Callable[[Program], Request]) -> Request:
        """A request that is not part of the program yet."""
        return build(Program(self.cfg))

    def _fence(self) -> None:
        """A fence that counts, also where the tiles are off."""
        if self.machine.ms == isa.MsState.OFF:
            self.append(lambda p: p.csrrwi("xmcsr", isa.MsState.DIRTY))
        self.append(lambda p: p.mfence())

    def trap_of(self, request: Request) -> int:
        """How the model would trap on it."""
        return self.machine.trap(request.inst, request.rs1, request.rs2)

    # -- settings -----------------------------------------------------------------------------

    def _legal_cfg(self) -> int:
        rng = self.rng
        name = rng.choice(self.fmts)
        modes = [
            (bovf, acc)
            for acc in range(4)
            for bovf in range(2)
            if output_format(FORMATS[name], acc_mode(bovf, acc)) is not None
        ]
        bovf, acc = rng.choice(modes)
        code = 0 if name == "int8" and rng.random() < 0.3 else FORMATS[name].code
        return mxcfg_value(code, bovf=bovf, acc=acc, rnd=rng.randrange(4), sat=rng.randrange(2))

    def _count_of_rows(self, tiles: int) -> int:
        """A value of M or N for a macro of `tiles` tiles: per tile, or its total."""
        rng, rows = self.rng, self.cfg.rows
        if tiles > 1 and rng.random() < 0.3:
            return rng.randint(rows + 1, rows * tiles)
        return rng.choice((rows, rows, rng.randint(1, rows), 1))

    def _legal_tile(self) -> int:
        rng = self.rng
        tiling, guard4x4 = rng.choice(list(isa.Tiling)), rng.random() < 0.3
        a_tiles, b_tiles = tiling.a_tiles, tiling.b_tiles
        if guard4x4:
            a_tiles = b_tiles = rng.choice((2, 4))  # what a refused 4x4 still holds, or more
        lanes = self.cfg.lanes(self.lane_bits)
        k = rng.choice((lanes, lanes, rng.randint(1, lanes)))
        m, n = self._count_of_rows(a_tiles), self._count_of_rows(b_tiles)
        if rng.random() < 0.3 and m <= self.cfg.rows * b_tiles:
            n = 0
        if rng.random() < 0.15:  # what bTR wants
            k, m, n = lanes, self.cfg.rows, rng.choice((0, self.cfg.rows))
        return mxtile_value(k, m, n, tiling=tiling, guard4x4=guard4x4)

    @property
    def lane_bits(self) -> int:
        """Container of the operands that mxcfg now selects."""
        code = isa.MXCFG["ft"].get(self.machine.csrs[isa.Csr.MXCFG])
        found = [f for f in FORMATS.values() if f.code == code]
        return found[0].container if found else 8

    def set_legal(self, read: bool = True) -> None:
        """New legal values of mxcfg and mxtile; `read`: return the old ones in random registers."""
        for csr, draw in (("mxcfg", self._legal_cfg), ("mxtile", self._legal_tile)):
            value = draw()
            rd = self.rng.randrange(32) if read else 0
            if self.rng.random() < 0.2:
                self.append(lambda p, csr=csr, rd=rd: p.csrrc(csr, -1, rd))
                self.append(lambda p, csr=csr, value=value, rd=rd: p.csrrs(csr, value, rd))
                self.count("settings by csrrc and csrrs")
                continue
            if self.rng.random() < 0.2:
                value |= self.rng.getrandbits(32) << 32
                self.count("settings with bits above the register")
            self.append(lambda p, csr=csr, value=value, rd=rd: p.csrrw(csr, value, rd))

    # -- one instruction of each kind -----------------------------------------------------------

    def in_c_file(self, share: float) -> bool:
        """Whether an instruction works on the C file: `share` of them, where there is one."""
        return self.cfg.split and self.rng.random() < share

    def load_or_store(self, letters: str = "abccr", store: bool | None = None) -> bool:
        """A legal load or store inside a region; False where none was found."""
        rng, cfg = self.rng, self.cfg
        if store is None:
            store = rng.random() < 0.4
        for _ in range(TRIES):
            what, n = rng.choice(letters), rng.choice((1, 1, 2, 4, 8))
            options = {"n": n, "down": rng.random() < 0.5, "stream": rng.random() < 0.2}
            options["cfile"] = self.in_c_file(0.8 if what == "c" else 0.2)
            tile = rng.randrange(rng.choice((cfg.tiles, 4)))
            stride = self._stride(n * cfg.rows if options["down"] else cfg.rows)

            def build(p: Program, base: int, what=what, tile=tile, stride=stride, options=options):
                move = p.mst if store else p.mld
                return move(what, tile, base, stride, **options)

            draft = self.draft(lambda p, build=build: build(p, 0))
            if self.trap_of(draft):
                continue
            base = self._base(draft, stride)
            if base is None:
                continue
            self._count_access(what, options, base, stride)
            if rng.random() < 0.1:  # bits above the bus's addresses do not matter
                stride += rng.getrandbits(63 - cfg.addr_bits) << cfg.addr_bits
                self.count("stride with bits above the address")
            self.append(lambda p, build=build, base=base, s=stride: build(p, base, stride=s))
            return True
        return False

    def _stride(self, rows: int) -> int:
        """A stride so that `rows` rows fit in the arena."""
        rng, cfg = self.rng, self.cfg
        most = self.arenas[0][1] // (rows + 2)
        stride = rng.choice(
            (
                0,
                cfg.row_bytes,
                cfg.row_bytes * rng.choice((2, 4, 8)),
                cfg.line_bytes,
                rng.randint(1, cfg.row_bytes - 1),
                rng.randint(1, 3 * cfg.line_bytes),
                rng.randint(1, most),
            )
        )
        stride = min(stride, most)
        return -stride if rng.random() < 0.35 else stride

    def _base(self, draft: Request, stride: int) -> int | None:
        """A base address for which all of the access lies in one arena."""
        rng, space = self.rng, 1 << self.cfg.addr_bits
        half = space // 2
        ends = []
        for address, size in self.machine.footprint(draft.inst, 0, draft.rs2):
            start = address - space if address >= half else address
            ends.append((start, start + size))
        low = min((start for start, _ in ends), default=0)
        high = max((end for _, end in ends), default=0)
        arena, size = self.arenas[rng.random() < 0.15]
        if high - low > size:
            return None
        base = rng.randint(arena - low, arena + size - high)
        if rng.random() < 0.5:
            aligned = base - base % rng.choice((self.cfg.bus_bytes, self.cfg.line_bytes))
            if aligned >= arena - low:
                base = aligned
        return base % space

    def _count_access(self, what: str, options: dict, base: int, stride: int) -> None:
        cfg = self.cfg
        direction = "down" if options["down"] else "along"
        if options["cfile"]:
            self.count(f"{what} in the C file")
        self.count(f"{what} n={options['n']} {direction}")
        self.count("base aligned" if base % cfg.bus_bytes == 0 else "base unaligned")
        if stride == 0:
            self.count("stride zero")
        elif stride < 0:
            self.count("stride negative")
        if stride % cfg.bus_bytes:
            self.count("stride unaligned")
        if 0 < abs(stride) < cfg.row_bytes:
            self.count("stride below a row")
        if base >= self.arenas[1][0] or base < self.arenas[1][1] // 2:
            self.count("access near the wrap of addresses")

    def mmacc(self) -> bool:
        """A legal mmacc; False where none was found."""
        rng, cfg = self.rng, self.cfg
        half = cfg.tiles // 2
        for _ in range(TRIES):
            if rng.random() < 0.7:
                tc = rng.choice((0, rng.randrange(half)))
                ta, tb = (rng.randrange(half, cfg.tiles - 3) for _ in range(2))
            else:
                tc, ta, tb = (rng.randrange(cfg.tiles) for _ in range(3))
            alpha, beta = rng.random() < 0.3, rng.random() < 0.3
            btr = rng.randrange(4) if rng.random() < 0.6 else isa.BTR_NATIVE

            def build(p: Program, tc=tc, ta=ta, tb=tb, alpha=alpha, beta=beta, btr=btr):
                return p.mmacc(tc, ta, tb, alpha=alpha, beta=beta, btr=btr)

            if not self.trap_of(self.draft(build)):
                before = self.machine.status
                plan = self.machine.mma_plan(self.draft(build).inst)
                for _ in range(rng.choice((1, 1, 1, 2, 3))):  # again into the same C
                    self.append(build)
                self._count_mma(plan, alpha, beta, before)
                self.count(f"mmacc bTR {btr:02b}")
                return True
        return False

    def _count_mma(self, plan: Mma, alpha: bool, beta: bool, before: int) -> None:
        cfg, machine = self.cfg, self.machine
        ta, tb = plan.a_tiles[0][0], plan.b_tiles[0][0]
        mode = f"{len(plan.a_tiles)}x{len(plan.b_tiles)}"
        c = {n: f.get(machine.csrs[isa.Csr.MXCFG]) for n, f in isa.MXCFG.items()}
        t = {n: f.get(machine.csrs[isa.Csr.MXTILE]) for n, f in isa.MXTILE.items()}
        n = t["n"] or t["m"]
        self.count(f"mmacc tiling {mode}", f"mmacc {mode} of {self._out_bits(c)} bit")
        self.count(f"mmacc bovf={c['bovf']} acc={c['acc']} sat={c['sat']}")
        points = {
            "mmacc alpha": alpha,
            "mmacc beta": beta,
            "mmacc accumulates": not beta,
            "mmacc A is B": ta == tb,
            "K tail": t["k"] < cfg.lanes(self.lane_bits),
            "M tail": t["m"] % cfg.rows != 0,
            "N tail": n % cfg.rows != 0,
            "M total": t["m"] > cfg.rows,
            "N total": n > cfg.rows,
            f"ragged {mode}": any(
                rows < cfg.rows < total
                for total, tiles in ((t["m"], plan.a_tiles), (n, plan.b_tiles))
                for _, rows in tiles
            ),
            "guard falls back": plan.fallback,
            "N differs from M": n != t["m"],
            "N from M": not t["n"],
            "sat_hit": bool((machine.status & ~before) & isa.MXSTATUS["sat_hit"].mask),
        }
        self.count(*(point for point, occurred in points.items() if occurred))

    @staticmethod
    def _out_bits(c: dict[str, int]) -> int:
        """Container of the output that the fields of mxcfg select."""
        return output_format(by_code(c["ft"]), acc_mode(c["bovf"], c["acc"])).container

    def move(self) -> bool:
        """A legal move; False where none was found."""
        return random_move(self)

    def vector(self) -> bool:
        """A legal operation of the vector mode; False where none was found."""
        return random_vector(self)

    def csr_access(self) -> bool:
        """A CSR instruction that keeps mxcfg and mxtile legal."""
        rng = self.rng
        rd = rng.randrange(32)
        csr = rng.choice(("mxcfg", "mxtile", "mxstatus", "mxstatus", "mxinfo", "xmcsr"))
        kind = rng.randrange(5)
        if kind == 0:
            self.append(lambda p: p.csrr(csr, rd))
            self.count("csr read only")
        elif kind == 1:
            name = rng.choice(("csrrsi", "csrrci"))
            self.append(lambda p: getattr(p, name)(csr, 0, rd))
            self.count("csr immediate 0 does not write")
        elif kind == 2:
            self.append(lambda p: p.emit("csrrc", rd, csr, 0, rs1=rng.getrandbits(64)))
            self.count("csrrc of x0 does not write")
        else:
            name = rng.choice(("csrrw", "csrrs", "csrrc"))
            value = rng.getrandbits(64)
            if rng.random() < 0.4:
                name, value = f"{name}i", rng.getrandbits(5)
            self.append(lambda p: getattr(p, name)("mxstatus", value, rd))
            self.count("mxstatus written")
        return True

    def fence(self) -> bool:
        """mfence."""
        self.append(lambda p: p.mfence())
        return True

    def release(self) -> bool:
        """mrelease, and what xmcsr says."""
        if self.rng.random() < 0.5:
            self.append(lambda p: p.mrelease())
        self.append(lambda p: p.csrr("xmcsr", self.rng.randrange(1, 32)))
        self.count(f"xmcsr MS {self.machine.ms}")
        return True

    def off(self) -> bool:
        """Everything but CSR accesses while the tiles are off."""
        rng = self.rng
        self.append(lambda p: p.csrrwi("xmcsr", isa.MsState.OFF))
        for name in rng.sample(("mfence", "mrelease", "mzero", "mmacc", "mst"), 2):
            build = {
                "mfence": lambda p: p.mfence(),
                "mrelease": lambda p: p.mrelease(),
                "mzero": lambda p: p.mzero(0),
                "mmacc": lambda p: p.mmacc(0, 1, 2),
                "mst": lambda p: p.mst("r", 0, self.arenas[0][0], self.cfg.row_bytes),
            }[name]
            if self.append(build).error == 1:
                self.count("illegal while off")
        self.append(lambda p: p.csrrsi("xmcsr", rng.choice((1, 2, 3)), rng.randrange(32)))
        return True

    def expect(self, name: str, error: int, build: Callable[[Program], Request]) -> None:
        """Append what should trap; count it under its name if the model agrees."""
        if self.append(build).error == error:
            self.count(name)

    def trap(self) -> bool:
        """One trap of a random kind."""
        random_trap(self)
        return True

    # -- whole program ----------------------------------------------------------------------------

    def begin(self) -> None:
        """Set all state, so that nothing of an earlier program shows."""
        self.append(lambda p: p.csrrwi("xmcsr", isa.MsState.INITIAL))
        self.append(lambda p: p.mfence())
        self.append(lambda p: p.csrrw("mxstatus", 0))
        draft = Program(self.cfg)
        draft.load_tiles(self.init)
        for request in draft:
            self.append(lambda p, r=request: r)
        self.set_legal(read=False)

    def body(self, length: int) -> None:
        """`length` random instructions or more."""
        kinds = {
            self.load_or_store: 34,
            self.mmacc: 24,
            self.move: 10,
            self.vector: 10 if self.cfg.has_vector else 0,
            self.csr_access: 8,
            self.trap: 13,
            self.fence: 3,
            self.release: 2,
            self.off: 1,
        }
        end = len(self.program) + length
        while len(self.program) < end:
            if self.rng.random() < 0.15:
                self.set_legal()
            else:
                self.rng.choices(list(kinds), list(kinds.values()))[0]()

    def end(self) -> None:
        """All state to memory and responses."""
        self._fence()
        draft = Program(self.cfg)
        draft.store_tiles(self.dump)
        for request in draft:
            self.append(lambda p, r=request: r)
        self.append(lambda p: p.mfence())
        for csr in ("mxstatus", "mxcfg", "mxtile", "xmcsr"):
            self.append(lambda p, csr=csr: p.csrr(csr))


def random_program(
    cfg: Config, rng: random.Random, length: int = 30, *, arena_bytes: int = 1 << 14
) -> RandomProgram:
    """A program of `length` random instructions (a few more), with its first and last ones.

    Parameters
    ----------
    cfg : the core.
    rng : the only source of chance; the same state gives the same program.
    length : random instructions between setting all state and storing it.
    arena_bytes : size of the region that most loads and stores work in.
    """
    generator = Generator(cfg, rng, arena_bytes)
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
