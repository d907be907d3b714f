"""Programs that software runs on the core: what to compute, how to cut it up, in which order."""

from .gemm import gemm_program
from .plan import GemmPlan, Load, Step, plan_gemm
from .problem import GemmProblem, Matrix
from .tiles import TILINGS, Macro, Tiles

__all__ = [
    "TILINGS",
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
