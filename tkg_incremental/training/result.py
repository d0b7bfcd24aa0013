"""What a run found."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tkg_incremental.metrics.functional import forgetting
from tkg_incremental.storage import atomic_write

#: What a table shows, in this order.
SUMMARY = ("C@10", "DF@10", "RRD", "A@10", "MRR", "F@10", "data_size", "epoch_seconds")


@dataclass
class Result:
    r"""The metrics of a run, step by step.

    Args:
        dataset: Name of the dataset.
        model: Name of the model.
        strategy: Name of the strategy.
        seed: Seed of the run.
        num_steps: Number of steps of the dataset.
        steps: Metrics of each incremental step.
        history: Losses and validation of every epoch, by step.
        alpha: Rows of :math:`\alpha` by step.
    """

    dataset: str
    model: str
    strategy: str
    seed: int
    num_steps: int
    steps: list[dict[str, Any]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    alpha: dict[int, list[float]] = field(default_factory=dict)

    def add(self, time: int, label: str, metrics: dict[str, float], alpha_row: Tensor, **extra: float) -> None:
        """Takes the metrics of a step."""
        self.alpha[time] = alpha_row.tolist()
        record: dict[str, Any] = {"time": time, "label": label, **metrics, **extra}
        record["F@10"] = forgetting(self.alpha_matrix, time)
        self.steps.append(record)

    @property
    def alpha_matrix(self) -> Tensor:
        """``[T, T]``, NaN where there is no value."""
        matrix = torch.full((self.num_steps, self.num_steps), float("nan"), dtype=torch.double)
        for time, row in self.alpha.items():
            matrix[time, : len(row)] = torch.tensor(row, dtype=torch.double)
        return matrix

    @property
    def summary(self) -> dict[str, float]:
        """Each metric's mean over the incremental steps that have it."""
        return {name: _mean([step.get(name, math.nan) for step in self.steps]) for name in SUMMARY}

    def to_dict(self) -> dict[str, Any]:
        alpha = [row + [math.nan] * (self.num_steps - len(row)) for row in self.alpha.values()]
        return _without_nan(
            {
                "dataset": self.dataset,
                "model": self.model,
                "strategy": self.strategy,
                "seed": self.seed,
                "summary": self.summary,
                "steps": self.steps,
                "alpha": alpha,
                "num_steps": self.num_steps,
                "history": self.history,
            }
        )

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Result:
        times = [step["time"] for step in state["steps"]]
        rows = [[math.nan if x is None else x for x in row] for row in state["alpha"]]
        steps, history = (
            [{k: math.nan if v is None else v for k, v in record.items()} for record in state[name]]
            for name in ("steps", "history")
        )
        return cls(
            **{name: state[name] for name in ("dataset", "model", "strategy", "seed", "num_steps")},
            steps=steps,
            history=history,
            alpha={time: row[: time + 1] for time, row in zip(times, rows, strict=True)},
        )

    def save(self, path: str | Path) -> None:
        """Writes JSON; what is not a number becomes ``null``."""
        with atomic_write(path) as file:
            file.write(json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False).encode())

    @classmethod
    def load(cls, path: str | Path) -> Result:
        return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))

    def __str__(self) -> str:
        title = f"{self.strategy} · {self.model} · {self.dataset} · seed {self.seed} · {len(self.steps)} steps"
        return f"{title}\n{format_table(list(SUMMARY), [list(self.summary.values())])}"


def show_number(value: float) -> str:
    """A number as tables have it; whole numbers as they are."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.3g}" if 0 < abs(value) < 0.1 else f"{value:.2f}"


def format_table(header: list[str], rows: list[list[Any]]) -> str:
    """A plain text table, numbers with two decimals."""

    def show(cell: Any) -> str:
        return show_number(cell) if isinstance(cell, float) else str(cell)

    table = [header, *([show(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(header))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
    return "\n".join([lines[0], "  ".join("─" * width for width in widths), *lines[1:]])


def _mean(values: list[float]) -> float:
    there = [value for value in values if value == value]
    return sum(there) / len(there) if there else math.nan


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nan(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_nan(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
