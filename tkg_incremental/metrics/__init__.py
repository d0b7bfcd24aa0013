r"""Metrics: functional form, and the evaluator."""

from tkg_incremental.metrics.counting import RankCounter
from tkg_incremental.metrics.evaluator import Evaluator
from tkg_incremental.metrics.functional import (
    average,
    deleted_hits_at,
    forgetting,
    hits_at,
    mean_rank,
    mean_reciprocal_rank,
    reciprocal_rank_difference,
)
from tkg_incremental.metrics.step_ranks import StepRanks

__all__ = classes = [
    "Evaluator",
    "RankCounter",
    "StepRanks",
    "average",
    "deleted_hits_at",
    "forgetting",
    "hits_at",
    "mean_rank",
    "mean_reciprocal_rank",
    "reciprocal_rank_difference",
]
