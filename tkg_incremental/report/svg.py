"""Charts as inline SVG: a frame with axes, lines, bands and bars.

Colours and font sizes are in the style sheet, so that one drawing works in light, dark and print.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tkg_incremental.text import printable

# Width of a digit at the font size of a phone, where the whole chart is scaled down.
_DIGIT = 9.5
WIDE_DIGIT = 15.0


@dataclass
class Frame:
    """The area of a chart and its scales. The scale of x has one slot per step.

    Args:
        steps: Number of steps on x.
        low: Lowest value of y.
        high: Highest value of y.
        log: Whether y is logarithmic.
        down: Whether y grows downwards, as ranks do.
        width: Width of the chart.
        height: Height of the chart.
        left: Space for the labels of y.
        bottom: Space for the labels of x.
        top: Margin at the top; 30 has space for a :meth:`mark`.
        right: Margin at the right.
        digit: Maximum width of a digit.
        show: Formats the values of y.
    """

    steps: int
    low: float
    high: float
    log: bool = False
    down: bool = False
    width: int = 480
    height: int = 250
    left: int = 78
    bottom: int = 52
    top: int = 12
    right: int = 10
    digit: float = _DIGIT
    show: Callable[[float], str] | None = None

    @property
    def slot(self) -> float:
        """Width of a step."""
        return (self.width - self.left - self.right) / max(1, self.steps)

    def x(self, step: float) -> float:
        return self.left + (step + 0.5) * self.slot

    def y(self, value: float) -> float:
        low, high, at = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        share = (at - low) / ((high - low) or 1)
        return self.top + (share if self.down else 1 - share) * (self.height - self.top - self.bottom)

    def axes(self, labels: Sequence[str], x_title: str, y_title: str, places: Sequence[int] | None = None) -> str:
        """Grid lines with their values, the labels that fit, and the titles of both axes.

        Args:
            labels: Names of the steps.
            x_title: Title of x.
            y_title: Title of y.
            places: Steps of the labels, if there is not one per step.
        """
        parts = []
        show = self.show or short
        for value in log_ticks(self.low, self.high) if self.log else ticks(self.low, self.high):
            y = self.y(value)
            kind = "zero" if value == 0 and self.low < 0 else "grid"
            parts.append(rule(kind, (self.left, y), (self.width - self.right, y)))
            parts.append(f'<text class="ty" x="{self.left - 6}" y="{y + 4:.1f}">{show(value)}</text>')
        for i in sparse(labels, self.width - self.left - self.right, self.digit):
            x, y = self.x(places[i] if places else i), self.height - self.bottom + self.digit * 2 - 1
            parts.append(f'<text class="tx" x="{x:.1f}" y="{y:.0f}">{escape(labels[i])}</text>')
        middle = (self.left + self.width - self.right) / 2
        parts.append(f'<text class="title" x="{middle:.0f}" y="{self.height - 6}">{escape(x_title)}</text>')
        half = (self.top + self.height - self.bottom) / 2
        turn = f'transform="translate({self.digit * 1.8:.0f} {half:.0f}) rotate(-90)"'
        parts.append(f'<text class="title" {turn}>{escape(y_title)}</text>')
        return "".join(parts)

    def line(self, values: Sequence[float | None], kind: str, tips: Sequence[str] = (), start: int = 0) -> str:
        """A line through the values, broken where there is none.

        Args:
            values: The values.
            kind: Class of the line.
            tips: Tool tip of each value; without them there are no dots.
            start: The step of the first value.
        """
        parts: list[str] = []
        run: list[str] = []
        for i, value in enumerate([*values, None], start):
            if value is not None and math.isfinite(value):
                run.append(f"{self.x(i):.1f},{self.y(value):.1f}")
            elif run:
                parts.append(f'<polyline class="line {kind}" points="{" ".join(run)}"/>')
                run = []
        for i, (value, tip) in enumerate(zip(values, tips, strict=False), start):
            if value is not None and math.isfinite(value):
                parts.append(
                    f'<circle class="dot {kind}" cx="{self.x(i):.1f}" cy="{self.y(value):.1f}" r="3">'
                    f"<title>{escape(tip)}</title></circle>"
                )
        return "".join(parts)

    def band(self, ends: Sequence[Sequence[float]], kind: str, places: Sequence[int]) -> str:
        """The area between lower and upper values at some steps; interrupted where steps are missing.

        Args:
            ends: Lower and upper value at each place.
            kind: Class of the area.
            places: Steps of the values.
        """
        runs: list[list[int]] = []
        for i, place in enumerate(places):
            if i and place == places[i - 1] + 1:
                runs[-1].append(i)
            else:
                runs.append([i])
        parts = []
        for run in runs:
            upper = [f"{self.x(places[i]):.1f},{self.y(ends[i][1]):.1f}" for i in run]
            lower = [f"{self.x(places[i]):.1f},{self.y(ends[i][0]):.1f}" for i in reversed(run)]
            parts.append(f'<polygon class="band {kind}" points="{" ".join(upper + lower)}"/>')
        return "".join(parts)

    def bar(self, step: int, start: float, end: float, kind: str, tip: str) -> str:
        """A bar from one value to another."""
        first, second = sorted((self.y(start), self.y(end)))
        gap = 0.15 * self.slot
        x = self.left + step * self.slot + gap / 2
        return (
            f'<rect class="bar {kind}" x="{x:.1f}" y="{first:.1f}" width="{self.slot - gap:.1f}" '
            f'height="{second - first:.1f}"><title>{escape(tip)}</title></rect>'
        )

    def divider(self, step: float, kind: str = "grid") -> str:
        """A vertical line before a step."""
        x = self.left + step * self.slot
        return rule(kind, (x, self.top), (x, self.height - self.bottom))

    def mark(self, step: float, text: str) -> str:
        """A vertical line before a step, with a label above it."""
        x = self.left + step * self.slot
        note = f'<text class="title" x="{x:.1f}" y="{self.top - 8}">{escape(text)}</text>'
        return self.divider(step, "mark") + note


def escape(text: str) -> str:
    """Text for HTML, without control characters."""
    return html.escape(printable(text))


def rule(kind: str, start: tuple[float, float], end: tuple[float, float]) -> str:
    """A straight line."""
    return f'<line class="{kind}" x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"/>'


def svg(width: float, height: float, label: str, content: str, kind: str = "") -> str:
    """The whole drawing, with a label for screen readers."""
    return (
        f'<svg class="{kind}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(label)}">'
        f"{content}</svg>"
    )


def ticks(low: float, high: float) -> list[float]:
    """Round values from ``low`` to ``high``.

    >>> ticks(0, 43)
    [0, 10, 20, 30, 40]
    """
    if high <= low:
        return [low]
    step = nice_step((high - low) / 5)
    first = math.ceil(low / step - 1e-9)
    values = [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]
    return [round(v, 10) if step < 1 else round(v) for v in values]


def nice_step(step: float) -> float:
    """The nearest of 1, 2, 5, 10, … that is not smaller."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten, with 3 and 30 … between them where there are few."""
    factors = (1, 3) if high / low < 3000 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [factor * 10.0**power for power in powers for factor in factors]
    return [round(v) if v >= 1 else v for v in values if low <= v <= high]


def sparse(labels: Sequence[str], width: float, digit: float = _DIGIT) -> range:
    """Indices of the labels that fit without overlap."""
    longest = max((len(label) for label in labels), default=1)
    room = max(2, int(width / (digit * (longest + 1.5))))
    stride = math.ceil(len(labels) / room)
    # A round stride is easier to count in.
    stride = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, max(1000, stride)) if s >= stride)
    return range(0, len(labels), stride)


def short(value: float) -> str:
    """A number in a few letters.

    >>> short(4705750), short(424652), short(0.25), short(-3.0)
    ('4.71M', '425k', '0.25', '−3')
    """
    size = abs(value)
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            factor = 1e3 if letter == "k" else limit
            return f"{value / factor:.3g}{letter}".replace("-", "−")
    return f"{value:,.4g}".replace("-", "−")
