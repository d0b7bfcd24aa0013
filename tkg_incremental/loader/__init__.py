r"""Loaders: batches with every random choice drawn, negative sampling and replay sampling."""

from tkg_incremental.loader.batch import Candidates, TermBatch, TKGBatch
from tkg_incremental.loader.loader import TKGLoader
from tkg_incremental.loader.negatives import NegativeSampler
from tkg_incremental.loader.replay import replay_frequencies, sample_replay

__all__ = classes = [
    "Candidates",
    "NegativeSampler",
    "TKGBatch",
    "TKGLoader",
    "TermBatch",
    "replay_frequencies",
    "sample_replay",
]
