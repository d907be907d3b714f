"""Number formats of the AME profile and what each one accumulates into (pure Python tables).

Every Ft code of the profile has one row in `FORMATS`, whether or not this release builds it. Rows
say what a container holds; they hold no arithmetic. Sources: seed 000 section 4, numerics.md 2, 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = [
    "ACC_MODES",
    "FORMATS",
    "PROFILES",
    "PROFILE_ORDER",
    "Format",
    "Kind",
    "Specials",
    "acc_mode",
    "by_code",
    "by_name",
    "expand",
    "lookup",
    "output_format",
    "outputs",
]


class Kind(Enum):
    """What a code means."""

    INT = "int"
    FIXED = "fixed"
    FLOAT = "float"


class Specials(Enum):
    """Which float codes are not finite numbers."""

    NONE = "none"  # every code is finite
    IEEE = "ieee"  # top exponent: Inf (mantissa 0) and NaN
    NAN_TOP = "nan_top"  # only the code with all exponent and mantissa bits set, a NaN
    E8M0 = "e8m0"  # no zero; code 0xFF is NaN


@dataclass(frozen=True, kw_only=True)
class Format:
    """One number format.

    Parameters
    ----------
    name : name on command lines and in Python.
    code : Ft code, or None for an output-only format (a double-width Q).
    kind : `Kind`.
    bits : width of the value, in bits.
    container : width of the element in a tile row, in bits.
    signed : has a sign (two's complement for INT and FIXED, a sign bit for FLOAT).
    exp, man, bias : exponent and stored mantissa bits and exponent bias (FLOAT).
    frac : fraction bits (FIXED).
    specials : `Specials` (FLOAT).
    top_aligned : the value sits in the top bits of its container (TF32), not in the low ones.
    canonical_nan : the NaN that results carry, or None where the format has none.
    """

    name: str
    code: int | None
    kind: Kind
    bits: int
    container: int
    signed: bool = True
    exp: int = 0
    man: int = 0
    bias: int = 0
    frac: int = 0
    specials: Specials = Specials.NONE
    top_aligned: bool = False
    canonical_nan: int | None = None

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def is_integer(self) -> bool:
        return self.kind is Kind.INT

    @property
    def exp_min(self) -> int:
        """Smallest biased exponent of a finite value; subnormals have it too (FLOAT)."""
        return 0 if self.specials is Specials.E8M0 else 1

    @property
    def exp_max(self) -> int:
        """Largest biased exponent of a finite value (FLOAT)."""
        top = (1 << self.exp) - 1
        return top - 1 if self.specials in (Specials.IEEE, Specials.E8M0) else top

    @property
    def has_inf(self) -> bool:
        return self.specials is Specials.IEEE

    @property
    def has_nan(self) -> bool:
        return self.specials is not Specials.NONE

    @property
    def has_signalling_nan(self) -> bool:
        """Whether a NaN with a clear top mantissa bit signals (numerics.md section 4)."""
        return self.has_inf and self.signed and self.bits >= 16

    @property
    def sum_bits(self) -> int:
        """Width, sign included, of the exact sum of a 16-byte row of products (FLOAT)."""
        significand = self.man + 1
        product = 2 * significand if significand > 1 else 1
        lanes = 128 // self.container
        return product + 2 * (self.exp_max - self.exp_min) + 1 + (lanes - 1).bit_length()


def _int(name: str, code: int, bits: int, container: int | None = None) -> Format:
    return Format(name=name, code=code, kind=Kind.INT, bits=bits, container=container or bits)


def _q(name: str, code: int | None, bits: int, frac: int, container: int | None = None) -> Format:
    return Format(
        name=name, code=code, kind=Kind.FIXED, bits=bits, container=container or bits, frac=frac
    )


def _float(
    name: str,
    code: int,
    exp: int,
    man: int,
    container: int,
    *,
    signed: bool = True,
    bias: int | None = None,
    specials: Specials = Specials.NONE,
    nan: int | None = None,
    top_aligned: bool = False,
) -> Format:
    return Format(
        name=name,
        code=code,
        kind=Kind.FLOAT,
        bits=int(signed) + exp + man,
        container=container,
        signed=signed,
        exp=exp,
        man=man,
        bias=(1 if exp == 1 else (1 << (exp - 1)) - 1) if bias is None else bias,
        specials=specials,
        top_aligned=top_aligned,
        canonical_nan=nan,
    )


_IEEE, _TOP = Specials.IEEE, Specials.NAN_TOP

# In Ft-code order, which is also the bit order of mxinfo[31:0].
_ROWS = (
    _int("int4", 0x01, 4),
    _float("fp4_e2m1", 0x02, 2, 1, 4),
    _float("fp4_e1m2", 0x03, 1, 2, 4),
    _float("uf4_e2m2", 0x04, 2, 2, 4, signed=False),
    _float("uf4_e1m3", 0x05, 1, 3, 4, signed=False),
    _float("fp6_e3m2", 0x06, 3, 2, 8),
    _float("fp6_e2m3", 0x07, 2, 3, 8),
    _float("fp6_e4m1", 0x08, 4, 1, 8),
    _float("uf6_e4m2", 0x09, 4, 2, 8, signed=False),
    _int("int8", 0x10, 8),
    _float("fp8_e4m3", 0x11, 4, 3, 8, specials=_TOP, nan=0x7F),
    _float("fp8_e5m2", 0x12, 5, 2, 8, specials=_IEEE, nan=0x7F),
    _float("ue8m0", 0x13, 8, 0, 8, signed=False, specials=Specials.E8M0, nan=0xFF),
    _q("q4_3", 0x14, 8, 3),
    _q("q2_5", 0x15, 8, 5),
    _int("int12", 0x18, 12, 16),
    _float("fp12_e5m6", 0x19, 5, 6, 16, specials=_IEEE, nan=0x7E0),
    _float("fp12_e4m7", 0x1A, 4, 7, 16, specials=_TOP, nan=0x7FF),
    _q("q4_8", 0x1B, 12, 8, 16),
    _q("q5_7", 0x1C, 12, 7, 16),
    _int("int16", 0x20, 16),
    _float("fp16", 0x28, 5, 10, 16, specials=_IEEE, nan=0x7E00),
    _float("bf16", 0x29, 8, 7, 16, specials=_IEEE, nan=0x7FC0),
    _float("uf16_e8m8", 0x2A, 8, 8, 16, signed=False, specials=_IEEE, nan=0xFF80),
    _q("q8_8", 0x2B, 16, 8),
    _int("int32", 0x40, 32),
    _float("fp32", 0x48, 8, 23, 32, specials=_IEEE, nan=0x7FC00000),
    _float("tf32", 0x49, 8, 10, 32, specials=_IEEE, nan=0x7FC00000, top_aligned=True),
    _q("q16_16", 0x4A, 32, 16),
    _int("int64", 0x80, 64),
    _float("fp64", 0x88, 11, 52, 64, specials=_IEEE, nan=0x7FF8000000000000),
    _q("q32_32", 0x8A, 64, 32),
)

FORMATS: dict[str, Format] = {row.name: row for row in _ROWS}
"""Every named format, in Ft-code order."""

PROFILE_ORDER: tuple[str, ...] = tuple(FORMATS)
"""Format names in mxinfo bit order."""

# Double-width Q outputs: no Ft code of their own, 2n fraction bits. Q8.8 gives Q16.16 itself.
_Q_WIDE = {
    "q4_3": _q("q4_3x2", None, 16, 6),
    "q2_5": _q("q2_5x2", None, 16, 10),
    "q4_8": _q("q4_8x2", None, 32, 16),
    "q5_7": _q("q5_7x2", None, 32, 14),
    "q8_8": FORMATS["q16_16"],
    "q16_16": FORMATS["q32_32"],
}

PROFILES: dict[str, tuple[str, ...]] = {
    "common": ("int8", "fp8_e4m3", "fp8_e5m2"),
    "hpc_baseline": ("int8", "fp8_e4m3", "fp8_e5m2", "int16", "fp16", "bf16"),
    "hpc_main": ("int16", "bf16", "fp32", "tf32"),
    "vns": ("int8", "ue8m0", "bf16", "uf16_e8m8"),
    "nte": ("fp4_e2m1", "fp4_e1m2", "uf4_e2m2", "uf4_e1m3", "fp8_e5m2"),
    "iot_fp": ("fp4_e2m1", "fp8_e4m3", "fp16"),
    "iot_int": ("int8", "int16"),
    "all": tuple(FORMATS),
}
"""Operand formats of the profiles of seed 000 section 3, the VNS and NTE columns in one each."""

ACC_MODES = ("bovf", "full", "wide", "tf32", "bf16")
"""Columns of the output table: bOVF = 1, bOVF = 0, ACC = 1, ACC = 2, ACC = 3."""

_SAME = "same"
_NARROW_FLOATS = (
    *("fp4_e2m1", "fp4_e1m2", "uf4_e2m2", "uf4_e1m3"),
    *("fp6_e3m2", "fp6_e2m3", "fp6_e4m1", "uf6_e4m2"),
)
# Ft -> (bOVF = 1, bOVF = 0, ACC = 1); None where the pair does not exist.
_OUTPUTS: dict[str, tuple[str, str, str | None]] = {
    "int4": ("int8", "int16", "int32"),
    **dict.fromkeys(_NARROW_FLOATS, ("fp8_e4m3", "fp16", "fp32")),
    "int8": ("int8", "int16", "int32"),
    "fp8_e4m3": (_SAME, "fp16", "fp32"),
    "fp8_e5m2": (_SAME, "fp16", "fp32"),
    "ue8m0": (_SAME, "bf16", "fp32"),
    "q4_3": (_SAME, "wide_q", None),
    "q2_5": (_SAME, "wide_q", None),
    "int12": ("int16", "int32", None),
    "int16": ("int16", "int32", "int64"),
    "fp12_e5m6": ("fp16", "fp32", "fp32"),
    "fp12_e4m7": ("fp16", "fp32", "fp32"),
    "fp16": (_SAME, "fp32", "fp32"),
    "q4_8": (_SAME, "wide_q", None),
    "q5_7": (_SAME, "wide_q", None),
    "q8_8": (_SAME, "wide_q", None),
    "bf16": (_SAME, "fp32", "fp32"),
    "uf16_e8m8": (_SAME, "fp32", "fp32"),
    "int32": (_SAME, "int64", None),
    "q16_16": (_SAME, "wide_q", None),
    "tf32": (_SAME, "fp32", None),
    "fp32": (_SAME, "fp32", None),
    "int64": (_SAME, _SAME, None),
    "fp64": (_SAME, _SAME, None),
    "q32_32": (_SAME, _SAME, None),
}
_EXTRA = {("bf16", "tf32"): "tf32", ("ue8m0", "bf16"): "bf16"}  # ACC = 2 and ACC = 3

_DEFAULT_CODE = 0x00  # Ft = 0 is the default, INT8
_BY_CODE: dict[int, Format] = {row.code: row for row in _ROWS if row.code is not None}
_BY_CODE[_DEFAULT_CODE] = FORMATS["int8"]


def by_code(code: int) -> Format | None:
    """The format of an Ft code (0 is INT8), or None for a reserved or vendor code."""
    return _BY_CODE.get(code)


def by_name(name: str) -> Format:
    """The format called `name`. Raises ValueError that lists the names."""
    try:
        return FORMATS[name]
    except KeyError:
        raise ValueError(
            f"unknown number format {name!r}: choose one of {', '.join(FORMATS)}"
        ) from None


def lookup(ft: str | int) -> Format:
    """The format given by name, Ft code, or a string holding an Ft code ("0x10").

    Raises ValueError that names what was expected.
    """
    if isinstance(ft, str):
        text = ft.strip().lower()
        if not text[:1].isdigit():
            return by_name(text)
        try:
            ft = int(text, 0)
        except ValueError:
            raise ValueError(
                f"unknown number format {ft!r}: give a name or an Ft code such as 0x10"
            ) from None
    fmt = by_code(int(ft))
    if fmt is None:
        raise ValueError(f"Ft code {int(ft):#04x} is reserved: give a code of the profile's table")
    return fmt


def expand(names: tuple[str, ...]) -> tuple[str, ...]:
    """Format names in Ft-code order, from names of formats and profiles, each once.

    Raises ValueError for a name that is neither.
    """
    found = set()
    for name in names:
        if name in PROFILES:
            found.update(PROFILES[name])
        elif name in FORMATS:
            found.add(name)
        else:
            choices = ", ".join((*PROFILES, *FORMATS))
            raise ValueError(f"unknown number format {name!r}: choose one of {choices}")
    return tuple(name for name in FORMATS if name in found)


def output_format(fmt: Format, acc_mode: str) -> Format | None:
    """Output format of `fmt` in a column of `ACC_MODES`, or None where that pair does not exist."""
    if acc_mode in ("tf32", "bf16"):
        name = _EXTRA.get((fmt.name, acc_mode))
    else:
        name = _OUTPUTS[fmt.name][("bovf", "full", "wide").index(acc_mode)]
    if name is None:
        return None
    if name == _SAME:
        return fmt
    if name == "wide_q":
        return _Q_WIDE[fmt.name]
    return FORMATS[name]


def outputs(fmt: Format) -> dict[str, Format]:
    """Every output of `fmt`, keyed by the columns of `ACC_MODES` that exist for it."""
    found = {mode: output_format(fmt, mode) for mode in ACC_MODES}
    return {mode: out for mode, out in found.items() if out is not None}


def acc_mode(bovf: int, acc: int) -> str | None:
    """Column of `ACC_MODES` that the mxcfg fields select (ACC overrides bOVF), or None."""
    if acc == 0:
        return "bovf" if bovf else "full"
    return {1: "wide", 2: "tf32", 3: "bf16"}.get(acc)
