r"""Answers by name: candidates of the right type, known facts marked, calibrated probabilities."""

from tkg_incremental.answers.answer import Answer, Answers, TimelinePoint
from tkg_incremental.answers.calibrate import fit_calibration, measure_calibration
from tkg_incremental.answers.engine import AnswerEngine
from tkg_incremental.answers.facts import Interval, KnownFacts, TensorFacts
from tkg_incremental.answers.run import calibrate_answers, known_facts_ranked_first
from tkg_incremental.answers.typed import type_constrained, typed_ranks

__all__ = classes = [
    "Answer",
    "AnswerEngine",
    "Answers",
    "Interval",
    "KnownFacts",
    "TensorFacts",
    "TimelinePoint",
    "calibrate_answers",
    "fit_calibration",
    "known_facts_ranked_first",
    "type_constrained",
    "typed_ranks",
    "measure_calibration",
]
