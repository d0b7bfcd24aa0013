r"""Metrics: functional form, and the evaluator."""

from tkg_incremental.metrics.evaluator import Evaluator
from tkg_incremental.metrics.functional import (
    average,
    backward_transfer,
    deleted_hits_at,
    forgetting,
    forward_transfer,
    hits_at,
    mean_rank,
    mean_reciprocal_rank,
    omega_new,
    omega_old,
    reciprocal_rank_difference,
)
from tkg_incremental.metrics.interval_ranks import interval_ranks
from tkg_incremental.metrics.step_ranks import StepRanks
from tkg_incremental.metrics.time_queries import ae_iou, predicted_intervals, time_prediction, time_ranks

__all__ = classes = [
    "Evaluator",
    "StepRanks",
    "ae_iou",
    "average",
    "backward_transfer",
    "deleted_hits_at",
    "forgetting",
    "forward_transfer",
    "hits_at",
    "interval_ranks",
    "mean_rank",
    "mean_reciprocal_rank",
    "omega_new",
    "omega_old",
    "predicted_intervals",
    "reciprocal_rank_difference",
    "time_prediction",
    "time_ranks",
]
