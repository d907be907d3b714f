"""Programs that software runs on the core: what to compute, how to cut it up, in which order."""

from .gemm import gemm_program
from .parts import Feed, Load, Step
from .plan import GemmPlan, plan_gemm
from .problem import TRANSPOSES, GemmProblem, Matrix
from .tiles import BLOCKS, TILINGS, Macro, Tiles

__all__ = [
    "BLOCKS",
    "TILINGS",
    "TRANSPOSES",
    "Feed",
    "GemmPlan",
    "GemmProblem",
    "Load",
    "Macro",
    "Matrix",
    "Step",
    "Tiles",
    "gemm_program",
    "plan_gemm",
]
