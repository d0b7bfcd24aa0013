"""Several runs on one page: a table and overlaid curves per dataset."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence

from tkg_incremental.report.figures import figure, metric_heading, round_range, slug, tick_labels
from tkg_incremental.report.groups import Group, Spread
from tkg_incremental.report.metric_descriptions import DESCRIPTIONS
from tkg_incremental.report.svg import Frame, svg
from tkg_incremental.report.templates import render
from tkg_incremental.storage import atomic_write
from tkg_incremental.tables import show_number
from tkg_incremental.training.result import SUMMARY

METRICS = ("C@10", "A@10", "DF@10", "RRD", "F@10", "epoch_seconds")
_LIMITS = {"C@10": (0.0, 100.0), "A@10": (0.0, 100.0), "DF@10": (0.0, 100.0), "epoch_seconds": (0.0, math.inf)}
_COLOURS, _DASHES = 8, 3


def write_comparison(by_dataset: Mapping[str, Sequence[Group]], path: str | os.PathLike[str]) -> None:
    """Writes a self-contained page.

    Args:
        by_dataset: Groups of runs by the title of their dataset.
        path: The file.
    """
    datasets = []
    for title, groups in by_dataset.items():
        header, rows = summary_table(groups)
        kinds = [curve_class(i) for i in range(len(groups))]
        legend = [{"kind": kind, "text": _legend(group)} for kind, group in zip(kinds, groups, strict=True)]
        figures = [_figure(metric, groups, kinds) for metric in METRICS]
        datasets.append({"title": title, "header": header, "rows": rows, "legend": legend, "figures": figures})
    page = render("comparison.html", title="Comparison of runs", lead=[], datasets=datasets)
    with atomic_write(path) as file:
        file.write(page.encode())


def summary_table(groups: Sequence[Group]) -> tuple[list[str], list[list[str | float]]]:
    """Header and rows of the runs of one dataset, with the metrics that any of them has."""
    metrics = [name for name in SUMMARY if any(not math.isnan(group.summary(name)[0]) for group in groups)]
    rows: list[list[str | float]] = []
    for group in groups:
        seeds = ", ".join(str(result.seed) for result in group.results)
        steps = "/".join(map(str, sorted({len(result.steps) for result in group.results})))
        rows.append([group.label, seeds, steps, *(show_spread(group.summary(metric)) for metric in metrics)])
    return ["run", "seeds", "steps", *metrics], rows


def show_spread(value: Spread) -> str:
    mean, std = value
    return show_number(mean) if math.isnan(std) else f"{show_number(mean)} ± {show_number(std)}"


def curve_class(number: int) -> str:
    """Classes for colour and dashes; the colours repeat with other dashes."""
    return f"c{number % _COLOURS} d{number // _COLOURS % _DASHES}"


def _legend(group: Group) -> str:
    return f"{group.label}, {len(group.results)} seeds" if len(group.results) > 1 else group.label


def _figure(metric: str, groups: Sequence[Group], kinds: Sequence[str]) -> str:
    labels = {step["time"]: step["label"] for group in groups for result in group.results for step in result.steps}
    times = sorted(labels)
    curves = [group.at_step(metric) for group in groups]
    limits = _LIMITS.get(metric, (-math.inf, math.inf))
    ends = [end for curve in curves for value in curve.values() for end in _ends(value, limits)]
    about = DESCRIPTIONS[metric]
    if not ends:
        return ""
    frame = Frame(len(times), *round_range(ends))
    drawing = frame.axes(tick_labels([labels[time] for time in times]), "after learning step …", about.unit)
    for group, curve, kind in zip(groups, curves, kinds, strict=True):
        values = [curve.get(time, (math.nan, math.nan)) for time in times]
        places = [i for i, (_, std) in enumerate(values) if std > 0]
        drawing += frame.band([_ends(values[i], limits) for i in places], kind, places)
        tips = [f"{group.label}, {labels[t]}: {show_spread(v)}" for t, v in zip(times, values, strict=True)]
        drawing += frame.line([mean for mean, _ in values], kind, tips)
    heading = metric_heading(metric)
    return figure(f"curve-{slug(metric)}", heading, "", svg(frame.width, frame.height, metric, drawing))


def _ends(value: Spread, limits: tuple[float, float]) -> list[float]:
    """The ends of mean ± standard deviation, cut at the limits of the metric."""
    mean, std = value
    if math.isnan(mean):
        return []
    low, high = (mean, mean) if math.isnan(std) else (mean - std, mean + std)
    return [min(max(end, limits[0]), limits[1]) for end in (low, high)]
