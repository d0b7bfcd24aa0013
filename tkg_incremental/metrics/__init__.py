r"""Metrics: functional form, and the evaluator."""

from tkg_incremental.metrics.evaluator import Evaluator, StepRanks
from tkg_incremental.metrics.functional import (
    average,
    deleted_hits_at,
    forgetting,
    hits_at,
    mean_rank,
    mean_reciprocal_rank,
    reciprocal_rank_difference,
)

__all__ = classes = [
    "Evaluator",
    "StepRanks",
    "average",
    "deleted_hits_at",
    "forgetting",
    "hits_at",
    "mean_rank",
    "mean_reciprocal_rank",
    "reciprocal_rank_difference",
]
