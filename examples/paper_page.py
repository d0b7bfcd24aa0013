"""Writes `docs/results.md` and the table of README from the files in `results/`: `python examples/paper_page.py`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

from paper_results import BATCHES, METRICS, RESULTS, Key, Row, Runs, deviation, mean, read_runs, read_tables

REPOSITORY = Path(__file__).resolve().parents[1]

TITLES = {
    2: "Table 2: main comparison",
    3: "Table 3: replay sampling",
    4: "Table 4: deleted facts",
    5: "Table 5: added facts or all facts",
    6: "Table 6: number of replayed quads",
    7: "Table 7: length of the window",
    8: "Table 8: A-GEM",
}
NBSP = "\N{NO-BREAK SPACE}"  # a figure and the one in brackets stay on one line
# They learn from many times the data, or from the future, and are not compared with the others.
SKYLINES = ("FB", "FB_future")
ARROWS = {"C@10": "↑", "DF@10": "↓", "RRD": "↑", "A@10": "↑"}

# Rows of the table in README.
MAIN = [
    Key(dataset, "DE", cell)
    for dataset, replay in (("Wikidata12k", "frequency"), ("YAGO11k", "inverse"))
    for cell in ("FT", "TR", f"TIE {replay}", f"TIE {replay} warm-up", "Supersede", "FB", "FB_future")
]
# Rows that the paper does not have.
BEYOND = [
    Key(dataset, "DE", cell)
    for dataset, replay in (("Wikidata12k", "frequency"), ("YAGO11k", "inverse"))
    for cell in (
        *("nothing learnt", "FT warm-up", "TR warm-up", f"TIE {replay} warm-up", "FT rowwise", "TR rowwise"),
        *("FT 1-vs-all", "FT shared negatives", "FT pool of 1000", f"TIE {replay} pool of 1000"),
        *("Supersede", "Supersede contrast 4", "Supersede contrast 4 without warm-up"),
        "Supersede contrast 6 without warm-up",
    )
]
# The same strategies from base models that differ in their seed only.
BASES = [
    Key(dataset, "DE", f"{cell}{suffix}")
    for dataset, replay in (("Wikidata12k", "frequency"), ("YAGO11k", "inverse"))
    for cell in ("nothing learnt", "FT", "TR", f"TIE {replay}", "Supersede")
    for suffix in ("", " from base model 1", " from base model 2")
]

REGION = re.compile(r"(<!-- results -->\n).*?(<!-- end of results -->)", re.DOTALL)
# A figure in the notes: {dataset/model/cell, column}.
FIGURE = re.compile(r"\{(\w+)/(\w+)/([^,{}]+), ([^{}]+)\}")

HEAD = """\
# Results

> Rows with † were run before the core was rebuilt, with batches grouped by time. All others have the protocol of the
> released code, with uniform batches.

Test quads, in percent (RRD × 100), means over the incremental steps and then over seeds, with the standard deviation
over seeds where there are two or more. The paper's figure is in brackets; ≠ marks a difference of more than two
deviations, ours and the paper's added in squares. Seeds of a row share one base model; the spread of base models is a
[table of its own](#base-models). Bold is the best of a dataset and model; the skylines FB and FB_future are not
compared. The page is written by `python examples/paper_page.py` from `results/*.csv`, which has one line per run with
its seed, commit and command. Terms are in the [glossary](glossary.md), options in [](paper.md).
"""

BASE_MODELS = """\
One strategy from base models that differ in their seed only. The spread is larger than that over seeds of the steps.
"""


def table(keys: Sequence[Key], runs: Runs, paper: dict[Key, Row], seeds: bool = True) -> str:
    """A table of the rows that have been run.

    Args:
        keys: The rows.
        runs: All runs.
        paper: Published rows.
        seeds: Show the number of seeds, the deviation over them, and which figures differ from the paper's.
    """
    found = [key for key in keys if key in runs]
    values = {key: {name: mean(runs[key], name) for name in METRICS} for key in found}
    best = {}
    for key in found:
        group = [values[k] for k in found if k[:2] == key[:2] and k.cell not in SKYLINES]
        for name in METRICS:
            compared = [value for row in group if (value := row[name]) is not None]
            if len(compared) > 1:
                best[key[:2], name] = (min if ARROWS[name] == "↓" else max)(compared)
    header = ["dataset, model", "strategy", *(f"{name} {ARROWS[name]}" for name in METRICS), *["seeds"] * seeds]
    lines = [header, ["---"] * len(header)]
    for key in found:
        cells = []
        for name in METRICS:
            value = values[key][name]
            text = "–" if value is None else _number(value)
            if value is not None and key.cell not in SKYLINES and value == best.get((key[:2], name)):
                text = f"**{text}**"
            spread = deviation(runs[key], name) if seeds else None
            if spread is not None:
                text += f"{NBSP}±{NBSP}{_number(spread)}"
            row = paper.get(key)
            published = None if row is None else row.paper.get(name)
            if row is not None and published is not None:
                text += f"{NBSP}({_number(published)})"
                if (
                    value is not None
                    and spread is not None
                    and differs(value - published, spread, row.deviation.get(name))
                ):
                    text += f"{NBSP}≠"
            cells.append(text)
        name = key.cell if runs[key][0]["batches"] == BATCHES else f"{key.cell}{NBSP}†"
        lines.append([f"{key.dataset}, {key.model}", name, *cells, *[str(len(runs[key]))] * seeds])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def differs(difference: float, ours: float, published: float | None) -> bool:
    """More than two deviations of both. Rows without a published deviation are not judged."""
    return published is not None and abs(difference) > 2 * math.hypot(ours, published)


def render(results: Path = RESULTS) -> str:
    """The page of results."""
    runs, rows = read_runs(results), read_tables(results)
    parts = [HEAD]
    for number, title in TITLES.items():
        chosen = [row for row in rows if row.table == number]
        parts.append(f"## {title}\n")
        parts.append(table([row.key for row in chosen], runs, {row.key: row for row in chosen}))
        missing = [f"{row.key.dataset} {row.key.cell}" for row in chosen if row.key not in runs]
        if missing:
            parts.append(f"Not run: {', '.join(missing)}.\n")
    parts += ["## Base models\n", BASE_MODELS, table(BASES, runs, {})]
    parts += ["## Beyond the paper\n", table(BEYOND, runs, {})]
    notes = results / "notes.md"
    if notes.exists():
        parts.append(FIGURE.sub(lambda found: quote(found, runs), notes.read_text(encoding="utf-8")))
    return "\n".join(parts)


def quote(found: re.Match[str], runs: Runs) -> str:
    """A figure of the notes."""
    dataset, model, cell, column = found.groups()
    value = mean(runs.get(Key(dataset, model, cell), []), column)
    if value is None:
        raise SystemExit(f"the notes quote a figure that was not measured: {found[0]}")
    return _number(value)


def fill(page: Path, results: Path = RESULTS) -> str:
    """The text of README with its table."""
    paper = {row.key: row for row in read_tables(results) if row.table == 2}
    made = table(MAIN, read_runs(results), paper, seeds=False)
    return REGION.sub(lambda found: found[1] + made + found[2], page.read_text(encoding="utf-8"))


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def main() -> None:
    (REPOSITORY / "docs" / "results.md").write_text(render(), encoding="utf-8")
    readme = REPOSITORY / "README.md"
    readme.write_text(fill(readme), encoding="utf-8")


if __name__ == "__main__":
    main()
