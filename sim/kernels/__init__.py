"""Programs that software runs on the core: what to compute, how to cut it up, in which order."""

from .gemm import gemm_program
from .plan import TILINGS, GemmPlan, Load, Step, plan_gemm
from .problem import GemmProblem, Matrix

__all__ = [
    "TILINGS",
    "GemmPlan",
    "GemmProblem",
    "Load",
    "Matrix",
    "Step",
    "gemm_program",
    "plan_gemm",
]
