"""Plots of a run as matplotlib figures, for notebooks and papers."""

from __future__ import annotations

import io
import math
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from tkg_incremental.report.change_figures import ranks_around
from tkg_incremental.report.changes import Changes
from tkg_incremental.report.figures import loss_names
from tkg_incremental.report.metric_descriptions import DESCRIPTIONS
from tkg_incremental.training.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NEW, _OLD, _COMMON = "#1f6fb5", "#c8641b", "#b4bcc8"


def _figure(rows: int, columns: int, width: float, height: float) -> tuple[Figure, Any]:
    """A figure without global state: it is freed with its last reference."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'tkg-incremental[report]'") from error

    figure = Figure(figsize=(width, height), layout="constrained")
    figure._repr_png_ = partial(_png, figure)  # type: ignore[attr-defined]  # notebooks show it without pyplot
    return figure, figure.subplots(rows, columns, squeeze=False)


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def plot_metrics(*results: Result, names: tuple[str, ...] = ("C@10", "A@10", "DF@10", "RRD")) -> Figure:
    """Metrics after each step, one panel each; several runs are overlaid.

    Args:
        results: The metrics of the runs.
        names: Which metrics.
    """
    figure, axes = _figure(math.ceil(len(names) / 2), min(2, len(names)), 10, 3.2 * math.ceil(len(names) / 2))
    for axis, name in zip(axes.flat, names, strict=False):
        for result in results:
            title = f"{result.strategy} · {result.model} · seed {result.seed}"
            axis.plot(_times(result), [step.get(name, math.nan) for step in result.steps], marker=".", label=title)
        about = DESCRIPTIONS.get(name)
        axis.set_title(f"{name}: {about.title} ({about.arrow})" if about else name, fontsize="medium")
        axis.set_ylabel(about.unit if about else "")
        _name_steps(axis, results[0] if results else None)
    for axis in axes.flat[len(names) :]:
        axis.set_axis_off()
    if len(results) > 1:
        axes.flat[0].legend(fontsize="small")
    return figure


def plot_alpha(result: Result) -> Figure:
    r"""The matrix :math:`\alpha`: Hits@10 of the model after each step (rows) on every step (columns).

    Args:
        result: The metrics of a run.
    """
    times = sorted(result.alpha)
    figure, axes = _figure(1, 1, 9, 2 + 0.16 * len(times))
    axis = axes[0, 0]
    matrix = [[result.alpha[time].get(step, math.nan) for step in range(result.num_steps)] for time in times]
    extent = (-0.5, result.num_steps - 0.5, max(times, default=0) + 0.5, min(times, default=0) - 0.5)
    image = axis.imshow(matrix, aspect="auto", cmap="Blues", extent=extent, interpolation="nearest")
    axis.set(xlabel="asked about step", ylabel="model after step", title="What each model knows of each step")
    figure.colorbar(image, ax=axis, label="Hits@10 (%)")
    return figure


def plot_facts(changes: Changes) -> Figure:
    """Facts of each step: common with the step before, added, and (below zero) deleted.

    Args:
        changes: The records of a :class:`~tkg_incremental.report.ChangeRecorder`.
    """
    figure, axes = _figure(1, 1, 10, 3.5)
    axis = axes[0, 0]
    steps = range(len(changes.facts))
    common = [counts.common for counts in changes.facts]
    axis.bar(steps, common, color=_COMMON, label="common")
    axis.bar(steps, [counts.added for counts in changes.facts], bottom=common, color=_NEW, label="added")
    axis.bar(steps, [-counts.deleted for counts in changes.facts], color=_OLD, label="deleted")
    axis.axvline(changes.base_step - 0.5, color="black", linestyle="--", linewidth=1, label="incremental from here")
    _label(axis, list(steps), changes.labels)
    axis.set(xlabel="step", ylabel="train facts", title=f"Facts at each step of {changes.about['dataset']}")
    axis.legend(fontsize="small")
    return figure


def plot_losses(result: Result) -> Figure:
    """Every loss term, and validation, over the epochs of all steps in sequence.

    Args:
        result: The metrics of a run.
    """
    names = loss_names(result)
    figure, axes = _figure(max(1, math.ceil(len(names) / 2)), 2, 10, 2.4 * max(1, math.ceil(len(names) / 2)))
    times = [record["time"] for record in result.history]
    starts = [i for i, time in enumerate(times) if i == 0 or times[i - 1] != time]
    labels = {step["time"]: step["label"] for step in result.steps}
    for axis, name in zip(axes.flat, names, strict=False):
        values = [math.nan if record.get(name) is None else record[name] for record in result.history]
        for start, end in zip(starts, [*starts[1:], len(values)], strict=True):
            axis.plot(range(start, end), values[start:end], color=_NEW, linewidth=1)
        _label(axis, starts, [labels.get(times[start], str(times[start])) for start in starts])
        axis.set(title=name, xlabel="epochs of each step, one step after the other")
    for axis in axes.flat[len(names) :]:
        axis.set_axis_off()
    return figure


def plot_cost(result: Result) -> Figure:
    """Labelled facts per epoch, and seconds of training, at each step.

    Args:
        result: The metrics of a run.
    """
    figure, axes = _figure(1, 2, 10, 3.2)
    times = _times(result)
    axes[0, 0].bar(times, [step.get("data_size", 0) for step in result.steps], color=_NEW)
    axes[0, 0].set(title="Data size per epoch", ylabel="labelled facts")
    seconds = [step.get("epoch_seconds", math.nan) * step.get("epochs", 0) for step in result.steps]
    axes[0, 1].bar(times, [0 if math.isnan(value) else value for value in seconds], color=_NEW)
    axes[0, 1].set(title="Training time per step", ylabel="seconds")
    for axis in axes.flat:
        _name_steps(axis, result)
    return figure


def plot_handovers(changes: Changes, question: int | None = None) -> Figure:
    """Ranks of old and new answers: the median around all handovers, or every answer to one question.

    Args:
        changes: The records of a :class:`~tkg_incremental.report.ChangeRecorder`.
        question: Index of a question of ``changes.questions``; :obj:`None` for the median.
    """
    figure, axes = _figure(1, 1, 8, 4)
    axis = axes[0, 0]
    if question is None:
        found = sorted(ranks_around(changes).items())
        for which, color, name in ((0, _OLD, "old answer"), (1, _NEW, "new answer")):
            offsets, ranks = [offset for offset, _ in found], [median(both[which]) for _, both in found]
            axis.plot(offsets, ranks, color=color, marker=".", label=name)
        axis.axvline(-0.5, color="black", linestyle="--", linewidth=1)
        axis.set(xlabel="steps since the handover", ylabel="median rank", title="When an answer changes hands")
    else:
        asked = changes.questions[question]
        for answer in asked.answers:
            (line,) = axis.plot(changes.steps, _plain(answer.ranks), linewidth=1, label=answer.name)
            holds = [
                rank if step in answer.holds else None for step, rank in zip(changes.steps, answer.ranks, strict=True)
            ]
            axis.plot(changes.steps, _plain(holds), linewidth=4, color=line.get_color())
        _label(axis, changes.steps, [changes.labels[step] for step in changes.steps])
        axis.set(xlabel="after step", ylabel="rank", title=f"{asked} (thick: true)")
    axis.set_yscale("log")
    axis.invert_yaxis()
    figure.legend(loc="outside right center", fontsize="small")  # lines are everywhere inside
    return figure


def _plain(ranks: list[float | None]) -> list[float]:
    return [math.nan if rank is None else rank for rank in ranks]


def _times(result: Result) -> list[int]:
    return [step["time"] for step in result.steps]


def _name_steps(axis: Any, result: Result | None) -> None:
    if result is not None:
        _label(axis, _times(result), [step["label"] for step in result.steps])


def _label(axis: Any, places: list[int], labels: list[str]) -> None:
    """At most eight labels, so that they do not overlap."""
    stride = max(1, math.ceil(len(places) / 8))
    axis.set_xticks(places[::stride], [label.split("–")[0] for label in labels[::stride]])
