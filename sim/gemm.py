"""Whole GEMM on the simulated core: operands and result in L2 memory, checked bit for bit.

C = alpha * op(A) x op(B) + beta * C, with op(A) M x K and op(B) K x N, random or from files. One
mmacc takes a full row of lanes along K, in ascending k, the last one short; the reference does the
same. In memory A lies M x K and B lies N x K, the core's own layouts, unless --no-pack leaves them
as they are: the core then transposes what --trans asks for. Leading dimensions count elements of
the rows as they lie in memory.

examples:
  python -m sim.gemm 64 64 64 --ft int8
  python -m sim.gemm 100 75 300 --ft int8 --acc 1 --preset tiny --engine pysim
  python -m sim.gemm 64 64 64 --ft bf16 --trans tn --no-pack
  python -m sim.gemm 64 64 64 --from A.npy B.npy -o C.npy --json
"""

from __future__ import annotations

import io
import json
import sys
from argparse import Namespace

import numpy as np

from hdl.cli import CommandError, Parser, check_writable, run_command, write_whole
from hdl.config import ConfigError
from hdl.formats import lookup

from .codes import random_codes, values_like
from .driver import SimulationError
from .engines import ENGINES, EngineMissing
from .gemm_call import DEFAULT_LATENCY, TRANSPOSES, GemmResult, gemm
from .gemm_run import GemmRun, run_gemm
from .kernels import BLOCKS, GemmProblem, Matrix
from .recording import add_recording_options, recording
from .reference.numerics import output

__all__ = ["GemmProblem", "GemmResult", "GemmRun", "Matrix", "gemm", "main", "run_gemm"]

PROGRAM = "sim.gemm"


def _parser() -> Parser:
    parser = Parser(prog="python -m sim.gemm", description=__doc__)
    parser.add_argument("m", metavar="M", type=int, help="rows of C")
    parser.add_argument("n", metavar="N", type=int, help="columns of C")
    parser.add_argument("k", metavar="K", type=int, help="length of the sums")
    parser.add_argument("--ft", default="int8", help="operand format, name or Ft code (int8)")
    for name, text in (
        ("bovf", "1: result in the operand's format"),
        ("acc", "result by mxcfg's ACC field: 1 wide, 2 TF32, 3 BF16"),
        ("sat", "1: saturate"),
        ("rnd", "rounding: 0 nearest even, 1 up, 2 down, 3 to zero"),
    ):
        parser.add_argument(f"--{name}", type=int, default=0, help=text)
    parser.add_argument("--alpha", type=int, default=1, help="1 or -1")
    parser.add_argument("--beta", type=int, default=0, help="0 or 1")
    parser.add_argument("--trans", default="nn", help="of A and of B: nn, nt, tn or tt")
    parser.add_argument(
        "--no-pack", dest="pack", action="store_false", help="transpose in the core"
    )
    for name in ("lda", "ldb", "ldc"):
        parser.add_argument(f"--{name}", type=int, help=f"leading dimension of {name[2].upper()}")
    parser.add_argument("--preset", default="ame32", help="the core (%(default)s)")
    parser.add_argument("--engine", default="auto", help=", ".join(ENGINES))
    parser.add_argument(
        "--tiling",
        default="auto",
        help="auto, " + ", ".join(BLOCKS) + "; 4x4 runs as 2x2 where the guard refuses it",
    )
    parser.add_argument(
        "--from",
        dest="files",
        nargs="+",
        metavar="FILE",
        help="A.npy B.npy [C.npy] instead of random numbers",
    )
    parser.add_argument("-o", dest="output", metavar="C.npy", help="write C, of the kind A has")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers")
    parser.add_argument("--latency", type=int, default=DEFAULT_LATENCY, help="of L2, in cycles")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    add_recording_options(parser)
    return parser


def _read(path: str) -> np.ndarray:
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, EOFError):
        raise CommandError(f"cannot read {path}: it is no .npy file of plain numbers") from None
    if not isinstance(array, np.ndarray):
        raise CommandError(f"cannot read {path}: it holds several arrays, give one .npy each")
    return array


def _given_shape(rows: int, columns: int, transposed: bool) -> tuple[int, int]:
    return (columns, rows) if transposed else (rows, columns)


def _arrays(options: Namespace) -> list[np.ndarray]:
    """A, B and C (with beta = 1) as given by --from, or random."""
    m, n, k = options.m, options.n, options.k
    transposed = [letter == "t" for letter in options.trans]
    fmt = lookup(options.ft)
    out = output(fmt.name, bovf=options.bovf, acc=options.acc)
    shapes = [
        _given_shape(m, k, transposed[0]),
        _given_shape(k, n, transposed[1]),
        (m, n),
    ]
    if options.files is None:
        noise = np.random.default_rng(options.seed)
        return [
            random_codes(noise, shape, item)
            for shape, item in zip(shapes, (fmt, fmt, out), strict=True)
        ]
    if len(options.files) not in (2, 3):
        raise CommandError(f"--from takes A.npy B.npy [C.npy], not {len(options.files)} files")
    if options.beta and len(options.files) == 2:
        raise CommandError("--beta 1 needs C: give --from A.npy B.npy C.npy")
    arrays = [_read(path) for path in options.files]
    for name, array, shape in zip("ABC", arrays, shapes, strict=False):
        if array.shape != shape:
            raise CommandError(
                f"{name} in its file is {' x '.join(map(str, array.shape)) or 'a single number'}, "
                f"but M, N, K and --trans ask for {shape[0]} x {shape[1]}"
            )
    return arrays


def _print_text(result: GemmResult) -> None:
    def percent(share: float | None) -> str:
        return "unknown" if share is None else f"{100 * share:.1f} %"

    cycles = f"{result.cycles:,}" if result.cycles else "not modelled"
    rate = f"{result.macs / result.cycles:.1f}" if result.cycles else "unknown"
    tiling = result.tiling
    if result.flags["guard_fallback"]:
        tiling += " (the guard refused 4x4)"
    raised = [name for name, value in result.flags.items() if value]
    lines = (
        ("GEMM", f"{result.m} x {result.n} x {result.k}, {result.ft} to {result.out.name}"),
        ("core", f"{result.preset}, tiling {tiling}, L2 latency {result.latency}"),
        ("engine", f"{result.engine}, {result.seconds:.2f} s"),
        ("cycles", cycles),
        ("MAC/cycle", f"{rate} of {result.peak_macs_per_cycle} at peak"),
        ("utilisation", f"{percent(result.utilisation)} of the bound, {result.bound_cycles:,}"),
        ("MAC array", f"{percent(result.mac_utilisation)} busy"),
        ("read", f"{result.read_beats * result.beat_bytes:,} bytes, {result.read_beats:,} beats"),
        (
            "written",
            f"up to {result.write_beats * result.beat_bytes:,} bytes, {result.write_beats:,} beats",
        ),
        ("flags", ", ".join(raised) or "none"),
        ("bit-exact", "yes" if result.bit_exact else "NO: it differs from the reference"),
    )
    for name, text in lines:
        print(f"{name:<12} {text}")


def _command(options: Namespace) -> int:
    try:
        if min(options.m, options.n, options.k) < 0:
            raise CommandError("M, N and K must be 0 or more")
        if options.trans not in TRANSPOSES:
            raise CommandError(f"--trans is one of {', '.join(TRANSPOSES)}, not {options.trans}")
        if options.output is not None:
            check_writable(options.output)
        arrays = _arrays(options)
        names = ("ft", "bovf", "acc", "sat", "rnd", "alpha", "beta", "trans", "pack")
        names += ("lda", "ldb", "ldc", "tiling", "preset", "engine", "latency", "seed")
        with recording(options):
            result = gemm(*arrays, **{name: getattr(options, name) for name in names})
    except (ValueError, ConfigError, EngineMissing) as error:
        raise CommandError(str(error)) from None
    except SimulationError as error:
        print(f"{PROGRAM}: the core failed: {error}", file=sys.stderr)
        return 1
    if options.output is not None:
        content = io.BytesIO()
        np.save(content, values_like(result.c, result.out, arrays[0].dtype))
        write_whole(options.output, content.getvalue())
    if options.json:
        print(json.dumps(result.report()))
    else:
        _print_text(result)
    return 0 if result.bit_exact else 1


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status: 0, 1 if a bit differs, 2 for a wrong request."""
    return run_command(PROGRAM, lambda: _command(_parser().parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
