"""Draws the figures of the documentation: ``python docs/figures.py runs/demo``, after ``examples/tie_de.py``."""

from __future__ import annotations

import sys
from pathlib import Path

from tkg_incremental import Result
from tkg_incremental.report import Changes, plot_alpha, plot_facts, plot_handovers, plot_metrics

STATIC = Path(__file__).parent / "_static"


def main(run_dir: Path) -> None:
    result, changes = Result.load(run_dir / "metrics.json"), Changes.load(run_dir / "changes.json")
    asked = [i for i, question in enumerate(changes.questions) if "president of" in str(question)]
    figures = {
        "facts": plot_facts(changes),
        "metrics": plot_metrics(result),
        "alpha": plot_alpha(result),
        "handovers": plot_handovers(changes),
        "question": plot_handovers(changes, next(i for i in asked if "United States" in str(changes.questions[i]))),
    }
    for name, figure in figures.items():
        figure.savefig(STATIC / f"{name}.png", dpi=90)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
