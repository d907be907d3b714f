"""The one frozen description of a core, its derived sizes and its named presets (pure Python)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from . import formats as fmt_table
from .formats import Format

__all__ = ["PRESETS", "Config", "ConfigError", "preset"]

VERSION_CODE = 1
"""mxinfo[54:47]."""

FRONTENDS = ("ame", "xuantie")
"""What `Config.frontends` may name."""

REGISTERS = 8
"""Tile registers of the front end "xuantie"."""

UNITS = ("vector",)
"""What `Config.units` may name."""


class ConfigError(ValueError):
    """A configuration that cannot be built: one line that says what is wrong and how to mend it."""


def _log2(value: int) -> int:
    return value.bit_length() - 1


def _is_pow2(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything that shapes one core. Raises `ConfigError` on the first fault found.

    Parameters
    ----------
    name : preset name, for messages only.
    frontends : decoders built: "ame" (isa.md section 2) and "xuantie" (section 1).
    tiles : tile registers of a file.
    rows : rows of a tile.
    row_bits : bits of a tile row.
    banks : banks of a file; a bank holds tiles / banks neighbouring tiles.
    m_par, n_par : rows of A and rows of B multiplied at once; a stored word is m_par rows.
    slots : instructions waiting or being split at once, 1 to 8.
    formats : operand formats built, by name or by profile (`formats.PROFILES`); held in Ft-code
        order.
    accumulators : "unified" (C in the one tile file) or "split" (C in a second file of as many
        tiles and banks).
    addr_bits : bits of an L2 byte address.
    bus_bits : bits of one L2 beat.
    line_bytes : bytes of a cache line; no request crosses one.
    l2_ids : ids of each L2 channel, so requests in flight.
    tag_bits : bits of the host's request tag.
    csr_base : number of the first CSR, mxcfg.
    exact_limit : widest exact float sum, in bits; wider formats are windowed.
    window : fraction bits kept below the largest product, by format name.
    mma_destinations : registers of the front end "xuantie" that its mma may write.
    xuantie_bf16 : its 16-bit float is BF16, else FP16.
    tile_memory : "any", or "block": synthesis is told to hold tiles in block RAM.
    units : optional units built: "vector" ("mx", "pool", "symstat": later releases).
    cells : cells of a cluster (later releases build more than 1).
    """

    name: str = "custom"
    frontends: tuple[str, ...] = ("ame",)
    tiles: int = 32
    rows: int = 16
    row_bits: int = 128
    banks: int = 4
    m_par: int = 4
    n_par: int = 4
    slots: int = 8
    formats: tuple[str, ...] = ("int8",)
    accumulators: str = "unified"
    addr_bits: int = 40
    bus_bits: int = 128
    line_bytes: int = 64
    l2_ids: int = 32
    tag_bits: int = 8
    csr_base: int = 0x7C0
    exact_limit: int = 96
    window: Mapping[str, int] = field(default_factory=dict, hash=False)
    mma_destinations: tuple[str, ...] = tuple(f"m{n}" for n in range(REGISTERS))
    xuantie_bf16: bool = False
    tile_memory: str = "any"
    units: tuple[str, ...] = ()
    cells: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "window", MappingProxyType(dict(self.window)))
        self._check_types()
        self._check_sizes()
        self._check_features()

    # -- checks ------------------------------------------------------------------------------

    def _check_types(self) -> None:
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if f.type == "int" and (isinstance(value, bool) or not isinstance(value, int)):
                raise ConfigError(f"{f.name} must be a whole number, not {value!r}")
            if f.type == "bool" and not isinstance(value, bool):
                raise ConfigError(f"{f.name} must be True or False, not {value!r}")
            if f.type.startswith("tuple") and not (
                isinstance(value, tuple) and all(isinstance(item, str) for item in value)
            ):
                raise ConfigError(f"{f.name} must be a tuple of names, not {value!r}")

    def _check_sizes(self) -> None:
        limits = {  # inclusive; all powers of two
            "tiles": (2, 32),
            "rows": (2, 16),
            "row_bits": (64, 512),
            "banks": (1, 8),
            "m_par": (1, 8),
            "n_par": (1, 8),
            "bus_bits": (64, 512),
            "line_bytes": (16, 128),
            "l2_ids": (1, 32),
        }
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            if not _is_pow2(value) or not low <= value <= high:
                raise ConfigError(
                    f"{name} = {value} is not built: use a power of two from {low} to {high}"
                )
        for name, low, high in (
            ("slots", 1, 8),
            ("addr_bits", 16, 64),
            ("tag_bits", 1, 64),
            ("exact_limit", 1, 4198),
            ("cells", 1, 1),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"{name} = {value} is not built: use {low} to {high}")
        from .isa.csr import CSR_COUNT, XMCSR  # not above: hdl.isa imports this module

        relations = (
            (self.m_par <= self.rows, "m_par must be at most rows"),
            (self.n_par <= self.m_par, "n_par must be at most m_par"),
            (self.banks <= self.tiles, "banks must be at most tiles"),
            (self.bus_bits <= self.row_bits, "bus_bits must be at most row_bits"),
            (self.bus_bits <= 8 * self.line_bytes, "bus_bits must fit in line_bytes"),
            (self.row_bits <= 8 * self.line_bytes, "row_bits must fit in line_bytes"),
            (self.beats_per_line <= 8, "line_bytes must hold at most 8 beats of bus_bits"),
            (
                0 <= self.csr_base <= 0xFFB,
                f"csr_base = {self.csr_base:#x} leaves no room for five CSRs below 0x1000",
            ),
            (
                not self.csr_base <= XMCSR < self.csr_base + CSR_COUNT,
                f"csr_base = {self.csr_base:#x} puts a CSR on xmcsr, {XMCSR:#x}: move it",
            ),
        )
        for holds, message in relations:
            if not holds:
                raise ConfigError(message)

    def _check_features(self) -> None:
        if not self.frontends:
            raise ConfigError("frontends is empty: name at least one, such as ame")
        for name in self.frontends:
            if name not in FRONTENDS:
                raise ConfigError(f"unknown front end {name!r}: use {' or '.join(FRONTENDS)}")
        if len(set(self.frontends)) != len(self.frontends):
            raise ConfigError("frontends names a front end twice")
        self._check_xuantie()
        if self.accumulators not in ("unified", "split"):
            raise ConfigError(
                f"accumulators = {self.accumulators!r} is unknown: use unified or split"
            )
        if self.tile_memory not in ("any", "block"):
            raise ConfigError(f"tile_memory = {self.tile_memory!r} is unknown: use any or block")
        if not self.formats:
            raise ConfigError("formats is empty: name at least one, such as int8")
        if len(set(self.formats)) != len(self.formats):
            raise ConfigError("formats names a format twice")
        try:
            object.__setattr__(self, "formats", fmt_table.expand(self.formats))
        except ValueError as error:
            raise ConfigError(str(error)) from None
        for name in self.units:
            if name not in UNITS:
                raise ConfigError(f"unit {name!r} is not built yet: use {', '.join(UNITS)}")
        if len(set(self.units)) != len(self.units):
            raise ConfigError("units names a unit twice")
        for name, bits in self.window.items():
            fmt = fmt_table.FORMATS.get(name)
            if fmt is None or not fmt.is_float:
                raise ConfigError(f"window names {name!r}, which is not a float format")
            if bits < 2 * (fmt.man + 1):
                raise ConfigError(
                    f"window[{name}] = {bits} is below twice the mantissa bits, {2 * (fmt.man + 1)}"
                )

    def _check_xuantie(self) -> None:
        found = self.mma_destinations
        if not found or not set(found) <= {f"m{n}" for n in range(REGISTERS)}:
            raise ConfigError(f"mma_destinations must name registers, m0 to m{REGISTERS - 1}")
        object.__setattr__(self, "mma_destinations", tuple(sorted(set(found))))
        if not self.xuantie:
            return
        from .isa.csr import CSR_COUNT
        from .isa.xuantie_csr import XCsr

        relations = (
            (self.row_bits >= 128, "row_bits must be 128, 256 or 512 for the front end xuantie"),
            (self.tiles >= REGISTERS, f"tiles must be at least {REGISTERS} for xuantie"),
            (
                not any(self.csr_base <= csr < self.csr_base + CSR_COUNT for csr in XCsr),
                f"csr_base = {self.csr_base:#x} puts a CSR on one of xuantie's: move it",
            ),
            (self.x_rows <= self.rows, "rows must be at least row_bits / 32 for xuantie"),
            (self.m_par <= self.x_rows, "m_par must be at most row_bits / 32 for xuantie"),
            (not self.split, "accumulators must be unified for xuantie"),
        )
        for holds, message in relations:
            if not holds:
                raise ConfigError(message)

    # -- derived sizes -----------------------------------------------------------------------

    @property
    def row_bytes(self) -> int:
        """Bytes of a tile row."""
        return self.row_bits // 8

    @property
    def row_bytes_log2(self) -> int:
        return _log2(self.row_bytes)

    @property
    def group_bytes(self) -> int:
        """Most bytes of a row of one tile, or of one result's slices of 64-bit outputs."""
        return max(self.row_bytes, self.rows * 8)

    @property
    def tiles_log2(self) -> int:
        return _log2(self.tiles)

    @property
    def has_vector(self) -> bool:
        """The vector mode is built."""
        return "vector" in self.units

    @property
    def xuantie(self) -> bool:
        """The front end of that name is built."""
        return "xuantie" in self.frontends

    @property
    def ame(self) -> bool:
        """The front end of that name is built."""
        return "ame" in self.frontends

    @property
    def x_rows(self) -> int:
        """Rows of a register of the front end "xuantie", the first rows of its tile."""
        return self.row_bits // 32

    @property
    def x_tiles(self) -> int:
        """Tiles from one register of that front end to the next."""
        return self.tiles // REGISTERS

    @property
    def x_blocks(self) -> int:
        """Stored words of such a register."""
        return self.x_rows // self.m_par

    @property
    def has_words(self) -> bool:
        """Some uops work on whole stored words beside the MAC array."""
        return self.has_vector or self.xuantie

    @property
    def split(self) -> bool:
        """C has a file of its own."""
        return self.accumulators == "split"

    @property
    def c_first(self) -> int:
        """Number of C's tile 0 among the tiles of all files."""
        return self.tiles if self.split else 0

    @property
    def all_tiles(self) -> int:
        """Tiles of all files; the C file's are numbered behind those of A and B."""
        return self.tiles + self.c_first

    @property
    def tile_bits(self) -> int:
        """Bits of a tile's number among all files; the highest says which, if there are two."""
        return _log2(self.all_tiles)

    @property
    def all_banks(self) -> int:
        """Banks of all files."""
        return self.banks * (self.all_tiles // self.tiles)

    @property
    def rows_log2(self) -> int:
        return _log2(self.rows)

    @property
    def banks_log2(self) -> int:
        return _log2(self.banks)

    @property
    def m_par_log2(self) -> int:
        return _log2(self.m_par)

    @property
    def tiles_per_bank(self) -> int:
        return self.tiles // self.banks

    @property
    def blocks(self) -> int:
        """Stored words (row blocks of m_par rows) of a tile."""
        return self.rows // self.m_par

    @property
    def blocks_log2(self) -> int:
        return _log2(self.blocks)

    @property
    def word_bits(self) -> int:
        """Bits of a stored word, m_par rows."""
        return self.m_par * self.row_bits

    @property
    def bus_bytes(self) -> int:
        """Bytes of one L2 beat."""
        return self.bus_bits // 8

    @property
    def bus_bytes_log2(self) -> int:
        return _log2(self.bus_bytes)

    @property
    def line_bytes_log2(self) -> int:
        return _log2(self.line_bytes)

    @property
    def beats_per_line(self) -> int:
        """Longest burst, in beats."""
        return self.line_bytes // self.bus_bytes

    @property
    def len_bits(self) -> int:
        """Bits of rlen and wlen (beats - 1)."""
        return max(1, _log2(self.beats_per_line))

    @property
    def id_bits(self) -> int:
        return max(1, _log2(self.l2_ids))

    @property
    def format_rows(self) -> tuple[Format, ...]:
        """Operand formats built, in Ft-code order."""
        return tuple(f for f in fmt_table.FORMATS.values() if f.name in self.formats)

    def outputs(self, fmt: Format) -> dict[str, Format]:
        """Outputs of an operand format, by what selects them: `formats.outputs`, and what the
        front end "xuantie" has besides (fwmmacc.s)."""
        found = fmt_table.outputs(fmt)
        if self.xuantie and fmt.name == "fp32" and "fp64" in self.formats:
            found["fp64"] = fmt_table.FORMATS["fp64"]
        return found

    @property
    def output_formats(self) -> tuple[Format, ...]:
        """Every output format of the operand formats built, each once, in table order."""
        found: dict[str, Format] = {}
        for fmt in self.format_rows:
            for out in self.outputs(fmt).values():
                found[out.name] = out
        return tuple(found.values())

    def is_exact(self, fmt: Format) -> bool:
        """Whether sums of float `fmt` are exact (numerics.md section 1) and not windowed."""
        return fmt.sum_bits <= self.exact_limit

    def window_bits(self, fmt: Format) -> int:
        """F of a windowed float: bits kept below the exponent of the largest product."""
        default = {32: 64, 64: 106}.get(fmt.bits, 32)
        return self.window.get(fmt.name, default)

    @property
    def read_latency(self) -> int:
        """Cycles from a granted tile read to its data.

        Block RAM lies far from the logic and gives its data late in the cycle, so it has registers
        on both sides.
        """
        return 3 if self.tile_memory == "block" else 1

    @property
    def move_latency(self) -> int:
        """Cycles from a move's read to its write: the read, one that makes the word, one more.

        With block RAM, whose words lie all over an FPGA, they take two more registers.
        """
        return self.read_latency + (4 if self.tile_memory == "block" else 2)

    @property
    def transposes(self) -> bool:
        """Tiles of 8-bit elements are square, and there are some, so bTR is built."""
        return self.row_bytes == self.rows and any(f.container == 8 for f in self.format_rows)

    def lanes(self, container: int) -> int:
        """Elements of `container` bits in a tile row."""
        return self.row_bits // container

    def result_tiles(self, out_bits: int) -> int:
        """Tiles that one rows x rows result of `out_bits` elements fills (isa.md: w/8)."""
        return max(1, self.rows * out_bits // self.row_bits)

    def uop_columns(self, out_bits: int) -> int:
        """Columns of C that one uop computes: n_par, or what fits in a row of wide outputs."""
        return min(self.n_par, self.row_bits // out_bits)

    def replace(self, **changes: object) -> Config:
        """A copy with some fields changed, checked again."""
        return dataclasses.replace(self, **changes)


PRESETS: dict[str, Config] = {
    cfg.name: cfg
    for cfg in (
        Config(name="ame32", formats=("common", "hpc_baseline", "hpc_main")),
        Config(
            name="ame32-split",
            formats=("common", "hpc_baseline", "hpc_main"),
            accumulators="split",
        ),
        Config(name="ame32-int8", formats=("int8",)),
        Config(name="tiny", m_par=2, n_par=1, slots=4, formats=("common",)),
        Config(
            name="mxu8",
            frontends=("xuantie",),
            tiles=8,
            rows=8,
            row_bits=256,
            formats=("int4", "int8", "int16", "fp16", "fp32", "fp64"),
        ),
        Config(name="full", frontends=("ame", "xuantie"), formats=("all",), units=("vector",)),
        # What nextpnr routes on an ECP5-25F and on an ECP5-85F; docs/boards.md says what was tried.
        Config(
            name="icepi_zero",
            tiles=16,
            rows=4,
            row_bits=64,
            bus_bits=64,
            m_par=1,
            n_par=1,
            slots=2,
        ),
        Config(
            name="ulx3s",
            rows=8,
            row_bits=64,
            bus_bits=64,
            banks=2,
            m_par=2,
            n_par=2,
            slots=2,
            addr_bits=32,
            l2_ids=16,
            tile_memory="block",
            formats=("int8", "fp8_e4m3"),
        ),
    )
}
"""Named configurations that tests run and users may rely on."""


def preset(name: str) -> Config:
    """The preset called `name`. Raises `ConfigError` that lists the names."""
    try:
        return PRESETS[name]
    except KeyError:
        raise ConfigError(f"unknown preset {name!r}: choose one of {', '.join(PRESETS)}") from None
