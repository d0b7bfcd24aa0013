"""A line plot as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from tkg_incremental.training.result import show_number

WIDTH, HEIGHT = 560, 260
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 10, 28
Scale: TypeAlias = Callable[[Any], float]
Bounds: TypeAlias = tuple[float, float]
OPEN: Bounds = (-math.inf, math.inf)

_COLOURS, _DASHES = 8, ("none", "6 3", "2 3")


class Point(NamedTuple):
    """A value at a step, and how far it spreads; NaN where there is none."""

    time: int
    value: float
    spread: float = 0.0


@dataclass
class Curve:
    """A curve of a plot.

    Args:
        number: Decides colour and dashes; the same number looks the same in all plots.
        label: What it is of.
        points: Its values, by time.
    """

    number: int
    label: str
    points: Sequence[Point]

    @staticmethod
    def stroke(number: int) -> str:
        """Colour and dashes; the colours come again with other dashes."""
        dash = _DASHES[number // _COLOURS % len(_DASHES)]
        return f'style="stroke:var(--c{number % _COLOURS})" stroke-dasharray="{dash}"'


def line_plot(title: str, curves: Sequence[Curve], labels: Mapping[int, str], bounds: Bounds = OPEN) -> str:
    """An ``<svg>`` that takes its colours from the page's variables ``--c0`` … ``--c7``.

    Args:
        title: What is plotted, for those who cannot see it.
        curves: The curves; a gap where a value is NaN.
        labels: What each time is called.
        bounds: Between what values can lie; spreads are cut there.
    """
    times = sorted(labels)
    place = {time: i for i, time in enumerate(times)}
    there = [point for curve in curves for point in curve.points if not math.isnan(point.value)]
    if not there:
        return "<p>No values.</p>"
    inside = [min(max(end, bounds[0]), bounds[1]) for p in there for end in (p.value - p.spread, p.value + p.spread)]
    ticks = nice_ticks(min(inside), max(inside))
    low, high = ticks[0], ticks[-1]

    def x(time: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (place[time] / max(1, len(times) - 1) if len(times) > 1 else 0.5)

    def y(value: float) -> float:
        value = min(max(value, bounds[0]), bounds[1])
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)

    parts = [
        f'<path class="grid" d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}"/>'
        f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        for tick in ticks
    ]
    every = math.ceil(len(times) / 7)
    parts += [
        f'<text x="{x(time):.1f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(labels[time])}</text>'
        for time in times[::every]
    ]
    for curve in curves:
        for missing, run in groupby(curve.points, key=lambda point: math.isnan(point.value)):
            if not missing:
                parts.append(_draw(curve, list(run), labels, x, y))
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'


def _draw(curve: Curve, run: list[Point], labels: Mapping[int, str], x: Scale, y: Scale) -> str:
    parts = []
    colour = f"fill:var(--c{curve.number % _COLOURS})"
    if any(point.spread for point in run):
        upper = [f"{x(p.time):.1f} {y(p.value + p.spread):.1f}" for p in run]
        lower = [f"{x(p.time):.1f} {y(p.value - p.spread):.1f}" for p in reversed(run)]
        parts.append(f'<path class="band" style="{colour}" d="M{"L".join(upper + lower)}Z"/>')
    line = "L".join(f"{x(p.time):.1f} {y(p.value):.1f}" for p in run)
    parts.append(f'<path class="line" {Curve.stroke(curve.number)} d="M{line}"/>')
    for p in run:
        spread = f" ± {show_number(p.spread)}" if p.spread else ""
        tip = f"{curve.label}, {labels[p.time]}: {show_number(p.value)}{spread}"
        at = f'cx="{x(p.time):.1f}" cy="{y(p.value):.1f}"'
        parts.append(f'<circle {at} r="2.5" style="{colour}"><title>{escape(tip)}</title></circle>')
    return "".join(parts)


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from at most ``low`` to at least ``high``.

    >>> nice_ticks(3.0, 47.0)
    [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]
    """
    span = high - low or abs(high) or 1.0
    scale = 10.0 ** math.floor(math.log10(span / about))
    step = next(scale * factor for factor in (1, 2, 5, 10) if scale * factor * about >= span)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [i * step for i in range(first, max(last, first + 1) + 1)]
