"""The charts of a report's page, as HTML with inline SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tkg_incremental.report.changes import Changes
from tkg_incremental.report.metric_descriptions import DESCRIPTIONS, LOSSES
from tkg_incremental.report.svg import WIDE_DIGIT, Frame, escape, nice_step, short, svg
from tkg_incremental.training.result import Result

STEP = "step"
WIDE = 960
# Space for the labels at the left of a wide chart.
LEFT = 114


def figure(name: str, heading: str, text: str, drawing: str, legend: str = "", wide: bool = False) -> str:
    """A drawing with a heading, an explanation and a legend.

    Args:
        name: Id of the element.
        heading: HTML of the heading.
        text: HTML of the explanation.
        drawing: The SVG.
        legend: HTML of the legend.
        wide: Whether it takes the whole width of the page.
    """
    kind = "chart wide" if wide else "chart"
    legend = f'<p class="legend">{legend}</p>' if legend else ""
    text = f"<p>{text}</p>" if text else ""
    return (
        f'<figure id="{name}" class="{kind}"><figcaption><h3>{heading}</h3>{text}</figcaption>'
        f"{legend}{drawing}</figure>"
    )


def key(kind: str, text: str) -> str:
    """An entry of a legend."""
    return f'<span class="key"><i class="swatch {kind}"></i>{escape(text)}</span>'


def tick_labels(labels: Sequence[str]) -> list[str]:
    """Short names of steps: of ``"1998–1999"`` the beginning."""
    return [label.split("–")[0] if label[:1].isdigit() else label for label in labels]


def curve_figure(
    name: str,
    heading: str,
    text: str,
    curve: tuple[Sequence[str], Sequence[float], Sequence[str]],
    titles: tuple[str, str],
    label: str,
    kind: str = "s0",
) -> str:
    """A line from zero on, or bars; empty if there is no value.

    Args:
        name: Id of the element.
        heading: HTML of the heading.
        text: HTML of the explanation.
        curve: Label, value and tool tip of each step; a value may be NaN.
        titles: Titles of both axes.
        label: Description for screen readers.
        kind: Class of the line; bars are drawn for ``"added"``.
    """
    labels, values, tips = curve
    there = [value for value in values if math.isfinite(value)]
    if not there:
        return ""
    frame = Frame(len(values), *round_range([0.0, *there]))
    drawing = frame.axes(tick_labels(labels), *titles)
    if kind == "added":
        bars = enumerate(zip(values, tips, strict=True))
        drawing += "".join(frame.bar(i, 0, value, kind, tip) for i, (value, tip) in bars if math.isfinite(value))
    else:
        drawing += frame.line(values, kind, tips)
    return figure(name, heading, text, svg(frame.width, frame.height, label, drawing))


def metric_heading(name: str) -> str:
    """The name of a metric, its title and which values are better."""
    about = DESCRIPTIONS[name]
    first, full = (about.title.capitalize(), "") if "_" in name else (name, about.title)
    return f'{escape(first)} <span class="full">{escape(full)}</span> <span class="arrow">{about.arrow}</span>'


def metric_figure(result: Result, name: str, window: int) -> str:
    """A metric after each step, with its definition."""
    about = DESCRIPTIONS[name]
    labels = [step["label"] for step in result.steps]
    values = [step.get(name, math.nan) for step in result.steps]
    tips = [f"{label}: {name} {value:.1f}" for label, value in zip(labels, values, strict=True)]
    mean = f"{result.summary[name]:.1f}".replace("-", "−")
    heading = f'{metric_heading(name)} <span class="mean">mean {mean}</span>'
    label = f"{name} after each step, {about.arrow}; mean {mean}"
    text = escape(about.text.format(window=window))
    titles = (f"after learning {STEP} …", about.unit)
    return curve_figure(f"metric-{slug(name)}", heading, text, (labels, values, tips), titles, label)


def facts_figure(changes: Changes) -> str:
    """Number of facts of each step: common with the step before, added and deleted."""
    counts = changes.facts
    low, high = round_range([-max(c.deleted for c in counts), max(c.total for c in counts)])
    frame = Frame(len(counts), low, high, left=LEFT, width=WIDE, height=340, top=34, bottom=66)
    # Deleted facts are drawn below zero, but their labels are positive.
    frame.digit, frame.show = WIDE_DIGIT, lambda value: short(abs(value))
    parts = [frame.axes(tick_labels(changes.labels), STEP, "train facts")]
    for i, c in enumerate(counts):
        tip = f"{changes.labels[i]}: {c.total} facts, {c.common} as before, {c.added} added, {c.deleted} deleted"
        parts += [
            frame.bar(i, 0, c.common, "common", tip),
            frame.bar(i, c.common, c.total, "added", tip),
            frame.bar(i, 0, -c.deleted, "deleted", tip),
        ]
    parts.append(frame.mark(changes.base_step, "incremental learning begins"))
    legend = key("common", "common with the step before") + key("added", "added") + key("deleted", "deleted")
    text = (
        "Grey and blue together are all facts of a step. Blue facts began at it; orange facts, below zero, held at the "
        "step before and have ended. Most facts continue, so learning only the changes costs little."
    )
    label = f"Facts per step of {changes.about['dataset']}: common, added and deleted"
    drawing = svg(frame.width, frame.height, label, "".join(parts), "wide")
    return figure("facts", "Facts at each step", text, drawing, legend, wide=True)


def cost_figures(result: Result) -> list[str]:
    """Data size and training time of each step."""
    labels = [step["label"] for step in result.steps]
    sizes = [step.get("data_size", math.nan) for step in result.steps]
    epochs = [step.get("epochs", 0) for step in result.steps]
    # A step without epochs has no time per epoch.
    seconds = [
        n * step.get("epoch_seconds", math.nan) if n else 0.0 for step, n in zip(result.steps, epochs, strict=True)
    ]
    size_tips = [f"{a}: {b:,.0f} labelled facts in an epoch" for a, b in zip(labels, sizes, strict=True)]
    time_tips = [f"{a}: {b:.1f} s for {n} epochs" for a, b, n in zip(labels, seconds, epochs, strict=True)]
    total = short(round(sum(s for s in seconds if math.isfinite(s)), 1))
    size_title = "Data size <span class='full'>per epoch</span>"
    size_text = escape(DESCRIPTIONS["data_size"].text) + f" On average {short(result.summary['data_size'])}."
    time_title = "Training time <span class='full'>per step</span>"
    average = result.summary["epoch_seconds"]
    time_text = (
        f"Seconds spent on the epochs of a step, without evaluation; {total} s in total, {sum(epochs)} epochs of "
        f"{'–' if math.isnan(average) else f'{average:.2g}'} s on average."
    )
    size, time = (labels, sizes, size_tips), (labels, seconds, time_tips)
    size_label, time_label = f"{size_title}, labelled facts", f"{time_title}, seconds"
    return [
        curve_figure("data-size", size_title, size_text, size, (STEP, "labelled facts"), size_label, "added"),
        curve_figure("time", time_title, time_text, time, (STEP, "seconds"), time_label, "added"),
    ]


def loss_figures(result: Result) -> list[str]:
    """Every loss term, and validation, over the epochs of all steps in sequence."""
    labels = {step["time"]: step["label"] for step in result.steps}
    return [_loss(name, result.history, labels) for name in loss_names(result)]


def loss_names(result: Result) -> list[str]:
    """The terms, and validation, that have a value in some epoch. Without validation facts, validation has none."""
    names = dict.fromkeys(name for record in result.history for name in record if name != "time")
    values = {name: [record.get(name) for record in result.history] for name in names}
    return [name for name in names if any(value is not None and math.isfinite(value) for value in values[name])]


def _loss(name: str, history: list[dict[str, Any]], labels: dict[int, str]) -> str:
    values: list[float] = [math.nan if record.get(name) is None else record[name] for record in history]
    low, high = round_range([0.0, *(value for value in values if math.isfinite(value))])
    frame = Frame(len(values), low, high, height=220)
    starts = [i for i, r in enumerate(history) if i == 0 or history[i - 1]["time"] != r["time"]]
    ticks = tick_labels([labels.get(history[start]["time"], "") for start in starts])
    unit = "%" if name.startswith("val") else "loss"
    parts = [frame.axes(ticks, f"epochs of each {STEP}, one {STEP} after the other", unit, starts)]
    # A line per step: the next step learns other facts.
    for start, end in zip(starts, [*starts[1:], len(values)], strict=True):
        parts.append(frame.divider(start))
        label = labels.get(history[start]["time"], "")
        tips = [f"{label}, epoch {i + 1}: {value:.3g}" for i, value in enumerate(values[start:end])]
        parts.append(frame.line(values[start:end], "s0", tips, start))
    heading = f"{escape(name)} <span class='full'>{escape(LOSSES.get(name, ''))}</span>"
    drawing = svg(frame.width, frame.height, f"{name} per epoch", "".join(parts))
    return figure(f"loss-{slug(name)}", heading, "", drawing)


def round_range(values: Sequence[float]) -> tuple[float, float]:
    """The lowest and the highest value, rounded outwards."""
    low, high = min(values), max(values)
    if low == high:
        return low, low + 1
    step = nice_step((high - low) / 5)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def slug(name: str) -> str:
    """A name as an id."""
    return "".join(c if c.isalnum() else "-" for c in name.lower())
