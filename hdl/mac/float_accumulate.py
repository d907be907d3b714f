"""The last stages of a sub-array that has float formats (and perhaps integers too).

C is placed in the frame (plan.py) by its exponent; a C that is too fine for the frame ends in a
sticky bit. A C so large that the sum cannot reach its last bits is placed at a constant instead,
and the sum becomes its sign and a sticky bit ("dominated"). So one addition is exact whatever the
exponents are. A negative C is inverted when it stands in the frame; the one that completes the
negation is carried into the addition if no bit of C is left below. The sum stays in two's
complement: leading sign bits are counted, the significand is shifted to the top, and what a
negation would do to the kept bits is folded into the rounding increment. See numerics.md sections 1
and 4.

Constants of a pair of formats, all in frame places: a C of biased exponent e is shifted up by
e - E + `c_base`, at most `c_most` unless it dominates. `room` is how far the frame's top can move
up before the significand's lowest bit is the output's smallest: E + `room_base`, or
e + `room_c_base` if C dominates. (E only for windowed formats.)
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..formats import Format, Specials
from ..interfaces import mac_flags
from ..registers import copies, parts
from .accumulate_control import accumulate_control
from .encode import Encoder, largest_code, rounded
from .fields import unpack
from .logic import any_of, leading_zeros, mux_one_hot, shift_left, shift_left_top
from .pipeline import DelayLine, register
from .plan import MacPlan
from .rounding import DOWN, NEAREST, TO_ZERO, UP
from .special import special_summary

__all__ = ["FloatAccumulator", "rounding_input"]

SIGN_COPIES = 3
"""Registers of C's sign, which inverts a frame of some hundred bits."""


def rounding_input(plan: MacPlan) -> data.StructLayout:
    """What the rounding stage takes.

    `value`: the kept bits: exponent and mantissa of a magnitude short of its rounding, or an
    integer. `guard`, `below`, `rest`: the two bits below it and whether any further is set, all
    three as in the two's complement frame. `negative`: its sign; `flip`: the dropped bits are yet
    to be negated. `nearest`: round to nearest even; `away`: round every dropped bit up. Floats:
    `zero`: exactly zero; `subnormal`: the exponent is the lowest. Integers, before rounding: the
    bits from the output's sign up are all clear (`high_zero`), all set (`high_ones`), or all set
    but the lowest (`high_below`).
    """
    mantissa = max(out.man for out in plan.float_outputs)
    bits = mantissa + plan.exp_bits
    names = ["negative", "flip", "guard", "below", "rest", "nearest", "away"]
    names += ["zero", "subnormal"]
    if plan.has_integers:
        bits = max(bits, *(out.bits for out in plan.integer_outputs))
        names += ["high_zero", "high_ones", "high_below"]
    return data.StructLayout({"value": signed(bits), **dict.fromkeys(names, 1)})


class FloatAccumulator(wiring.Component):
    """Adds C to the sum, rounds once and encodes, for floats, integers and fixed point.

    Parameters
    ----------
    plan : sizes.

    Members
    -------
    total : sum of the products, one cycle before `c`.
    anchor : E, one cycle before `c`; 0 where the format is not windowed.
    c : the element of C, in the low bits.
    summary : special products, two cycles before the result.
    lost : the window dropped a bit, with the result.
    control_start .. control_out : control of the uop in each stage (`MacPlan.control_ages`).
    d : the result's container in the low bits.
    flags : its flags.

    Latency: 8 cycles from `c` to the unregistered result. Throughput: one a cycle. Source:
    numerics.md sections 1 and 4.
    """

    def __init__(self, plan: MacPlan):
        self.plan = plan
        control = accumulate_control(plan)
        members = {
            "total": In(signed(plan.sum_bits)),
            "c": In(plan.out_bits),
            "summary": In(special_summary()),
            "lost": In(1),
            "d": Out(plan.out_bits),
            "flags": Out(mac_flags()),
        }
        if plan.has_windows:
            members["anchor"] = In(plan.anchor_bits)
        members |= {f"control_{stage}": In(control) for stage in plan.control_ages}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        frame, low_sticky, room, c_flags = self._add(m)
        to_round = self._normalise(m, frame, low_sticky, room)
        rounded = self._round(m, to_round)
        m.submodules.encode = encode = Encoder(self.plan)
        m.d.comb += [
            encode.control_select.eq(self.control_select),
            encode.control_round.eq(self.control_round),
            encode.negative.eq(to_round.negative),
            encode.zero.eq(to_round.zero),
            encode.control.eq(self.control_out),
            encode.rounded.eq(rounded),
            encode.summary.eq(self.summary),
            encode.c.eq(c_flags),
            encode.lost.eq(self.lost),
            self.d.eq(encode.d),
            self.flags.eq(encode.flags),
        ]
        return m

    # -- C and the addition --------------------------------------------------------------------

    def _add(self, m: Module) -> tuple[Signal, Signal, Value, Value]:
        """Stages start, decode, fine, coarse, add.

        Returns frame, sticky and room, with stage count, and C's class with stage select.
        """
        plan, control = self.plan, self.control_decode
        bits = plan.exp_bits
        choices = [(out, control.c_out[i]) for i, out in enumerate(plan.outputs) if out.is_float]
        takes_part = any_of(condition for _, condition in choices)
        # Of several formats none is chosen where C takes no part: all fields are those of a zero.
        container = self.c
        if len(choices) == 1:
            container = self.c & takes_part.replicate(len(self.c))
        fields = unpack(m, "c", container, choices)
        c_class = Signal(special_summary(), name="c_class")
        m.d.comb += [
            c_class.nan.eq(fields.nan),
            c_class.invalid.eq(fields.snan),
            c_class.pos_inf.eq(fields.inf & ~fields.sign),
            c_class.neg_inf.eq(fields.inf & fields.sign),
            c_class.nonzero.eq(~fields.zero),
            c_class.pos.eq(~fields.sign & takes_part),
            c_class.neg.eq(fields.sign),
        ]
        classes = DelayLine(m, "c_class", c_class.as_value())

        def class_at(age: int) -> data.View:
            return data.View(special_summary(), classes[age])

        # Stage start, one cycle before C: what its exponent is measured against.
        anchor = Cat(self.anchor, Const(0, 1)).as_signed() if plan.has_windows else Const(0, 2)
        start = self.control_start
        total_zero = register(m, "total_zero", self.total == 0)
        base = register(m, "c_base", (start.c_base - anchor)[:bits]).as_signed()
        most_exp = Signal(signed(bits), name="c_most_exp")
        m.d.comb += most_exp.eq(start.c_most - start.c_base + anchor)
        largest = register(m, "c_largest", most_exp)
        none_reach = register(m, "c_none_reach", most_exp <= 0)
        room_s = register(m, "room_s", (start.room_base + anchor)[:bits])

        # Stage decode: where C goes.
        exp = Cat(fields.exp, Const(0, 1)).as_signed()
        up = register(m, "c_up", (exp + base)[:bits]).as_signed()
        # That is `exp > largest`, but of what the code says: it is known earlier.
        raw_beyond = Cat(fields.raw, Const(0, 1)).as_signed() > largest
        beyond = register(m, "c_beyond", total_zero | raw_beyond | (fields.lowest & none_reach))
        magnitude = register(m, "c_magnitude", fields.sig)
        room_c = register(m, "room_c", (exp + control.room_c_base)[:bits].as_signed())
        room_s = register(m, "room_s_late", room_s).as_signed()

        # Stage fine: the low bits of the shift.
        low, sticky, frame_bits = plan.frame_low, plan.sticky_bits, plan.frame_bits
        most = max(pair.dominated_from for pair in plan.float_pairs) - 1 + low + sticky
        most = min(most, frame_bits + sticky - 2)
        up_bits = most.bit_length()
        dominates = Signal(name="c_dominates")
        m.d.comb += dominates.eq(beyond & class_at(1).nonzero)
        limited = Mux(up[-1], 0, up[:up_bits])
        amount = Signal(up_bits, name="c_amount")
        m.d.comb += amount.eq(Mux(dominates, low + sticky, limited))
        fine_bits = min(3, up_bits)
        wide = Signal(len(magnitude) + (1 << fine_bits) - 1, name="c_wide")
        m.d.comb += wide.eq(magnitude)
        fine = register(m, "c_fine", shift_left(m, "c_fine", wide, amount[:fine_bits]))
        up_coarse = register(m, "c_up_coarse", amount[fine_bits:])
        room = register(m, "room", Mux(dominates, room_c, room_s).as_signed())
        dominates_fine = register(m, "c_dominates_fine", dominates)

        # Stage coarse: the rest of it; the sum's place. A sign decides on a whole frame, so there
        # are registers of it for parts.
        negative = copies(m, "c_negative", class_at(1).neg, SIGN_COPIES)
        total = DelayLine(m, "total", self.total)
        placed = Signal(frame_bits + sticky, name="c_placed")
        m.d.comb += placed.eq(fine)
        shifted = shift_left(m, "c_coarse", placed, up_coarse, 1 << fine_bits)
        c_frame = shifted[sticky:] ^ Cat(
            sign.replicate(len(part))
            for sign, part in zip(negative, parts(shifted[sticky:], len(negative)), strict=True)
        )
        if plan.has_integers:
            c_frame = c_frame | self._integer_c(m)
        c_reg = Signal(signed(frame_bits), name="c_frame", reset_less=True)
        s_reg = Signal(signed(frame_bits - low), name="s_frame", reset_less=True)
        s_here = total[3].as_signed()
        m.d.sync += [
            c_reg.eq(c_frame),
            s_reg.eq(
                Mux(
                    dominates_fine,
                    s_here[-1].replicate(frame_bits - low),
                    Cat(s_here, s_here[-1].replicate(frame_bits - low - len(s_here))),
                )
            ),
        ]
        total_left = DelayLine(m, "total_left", ~total_zero)[2]
        c_lost = Signal(name="c_lost")
        completes = Signal(name="completes")  # a negation carries into the frame
        m.d.comb += [
            c_lost.eq(any_of(shifted[:sticky])),
            completes.eq(negative[0] & ~c_lost),
        ]
        sticky_reg = register(m, "sticky", c_lost | (dominates_fine & total_left))

        # Stage add. Below the axis there is only C, or the sign of a sum that C dominates: what is
        # carried out of there is known before, which makes the carry chain shorter.
        below_axis = shifted[sticky : sticky + low]
        carry_low = register(m, "carry_low", completes)
        carry = register(m, "carry", completes & ~any_of(below_axis))
        s_low = register(m, "s_low", dominates_fine & s_here[-1])
        frame = Signal(signed(frame_bits), name="frame", reset_less=True)
        frame_low = (c_reg[:low] + carry_low)[:low] | s_low.replicate(low)
        # The lowest bit carries in, in a single carry chain.
        carried = Cat(carry, c_reg[low:]) + Cat(carry, s_reg)
        m.d.sync += frame.eq(Cat(frame_low, carried[1 : 1 + frame_bits - low]).as_signed())
        c_late = classes[6]
        return frame, register(m, "sticky_frame", sticky_reg), DelayLine(m, "room", room)[2], c_late

    def _integer_c(self, m: Module) -> Value:
        """An integer C in its place in the frame, in stage coarse; 0 for floats."""
        plan = self.plan
        containers = max(out.container for out in plan.integer_outputs)
        is_integer = any_of(
            self.control_decode.out[i] for i, out in enumerate(plan.outputs) if not out.is_float
        )
        reg = Signal(signed(containers), name="c_integer", reset_less=True)
        with m.If(is_integer):
            m.d.sync += reg.eq(self.c[:containers])
        with m.Else():
            m.d.sync += reg.eq(0)
        late = register(m, "c_integer_late", reg).as_signed()
        shift = self.control_coarse.shift
        place = plan.frame_low + plan.integer_place
        options = [(shift[i], late << (place + n)) for i, n in enumerate(plan.shifts)]
        placed = Signal(signed(plan.frame_bits), name="c_integer_placed")
        m.d.comb += placed.eq(mux_one_hot(options))
        return placed

    # -- normalisation -------------------------------------------------------------------------

    def _normalise(self, m: Module, frame: Signal, sticky: Signal, room: Value) -> data.View:
        """Stages count, normal, select. Returns the bits to be rounded, with stage round."""
        plan = self.plan
        bits = plan.exp_bits

        # Stage count: leading sign bits.
        significant = Signal(len(frame) - 1, name="significant")  # unlike the bit above
        m.d.comb += significant.eq(frame[:-1] ^ frame[1:])
        zeros = register(m, "zeros", leading_zeros(m, "lz", significant))
        none = register(m, "is_zero", ~frame.any() & ~sticky)
        moved = register(m, "frame_count", frame).as_signed()
        sticky = register(m, "sticky_count", sticky)
        # The shift asks for no more of it than a shift may be.
        most_up = (1 << len(zeros)) - 1
        room_up = register(
            m, "room_up", Mux(room[-1], 0, Mux(room > most_up, most_up, room))[: len(zeros)]
        )
        room = register(m, "room_count", room).as_signed()

        # Stage normal: how far the top moves up, and the exponent that this gives.
        powers = any_of(
            self.control_normal.out[i]
            for i, out in enumerate(plan.outputs)
            if out.specials is Specials.E8M0
        )
        room_left = Signal(signed(bits), name="room_left")
        subnormal = Signal(name="subnormal")
        up = Signal(len(zeros), name="normal_up")
        m.d.comb += [
            room_left.eq(room - Cat(zeros, Const(0, 1)).as_signed()),
            subnormal.eq(((zeros > room_up) | room[-1]) & ~powers),
            up.eq(Mux(subnormal, room_up, zeros)),
        ]
        fine_bits = min(4, len(up))
        exp = register(m, "exp", Mux(subnormal | none, 0, (room_left + 1)[:bits]).as_signed())
        # What the fine shift cannot lift to the two bits below the significand is only sticky.
        keep = min(len(moved), plan.significand_bits + 3 + (1 << fine_bits) - 1)
        top, below = shift_left_top(m, "norm_coarse", moved, up[fine_bits:], 1 << fine_bits, keep)
        coarse = register(m, "normal_coarse", top)
        up_fine = register(m, "normal_up_fine", up[:fine_bits])
        sticky = register(m, "sticky_normal", sticky | below)
        none = register(m, "is_zero_normal", none)
        integer = self._integer_bits(m, moved) if plan.has_integers else None

        # Stage select: the output's significand, the two bits below it, and the rest.
        by_man = {}
        for i, out in enumerate(plan.outputs):
            if out.is_float:
                by_man.setdefault(out.man, []).append(self.control_select.out[i])
        shifted = shift_left(m, "norm_fine", coarse, up_fine)
        negative = coarse[-1]
        top = len(shifted) - 2  # place of the hidden bit
        inverted = {
            man: shifted[top - man : top] ^ negative.replicate(man) if man else Const(0, 0)
            for man in by_man
        }
        cut = []
        for man, conditions in sorted(by_man.items()):
            lowest = top - man
            parts = (
                shifted[: lowest - 2].any() | sticky,
                shifted[lowest - 2],
                shifted[lowest - 1],
                inverted[man],
                exp,
            )
            cut.append((any_of(conditions), Cat(parts)))
        width = max(len(value) for _, value in cut)
        chosen = mux_one_hot([(c, Cat(v, v[-1].replicate(width - len(v)))) for c, v in cut])
        rnd = self.control_select.rnd
        result = Signal(rounding_input(plan), name="to_round", reset_less=True)
        m.d.sync += [
            result.negative.eq(negative),
            result.flip.eq(negative),
            result.nearest.eq(rnd == NEAREST),
            result.away.eq(Mux(negative, rnd == DOWN, rnd == UP)),
            result.rest.eq(chosen[0]),
            result.below.eq(chosen[1]),
            result.guard.eq(chosen[2]),
            result.value.eq(chosen[3:].as_signed()),
            result.zero.eq(none),
            result.subnormal.eq(exp == 0),
        ]
        if integer is not None:
            is_integer, view = integer
            with m.If(is_integer):
                m.d.sync += result.eq(view)
        return result

    def _integer_bits(self, m: Module, frame: Value) -> tuple[Value, Signal]:
        """What an integer or Q output rounds, with stage select; `frame` is in stage normal."""
        plan = self.plan
        low = plan.frame_low + plan.integer_place
        shift = list(enumerate(plan.shifts))
        control = self.control_normal
        view = Signal(rounding_input(plan), name="integer", reset_less=True)
        bits = max(out.bits for out in plan.integer_outputs)
        frame = frame[low:]
        kept = mux_one_hot([(control.shift[i], frame[n : n + bits]) for i, n in shift])
        guard = any_of(control.shift[i] & frame[n - 1] for i, n in shift if n)
        rest = any_of(control.shift[i] & frame[: n - 1].any() for i, n in shift if n > 1)
        sign = frame[-1]
        for f in plan.formats:
            if f.modular and f.fmt.frac and f.sum_bits < len(frame):
                # The only rounded sum that wraps; its sign is the top bit of the modulus.
                sign = Mux(control.modular, frame[f.sum_bits - 1], sign)
        high_zero, high_ones, high_below = [], [], []
        for pair in plan.pairs:
            out, src = pair.out, pair.src
            if out.is_float or src.modular:
                continue
            chosen = (
                control.out[plan.outputs.index(out)] & control.shift[plan.shifts.index(pair.shift)]
            )
            high = frame[pair.shift + out.bits - 1 :]
            high_zero.append(chosen & ~high.any())
            high_ones.append(chosen & high.all())
            high_below.append(chosen & high[1:].all() & ~high[0])
        m.d.sync += [
            view.value.eq(kept),
            view.negative.eq(sign),
            view.flip.eq(0),
            view.nearest.eq(control.rnd == NEAREST),
            view.away.eq((control.rnd == UP) | ((control.rnd == TO_ZERO) & sign)),
            view.guard.eq(guard),
            view.below.eq(0),
            view.rest.eq(rest),
            view.high_zero.eq(any_of(high_zero)),
            view.high_ones.eq(any_of(high_ones)),
            view.high_below.eq(any_of(high_below)),
        ]
        is_integer = any_of(
            self.control_select.out[i] for i, out in enumerate(plan.outputs) if not out.is_float
        )
        return is_integer, view

    # -- rounding ------------------------------------------------------------------------------

    def _round(self, m: Module, source: data.View) -> data.View:
        """Stage round: one increment. Returns the result with stage out."""
        plan, floats = self.plan, self._floats(self.control_round)
        # The magnitude's bits below the kept ones, from those of the two's complement value:
        # negation inverts what lies above the lowest set bit.
        any_lower = source.below | source.rest
        guard = source.guard ^ (source.flip & any_lower)
        below = source.below ^ (source.flip & source.rest)
        dropped = source.guard | any_lower
        completes = source.flip & ~dropped  # negation carries into the kept bits
        up = Signal(name="up")
        m.d.comb += up.eq(
            completes
            | (source.nearest & guard & (any_lower | source.value[0]))
            | (source.away & dropped)
        )
        # Would one more bit of precision round up to the smallest normal number?
        up_finer = (source.nearest & below) | (source.away & any_lower)
        ones = any_of(c & source.value[: out.man].all() for out, c in floats if out.man)
        becomes_normal = ones & (completes | (guard & up_finer))
        result = Signal(rounded(plan), name="rounded", reset_less=True)
        m.d.sync += [
            result.dropped.eq(dropped),
            result.tiny.eq(source.subnormal & ~source.zero & ~becomes_normal),
        ]
        value = Signal(source.value.shape(), name="raised")
        m.d.comb += value.eq(source.value + Cat(up, Const(0, 1)).as_signed())
        m.d.sync += result.value.eq(value)
        m.d.sync += result.overflow.eq(self._overflows(source, up))
        return result

    def _overflows(self, source: data.View, up: Value) -> Value:
        """Whether the result is beyond the output's range, found beside the increment by `up`."""
        plan, value = self.plan, source.value
        beyond, at_end = [], []  # if not raised; if raised
        for out, chosen in self._floats(self.control_round):
            bits = out.exp + out.man
            # Larger ones end in so many bits of any value, if they are no wider than the format.
            end = out.man if out.has_inf else 0
            over = value[bits:].any()
            if out.has_nan:
                over = over | value[end:bits].all()
            ends = value[:bits] == largest_code(out)
            if out.specials is Specials.E8M0:  # the only one whose exponents may be negative here
                over, ends = over & ~value[-1], ends & ~value[-1]
            beyond.append(chosen & over)
            at_end.append(chosen & ends)
        if plan.has_integers:
            is_integer = ~any_of(c for _, c in self._floats(self.control_round))
            carries = any_of(
                self.control_round.out[i] & value[: out.bits - 1].all()
                for i, out in enumerate(plan.outputs)
                if not out.is_float
            )
            fits = source.high_ones | source.high_zero
            fits_raised = source.high_ones | Mux(carries, source.high_below, source.high_zero)
            beyond.append(is_integer & ~fits)
            raised = any_of([*at_end, *beyond[:-1], is_integer & ~fits_raised])
        else:
            raised = any_of([*at_end, *beyond])
        return Mux(up, raised, any_of(beyond))

    def _floats(self, control: data.View) -> list[tuple[Format, Value]]:
        return [(out, control.out[i]) for i, out in enumerate(self.plan.outputs) if out.is_float]
