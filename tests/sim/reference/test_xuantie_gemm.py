"""GEMM loops of vendors' kernels on the model of the front end `xuantie`."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from naive_mma import float_dot
from xuantie_core import BOTH, SEED, X128, X256, X512
from xuantie_gemm_cases import Case, half_case, int8_case

from hdl import isa
from hdl.formats import FORMATS
from sim.engines.model import ModelSimulator
from sim.kernels.problem import Matrix
from sim.kernels.xuantie_gemm import half_gemm_program
from sim.memory import Memory

CORES = (X128, X256, X512, BOTH)
by_core = pytest.mark.parametrize("cfg", CORES, ids=lambda cfg: cfg.name)


def run(case: Case) -> Counter:
    """Run a case; how often each instruction occurred."""
    engine = ModelSimulator(case.program.cfg)
    engine.memory = case.memory()
    result = engine.run(case.program)
    assert not any(response.error for response in result.responses)
    case.check(engine.memory)
    return Counter(isa.decode(request.inst).name for request in case.program)


def sizes(cfg, seed):
    """A few M, N, K: whole blocks, edges of one, and what leaves registers empty."""
    rows, width = cfg.x_rows, cfg.row_bytes
    rng = random.Random(f"{SEED} {cfg.name} {seed}")
    yield 2 * rows, 4 * rows, width
    yield 1, 1, 1
    yield 2 * rows + 1, 2 * rows - 1, width + 1
    yield rows, rows, 3 * width
    for _ in range(2):
        yield rng.randint(1, 3 * rows), rng.randint(1, 5 * rows), rng.randint(1, 2 * width)


@by_core
def test_int8_gemm(cfg):
    names = Counter()
    for index, (m, n, k) in enumerate(sizes(cfg, "int8")):
        names += run(int8_case(cfg, m, n, k, SEED + index))
    used = {"mmaqa.b", "mmov.mv.i", "mmulh.s.mv.i", "msra.s.mv.i", "madd.s.mx", "mn4clip.s.mx"}
    assert used <= set(names)


@pytest.mark.parametrize("signs", ["u", "us", "su"])
def test_int8_gemm_of_every_sign(signs):
    run(int8_case(X256, 13, 21, 70, SEED, signs))


@by_core
@pytest.mark.parametrize("wide", [False, True])
def test_half_gemm(cfg, wide):
    for index, (m, n, k) in enumerate(sizes(cfg, "half")):
        names = run(half_case(cfg, m, n, k, SEED + index, beta=index % 2, wide=wide))
        assert names["fwmmacc.h" if wide else "fmmacc.h"]


def test_empty_products():
    assert run(int8_case(X256, 5, 6, 0, SEED))["mmaqa.b"] == 0
    assert run(half_case(X256, 5, 6, 0, SEED))["mstb"] == 1
    assert run(half_case(X256, 0, 6, 4, SEED)) == {"mcfg": 1, "mfence": 1}


def test_a_full_block_uses_every_register_and_few_mcfgs():
    """Whole blocks: 4 loads and 4 products a step, no mcfg between products."""
    steps = 5
    case = int8_case(X256, 16, 16, 32 * steps, SEED)
    names = run(case)
    assert names["mmaqa.b"] == names["mldb"] == 4 * steps
    assert sum(count for name, count in names.items() if name.startswith("mcfg")) < 10
    written = {
        isa.decode(request.inst).operands["md"]
        for request in case.program
        if isa.decode(request.inst).name == "mmaqa.b"
    }
    assert written == {4, 5, 6, 7}


@pytest.mark.parametrize("wide", [False, True])
def test_half_gemm_rounds_once_a_step(wide):
    """Any floats: each step along K is one exact sum, rounded with what was there."""
    rng = np.random.default_rng(SEED)
    m, n, k = 9, 19, 40
    operand, output = FORMATS["fp16"], FORMATS["fp32" if wide else "fp16"]
    a_codes = (rng.standard_normal((m, k)) * 8).astype(np.float16).view(np.uint16)
    b_codes = rng.standard_normal((n, k)).astype(np.float16).view(np.uint16)
    size = output.container // 8
    memory = Memory()
    for base, content in ((0x1000, a_codes), (0x4000, b_codes)):
        memory.add_region(base, np.frombuffer(content.tobytes(), np.uint8).copy())
    memory.add_region(0x8000, m * n * size)
    a, b = Matrix("A", m, k, 16, 0x1000, k), Matrix("B", n, k, 16, 0x4000, k)
    c = Matrix("C", m, n, output.container, 0x8000, n)
    engine = ModelSimulator(X256)
    engine.memory = memory
    engine.run(half_gemm_program(X256, a, b, c, wide=wide))
    got = np.frombuffer(memory.read(0x8000, m * n * size), f"<u{size}").reshape(m, n)
    for i in range(m):
        for j in range(n):
            code = 0
            for first in range(0, k, 16):
                x, y = (codes[first : first + 16].tolist() for codes in (a_codes[i], b_codes[j]))
                code = float_dot(operand, output, x, y, code, 0, False, False, 96, 32).code
            assert got[i, j] == code, f"seed {SEED}, element {i}, {j}"


def test_what_is_no_product_is_refused():
    a, b = Matrix("A", 4, 8, 16, 0, 8), Matrix("B", 4, 9, 16, 0x100, 9)
    c = Matrix("C", 4, 4, 16, 0x200, 4)
    with pytest.raises(ValueError, match="are no product: A is M x K, B N x K, C M x N"):
        half_gemm_program(X128, a, b, c)
