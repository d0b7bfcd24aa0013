"""What the fast code should give, by definition: plain Python on sets, lists and loops, to be read beside the paper.

A row is a tuple ``(head, rel, tail, time)``; a set of rows counts each once.
"""

from oracles.facts import Fact, Row, TimelineOracle, Triple, count_bins, expand, rows_of
from oracles.losses import Draw, cross_entropy, deletion, distillation, drift, link, project
from oracles.ranks import RankOracle
from oracles.replay import replay_rates
from oracles.scores import ScoreOracle, with_answer

__all__ = [
    "Draw",
    "Fact",
    "RankOracle",
    "Row",
    "ScoreOracle",
    "TimelineOracle",
    "Triple",
    "count_bins",
    "cross_entropy",
    "deletion",
    "distillation",
    "drift",
    "expand",
    "link",
    "project",
    "replay_rates",
    "rows_of",
    "with_answer",
]
