"""Proofs of the decoder: CSRs, traps, answers, and the fields that walks rely on."""

from __future__ import annotations

from itertools import pairwise

from amaranth.hdl import Array, Cat, Const, Mux, Signal, Value
from amaranth.lib.wiring import In

from hdl import isa
from hdl.config import Config
from hdl.interfaces import ERROR_BADGEOM, ERROR_NONE, InstrKind, host_request
from hdl.isa import Csr, MsState
from hdl.issue.access_stage import AccessStage
from hdl.issue.answer import ANSWERS
from hdl.issue.csr import CsrFile, CsrSelect, csr_order, mxinfo
from hdl.issue.decode import CHECKS, Decode
from hdl.issue.places import ThreePlaces, split_layout
from hdl.issue.stages import WIDE, stage_layouts
from hdl.issue.word_stage import WordStage

from .contracts import ldst_rules, move_rules
from .harness import Inside, Proof
from .storage import registers_in
from .task import Task, mutants

__all__ = ["MUTANTS", "TASKS"]

_CLASSES = ("mmacc", "load", "store", "move", "vector", "fence", "release", "wb")


def _csr_file(p: Proof, cfg: Config) -> tuple[CsrFile, CsrSelect, Inside]:
    """The CSRs, accessed by any number; and what is inside."""
    which = CsrSelect(cfg)
    p.add("which", which, free=True)
    dut = CsrFile(cfg)
    inside = p.add("csrs", dut)
    for path, member, value in dut.signature.flatten(dut):
        if member.flow is In and path != ("select",):
            name = f"csrs_{'_'.join(map(str, path))}"
            p.m.d.comb += Value.cast(value).eq(p.any(len(Value.cast(value)), name))
    p.m.d.comb += dut.select.eq(which.select)
    return dut, which, inside


def csrs(cfg: Config) -> Proof:
    """Every CSR holds what software wrote; sticky bits rise by events and fall by software only."""
    p = Proof()
    m = p.m
    dut, which, inside = _csr_file(p, cfg)
    base = cfg.csr_base
    reset = {Csr.MXCFG: isa.MXCFG_BITS, Csr.MXTILE: isa.MXTILE_BITS, Csr.MXSTATUS: 8}
    stored = {}
    for csr, bits in reset.items():
        stored[csr] = Signal(bits, name=f"model_{csr.name.lower()}", init=isa.CSR_RESET[csr])
    state = Signal(2, name="model_ms", init=MsState.INITIAL)
    names = {csr: p.signal(which.number == base + csr, f"is_{csr.name.lower()}") for csr in Csr}
    is_state = p.signal(which.number == 0x802, "is_xmcsr")

    with m.If(dut.write & is_state):
        m.d.sync += state.eq(dut.write_data)
    with m.Elif(dut.initial):
        m.d.sync += state.eq(MsState.INITIAL)
    with m.Elif(dut.dirty):
        m.d.sync += state.eq(MsState.DIRTY)
    m.d.sync += stored[Csr.MXSTATUS].eq(stored[Csr.MXSTATUS] | dut.status)
    for csr, model in stored.items():
        with m.If(dut.write & names[csr]):
            m.d.sync += model.eq(dut.write_data)

    for csr, model in stored.items():
        p.check(f"reads_{csr.name.lower()}", ~names[csr] | (dut.value == model))
        p.check(f"holds_{csr.name.lower()}", inside(csr.name.lower()) == model)
    p.check("reads_mxinfo", ~names[Csr.MXINFO] | (dut.value == mxinfo(cfg)))
    p.check("reads_xmcsr", ~is_state | (dut.value == state))
    p.check("gives_mxcfg", dut.mxcfg == stored[Csr.MXCFG])
    p.check("gives_mxtile", dut.mxtile == stored[Csr.MXTILE])
    p.check("state", inside("state") == state)
    p.check("off", dut.off == (state == MsState.OFF))
    exists = is_state | names[Csr.MXINFO] | Cat(names[csr] for csr in stored).any()
    p.check("known", which.known == exists)
    p.check("read_only", which.read_only == names[Csr.MXINFO])
    p.check("status_waits_for_all", which.after_all == names[Csr.MXSTATUS])
    p.check("state_waits_for_decode", which.after_decode == is_state)

    # The rule in its own words, beside the model.
    status = inside("mxstatus")
    before = p.past(status, "status_before")
    by_software = p.past(dut.write & names[Csr.MXSTATUS], "written_by_software")
    after_reset = p.past(Const(1), "after_reset")
    p.check("sticky", ~after_reset | by_software | ((before & ~status) == 0))
    events = p.past(dut.status, "events")
    p.check("events_stick", ~after_reset | by_software | ((events & ~status) == 0))
    other = p.past(stored[Csr.MXSTATUS] | dut.status, "old_or_events")
    p.check("nothing_else_sets", ~after_reset | by_software | ((status & ~other) == 0))
    p.cover("cleared", by_software & (before == 0xFF) & (status == 0))
    p.cover("stuck", (status == 0x80) & (before == 0x80))
    p.cover("dirty_again", (state == MsState.DIRTY) & p.past(state == MsState.OFF, "was_off"))
    return p


def register_csrs(cfg: Config) -> Proof:
    """The CSRs of the front end `xuantie`, likewise; xmxsat is the sticky one."""
    p = Proof()
    dut, which, inside = _csr_file(p, cfg)
    is_csr = {csr: p.signal(which.number == csr, f"is_{csr.name.lower()}") for csr in isa.XCsr}
    events = {
        isa.XCsr.XMSIZE: (dut.resize, dut.new_size),
        isa.XCsr.XMXSAT: (dut.saturated, Const(1)),
    }
    for csr, facts in isa.XUANTIE_CSRS.items():
        name, access = csr.name.lower(), facts.access
        here = is_csr[csr]
        p.check(f"{name}_exists", ~here | which.known)
        read_only = access is isa.XuanTieAccess.READ_ONLY
        p.check(f"{name}_access", ~here | (which.read_only == read_only))
        p.check(f"{name}_waits", ~here | (which.after_all == facts.waits))
        if facts.reset is None:
            value = p.past(dut.value, f"{name}_read")
            again = here & p.past(here, f"{name}_was_read")
            p.check(f"{name}_is_constant", ~again | (dut.value == value))
            continue
        model = Signal(facts.bits, name=f"model_{name}", init=facts.reset)
        if csr in events:
            happens, becomes = events[csr]
            with p.m.If(happens):
                p.m.d.sync += model.eq(becomes)
        if not read_only:
            cleared = access is isa.XuanTieAccess.CLEARED
            with p.m.If(dut.write & here):
                p.m.d.sync += model.eq(0 if cleared else dut.write_data)
        p.check(f"reads_{name}", ~here | (dut.value == model))
        p.check(f"holds_{name}", inside(name) == model)
    saturated = inside("xmxsat")
    by_software = p.past(dut.write & is_csr[isa.XCsr.XMXSAT], "written_by_software")
    before = p.past(saturated, "saturated_before")
    p.check("sticky", by_software | ~before | saturated)
    p.cover("cleared", by_software & before & ~saturated)
    p.cover("resized", inside("xmsize") == 0x0010_0404)
    return p


def traps(cfg: Config) -> Proof:
    """A trap changes nothing but its sticky bit; answers leave one an instruction, in order."""
    p = Proof()
    dut = Decode(cfg)
    with registers_in("hdl.issue.places"):
        inside = p.add("decode", dut, free=True)
    layouts = stage_layouts(cfg)
    names = "bcdefghij"
    stages = {name: inside(name, layouts[name]) for name in names}
    full = {name: inside(f"{name}_full") for name in names}
    leaves = {"b": inside("b_leaves")}
    access, words, last, answer = (
        inside.part(name) for name in ("access", "words", "last", "answer")
    )
    csr = access.part("csr")
    # A holds two instructions, the one that goes next and one more while that waits; K, three.
    a_full = {"item": words("valid"), "spare": words("spare_valid")}
    a = {name: words(name, host_request(cfg)) for name in a_full}
    k_full = {"item": last("valid"), "second": last("more"), "third": last("full")}
    k = {name: Signal(layouts["k"], name=f"k_{name}") for name in k_full}
    wide, narrow = split_layout(layouts["k"], WIDE)
    memories = last.parts(r"wide\d+")
    places = [
        {
            "wide": wide(Cat(memory(f"word{n}") for memory in memories)),
            "narrow": narrow(last.part("narrow")(f"word{n}")),
        }
        for n in range(ThreePlaces.PLACES)
    ]
    empties, fills = last("empties"), last("fills")
    for index, (name, there) in enumerate(k.items()):
        at = p.signal((empties + index)[: len(empties)], f"place_{name}")
        held = {
            kind: layout(Array(Value.cast(place[kind]) for place in places)[at])
            for kind, layout in (("wide", wide), ("narrow", narrow))
        }
        if name == "item":
            held["narrow"] = last("item", narrow)
        for layout, there_is in ((wide, held["wide"]), (narrow, held["narrow"])):
            p.m.d.comb += [there[field].eq(there_is[field]) for field, _ in layout]
    k_count = sum(k_full.values(), Const(0, 2))
    p.check("places_held", (fills - empties)[: len(fills)] == k_count[: len(fills)])
    p.check("ready_if_there_is_room", ~(last("ready") & k_full["third"]))
    # Copies of control registers, as soon as there is anything to move.
    any_inside = p.signal(Cat(full.values(), k_full.values()).any(), "any_inside")
    originals = {
        **{f"go_{name}": (inside, last("ready")) for name in names},
        **{pointer: (last, last(pointer)) for pointer in ("fills", "empties")},
    }
    for prefix, (where, original) in originals.items():
        for number, copy in enumerate(where.copies(prefix)):
            p.check(f"{prefix}_copy{number}", ~any_inside | (copy == original))
    tells, told = answer("tells"), answer("told")
    sent, scalar = answer("sent"), answer("scalar")
    f = k["item"]
    queue = answer.part("responses")
    p.check("answer_has_room", ~answer("room") | (queue("w_rdy") & (queue("level") < ANSWERS)))
    p.check("answers_fit", queue("inner_level") < ANSWERS)
    p.check("answers_flow", queue("r_rdy") | (queue("level") <= 1))
    p.check("told_is_plain", ~told | (k_full["item"] & f.dispatch & ~f.element))
    p.check("sent_waits", ~sent | (k_full["item"] & f.dispatch & f.element))
    for number, copy in enumerate(answer.copies("scalar_busy")):
        p.check(f"scalar_busy_copy{number}", ~answer("scalar_busy") | copy)
    was_busy = p.past(answer("scalar_busy"), "was_busy")
    p.check("scalar_held", ~was_busy | (scalar == p.past(scalar, "scalar_before")))
    for name, there in {"a": a_full, "k": k_full}.items():
        for number, (before, behind) in enumerate(pairwise(there.values())):
            p.check(f"one_waits_for_the_other_{name}{number}", ~behind | before)

    # An illegal word is of no class, from stage C to the last; in B it is known what is of one.
    b = stages["b"]
    classes = Cat(b[kind] for kind in _CLASSES if kind != "wb").any()
    p.check("known_b", ~full["b"] | ~classes | b.known)
    accesses = b.csr.write | b.csr.after_all | b.csr.after_decode
    p.check("access_allowed_b", ~full["b"] | ~accesses | b.csr.allowed)
    order = csr_order(cfg)
    for number, waits in (
        (cfg.csr_base + Csr.MXSTATUS, b.csr.after_all),
        (0x802, b.csr.after_decode),
    ):
        named = full["b"] & b.csr.allowed & b.csr.select[order.index(number)]
        p.check(f"access_to_{number:x}_waits_b", ~named | waits)
    p.check("writes_known_b", ~full["b"] | ~b.wb | Mux(b.csr.on, b.csr.allowed, b.known))
    for name in names[1:]:
        stage = stages[name]
        classes = Cat(stage[kind] for kind in _CLASSES).any()
        p.check(f"illegal_is_nothing_{name}", ~full[name] | ~stage.illegal | ~classes)
    for name in names:
        kinds = Cat(stages[name][kind] for kind in _CLASSES if kind != "wb")
        p.check(f"one_class_{name}", ~full[name] | ((kinds & (kinds - 1)) == 0))
    # Nor does an instruction fit badly that uses no tiles.
    misfits = {
        "g": ("bad",),
        "h": ("bad", "apart", "uses_rd", "uses_rs1", "uses_rs2"),
        "i": ("bad", "apart"),
        "j": ("bad", "overlap"),
    }
    for name, fields in misfits.items():
        stage = stages[name]
        misfit = Cat(stage[field] for field in fields).any()
        uses_tiles = stage.mmacc | stage.load | stage.store | stage.move | stage.vector
        p.check(f"others_fit_{name}", ~full[name] | ~misfit | uses_tiles)
    for name, stage in k.items():
        trap = p.signal(k_full[name] & (stage.resp.error != ERROR_NONE), f"trap_{name}")
        p.check(f"fence_dispatches_nothing_{name}", ~k_full[name] | ~stage.fence | ~stage.dispatch)
        p.check(f"trap_dispatches_nothing_{name}", ~trap | ~(stage.dispatch | stage.element))
        wrong = stage.resp.wb | stage.release | stage.fence
        p.check(f"trap_writes_no_register_{name}", ~trap | ~wrong)
        if name == "item":
            trapped = trap
    p.check("nothing_dispatched", ~dut.instrs.valid | ~trapped)
    # What is offered stays until it is taken.
    offered = p.past(dut.instrs.valid & ~dut.instrs.ready, "offered")
    bundle = Cat(dut.instrs.valid, Value.cast(dut.instrs.payload))
    p.check("instruction_held", ~offered | (bundle == p.past(bundle, "bundle_before")))

    # State that software sees: who may change it, and when.
    status_now = p.signal(answer("status_now"), "status_events")
    for name in ("status", "dirty", "initial"):
        before = p.past(answer(f"{name}_now"), f"{name}_before")
        p.check(f"{name}_a_cycle_late", answer(name) == before)
    fields = isa.MXSTATUS
    of_flags = 0
    for name in ("inexact", "sat_hit", "invalid", "overflow", "underflow"):
        of_flags |= 1 << fields[name].lo
        event = status_now[fields[name].lo]
        p.check(f"flag_{name}", event == (dut.flags_valid & dut.flags[name]))
    p.check("flag_bus", status_now[fields["bus_error"].lo] == dut.bus_error)
    p.check(
        "flag_badgeom",
        status_now[fields["badgeom"].lo] == (tells & (f.resp.error == ERROR_BADGEOM)),
    )
    fallback = status_now[fields["guard_fallback"].lo]
    p.check("flag_fallback", ~fallback | (tells & f.dispatch & ~trapped))
    p.check("trap_leaves_ms", ~trapped | ~(answer("dirty_now") | answer("initial_now")))

    # A word that traps on its way into stage C writes no CSR.
    moved = p.past(leaves["b"], "b_left")
    illegal = p.signal(moved & stages["c"].illegal, "was_illegal")
    csr_of = {"mxcfg": Csr.MXCFG, "mxtile": Csr.MXTILE}
    for name in csr_of:
        value = csr(name)
        before = p.past(value, f"{name}_before", isa.CSR_RESET[csr_of[name]])
        p.check(f"illegal_keeps_{name}", ~illegal | (value == before))
        p.check(f"{name}_waits_for_its_turn", moved | (value == before))
    status = csr("mxstatus")
    expected = p.past(status | answer("status"), "status_expected")
    p.check("illegal_keeps_mxstatus", ~illegal | (status == expected))
    ms = csr("state")
    by_others = p.past(answer("dirty") | answer("initial"), "ms_event")
    p.check("illegal_keeps_ms", ~illegal | by_others | (ms == p.past(ms, "ms_before")))

    # Answers: the tags that come in leave in the same order, one each.
    count = Signal(cfg.tag_bits, name="next_in")
    gone = Signal(cfg.tag_bits, name="next_out")
    p.assume("tags_count", ~dut.req.valid | (dut.req.payload.tag == count))
    with p.m.If(dut.req.valid & dut.req.ready):
        p.m.d.sync += count.eq(count + 1)
    with p.m.If(tells):
        p.m.d.sync += gone.eq(gone + 1)
    held = {
        "item": (k_full["item"] & ~told, k["item"].resp.tag),
        **{which: (k_full[which], k[which].resp.tag) for which in ("second", "third")},
        **{name: (full[name], stages[name].tag) for name in reversed(names)},
        **{f"a_{name}": (there, a[name].tag) for name, there in a_full.items()},
    }
    tag = gone
    for name, (there, its_tag) in held.items():
        p.check(f"tag_{name}", ~there | (its_tag == tag[: cfg.tag_bits]))
        tag = tag + there
    p.check("all_inside", tag[: cfg.tag_bits] == count)

    # CSR accesses that wait, and fences: all older instructions have gone on, and their work was
    # done for two cycles. The slots show from the next cycle on that they have one.
    waits = b.csr
    older = Cat((full[name] for name in names[1:]), k_full.values()).any()
    waited = p.signal(leaves["b"] & (waits.after_all | waits.after_decode), "waited")
    dispatched = p.signal(dut.instrs.valid & dut.instrs.ready, "dispatched")
    just = p.past(dispatched, "was_dispatched")
    p.assume("dispatched_is_work", ~just | ~dut.quiet)
    quiet = p.signal(dut.quiet & p.past(dut.quiet, "was_quiet"), "quiet_twice")
    done = Signal(name="done")
    with p.m.If(dispatched | just):
        p.m.d.sync += done.eq(0)
    with p.m.Elif(quiet):
        p.m.d.sync += done.eq(1)
    p.check("settled_is_done", ~answer("settled") | done)
    p.check("drained_is_done", ~inside("drained") | (done & ~older))
    p.check("empty_is_empty", ~inside("empty") | ~older)
    p.check("access_waits_for_older", ~waited | ~older)
    p.check("access_waits_for_all", ~(leaves["b"] & waits.after_all) | done)
    p.check("fence_waits_for_all", ~(tells & f.fence) | done)
    p.cover("badgeom", tells & (f.resp.error == ERROR_BADGEOM))
    p.cover("bus", tells & (f.resp.error == 3) & ~f.fence)
    p.cover("illegal_csr_write", illegal & p.past(b.csr.on, "was_csr"))
    p.cover("access_of_all", leaves["b"] & waits.after_all)
    p.cover("all_stages", Cat(full.values(), k_full.values(), a_full.values()).all() & tells)
    return p


def responses(cfg: Config) -> Proof:
    """From request to response: tags in order, one each, held until taken."""
    p = Proof()
    dut = Decode(cfg)
    p.add("decode", dut, free=True)
    count, gone = (Signal(cfg.tag_bits, name=name) for name in ("next_in", "next_out"))
    p.assume("tags_count", ~dut.req.valid | (dut.req.payload.tag == count))
    with p.m.If(dut.req.valid & dut.req.ready):
        p.m.d.sync += count.eq(count + 1)
    with p.m.If(dut.resp.valid & dut.resp.ready):
        p.m.d.sync += gone.eq(gone + 1)
    p.check("in_order", ~dut.resp.valid | (dut.resp.payload.tag == gone))
    p.check("asked_for", ~dut.resp.valid | (gone != count))
    stalled = p.past(dut.resp.valid & ~dut.resp.ready, "stalled")
    response = Cat(dut.resp.valid, Value.cast(dut.resp.payload))
    p.check("held", ~stalled | (response == p.past(response, "response_before")))
    p.check("idle", ~dut.idle | (gone == count))
    p.cover("three", (gone == 3) & dut.idle)
    p.cover("full", dut.resp.valid & ~dut.req.ready & dut.instrs.ready & (gone == 0))
    return p


def walks(cfg: Config) -> Proof:
    """What the decoder dispatches keeps the rules that the split counters and slots rely on.

    Any word, any mxcfg and mxtile; the stages of the decoder without the registers between them.
    """
    p = Proof()
    m = p.m
    layouts = stage_layouts(cfg)
    word, access = WordStage(cfg), AccessStage(cfg)
    p.add("word", word)
    p.add("access", access)
    request = p.any(word.before.shape(), "request")
    m.d.comb += [
        Value.cast(word.before).eq(Value.cast(request)),
        Value.cast(access.before).eq(Value.cast(word.after)),
        access.leaves.eq(0),
    ]
    seen = Signal(layouts["c"], name="seen")
    tile = p.any(32, "mxtile")

    def of_tile(name: str) -> Value:
        field = isa.MXTILE[name]
        return tile[field.lo : field.lo + field.width]

    m.d.comb += [
        Value.cast(seen).eq(Value.cast(access.after)),
        seen.mxcfg.eq(p.any(32, "mxcfg")),
        seen.reserved_tile.eq(of_tile("reserved").any()),
        *(seen[name].eq(of_tile(name)) for name in ("tiling", "guard4x4", "k", "m")),
        seen.n.eq(Mux(of_tile("n") == 0, of_tile("m"), of_tile("n"))),
    ]
    value = seen
    after = {}
    for stage in (kind(cfg) for kind in CHECKS):
        p.add(f"stage_{stage.AFTER}", stage)
        m.d.comb += Value.cast(stage.before).eq(Value.cast(value))
        after[stage.AFTER] = value = stage.after
    f = value
    out = f.instr
    kind = Value.cast(out.kind)
    is_kind = {
        k: p.signal(f.dispatch & (kind == k.value), f"is_{k.name.lower()}") for k in InstrKind
    }

    def rules(which, found) -> None:
        for name, rule in found:
            p.check(f"{which.name.lower()}_{name}", ~is_kind[which] | rule)

    # Loads and stores: the fields' rules, and claims on every tile that is walked.
    ls = out.ldst
    for which in (InstrKind.LOAD, InstrKind.STORE):
        rules(which, ldst_rules(cfg, ls))
    what = isa.LDST["what"]
    what = seen.f7[what.lo : what.lo + what.width]
    of_k = (what == isa.LdstWhat.A) | (what == isa.LdstWhat.B)
    nibbles = p.signal(seen.k << after["d"].container_log2, "nibbles")
    for which in (InstrKind.LOAD, InstrKind.STORE):
        k_bytes = (ls.bytes_last + 1 == (nibbles + 1) >> 1) & (ls.half == nibbles[0])
        p.check(f"{which.name.lower()}_ends_with_k", ~(is_kind[which] & of_k) | k_bytes)
    group, part = p.const(3, "group"), p.const(3, "slice")
    slices_last = ((1 << ls.slices_log2) - 1)[:3]
    bytes_here = Mux(~ls.down & (group == ls.group_last), ls.bytes_last, ls.bytes_most)
    active = Mux(
        ls.down,
        (group <= ls.tile_last) & (part == 0),
        (group <= ls.group_last) & (part <= bytes_here >> cfg.row_bytes_log2),
    )
    named = (part <= slices_last) & ((group << ls.slices_log2) + part <= ls.tiles)
    walked = p.signal(active | (ls.fill & named), "walked")
    to = p.signal(ls.tile + group * ls.group_stride + part, "walked_tile")
    first = Mux(ls.tile >= cfg.tiles, cfg.tiles, 0) if cfg.split else Const(0)
    inside = (to < first + cfg.tiles) & (to >= first)
    p.check("load_inside", ~(is_kind[InstrKind.LOAD] & walked) | inside)
    p.check("store_inside", ~(is_kind[InstrKind.STORE] & walked) | inside)
    p.check("load_claims", ~(is_kind[InstrKind.LOAD] & walked) | out.writes.bit_select(to, 1))
    p.check("store_claims", ~(is_kind[InstrKind.STORE] & active) | out.reads.bit_select(to, 1))

    # mma: every tile of A, B and C, inside its file, C apart from both.
    f_, is_mma = out.mma, is_kind[InstrKind.MMA]
    i, j, n = p.const(2, "i"), p.const(2, "j"), p.const(cfg.rows_log2, "column")
    used = (i <= f_.i_last) & (j <= f_.j_last)
    n_last = Mux(j == f_.j_last, f_.n_last, f_.n_most)
    byte = (n << f_.width_log2) >> cfg.row_bytes_log2
    is_mma_pair = p.signal(is_mma & used & (n <= n_last), "is_pair")
    a, b_tile = f_.a + i, f_.b + j
    c = p.signal(f_.c + i * f_.i_stride + j * f_.j_stride + byte, "c_tile")
    p.check("mma_a", ~is_mma_pair | ((a < cfg.tiles) & out.reads.bit_select(a, 1)))
    p.check("mma_b", ~is_mma_pair | ((b_tile < cfg.tiles) & out.reads.bit_select(b_tile, 1)))
    p.check("mma_c", ~is_mma_pair | ((c < cfg.all_tiles) & out.writes.bit_select(c, 1)))
    p.check("mma_c_apart", ~is_mma | ((out.reads & out.writes) == 0))
    i2, j2 = p.const(2, "i2"), p.const(2, "j2")
    same_tile = (f_.a + i2 == f_.b + j2) & (i2 <= f_.i_last) & (j2 <= f_.j_last)
    p.check("mma_shared", ~(is_mma & same_tile) | f_.shared)
    other = p.const(cfg.rows_log2, "column2")
    byte2 = (other << f_.width_log2) >> cfg.row_bytes_log2
    n2_last = Mux(j2 == f_.j_last, f_.n_last, f_.n_most)
    c2 = f_.c + i2 * f_.i_stride + j2 * f_.j_stride + byte2
    elsewhere = (i != i2) | (j != j2) | (byte != byte2)
    both = is_mma_pair & (i2 <= f_.i_last) & (j2 <= f_.j_last) & (other <= n2_last)
    p.check("mma_results_apart", ~(both & elsewhere) | (c != c2))

    # Moves.
    rules(InstrKind.MOVE, move_rules(cfg, out.move))
    v = out.move
    t = p.const(cfg.tiles_log2, "move_tile")
    is_move = is_kind[InstrKind.MOVE] & (t <= v.tiles)
    reads = ~((v.op == isa.MoveOp.MZERO) | (v.op == isa.MoveOp.SCALAR))
    writes = v.op != isa.MoveOp.ELEMENT
    p.check("move_reads", ~(is_move & reads) | out.reads.bit_select(v.src + t, 1))
    p.check("move_writes", ~(is_move & writes) | out.writes.bit_select(v.dst + t, 1))

    p.cover("load_down", is_kind[InstrKind.LOAD] & ls.down & (ls.tile_last == 1) & ls.fill)
    p.cover("load_along", is_kind[InstrKind.LOAD] & ~ls.down & (ls.group_last == 1))
    p.cover("store", is_kind[InstrKind.STORE] & ls.contiguous & (ls.tile_last == 1))
    p.cover("mma", is_mma & (f_.i_last == 1) & (f_.j_last == 1) & (f_.width_log2 == 1))
    p.cover("move", is_kind[InstrKind.MOVE] & (v.op == isa.MoveOp.MTRANS))
    p.cover("few_slices", is_kind[InstrKind.LOAD] & ~ls.down & (ls.tiles < slices_last))
    return p


_DECODE = Config(
    tiles=16,
    rows=8,
    row_bits=64,
    bus_bits=64,
    banks=2,
    m_par=2,
    n_par=1,
    tag_bits=5,  # more than there are instructions inside
    slots=2,
    formats=("int4", "int8", "int16"),
)

TASKS = (
    Task(
        name="csrs",
        about="CSRs hold what was written; sticky bits fall by software alone",
        parameters="front end ame",
        build=lambda: csrs(_DECODE),
        depth=2,
        cover=5,
        quick=True,
    ),
    Task(
        name="csrs_xuantie",
        about="the same of xuantie's CSRs",
        parameters="both front ends",
        build=lambda: register_csrs(Config(frontends=("ame", "xuantie"), formats=("int8",))),
        depth=2,
        cover=5,
        quick=True,
    ),
    Task(
        name="traps",
        about="a trap changes its sticky bit alone; tags pass in order; who waits for older work",
        parameters="16 tiles, rows 8 x 64 bit, tags of 5 bit",
        build=lambda: traps(_DECODE),
        depth=2,
        cover=20,
        quick=True,
    ),
    Task(
        name="responses",
        about="one response a request, in order, held until taken",
        parameters="16 tiles, rows 8 x 64 bit, tags of 5 bit",
        build=lambda: responses(_DECODE),
        mode="bmc",
        depth=20,
        cover=24,
    ),
    Task(
        name="decode_walks",
        about="dispatched fields and claims keep what walks and slots rely on",
        parameters="16 tiles, rows 8 x 64 bit, unified",
        build=lambda: walks(_DECODE),
        depth=2,
        cover=2,
    ),
    Task(
        name="decode_walks_ame32",
        about="the same at the size of the seed",
        parameters="32 tiles, rows 16 x 128 bit, int8, unified",
        build=lambda: walks(Config()),
        depth=2,
        cover=2,
        timeout=1500,
    ),
)

_CSR = "hdl/issue/csr.py"
_DECODER = "hdl/issue/decode.py"
_WORD = "hdl/issue/word_stage.py"
_ACCESS = "hdl/issue/access_stage.py"
_ANSWER = "hdl/issue/answer.py"
_PLACES = "hdl/issue/places.py"
_COUNTS = "hdl/issue/count_stage.py"
_GROUPS = "hdl/issue/group_stage.py"
_MASKS = "hdl/issue/mask_stage.py"
_SHIFTS = "hdl/issue/shift_stage.py"
_CHECKS = "hdl/issue/check_stage.py"
MUTANTS = (
    *mutants(
        _CSR,
        "csrs",
        (
            "an event clears the other sticky bits",
            "mxstatus.eq(mxstatus | self.status)",
            "mxstatus.eq(self.status)",
        ),
        ("mxinfo may be written", "self.read_only.eq(csr in READ_ONLY)", "self.read_only.eq(0)"),
        ("a release leaves tiles dirty", "state.eq(MsState.INITIAL)", "state.eq(MsState.DIRTY)"),
        (
            "mxstatus is read before older work is done",
            "self.after_all.eq(csr == Csr.MXSTATUS)",
            "self.after_all.eq(0)",
        ),
        ("mxtile starts at 0", "init=CSR_RESET[Csr.MXTILE]", "init=0"),
    ),
    *mutants(
        _CSR,
        "csrs_xuantie",
        ("xmxsat may be set by software", "0 if access is XuanTieAccess.CLEARED else ", ""),
        ("mcfg is forgotten", "size.eq(self.new_size)", "size.eq(size)"),
    ),
    *mutants(
        _ANSWER,
        "traps",
        (
            "a trapped mma tells a fallback",
            "tells & k.dispatch & k.fallback",
            "tells & k.fallback",
        ),
        (
            "a trapped load makes tiles dirty",
            "tells & k.dispatch & k.dirty",
            "tells & k.dirty",
        ),
        ("a trap is dispatched", "& k.dispatch & ~sent", "& ~sent"),
        ("an answer is given twice", "told.eq(plain & (told | tells) & ~dispatched)", "told.eq(0)"),
        (
            "a scalar changes while it is broadcast",
            'copies(m, "scalar_busy", busy_next, 1)',
            'copies(m, "scalar_busy", self.scalar_done, 1)',
        ),
        (
            "an answer leaves though the queue is full",
            "responses.level < ANSWERS - 1",
            "responses.level < ANSWERS",
        ),
        (
            "an instruction is offered for one cycle",
            " | (room & ~tells)",
            "",
        ),
        (
            "every trap is one of geometry",
            "k.resp.error == ERROR_BADGEOM",
            "k.resp.error != ERROR_NONE",
        ),
        (
            "a fence takes the quiet before the last dispatch for its own",
            "settled.eq(self.quiet & quiet_before & ~self.instrs.valid)",
            "settled.eq(self.quiet & quiet_before)",
        ),
    ),
    *mutants(
        _DECODER,
        "traps",
        (
            "a stage takes a word over the one it holds",
            'takes[name].eq(~full["b"] | (moves & ~access.held))',
            "takes[name].eq(1)",
        ),
        ("instructions run into the last stage", "go.eq(last.i.ready)", "go.eq(1)"),
        (
            "an access passes the instruction right before it",
            'drained.eq(~later & ~leaves["b"] & answer.settled)',
            "drained.eq(~later & answer.settled)",
        ),
    ),
    *mutants(
        _PLACES,
        "traps",
        (
            "a fourth item is let in",
            "full | (more & comes)",
            "full",
        ),
        ("places take no turns", "empties + (valid & self.o.ready)", "empties"),
        ("the last to come is the next to go", "Mux(more, second, came)", "came"),
    ),
    *mutants(
        _WORD,
        "traps",
        (
            "a CSR that does not exist is written",
            "csr.write.eq(allowed & writes)",
            "csr.write.eq(is_csr & writes)",
        ),
        (
            "mxstatus does not wait",
            "csr.after_all.eq(allowed & select.after_all)",
            "csr.after_all.eq(0)",
        ),
        (
            "rd gets what a CSR that does not exist holds",
            "b.wb.eq((allowed | is_element)",
            "b.wb.eq((is_csr | is_element)",
        ),
    ),
    *mutants(
        _ACCESS,
        "traps",
        (
            "an illegal mma is still one",
            "c.mmacc.eq(b.mmacc & on)",
            "c.mmacc.eq(b.mmacc)",
        ),
        (
            "tiles may be released while the unit is off",
            "c.release.eq(b.release & on)",
            "c.release.eq(b.release)",
        ),
        (
            "a word that waits writes its CSR",
            "csr.write.eq(self.leaves & b.csr.write)",
            "csr.write.eq(b.csr.write)",
        ),
        (
            "mxstatus is read too soon",
            "(b.csr.after_all & ~self.drained)",
            "(b.csr.after_all & ~self.empty)",
        ),
    ),
    *mutants(
        _ANSWER,
        "responses",
        (
            "an answer is offered for one cycle",
            "responses.r_en.eq(self.resp.ready)",
            "responses.r_en.eq(1)",
        ),
        (
            "idle with an answer to give",
            "self.answered.eq(responses.level == 0)",
            "self.answered.eq(1)",
        ),
    ),
    *mutants(
        _COUNTS,
        "decode_walks",
        (
            "the last byte is one behind K",
            "k_end.eq(nibble_last >> 1)",
            "k_end.eq((nibble_last >> 1) + 1)",
        ),
        (
            "the last byte is always whole",
            "f.half.eq((e.container_log2 == 0) & e.k[0])",
            "f.half.eq(0)",
        ),
        (
            "outputs of 64 bits fit a group",
            "f.bad_mma.eq(wide_bad | btr_bad)",
            "f.bad_mma.eq(btr_bad)",
        ),
    ),
    *mutants(
        _GROUPS,
        "decode_walks",
        (
            "named tiles need not hold a group",
            "(is_c & (f.bad_columns | f.bad_bytes))",
            "(is_c & f.bad_columns)",
        ),
        (
            "all groups of C end as the last one",
            "g.ends[i * b_tiles + j].eq(j == f.j_last)",
            "g.ends[i * b_tiles + j].eq(1)",
        ),
        (
            "a load claims no tiles that it zeroes",
            "g.slice_most.eq(Mux(f.load, named_slices, slice_most))",
            "g.slice_most.eq(slice_most)",
        ),
    ),
    *mutants(
        _MASKS,
        "decode_walks",
        (
            "a load that fills less zeroes nothing",
            "h.fill.eq(g.load & ~(g.full_rows & g.full_groups & g.full_slices))",
            "h.fill.eq(0)",
        ),
        ("C may be anywhere", "(g.mmacc & int(not cfg.split))", "0"),
        (
            "a row ends where its last tile starts",
            "h.walked.eq(g.walked + cfg.row_bytes)",
            "h.walked.eq(g.walked)",
        ),
    ),
    *mutants(
        _SHIFTS,
        "decode_walks",
        (
            "C may lie behind the file",
            "i.bad.eq(h.bad | beyond[0] | beyond[1]",
            "i.bad.eq(h.bad | beyond[1]",
        ),
        (
            "rows are taken for contiguous a tile too soon",
            "i.contiguous.eq(h.stride == h.walked)",
            "i.contiguous.eq(h.stride == cfg.row_bytes)",
        ),
        (
            "every operand starts at tile 0",
            'h[f"{name}_tiles"] << first',
            'h[f"{name}_tiles"]',
        ),
    ),
    *mutants(
        _CHECKS,
        "decode_walks",
        (
            "C may overlap the operands",
            "(i.rd_mask & sources).any()",
            "(i.rd_mask & i.rs1_mask).any()",
        ),
        (
            "A and B never share a tile",
            "j.shared.eq((i.rs1_mask & i.rs2_mask).any())",
            "j.shared.eq(0)",
        ),
        (
            "a store claims nothing",
            "j.reads.eq(sources | Mux(i.store, i.rd_mask, 0))",
            "j.reads.eq(sources)",
        ),
    ),
)
