r"""Strategies: what to learn from at each step, as terms over views."""

from tkg_incremental.strategies.lapse import Lapse, Unreplaced
from tkg_incremental.strategies.step import Step
from tkg_incremental.strategies.strategy import Strategy
from tkg_incremental.strategies.supersede import Contrast, Successors, Supersede
from tkg_incremental.strategies.terms import Drift, Forget, Link, Losses, Replay, Term
from tkg_incremental.strategies.views import Added, Current, Deleted, History, Replayed, View, Window
from tkg_incremental.strategies.zoo import AGEM, FB, FT, TIE, TR, FBFuture

__all__ = classes = [
    "AGEM",
    "FB",
    "FT",
    "TIE",
    "TR",
    "Added",
    "Contrast",
    "Current",
    "Deleted",
    "Drift",
    "FBFuture",
    "Forget",
    "History",
    "Lapse",
    "Link",
    "Losses",
    "Replay",
    "Replayed",
    "Step",
    "Strategy",
    "Successors",
    "Supersede",
    "Term",
    "Unreplaced",
    "View",
    "Window",
]
