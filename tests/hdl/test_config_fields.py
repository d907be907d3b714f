"""Config: every fault has one clear message, presets hold, derived sizes are right."""

from __future__ import annotations

import dataclasses

import pytest

from hdl import formats as fmt_table
from hdl.config import PRESETS, Config, ConfigError, preset
from hdl.settings import apply_settings

# field: (below, above) its limits; all are powers of two
POWERS = {
    "tiles": (1, 64),
    "rows": (1, 32),
    "row_bits": (32, 1024),
    "banks": (0, 16),
    "m_par": (0, 16),
    "n_par": (0, 16),
    "bus_bits": (32, 1024),
    "line_bytes": (8, 256),
    "l2_ids": (0, 64),
}
RANGES = {
    "slots": (0, 9),
    "addr_bits": (15, 65),
    "tag_bits": (0, 65),
    "exact_limit": (0, 4199),
    "cells": (0, 2),
}


def fault(**changes: object) -> str:
    """The message of a Config with these fields; it is one line."""
    with pytest.raises(ConfigError) as caught:
        Config(**changes)
    message = str(caught.value)
    assert message and "\n" not in message
    return message


@pytest.mark.parametrize("name", POWERS)
def test_powers_of_two_are_checked(name: str) -> None:
    for value in (*POWERS[name], 3, 12, -4):
        assert fault(**{name: value}).startswith(f"{name} = {value} is not built: use a power of")


@pytest.mark.parametrize("name", RANGES)
def test_ranges_are_checked(name: str) -> None:
    for value in RANGES[name]:
        assert fault(**{name: value}).startswith(f"{name} = {value} is not built: use ")


FAULTS = [
    ({"rows": 2}, "m_par must be at most rows"),
    ({"m_par": 2}, "n_par must be at most m_par"),
    ({"tiles": 2}, "banks must be at most tiles"),
    ({"row_bits": 64}, "bus_bits must be at most row_bits"),
    ({"csr_base": 0xFFC}, "csr_base = 0xffc leaves no room for five CSRs"),
    ({"csr_base": -1}, "csr_base"),
    ({"csr_base": 0x802}, "csr_base = 0x802 puts a CSR on xmcsr, 0x802"),
    ({"csr_base": 0x7FE}, "csr_base = 0x7fe puts a CSR on xmcsr, 0x802"),
    ({"frontends": ()}, "frontends is empty"),
    ({"frontends": ("vax",)}, "unknown front end 'vax'"),
    ({"frontends": ("ame", "ame")}, "frontends names a front end twice"),
    ({"frontends": ("xuantie",), "tiles": 4}, "tiles must be at least 8 for xuantie"),
    ({"frontends": ("xuantie",), "row_bits": 64, "bus_bits": 64}, "row_bits must be 128, 256"),
    (
        {"frontends": ("xuantie",), "row_bits": 256, "rows": 4},
        "rows must be at least row_bits / 32",
    ),
    ({"frontends": ("xuantie",), "m_par": 8}, "m_par must be at most row_bits / 32"),
    ({"frontends": ("xuantie",), "accumulators": "split"}, "accumulators must be unified"),
    ({"mma_destinations": ()}, "mma_destinations must name registers, m0 to m7"),
    ({"mma_destinations": ("m8",)}, "mma_destinations must name registers, m0 to m7"),
    ({"xuantie_bf16": 1}, "xuantie_bf16 must be True or False, not 1"),
    ({"frontends": ("xuantie",), "csr_base": 0xCC0}, "csr_base = 0xcc0 puts a CSR on one of"),
    ({"accumulators": "both"}, "accumulators = 'both' is unknown"),
    ({"tile_memory": "bram"}, "tile_memory = 'bram' is unknown: use any or block"),
    ({"formats": ()}, "formats is empty"),
    ({"formats": ("int8", "int8")}, "formats names a format twice"),
    ({"formats": ("int9",)}, "unknown number format 'int9'"),
    ({"units": ("fft",)}, "unit 'fft'"),
    ({"window": {"int8": 40}}, "window names 'int8', which is not a float format"),
    ({"window": {"bf17": 40}}, "window names 'bf17'"),
    ({"window": {"bf16": 15}}, "window[bf16] = 15 is below twice the mantissa bits, 16"),
    ({"slots": "4"}, "slots must be a whole number, not '4'"),
    ({"slots": True}, "slots must be a whole number, not True"),
    ({"slots": 4.0}, "slots must be a whole number, not 4.0"),
    ({"formats": "int8"}, "formats must be a tuple of names, not 'int8'"),
    ({"units": (1,)}, "units must be a tuple of names"),
]


@pytest.mark.parametrize(("changes", "message"), FAULTS, ids=str)
def test_faults_are_named(changes: dict, message: str) -> None:
    assert message in fault(**changes)


def test_presets_are_found_by_their_names() -> None:
    assert {"ame32", "tiny"} <= set(PRESETS)
    for name, cfg in PRESETS.items():
        assert preset(name) is cfg and cfg.name == name
        assert cfg.replace() == cfg and hash(cfg.replace()) == hash(cfg)
    with pytest.raises(ConfigError, match="unknown preset 'AME32': choose one of ame32, "):
        preset("AME32")


def test_the_base_cell_is_that_of_the_design() -> None:
    cfg = preset("ame32")
    geometry = (cfg.tiles, cfg.rows, cfg.row_bits, cfg.banks, cfg.m_par, cfg.n_par)
    assert geometry == (32, 16, 128, 4, 4, 4)
    assert cfg.m_par * cfg.n_par * cfg.lanes(8) == 256
    assert (cfg.addr_bits, cfg.bus_bits, cfg.line_bytes, cfg.l2_ids) == (40, 128, 64, 32)


def test_a_config_cannot_be_changed() -> None:
    cfg = preset("ame32")
    with pytest.raises(dataclasses.FrozenInstanceError):
        cfg.slots = 4
    with pytest.raises(TypeError):
        cfg.window["bf16"] = 40
    mine = {"bf16": 40}
    held = Config(formats=("bf16",), window=mine)
    mine["bf16"] = 1
    assert held.window["bf16"] == 40


def test_replace_checks_again() -> None:
    with pytest.raises(ConfigError, match="n_par must be at most m_par"):
        preset("ame32").replace(m_par=2)


@pytest.mark.parametrize(
    "cfg",
    [*PRESETS.values(), Config(tiles=8, rows=8, row_bits=256, banks=4), Config(m_par=8, banks=1)],
    ids=lambda cfg: f"{cfg.name}-{cfg.tiles}-{cfg.rows}-{cfg.banks}",
)
def test_derived_sizes_fit_each_other(cfg: Config) -> None:
    assert cfg.row_bytes * 8 == cfg.row_bits == 8 << cfg.row_bytes_log2
    assert 1 << cfg.tiles_log2 == cfg.tiles and 1 << cfg.rows_log2 == cfg.rows
    assert cfg.tiles_per_bank << cfg.banks_log2 == cfg.tiles
    assert cfg.blocks * cfg.m_par == cfg.rows and 1 << cfg.blocks_log2 == cfg.blocks
    assert cfg.word_bits == cfg.m_par * cfg.row_bits
    assert cfg.beats_per_line * cfg.bus_bytes == cfg.line_bytes
    assert 1 << cfg.len_bits >= cfg.beats_per_line and 1 << cfg.id_bits >= cfg.l2_ids
    for bits in (8, 16, 32, 64):
        assert cfg.result_tiles(bits) * cfg.lanes(bits) >= cfg.rows
        assert cfg.uop_columns(bits) * bits <= cfg.row_bits
        assert cfg.uop_columns(bits) <= cfg.n_par


def test_result_tiles_are_w_over_8_in_the_base_cell() -> None:
    cfg = preset("ame32")
    assert [cfg.result_tiles(bits) for bits in (8, 16, 32, 64)] == [1, 2, 4, 8]


def test_settings_are_applied_together_and_typed() -> None:
    cfg = apply_settings(
        preset("ame32"),
        ["m_par=2", "n_par=2", "csr_base=0x810", "formats=int8, bf16", "window.bf16=40"],
    )
    assert (cfg.m_par, cfg.n_par, cfg.csr_base) == (2, 2, 0x810)
    assert cfg.formats == ("int8", "bf16") and dict(cfg.window) == {"bf16": 40}
    both = apply_settings(cfg, ["window.fp32=70", "window.bf16=36"])
    assert dict(both.window) == {"bf16": 36, "fp32": 70}
    whole = apply_settings(both, ["window=tf32:50"])
    assert dict(whole.window) == {"tf32": 50}
    assert apply_settings(cfg, []) is cfg
    assert apply_settings(cfg, ["units="]).units == ()


def test_profiles_stand_for_their_formats():
    """Profiles and formats mix; the result is in Ft-code order, each format once."""
    cfg = Config(formats=("hpc_main", "common", "int8", "bf16"))
    assert cfg.formats == ("int8", "fp8_e4m3", "fp8_e5m2", "int16", "bf16", "fp32", "tf32")
    assert Config(formats=("all",)).formats == tuple(fmt_table.FORMATS)
    for names in fmt_table.PROFILES.values():
        assert set(names) <= set(fmt_table.FORMATS)
