"""What a base model learns: the terms that its settings stand for."""

from __future__ import annotations

from tkg_incremental.data import Timeline
from tkg_incremental.models.base import TKGModel
from tkg_incremental.strategies import CrossEntropy, History, Strategy
from tkg_incremental.strategies.terms import Negatives
from tkg_incremental.training.settings import BaseSettings

# With at most this many quads per fact, a base model visits every quad by default. Otherwise it visits at most as many,
# and fewer if an epoch would have more than `_QUADS_PER_EPOCH`.
_QUADS_PER_FACT, _QUADS_PER_EPOCH = 10, 1 << 18
# A base model learns against all entities by default if there are at most this many (entity, step) pairs. A batch has
# quads of most steps, and the vectors of all pairs have to fit into memory.
_ONE_VS_ALL_PAIRS = 1 << 20
# Number of negatives otherwise.
_BASE_NEGATIVES = 50


def base_strategy(model: TKGModel, timeline: Timeline, last: int, settings: BaseSettings) -> Strategy:
    """Cross-entropy on all facts up to a step.

    Args:
        model: The model.
        timeline: The graph.
        last: The last step that the base model learns.
        settings: How it is learnt; ``"auto"`` is decided by the size of the graph.
    """
    visits = _visits(timeline) if settings.visits == "auto" else settings.visits
    negatives = _negatives(model, timeline, last) if settings.negatives == "auto" else settings.negatives
    strategy = Strategy([CrossEntropy(History(visits), negatives, settings.shared)], "base")
    strategy.validation_metric = settings.metric
    return strategy


def _visits(timeline: Timeline) -> int | None:
    facts = timeline.observed
    if facts.num_rows <= _QUADS_PER_FACT * len(facts):
        return None
    return max(1, min(_QUADS_PER_FACT, _QUADS_PER_EPOCH // len(facts)))


def _negatives(model: TKGModel, timeline: Timeline, last: int) -> Negatives:
    steps = 1 if model.static_entities else last + 1
    fits = steps * int(timeline.num_known[last]) <= _ONE_VS_ALL_PAIRS
    return "all" if fits and not model.is_sharded else _BASE_NEGATIVES
