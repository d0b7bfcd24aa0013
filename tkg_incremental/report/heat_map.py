"""The matrix of what each model knows of each step."""

from __future__ import annotations

import math
from html import escape

from tkg_incremental.report.figures import LEFT, WIDE, figure, tick_labels
from tkg_incremental.report.svg import WIDE_DIGIT, Frame, rule, sparse, svg
from tkg_incremental.training.result import Result

CLASSES = 10
# With more cells than this, tips would make most of the file.
_MOST_TIPS = 4000


def alpha_figure(result: Result, labels: list[str]) -> str:
    """Hits@10 of the model after each step on every step up to it.

    Args:
        result: What the run found.
        labels: What each step stands for.
    """
    times = sorted(result.alpha)
    values = [value for time in times for value in result.alpha[time] if math.isfinite(value)]
    low = math.floor(min(values, default=0) / 10) * 10
    high = max(math.ceil(max(values, default=100) / 10) * 10, low + 10)
    names = tick_labels(labels)
    # High enough in all for the title beside it, low enough for a screen.
    cell = min(max(24.0, 270 / len(times)), 560 / len(times))
    frame = Frame(result.num_steps, 0, 1, width=WIDE, height=round(len(times) * cell) + 60, left=LEFT, bottom=60)
    with_tips = sum(len(result.alpha[time]) for time in times) <= _MOST_TIPS
    parts = []
    for i, time in enumerate(times):
        y = frame.top + i * cell
        for j, value in enumerate(result.alpha[time]):
            if not math.isfinite(value):
                continue
            shade = min(CLASSES - 1, int((value - low) / (high - low) * CLASSES))
            tip = (
                f"<title>model after {labels[time]}, asked about {labels[j]}: {value:.1f}%</title>" if with_tips else ""
            )
            x = frame.left + j * frame.slot
            # Half a pixel more, which the next cell covers: else the page shines through between them.
            size = f'width="{frame.slot + 0.5:.2f}" height="{cell + 0.5:.2f}"'
            parts.append(f'<rect class="h{shade}" x="{x:.1f}" y="{y:.1f}" {size}>{tip}</rect>')
    bottom = frame.top + len(times) * cell
    parts += [
        f'<text class="tx" x="{frame.x(j):.1f}" y="{bottom + 24:.1f}">{escape(names[j])}</text>'
        for j in sparse(names, WIDE - LEFT, WIDE_DIGIT)
    ]
    stride = math.ceil(30 / cell)
    for i in range(0, len(times), stride):
        y = frame.top + (i + 0.5) * cell + 4
        parts.append(f'<text class="ty" x="{frame.left - 6}" y="{y:.1f}">{escape(names[times[i]])}</text>')
    first = frame.left + times[0] * frame.slot
    parts.append(rule("mark", (first, frame.top), (first, bottom)))
    middle = (frame.left + WIDE) / 2
    parts.append(f'<text class="title" x="{middle:.0f}" y="{bottom + 54:.0f}">asked about step …</text>')
    turn = f'transform="translate(27 {(frame.top + bottom) / 2:.0f}) rotate(-90)"'
    parts.append(f'<text class="title" {turn}>model after step …</text>')
    scale = "".join(f'<i class="swatch h{shade}"></i>' for shade in range(CLASSES))
    text = (
        "A row is the model after the step at its left; a column is a step that it is asked about; the colour is the "
        "share of that step's test questions answered among the first 10 (α in the paper). Read down a column: where "
        "it fades, the model forgets that step. The right end of each row is C, the row's mean is A. "
        "Left of the dashed line are the steps of the base model."
    )
    drawing = svg(WIDE, bottom + 62, "Hits@10 of every model on every step", "".join(parts), "wide")
    legend = f'<span class="key scale">{low}% {scale} {high}%</span>'
    return figure("alpha", "What each model knows of each step", text, drawing, legend, wide=True)
