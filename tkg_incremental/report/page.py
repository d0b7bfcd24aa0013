"""The page of a run: one self-contained file."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from tkg_incremental.report.change_figures import deleted_figure, deleted_rows, handover_figure, question_rows
from tkg_incremental.report.changes import Changes
from tkg_incremental.report.figures import cost_figures, facts_figure, loss_figures, metric_figure
from tkg_incremental.report.groups import dataset_title
from tkg_incremental.report.heat_map import alpha_figure
from tkg_incremental.report.metric_descriptions import DESCRIPTIONS
from tkg_incremental.report.svg import short
from tkg_incremental.report.templates import render
from tkg_incremental.report.trust import trust_section
from tkg_incremental.run_file import read_run_file
from tkg_incremental.storage import atomic_write
from tkg_incremental.training.result import Result

MAIN = ("C@10", "A@10", "DF@10", "RRD")
OTHERS = ("MRR", "F@10", "data_size", "epoch_seconds")
_COLUMNS = (*MAIN, "F@10", "MRR", "Hits@1", "epochs", "best_epoch", "data_size", "epoch_seconds")
_QUESTIONS = 8
_SHADES = (
    ("r0", "1"),
    ("r1", "2–3"),
    ("r2", "4–10"),
    ("r3", "11–100"),
    ("r4", "worse"),
    ("holds", "true at this step"),
)


def write_report(run_dir: str | os.PathLike[str], path: str | os.PathLike[str] | None = None) -> Path:
    """Writes the report of a run, finished or not, as one self-contained HTML file.

    It needs ``metrics.json`` and, for changes and settings, ``changes.json`` of a
    :class:`~tkg_incremental.report.ChangeRecorder`, ``run.json`` and ``config.json``. It needs neither the dataset nor
    the model.

    Args:
        run_dir: Folder of the run.
        path: The file to write; by default ``report.html`` in the folder.
    """
    folder = Path(run_dir)
    metrics = folder / "metrics.json"
    if not metrics.exists():
        raise FileNotFoundError(f"run_dir must hold the metrics.json of a run (got '{folder}', which does not)")
    recorded = folder / "changes.json"
    changes = Changes.load(recorded) if recorded.exists() else None
    result = Result.load(metrics)
    target = folder / "report.html" if path is None else Path(path)
    with atomic_write(target) as file:
        file.write(render_report(result, changes, read_settings(folder), dataset_title(folder, result)).encode())
    return target


def read_settings(folder: Path) -> dict[str, Any]:
    """Version, date, command and options of a run, as far as its folder has them."""
    state = read_run_file(folder)
    config = folder / "config.json"
    if not state and config.exists():
        state = dict(json.loads(config.read_text(encoding="utf-8")))
    options = state.pop("options", {})
    named = {**state, **(options if isinstance(options, dict) else {})}
    return {name: value for name, value in named.items() if value is not None and value != ""}


def render_report(
    result: Result,
    changes: Changes | None = None,
    settings: dict[str, Any] | None = None,
    dataset: str | None = None,
) -> str:
    """The HTML of a report.

    Args:
        result: The metrics of the run.
        changes: The records of a :class:`~tkg_incremental.report.ChangeRecorder`.
        settings: Names and values for the table of settings.
        dataset: Title of the dataset; by default its name.
    """
    title = f"{result.strategy} with {result.model} on {dataset or result.dataset}"
    sections: dict[str, Any] = dict.fromkeys(
        ("tiles", "tiles_title", "metrics", "alpha", "changes", "facts", "cost", "losses", "numbers")
    )
    sections["trust"] = trust_section(result)
    if changes:
        sections["facts"] = facts_figure(changes)
    if result.link_prediction:
        sections |= {
            "tiles": [_tile(name, value) for name, value in result.link_prediction.items()],
            "tiles_title": "Link prediction over all test facts, trained on all steps at once:",
        }
    if result.steps:
        sections |= _steps(result, changes)
    shown = [(name.replace("_", " "), _text(value)) for name, value in (settings or {}).items()]
    lead = [_lead(result), *_provenance(settings or {})]
    return render("report.html", title=title, lead=lead, settings=shown, shades=_SHADES, **sections)


def _steps(result: Result, changes: Changes | None) -> dict[str, Any]:
    window = changes.window if changes else 10
    labels = changes.labels if changes else _labels(result)
    columns = [name for name in _COLUMNS if any(name in step for step in result.steps)]
    rows = [[step["label"], *(_show(step.get(name, math.nan)) for name in columns)] for step in result.steps]
    excluded = ", ended facts excluded from ranks" if result.exclude_ended else ""
    # Without test facts there is nothing to measure.
    measured = [name for name in MAIN if not math.isnan(result.summary[name])]
    return {
        "tiles": [_tile(name, result.summary[name]) for name in (*MAIN, *OTHERS)] if measured else None,
        "tiles_title": f"Means over the {len(result.steps)} incremental steps{excluded}:",
        "metrics": [metric_figure(result, name, window) for name in measured],
        "alpha": alpha_figure(result, labels) if measured else None,
        "changes": _changes(changes) if changes else None,
        "cost": cost_figures(result),
        "losses": loss_figures(result) if result.history else None,
        "numbers": (["step", *columns], rows),
    }


def _changes(changes: Changes) -> dict[str, Any]:
    charts = [chart for chart in (handover_figure(changes), deleted_figure(changes)) if chart]
    labels, questions = question_rows(changes, _QUESTIONS)
    return {"charts": charts, "labels": labels, "questions": questions, "deleted": deleted_rows(changes)}


def _lead(result: Result) -> str:
    if result.link_prediction:
        return f"One model of all {result.num_steps} steps. Seed {result.seed}."
    if not result.steps:
        return f"Seed {result.seed}. No step has been learnt yet."
    first, last = result.steps[0], result.steps[-1]
    planned = result.num_steps - first["time"]
    done = f"{planned}" if len(result.steps) == planned else f"{len(result.steps)} of {planned}"
    return (
        f"After a base model, the steps from {first['label']} to {last['label']} are learnt one by one ({done} of the "
        f"{result.num_steps} steps in the data), and the model is evaluated after each. Seed {result.seed}."
    )


def _provenance(settings: dict[str, Any]) -> list[str]:
    parts = []
    if "version" in settings:
        parts.append(f"tkg_incremental {settings['version']}")
    if "begun" in settings:
        parts.append(f"begun {settings['begun'].replace('+00:00', ' UTC')}")
    lines = [", ".join(parts)] if parts else []
    return [*lines, str(settings["command"])] if settings.get("command") else lines


def _tile(name: str, value: float) -> dict[str, str]:
    about = DESCRIPTIONS[name]
    is_share = "@" in name or name in ("RRD", "MRR")
    shown = f"{value:.1f}".replace("-", "−") if is_share and not math.isnan(value) else _show(value)
    title = about.title if "_" in name else f"{about.title} · {name}"
    return {"title": title, "value": shown, "unit": about.unit, "arrow": about.arrow}


def _labels(result: Result) -> list[str]:
    """Labels of the learnt steps, and numbers for the others."""
    labels = [str(step) for step in range(result.num_steps)]
    for step in result.steps:
        labels[step["time"]] = step["label"]
    return labels


def _show(value: float) -> str:
    if math.isnan(value):
        return "–"
    return short(value) if value == int(value) or abs(value) >= 1000 else f"{value:.2f}".replace("-", "−")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
