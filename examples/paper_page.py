"""Writes the page of results from the JSON files of the runs. No figure on it is typed by hand."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

from paper_cells import CELLS, METRICS, Cell

TITLES = {
    2: "Table 2: the main comparison",
    3: "Table 3: what is replayed",
    4: "Table 4: deleted facts",
    5: "Table 5: added facts against all facts",
    6: "Table 6: how much is replayed",
    7: "Table 7: from how long ago",
    8: "Table 8: A-GEM",
    0: "Beyond the paper: nothing learnt, newcomers settled, the row-wise optimiser, other negatives, and Supersede",
}

HEAD = """# Results

Test rows, in percent (RRD × 100), means over the incremental steps; ± is the standard deviation over seeds. *paper* is
the published figure, *ours* what this package gave, *Δ* the difference. An arrow says which way is better. Rows that
say *not run* have not been run. The page is written by `python examples/paper_tables.py` from the files in
`docs/results/`, which name the commit and the command of each run.

Where the paper and its released code differ, these runs follow the code, which gave the paper's tables: see [the
list](paper.md#where-paper-and-released-code-differ). In rows that say *newcomers settled*, and in those of Supersede
unless they say *kept*, entities that come after the base model [settle](strategies.md#newcomers) first. Base models are
trained with 500 sampled negatives a side, the dense optimiser of the released code, DE's with patience 20 on the
validation rows of all their steps, HyTE's for 100 epochs, of which the best is kept. There is one for each dataset and
model, which all cells and seeds share but those that name another. All but the row-wise cells use that optimiser, too.
"""

# Tables that other pages show: the rows of each, as (dataset, model, names of cells).
EXCERPTS: dict[str, list[tuple[str, str, list[str]]]] = {
    "main": [
        (
            dataset,
            "DE",
            ["FT", "TR", f"TIE {replay}", f"TIE {replay} newcomers settled", "Supersede", "FB", "FB_future"],
        )
        for dataset, replay in (("Wikidata12k", "frequency"), ("YAGO11k", "inverse"))
    ],
    "ingredients": [
        (
            dataset,
            "DE",
            [
                *("FT", "FT all", "TR", "TR all", "TIE no replay", f"TIE {replay} no deletion", "TIE uniform"),
                *("TIE frequency", "TIE inverse", f"A-GEM {replay}", "FB", "FB_future"),
                *("FT rowwise", "TR rowwise", f"TIE {replay} rowwise"),
                *(f"{name} newcomers settled" for name in ("FT", "TR", f"TIE {replay}")),
                *("Supersede", "Supersede rowwise"),
            ],
        )
        for dataset, replay in (("Wikidata12k", "frequency"), ("YAGO11k", "inverse"))
    ],
}
# Where an excerpt stands in a page. What is between the marks is written, never typed.
REGION = re.compile(r"(<!-- results: (?P<name>\w+) -->\n).*?(<!-- end of results -->)", re.DOTALL)

# A figure in the notes: {key of a cell, a metric}, {key of a cell} for all four, or {paper: key of a cell, …}.
FIGURE = re.compile(r"\{(?P<paper>paper: )?(?P<key>[\w-]+)(?:, (?P<metric>[\w@ ]+))?\}")

ARROWS = {"C@10": "↑", "DF@10": "↓", "RRD": "↑", "A@10": "↑"}

#: What the paper calls A@10 in its tables is the mean over the incremental steps alone, as the released code takes it.
OURS = {"A@10": "A@10 incremental"}


def render(results: Path, page: Path) -> None:
    """Writes the page."""
    runs = _load(results)
    parts = [HEAD]
    for table, title in TITLES.items():
        parts.append(f"## {title}\n")
        for dataset, model in dict.fromkeys((cell.dataset, cell.model) for cell in CELLS if cell.table == table):
            cells = [cell for cell in CELLS if (cell.table, cell.dataset, cell.model) == (table, dataset, model)]
            parts.append(_table(f"{dataset}, {model}", cells, runs))
    notes = results / "notes.md"
    if notes.exists():
        parts.append(FIGURE.sub(lambda found: _quoted(found, runs), notes.read_text()))
    parts.append(_provenance(runs))
    page.write_text("\n".join(parts))


def excerpt(name: str, results: Path) -> str:
    """One of :data:`EXCERPTS`, from the same files and in the same form as the page."""
    runs = _load(results)
    tables = []
    for dataset, model, names in EXCERPTS[name]:
        # Several tables may show a cell; the first has the most of its figures.
        by_name = {cell.name: cell for cell in reversed(CELLS) if (cell.dataset, cell.model) == (dataset, model)}
        tables.append(_table(f"{dataset}, {model}", [by_name[cell] for cell in names], runs))
    return "\n".join(tables)


def fill_excerpts(page: Path, results: Path) -> str:
    """The text of a page with its excerpts as they should be."""
    return REGION.sub(lambda found: found[1] + excerpt(found["name"], results) + found[3], page.read_text())


def _load(results: Path) -> dict[str, list[dict[str, Any]]]:
    """All runs by the key of their cell."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(results.glob("*.json")):
        runs.setdefault(path.stem.rsplit("-", 1)[0], []).append(json.loads(path.read_text()))
    return runs


def _table(title: str, cells: list[Cell], runs: dict[str, list[dict[str, Any]]]) -> str:
    header = [
        title,
        *(f"{name} {ARROWS[name]} paper / ours / Δ" for name in METRICS),
        "data size",
        "s / epoch",
        "seeds",
    ]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for cell in cells:
        found = runs.get(cell.key, [])
        shown = [_figure(cell, found, name) for name in METRICS]
        if found:
            size = statistics.mean(run["summary"]["data_size"] for run in found)
            seconds = [run["summary"]["epoch_seconds"] for run in found if run["summary"]["epoch_seconds"] is not None]
            # What sees the future learns nothing step by step.
            shown_size = "–" if cell.strategy().sees_future else f"{size / 1e6:.2f}M"
            cost = [shown_size, f"{statistics.mean(seconds):.2f}" if seconds else "–", str(len(found))]
        else:
            cost = ["", "", "*not\N{NO-BREAK SPACE}run*"]
        # A mean and its deviation stay on one line.
        lines.append(
            f"| {cell.name} | {' | '.join(shown + cost)} |".replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
        )
    return "\n".join(lines) + "\n"


def _quoted(found: re.Match[str], runs: dict[str, list[dict[str, Any]]]) -> str:
    """One metric of a cell or all four: means over its seeds, or the paper's."""
    key = found["key"]
    names = METRICS if found["metric"] is None else (found["metric"],)
    if found["paper"]:
        return _joined([{cell.key: cell for cell in reversed(CELLS)}[key].paper[name][0] for name in names])
    if key not in runs:
        raise SystemExit(f"the notes name a cell that has not been run: {key}")
    summaries = [run["summary"] for run in runs[key]]
    own = [OURS.get(name, name) for name in names]
    # Not every run has every metric: some are older.
    means = [statistics.mean(summary[name] for summary in summaries if name in summary) for name in own]
    return _joined(means)


def _joined(figures: list[float]) -> str:
    return " / ".join(f"{figure:.2f}".replace("-", "−") for figure in figures)


def _figure(cell: Cell, runs: list[dict[str, Any]], name: str) -> str:
    paper = cell.paper.get(name)
    published = "–" if paper is None else f"{paper[0]:.2f}" + (f" ± {paper[1]:.2f}" if paper[1] is not None else "")
    found = [run["summary"][OURS.get(name, name)] for run in runs]
    values = [value for value in found if value is not None]
    if not values:
        return f"{published} / –"
    mean = statistics.mean(values)
    ours = f"**{mean:.2f}**" + (f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else "")
    return f"{published} / {ours}" + ("" if paper is None else f" / {mean - paper[0]:+.2f}")


def _provenance(runs: dict[str, list[dict[str, Any]]]) -> str:
    lines = ["## Where the figures come from\n", "| run | seed | commit | minutes | command |", "|---|---|---|---|---|"]
    for key, found in sorted(runs.items()):
        lines += [
            f"| {key} | {run['seed']} | `{run['commit']}` | {run['minutes']} | `{run['command']}` |" for run in found
        ]
    return "\n".join(lines) + "\n"
