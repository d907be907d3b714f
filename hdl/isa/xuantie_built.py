"""What a Config builds of the front end `xuantie`; the decoder and the model both read it.

An instruction that is not built answers illegal.
"""

from __future__ import annotations

from ..config import Config
from ..formats import FORMATS, Format, outputs
from .xuantie import XUANTIE, XuanTieInstruction, XuanTieKind
from .xuantie_csr import XMISA, XCsr

__all__ = [
    "built_xuantie",
    "built_xuantie_csrs",
    "destinations",
    "mma_formats",
    "xmisa_value",
]


def mma_formats(row: XuanTieInstruction, cfg: Config) -> tuple[Format, Format]:
    """Formats of the operands and of C of a multiply-accumulate in this core."""
    names = row.mma.operand, row.mma.output
    if cfg.xuantie_bf16:
        names = tuple("bf16" if name == "fp16" else name for name in names)
    return FORMATS[names[0]], FORMATS[names[1]]


def _is_built(row: XuanTieInstruction, cfg: Config) -> bool:
    """The operand format is built, and the output either with it or in its own right."""
    if row.kind is not XuanTieKind.MMA:
        return True
    operand, output = mma_formats(row, cfg)
    return operand.name in cfg.formats and (
        output in outputs(operand).values() or output.name in cfg.formats
    )


def built_xuantie(cfg: Config) -> tuple[XuanTieInstruction, ...]:
    """Rows that a core decodes, in the table's order; none without the front end."""
    if not cfg.xuantie:
        return ()
    return tuple(row for row in XUANTIE if _is_built(row, cfg))


def built_xuantie_csrs(cfg: Config) -> tuple[XCsr, ...]:
    """CSRs of the front end that a core has, xmcsr besides."""
    return tuple(XCsr) if cfg.xuantie else ()


def xmisa_value(cfg: Config) -> int:
    """xmisa: a bit for every feature some built instruction needs."""
    features = {row.feature for row in built_xuantie(cfg)}
    return sum(field.mask for name, field in XMISA.items() if name in features)


def destinations(cfg: Config) -> frozenset[int]:
    """Registers that may be md of a multiply-accumulate (the lower one of a pair)."""
    return frozenset(int(name[1:]) for name in cfg.mma_destinations)
