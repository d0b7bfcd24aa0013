"""Writes `docs/results.md` and the table of README from the files in `results/`: `python examples/paper_page.py`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from paper_judge import Judge
from paper_layout import ADAGRAD_ROWS, BASES, BEYOND, BEYOND_ROWS, MAIN_ROWS, SKYLINES, TABLES, Layout, by_strategy
from paper_results import (
    METRICS,
    RESULTS,
    Key,
    Row,
    Runs,
    deviation,
    is_new,
    mean,
    read_reasons,
    read_runs,
    read_tables,
)

REPOSITORY = Path(__file__).resolve().parents[1]

NBSP = "\N{NO-BREAK SPACE}"  # a figure and the one in brackets stay on one line
ARROWS = {"C@10": "↑", "DF@10": "↓", "RRD": "↑", "A@10": "↑"}
REGION = re.compile(r"(<!-- results -->\n).*?(<!-- end of results -->)", re.DOTALL)
# A figure in the notes: {dataset/model/cell, column}.
FIGURE = re.compile(r"\{(\w+)/(\w+)/([^,{}]+), ([^{}]+)\}")

HEAD = """\
# Results

The tables of the [paper](paper.md), run again, and rows beyond it. Terms are in the [glossary](glossary.md).
`python examples/paper_page.py` writes this page from `results/*.csv`, one line per run with its seed, commit and
command.
"""

LEGEND = """\
## How to read the tables

Test quads, in percent (RRD × 100): means over the incremental steps, then over seeds.

- **± 0.25** is the standard deviation over seeds, **(31.90)** the paper's figure.
- **≠** marks a difference of more than two deviations, ours and the paper's added in squares ([list](#differences)).
- **Bold** is the best of a dataset and model. The skylines FB and FB_future are not compared.
- **†** marks runs with batches grouped by time. All others have uniform batches, as the released code.
- *Warm-up*: new entities first learn their own facts. Supersede uses it unless the row says otherwise.

All cells and seeds of a dataset and model share one base model, as in the released code. A@10 is the mean over the
incremental steps: the paper defines it over all steps, but its tables agree only with this one.
"""

BASE_MODELS = """\
## Base models

Seeds of a row share one base model. Here are base models that differ in their seed only, 0 / 1 / 2. They differ by more
than the seeds of a row do.
"""

OTHER_SETTINGS = """\
## Other settings

The same strategies, models and metrics with the settings that models of product form need: Adagrad with rate 0.1,
batches of 1,000 quads, reciprocal relations, N3 of 0.1 (DE), 200 negatives, warm-up, and four epochs per step instead
of up to 100, after a base model of six. TIE and Supersede replay 8,000 quads of the whole past. Supersede has half the
contrast and a weight of 3 for the unlikelihood of all deleted facts, which were chosen on validation quads.
"""

DIFFERENCES = """\
## Differences

Ours less the paper's, for each figure outside two deviations. Our deviation is pooled over the rows of a dataset and
model. *Spread of base models*: inside two deviations if it is counted for both.
"""


def table(layout: Layout, keys: Sequence[Key], runs: Runs, paper: dict[Key, Row], judge: Judge | None = None) -> str:
    """A table of the rows that have been run.

    Args:
        layout: Its columns.
        keys: The rows.
        runs: All runs.
        paper: Published rows.
        judge: Marks figures that differ from the paper's. Without one, the table has no seeds and deviations either.
    """
    found = [key for key in keys if key in runs]
    best = _best(found, runs)
    header = [*layout.columns, *(f"{name} {ARROWS[name]}" for name in layout.metrics), *["seeds"] * (judge is not None)]
    lines = [header, ["---"] * len(header)]
    before = ""
    for key in found:
        group, *names = layout.name(key)
        # The first column groups the rows of the page; rows of README stand alone.
        line = ["" if judge and group == before else group, *names]
        before = group
        if not is_new(runs[key]):
            line[-1] = f"{line[-1]}{NBSP}†".strip()
        for name in layout.metrics:
            is_best = key.cell not in SKYLINES and mean(runs[key], name) == best.get((*key[:2], name))
            line.append(_figure(name, runs[key], is_best, paper.get(key), judge))
        lines.append([*line, *[str(len(runs[key]))] * (judge is not None)])
    return _markdown(lines)


def _figure(name: str, runs: list[dict[str, str]], is_best: bool, row: Row | None, judge: Judge | None) -> str:
    """Mean ± deviation (published figure) of a metric."""
    value = mean(runs, name)
    if value is None:
        return "–"
    text = f"**{_number(value)}**" if is_best else _number(value)
    if judge and (spread := deviation(runs, name)) is not None:
        text += f"{NBSP}±{NBSP}{_number(spread)}"
    if row and name in row.paper:
        text += f"{NBSP}({_number(row.paper[name])})"
        if judge and judge.differs(row, name):
            text += f"{NBSP}≠"
    return text


def _best(keys: Sequence[Key], runs: Runs) -> dict[tuple[str, str, str], float]:
    """The best figure of each dataset, model and metric, where there are several."""
    best = {}
    for group in {key[:2] for key in keys}:
        compared = [runs[key] for key in keys if key[:2] == group and key.cell not in SKYLINES]
        for name in METRICS:
            values = [value for found in compared if (value := mean(found, name)) is not None]
            if len(values) > 1:
                best[(*group, name)] = (min if ARROWS[name] == "↓" else max)(values)
    return best


def bases(runs: Runs) -> str:
    """The table of base models."""
    lines = [["dataset, model", "strategy", *METRICS], ["---"] * (2 + len(METRICS))]
    for key, keys in BASES.items():
        found = [runs[k] for k in keys if k in runs]
        marks = ["" if is_new(each) else f"{NBSP}†" for each in found]
        figures = [
            " / ".join(_number(mean(each, name) or 0.0) + mark for each, mark in zip(found, marks, strict=True))
            for name in METRICS
        ]
        lines.append([*by_strategy(key), *figures])
    return _markdown(lines)


def differences(judge: Judge) -> str:
    """The table of figures that differ from the paper's, one line for each row and reason."""
    texts: dict[tuple[Key, str], list[str]] = {}
    for each in judge.differences():
        difference = each.ours - each.published
        sign = "+" if difference > 0 else ""
        texts.setdefault((each.key, each.reason), []).append(f"{each.metric}{NBSP}{sign}{_number(difference)}")
    rows = [[*by_strategy(key), ", ".join(found), reason] for (key, reason), found in texts.items()]
    rows.sort(key=lambda row: row[0])
    return _markdown([["dataset, model", "strategy", "difference", "reason"], ["---"] * 4, *rows])


def render(results: Path = RESULTS) -> str:
    """The page of results."""
    runs, rows = read_runs(results), read_tables(results)
    judge = Judge(runs, rows, read_reasons(results))
    parts = [HEAD]
    notes = results / "notes.md"
    if notes.exists():
        parts.append(FIGURE.sub(lambda found: quote(found, runs), notes.read_text(encoding="utf-8")))
    parts.append(LEGEND)
    for number, layout in TABLES.items():
        chosen = {row.key: row for row in rows if row.table == number}
        parts += [f"## {layout.title}\n", table(layout, list(chosen), runs, chosen, judge)]
        missing = [", ".join(layout.name(key)) for key in chosen if key not in runs]
        if missing:
            parts.append(f"Not run: {'; '.join(missing)}.\n")
    parts += [BASE_MODELS, bases(runs), f"## {BEYOND.title}\n", table(BEYOND, BEYOND_ROWS, runs, {}, judge)]
    if any(key in runs for key in ADAGRAD_ROWS):
        parts += [OTHER_SETTINGS, table(BEYOND, ADAGRAD_ROWS, runs, {}, judge)]
    parts += [DIFFERENCES, differences(judge)]
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
    made = table(BEYOND, MAIN_ROWS, read_runs(results), paper)
    return REGION.sub(lambda found: found[1] + made + found[2], page.read_text(encoding="utf-8"))


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _markdown(lines: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    (REPOSITORY / "docs" / "results.md").write_text(render(), encoding="utf-8")
    readme = REPOSITORY / "README.md"
    readme.write_text(fill(readme), encoding="utf-8")


if __name__ == "__main__":
    main()
