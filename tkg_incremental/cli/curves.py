"""Overlaid curves of several runs, as one page without anything from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from tkg_incremental.cli.groups import Group
from tkg_incremental.cli.plot import OPEN, Curve, Point, line_plot

METRICS = {
    "C@10": "Hits@10 on the facts of the current step. Higher is better.",
    "A@10": "Mean Hits@10 over all steps so far: what is known of the past and of now. Higher is better.",
    "DF@10": "How often a fact that is no longer true is still among the first ten. Lower is better.",
    "RRD": "By how much what is true outranks what it replaced. Above 0 it does; higher is better.",
    "F@10": "How far Hits@10 on earlier steps has fallen below its best. Lower is better.",
    "epoch_seconds": "Seconds an epoch takes. Lower is better.",
}
BOUNDS = {"C@10": (0.0, 100.0), "A@10": (0.0, 100.0), "DF@10": (0.0, 100.0), "epoch_seconds": (0.0, math.inf)}

STYLE = """
:root { color-scheme: light dark; --ink: #1d2127; --paper: #fff; --faint: #5f6772; --grid: #e3e6ea;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #cc79a7; --c4: #b8860b; --c5: #5c6bc0; --c6: #7a7a7a;
  --c7: #c2185b }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --paper: #14171b; --faint: #9aa3ae; --grid: #2c3138;
  --c0: #56b4e9; --c1: #f0894e; --c2: #3ecf9f; --c3: #e3a1c5; --c4: #e0b84c; --c5: #9aa6f0; --c6: #b0b0b0;
  --c7: #f06292 } }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem } h2 { font-size: 1.2rem; margin-top: 2.5rem } h3 { margin: 0; font-size: 1rem }
.table { overflow-x: auto } table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--grid); text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.5rem }
figure { margin: 0; break-inside: avoid } figcaption p { margin: 0; color: var(--faint); font-size: .85rem }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: 0; list-style: none }
.legend svg { width: 2rem; height: .7rem; margin-right: .4rem }
svg { width: 100%; height: auto; overflow: visible } svg text { fill: var(--faint); font: 11px system-ui, sans-serif }
.grid { stroke: var(--grid) } .line { fill: none; stroke-width: 2 } .band { opacity: .18 }
"""


def comparison_page(groups: Sequence[Group], header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """The whole page.

    Args:
        groups: The runs.
        header: Names of the columns of the table.
        rows: Its cells.
    """
    parts = [_table(header, rows)]
    for dataset in dict.fromkeys(group.dataset for group in groups):  # steps of two datasets are not the same
        shown = [(i, group) for i, group in enumerate(groups) if group.dataset == dataset]
        figures = "".join(_figure(metric, shown) for metric in METRICS)
        parts.append(f'<h2>{escape(dataset)}, step by step</h2>{_legend(shown)}<div class="plots">{figures}</div>')
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Comparison of runs</title><style>{STYLE}</style></head>"
        f"<body><h1>Comparison of runs</h1>{''.join(parts)}</body></html>\n"
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    note = "<p>Means over the steps; ± is the standard deviation over seeds.</p>"
    return f'{note}<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _legend(shown: Sequence[tuple[int, Group]]) -> str:
    items = "".join(
        f'<li><svg viewBox="0 0 32 10" aria-hidden="true"><path class="line" {Curve.stroke(i)} d="M0 5H32"/></svg>'
        f"{escape(group.label)}{f', {len(group.results)} seeds' if len(group.results) > 1 else ''}</li>"
        for i, group in shown
    )
    return f'<ul class="legend">{items}</ul>'


def _figure(metric: str, shown: Sequence[tuple[int, Group]]) -> str:
    labels = {step["time"]: step["label"] for _, group in shown for result in group.results for step in result.steps}
    curves = []
    for i, group in shown:
        values = group.at_step(metric)
        points = [Point(t, v.mean, 0.0 if math.isnan(v.std) else v.std) for t, v in values.items()]
        curves.append(Curve(i, group.label, points))
    title = f"<figcaption><h3>{escape(metric)}</h3><p>{escape(METRICS[metric])}</p></figcaption>"
    return f"<figure>{title}{line_plot(metric, curves, labels, BOUNDS.get(metric, OPEN))}</figure>"
