"""The PLL of an ECP5: settings for a clock, and the clock made from them."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Instance, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["PllClock", "PllSettings", "pll_settings"]

_VCO_HZ = (400e6, 800e6)
_PHASE_DETECTOR_HZ = (3.125e6, 400e6)
_MAX_INPUT, _MAX_FEEDBACK, _MAX_OUTPUT = 128, 80, 128


@dataclass(frozen=True)
class PllSettings:
    """Dividers of an EHXPLLL whose feedback is its output CLKOP.

    Parameters
    ----------
    input_div, feedback_div, output_div : CLKI_DIV, CLKFB_DIV and CLKOP_DIV.
    hz : the output's clock.
    """

    input_div: int
    feedback_div: int
    output_div: int
    hz: float


def pll_settings(input_hz: float, hz: float) -> PllSettings:
    """The settings that come nearest to `hz` from below. Raises ValueError where none do."""
    best = None
    for input_div in range(1, _MAX_INPUT + 1):
        compared = input_hz / input_div
        if not _PHASE_DETECTOR_HZ[0] <= compared <= _PHASE_DETECTOR_HZ[1]:
            continue
        feedback_div = min(_MAX_FEEDBACK, int(hz * (1 + 1e-9) / compared))
        if feedback_div < 1:
            continue
        found = compared * feedback_div
        # The middle of the oscillator's range.
        output_div = min(_MAX_OUTPUT, round(sum(_VCO_HZ) / 2 / found))
        if output_div < 1 or not _VCO_HZ[0] <= found * output_div <= _VCO_HZ[1]:
            continue
        if best is None or found > best.hz * (1 + 1e-9):
            best = PllSettings(input_div, feedback_div, output_div, found)
    if best is None or best.hz < 0.9 * hz:
        raise ValueError(
            f"no PLL setting makes {hz / 1e6:g} MHz from {input_hz / 1e6:g} MHz: use 10 to 400 MHz"
        )
    return best


class PllClock(wiring.Component):
    """The clock of the domain `sync` from a pin's.

    Parameters
    ----------
    settings : of the PLL.

    Members
    -------
    pin : the board's clock.
    out : what the domain, which needs no reset of its own, is to be driven by.
    reset : the PLL has not locked yet, a register of `sync`.
    """

    def __init__(self, settings: PllSettings):
        self.settings = settings
        super().__init__({"pin": In(1), "out": Out(1), "reset": Out(1)})

    def elaborate(self, platform):
        m = Module()
        locked = Signal()
        s = self.settings
        # Half of the output's period, in steps of the oscillator's: CLKOP rises with the input.
        phase = s.output_div // 2
        m.submodules.pll = Instance(
            "EHXPLLL",
            a_FREQUENCY_PIN_CLKOP=f"{s.hz / 1e6:g}",
            a_ICP_CURRENT="12",
            a_LPF_RESISTOR="8",
            p_PLLRST_ENA="DISABLED",
            p_INTFB_WAKE="DISABLED",
            p_STDBY_ENABLE="DISABLED",
            p_DPHASE_SOURCE="DISABLED",
            p_OUTDIVIDER_MUXA="DIVA",
            p_CLKI_DIV=s.input_div,
            p_CLKFB_DIV=s.feedback_div,
            p_CLKOP_ENABLE="ENABLED",
            p_CLKOP_DIV=s.output_div,
            p_CLKOP_CPHASE=phase,
            p_CLKOP_FPHASE=0,
            p_FEEDBK_PATH="CLKOP",
            i_CLKI=self.pin,
            i_CLKFB=self.out,
            i_RST=0,
            i_STDBY=0,
            i_PHASESEL0=0,
            i_PHASESEL1=0,
            i_PHASEDIR=1,
            i_PHASESTEP=1,
            i_PHASELOADREG=1,
            i_PLLWAKESYNC=0,
            i_ENCLKOP=0,
            o_CLKOP=self.out,
            o_LOCK=locked,
        )
        m.submodules.reset = FFSynchronizer(~locked, self.reset, init=1)
        return m
