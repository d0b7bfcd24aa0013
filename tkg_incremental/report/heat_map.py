"""Heat map of what each model knows of each step."""

from __future__ import annotations

import math

from tkg_incremental.report.figures import LEFT, WIDE, figure, tick_labels
from tkg_incremental.report.svg import WIDE_DIGIT, Frame, escape, rule, sparse, svg
from tkg_incremental.training.result import Result

CLASSES = 10
# With more cells than this, tool tips would be most of the file.
_MAX_TIPS = 4000
_MAX_ROWS = 60


def alpha_figure(result: Result, labels: list[str]) -> str:
    """Hits@10 of the model after each step on the evaluated steps up to it.

    Args:
        result: The metrics of a run.
        labels: Label of each step.
    """
    times = _thinned(sorted(result.alpha))
    columns = sorted({step for time in times for step in result.alpha[time]})
    place = {step: i for i, step in enumerate(columns)}
    values = [value for time in times for value in result.alpha[time].values() if math.isfinite(value)]
    low = min(math.floor(min(values, default=0) / 10) * 10, 90)
    high = max(math.ceil(max(values, default=100) / 10) * 10, low + 10)
    # High enough for the title beside it, low enough for a screen.
    cell = min(max(24.0, 270 / max(1, len(times))), 560 / max(1, len(times)))
    frame = Frame(len(columns), 0, 1, width=WIDE, height=round(len(times) * cell) + 60, left=LEFT, bottom=60)
    with_tips = len(values) <= _MAX_TIPS
    parts = []
    for i, time in enumerate(times):
        y = frame.top + i * cell
        for step, slots in _cells(result.alpha[time], place):
            value = result.alpha[time][step]
            shade = min(CLASSES - 1, int((value - low) / (high - low) * CLASSES))
            tip = f"model after {labels[time]}, asked about {labels[step]}: {value:.1f}%" if with_tips else ""
            x = frame.left + place[step] * frame.slot
            # Half a pixel more, which the next cell covers: without it, the page is visible between cells.
            size = f'width="{slots * frame.slot + 0.5:.2f}" height="{cell + 0.5:.2f}"'
            title = f"<title>{escape(tip)}</title>" if tip else ""
            parts.append(f'<rect class="h{shade}" x="{x:.1f}" y="{y:.1f}" {size}>{title}</rect>')
    bottom = frame.top + len(times) * cell
    names, rows = tick_labels([labels[step] for step in columns]), tick_labels([labels[time] for time in times])
    parts += [
        f'<text class="tx" x="{frame.x(j):.1f}" y="{bottom + 24:.1f}">{escape(names[j])}</text>'
        for j in sparse(names, WIDE - LEFT, WIDE_DIGIT)
    ]
    for i in range(0, len(times), math.ceil(30 / cell)):
        y = frame.top + (i + 0.5) * cell + 4
        parts.append(f'<text class="ty" x="{frame.left - 6}" y="{y:.1f}">{escape(rows[i])}</text>')
    first = frame.left + sum(step < min(result.alpha, default=0) for step in columns) * frame.slot
    parts.append(rule("mark", (first, frame.top), (first, bottom)))
    middle = (frame.left + WIDE) / 2
    parts.append(f'<text class="title" x="{middle:.0f}" y="{bottom + 54:.0f}">asked about step …</text>')
    turn = f'transform="translate(27 {(frame.top + bottom) / 2:.0f}) rotate(-90)"'
    parts.append(f'<text class="title" {turn}>model after step …</text>')
    scale = "".join(f'<i class="swatch h{shade}"></i>' for shade in range(CLASSES))
    text = (
        "A row is the model after the step at its left; a column is a step that it is asked about; the colour is the "
        "share of that step's test questions with the answer among the first 10 (α in the paper). Where a column fades "
        "downwards, the model forgets that step. The right end of each row is C, the row's mean is A. "
        "Left of the dashed line are the steps of the base model."
    )
    drawing = svg(WIDE, bottom + 62, "Hits@10 of every model on every step", "".join(parts), "wide")
    legend = f'<span class="key scale">{low}% {scale} {high}%</span>'
    return figure("alpha", "What each model knows of each step", text, drawing, legend, wide=True)


def _thinned(times: list[int]) -> list[int]:
    """At most about sixty rows, always with the last one."""
    stride = math.ceil(len(times) / _MAX_ROWS) or 1
    return times[::-1][::stride][::-1]


def _cells(row: dict[int, float], place: dict[int, int]) -> list[tuple[int, int]]:
    """The evaluated steps of a row and their widths in slots: between sampled steps, a cell reaches the next one."""
    steps = sorted(step for step, value in row.items() if math.isfinite(value))
    stride = max(1, round(place[steps[-1]] / len(steps))) if steps else 1
    after = [place[step] for step in steps[1:]] + ([place[steps[-1]] + 1] if steps else [])
    return [(step, min(stride, end - place[step])) for step, end in zip(steps, after, strict=True)]
