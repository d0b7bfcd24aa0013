r"""Strategies: what to learn at each step, as terms over views."""

from tkg_incremental.strategies.context import TrainingContext
from tkg_incremental.strategies.contrast import Contrast, UnlikelihoodLoss
from tkg_incremental.strategies.paper import AGEM, FB, FT, TIE, TR, FBFuture, ReplayOptions
from tkg_incremental.strategies.regularizers import N3, TemporalSmoothness
from tkg_incremental.strategies.strategy import Strategy
from tkg_incremental.strategies.supersede import Supersede
from tkg_incremental.strategies.terms import CrossEntropy, DeletedFacts, Losses, Replay, TemporalRegularization, Term
from tkg_incremental.strategies.views import Added, Current, Deleted, Given, History, Replayed, Successors, View

__all__ = classes = [
    "AGEM",
    "FB",
    "FT",
    "N3",
    "TIE",
    "TR",
    "Added",
    "Contrast",
    "CrossEntropy",
    "Current",
    "Deleted",
    "DeletedFacts",
    "FBFuture",
    "Given",
    "History",
    "Losses",
    "Replay",
    "ReplayOptions",
    "Replayed",
    "Strategy",
    "Successors",
    "Supersede",
    "TemporalRegularization",
    "TemporalSmoothness",
    "Term",
    "TrainingContext",
    "UnlikelihoodLoss",
    "View",
]
