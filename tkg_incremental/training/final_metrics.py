"""What is evaluated once, with the last model of a run."""

from __future__ import annotations

from tkg_incremental.answers import calibrate_answers, known_facts_ranked_first, type_constrained
from tkg_incremental.metrics import Evaluator, time_prediction
from tkg_incremental.models.base import TKGModel
from tkg_incremental.training.result import Result


def add_final_metrics(result: Result, model: TKGModel, evaluator: Evaluator, last_step: int, seed: int) -> None:
    """Adds time queries, probabilities of answers and how good they are, and how many train facts were learnt.

    The calibration of the probabilities becomes part of the model's catalog.

    Args:
        result: Gets the metrics.
        model: The last model.
        evaluator: The evaluator of the run.
        last_step: The last step that the model learnt.
        seed: Seed of the facts that are drawn.
    """
    if model.is_sharded:
        return
    timeline, split = evaluator.timeline, evaluator.split
    if not timeline.is_events:
        times = time_prediction(model, timeline, split, last_step)
        result.time_prediction = {**times, **evaluator.mrr_by_interval(model, last=last_step)}
    if model.catalog is None:
        return
    result.calibration = calibrate_answers(model, timeline, last_step, seed)
    result.type_constrained = type_constrained(model, timeline, split, last_step, seed=seed)
    result.known_ranked_first = known_facts_ranked_first(model, timeline, last_step=last_step, seed=seed)
