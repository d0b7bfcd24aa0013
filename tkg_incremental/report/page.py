"""The page of a run: one file with everything in it."""

from __future__ import annotations

import math
import os
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from tkg_incremental.report.change_figures import (
    handover_figure,
    lingering_figure,
    lingering_tables,
    question_tables,
)
from tkg_incremental.report.changes import Changes
from tkg_incremental.report.figures import cost_figures, facts_figure, key, loss_figures, metric_figure
from tkg_incremental.report.heat_map import alpha_figure
from tkg_incremental.report.svg import short
from tkg_incremental.report.words import MEANINGS
from tkg_incremental.storage import atomic_write
from tkg_incremental.training.result import Result

MAIN = ("C@10", "A@10", "DF@10", "RRD")
OTHERS = ("MRR", "F@10", "data_size", "epoch_seconds")
_COLUMNS = (*MAIN, "F@10", "MRR", "Hits@1", "epochs", "best_epoch", "data_size", "epoch_seconds")
_QUESTIONS = 8


def write_report(run_dir: str | os.PathLike[str], path: str | os.PathLike[str] | None = None) -> Path:
    """Writes the report of a run, finished or not, as one HTML file that needs nothing else.

    It is made from ``metrics.json`` and, if a :class:`~tkg_incremental.report.ChangeRecorder` watched the run,
    ``changes.json``; neither the dataset nor the model is needed.

    Args:
        run_dir: Folder of the run.
        path: The file to write; ``report.html`` in the folder by default.
    """
    folder = Path(run_dir)
    metrics = folder / "metrics.json"
    if not metrics.exists():
        raise FileNotFoundError(f"run_dir must hold the metrics.json of a run (got '{folder}', which does not)")
    recorded = folder / "changes.json"
    changes = Changes.load(recorded) if recorded.exists() else None
    target = folder / "report.html" if path is None else Path(path)
    with atomic_write(target) as file:
        file.write(render_report(Result.load(metrics), changes).encode())
    return target


def render_report(result: Result, changes: Changes | None = None) -> str:
    """The HTML of a report.

    Args:
        result: What the run found.
        changes: What a :class:`~tkg_incremental.report.ChangeRecorder` kept.
    """
    package = files("tkg_incremental.report")
    template = Template((package / "template.html").read_text(encoding="utf-8"))
    title = f"{result.strategy} with {result.model} on {result.dataset}"
    return template.substitute(
        title=escape(title),
        style=(package / "style.css").read_text(encoding="utf-8"),
        lead=_lead(result),
        body="\n".join(_sections(result, changes)),
    )


def _lead(result: Result) -> str:
    if not result.steps:
        return f"Seed {result.seed}. No step has been learnt yet."
    first, last = result.steps[0], result.steps[-1]
    planned = result.num_steps - first["time"]
    done = f"{planned}" if len(result.steps) == planned else f"{len(result.steps)} of {planned}"
    return escape(
        f"A base model is trained first. Then the steps from {first['label']} to {last['label']} come one by one "
        f"({done} of the {result.num_steps} steps in the data), and the model is tested after each. Seed {result.seed}."
    )


def _sections(result: Result, changes: Changes | None) -> list[str]:
    if not result.steps:
        return [_facts(changes)] if changes else []
    window = changes.window if changes else 10
    labels = changes.labels if changes else _labels(result)
    parts = [
        _tiles(result),
        "<h2>Step by step</h2><p>Each point is the model after one step, asked about the test facts.</p>",
        _grid([metric_figure(result, name, window) for name in MAIN]),
        "<h2>Remembering</h2>",
        _grid([alpha_figure(result, labels)]),
    ]
    if changes:
        parts += [_what_changed(changes), _facts(changes)]
    parts += ["<h2>What it cost</h2>", _grid(cost_figures(result))]
    if result.history:
        parts += [
            "<h2>Losses</h2><p>Mean over the batches of an epoch, with the weight each term has in the sum.</p>",
            _grid(loss_figures(result)),
        ]
    return [*parts, _numbers(result)]


def _grid(figures: list[str]) -> str:
    return f'<div class="charts">{"".join(figures)}</div>'


def _tiles(result: Result) -> str:
    def tile(name: str) -> str:
        meaning, value = MEANINGS[name], result.summary[name]
        is_share = "@" in name or name in ("RRD", "MRR")
        shown = f"{value:.1f}".replace("-", "−") if is_share and not math.isnan(value) else _show(value)
        return (
            f'<div class="tile"><span>{escape(meaning.title)}{f" · {escape(name)}" if "_" not in name else ""}</span>'
            f"<b>{shown}</b><span>{escape(meaning.unit)}</span><span>{meaning.arrow}</span></div>"
        )

    tiles = [tile(name) for name in (*MAIN, *OTHERS)]
    return f'<p>Means over the {len(result.steps)} incremental steps:</p><div class="tiles">{"".join(tiles)}</div>'


def _facts(changes: Changes) -> str:
    return f"<h2>The data</h2>{_grid([facts_figure(changes)])}"


def _what_changed(changes: Changes) -> str:
    parts = ["<h2>What changed</h2>"]
    summaries = [drawing for drawing in (handover_figure(changes), lingering_figure(changes)) if drawing]
    if summaries:
        parts.append(_grid(summaries))
    tables = question_tables(changes, _QUESTIONS)
    if tables:
        shades = ("1", "2–3", "4–10", "11–100", "worse")
        legend = "".join(key(f"r{i}", shade) for i, shade in enumerate(shades)) + key("holds", "true at this step")
        parts.append(
            "<h3>Who answers what</h3><p>The rank that the model gives each answer, asked after each step about that "
            "step. In a model that keeps up, rank 1 follows the frames. Empty: not known yet.</p>"
            f'<p class="legend">rank: {legend}</p>{tables}'
        )
    if changes.deleted:
        parts.append(
            "<h3>Believed although over, by name</h3><p>Deleted facts whose answer the model still ranks among the "
            "first 10. On coloured lines it even ranks above everything that is true now.</p>"
            + lingering_tables(changes)
        )
    return "".join(parts)


def _numbers(result: Result) -> str:
    columns = [name for name in _COLUMNS if any(name in step for step in result.steps)]
    head = "".join(f'<th class="n">{escape(name)}</th>' for name in columns)
    rows = "".join(
        f"<tr><td>{escape(step['label'])}</td>"
        + "".join(f'<td class="n">{_show(step.get(name, math.nan))}</td>' for name in columns)
        + "</tr>"
        for step in result.steps
    )
    table = f"<table><thead><tr><th>step</th>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<h2>All numbers</h2><details><summary>a table</summary><div class="scroll">{table}</div></details>'


def _labels(result: Result) -> list[str]:
    """Without the dataset's own names, those of the steps that were visited, and numbers."""
    labels = [str(step) for step in range(result.num_steps)]
    for step in result.steps:
        labels[step["time"]] = step["label"]
    return labels


def _show(value: float) -> str:
    if math.isnan(value):
        return "–"
    return short(value) if value == int(value) or abs(value) >= 1000 else f"{value:.2f}".replace("-", "−")
