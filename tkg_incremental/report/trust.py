"""How far answers can be trusted: learnt facts, calibration, and metrics among candidates of the right type."""

from __future__ import annotations

import math
from typing import Any

from tkg_incremental.report.figures import figure, key
from tkg_incremental.report.metric_descriptions import ARROWS
from tkg_incremental.report.svg import Frame, svg
from tkg_incremental.training.result import Result

_BINS = 10


def trust_section(result: Result) -> dict[str, Any] | None:
    """Tiles, the reliability diagram and the table of the section; :obj:`None` if nothing was measured."""
    tiles = []
    if not math.isnan(result.known_ranked_first):
        tiles.append(
            _tile("Facts given that rank first", f"{result.known_ranked_first:.0%}", "of train facts", "higher")
        )
    calibration = result.calibration
    if calibration:
        tiles.append(_tile("Calibration error · ECE", f"{calibration['ECE']:.3f}", "of a probability", "lower"))
        tiles.append(_tile("Brier score", f"{calibration['Brier']:.3f}", "mean squared error", "lower"))
    rows = []
    names = {"all": "all known entities, as in the paper", "typed": "entities of the right type"}
    for name, metrics in result.type_constrained.items():
        rows.append([names[name], *(f"{value:.1f}" for value in metrics.values())])
    header = ["candidates", *next(iter(result.type_constrained.values()), {})]
    if not tiles and not rows:
        return None
    charts = [reliability_figure(calibration)] if calibration.get("reliability") else []
    return {"tiles": tiles, "charts": charts, "header": header, "rows": rows}


def reliability_figure(calibration: dict[str, Any]) -> str:
    """Share of answers that are true, by their probability.

    Args:
        calibration: ``result.calibration``.
    """
    frame = Frame(_BINS, 0, 100)
    labels = [f"{100 * place // _BINS}" for place in range(_BINS)]
    parts = [frame.axes(labels, "probability of an answer, from … %", "% that are true")]
    expected: list[float | None] = [None] * _BINS
    tips = [""] * _BINS
    for probability, share, count in calibration["reliability"]:
        place = min(_BINS - 1, int(probability * _BINS))
        expected[place] = 100 * probability
        tips[place] = f"{count} answers with a mean probability of {probability:.0%}: {share:.0%} are true"
        parts.append(frame.bar(place, 0, 100 * share, "added", tips[place]))
    parts.append(frame.line(expected, "s1", tips))
    text = (
        f"The five best answers to {calibration['questions']} test questions, some of them without an answer, by their "
        "probability. Where a bar ends at the orange line, answers are true as often as their probability says."
    )
    legend = key("added", "true") + key("s1", "mean probability")
    drawing = svg(frame.width, frame.height, "Share of true answers by probability", "".join(parts))
    return figure("reliability", "Reliability of probabilities", text, drawing, legend)


def _tile(title: str, value: str, unit: str, better: str) -> dict[str, str]:
    return {"title": title, "value": value, "unit": unit, "arrow": ARROWS[better]}
