"""The metrics of a run."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tkg_incremental.metrics.functional import backward_transfer, forgetting, forward_transfer, omega_new, omega_old
from tkg_incremental.storage import atomic_write
from tkg_incremental.tables import format_table, html_table, without_nan

#: Columns of a summary table.
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
        exclude_ended: Whether candidates that have ended, by the train facts, ranked behind all others. Metrics of runs
            with and without it cannot be compared.
        steps: Metrics of each incremental step.
        history: Losses and validation of every epoch, by step.
        alpha: Rows of :math:`\alpha`: for each step, Hits@10 by evaluated step.
        before: Hits@10 on each step just before it was learnt.
        link_prediction: MRR and Hits@k of a model trained on all steps.
        time_prediction: Metrics of the last model about time: queries for the step, and MRR by kind of interval.
        calibration: How well probabilities of answers to test questions agree with frequencies, after the last step.
        type_constrained: MRR and Hits@k of test questions among ``"all"`` known entities and among candidates of the
            right type, ``"typed"``, by the last model.
        known_ranked_first: Share of train facts that the last model ranks first among candidates of the right type.
    """

    dataset: str
    model: str
    strategy: str
    seed: int
    num_steps: int
    exclude_ended: bool = False
    steps: list[dict[str, Any]] = field(default_factory=list, repr=False)
    history: list[dict[str, Any]] = field(default_factory=list, repr=False)
    alpha: dict[int, dict[int, float]] = field(default_factory=dict, repr=False)
    before: dict[int, float] = field(default_factory=dict, repr=False)
    link_prediction: dict[str, float] = field(default_factory=dict)
    time_prediction: dict[str, float] = field(default_factory=dict)
    calibration: dict[str, Any] = field(default_factory=dict, repr=False)
    type_constrained: dict[str, dict[str, float]] = field(default_factory=dict)
    known_ranked_first: float = math.nan

    def add(self, time: int, label: str, metrics: dict[str, float], alpha: dict[int, float], **extra: float) -> None:
        """Adds the metrics of a step."""
        self.alpha[time] = dict(alpha)
        record: dict[str, Any] = {"time": time, "label": label, **metrics, **extra}
        record["F@10"] = forgetting(self.alpha, time)
        self.steps.append(record)

    @property
    def summary(self) -> dict[str, float]:
        """Each metric's mean over the incremental steps that have it."""
        return {name: _mean([step.get(name, math.nan) for step in self.steps]) for name in SUMMARY}

    @property
    def transfer(self) -> dict[str, float]:
        r"""What steps do to each other: BWT, FWT, :math:`\Omega_{new}` and :math:`\Omega_{old}`."""
        found = {"BWT": backward_transfer(self.alpha), "FWT": forward_transfer(self.before)}
        return {**found, "omega_new": omega_new(self.alpha), "omega_old": omega_old(self.alpha)}

    def to_dict(self) -> dict[str, Any]:
        names = ["dataset", "model", "strategy", "seed", "num_steps", "exclude_ended", "summary", "transfer"]
        names += ["link_prediction", "time_prediction", "calibration", "type_constrained", "known_ranked_first"]
        names += ["steps", "history"]
        alpha = {str(time): {str(j): value for j, value in row.items()} for time, row in self.alpha.items()}
        before = {str(time): value for time, value in self.before.items()}
        return dict(without_nan({**{name: getattr(self, name) for name in names}, "before": before, "alpha": alpha}))

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Result:
        """Reads what :meth:`to_dict` made. Fields that earlier versions did not write keep their defaults."""
        found = {field.name: state[field.name] for field in fields(cls) if field.name in state}
        found |= {name: [_with_nan(record) for record in state[name]] for name in ("steps", "history")}
        found["alpha"] = {int(time): _by_step(row) for time, row in state["alpha"].items()}
        found["before"] = _by_step(state.get("before", {}))
        return cls(**_with_nan(found))

    def save(self, path: str | Path) -> None:
        """Writes JSON, with ``null`` for NaN."""
        with atomic_write(path) as file:
            file.write(json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False).encode())

    @classmethod
    def load(cls, path: str | Path) -> Result:
        return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))

    def __str__(self) -> str:
        found = self.link_prediction or self.summary
        return f"{self._title}\n{format_table(list(found), [list(found.values())])}"

    def _repr_html_(self) -> str:
        found = self.link_prediction or self.summary
        return html_table(list(found), [list(found.values())], self._title)

    @property
    def _title(self) -> str:
        excluded = " · ended facts excluded" if self.exclude_ended else ""
        return f"{self.strategy} · {self.model} · {self.dataset} · seed {self.seed} · {len(self.steps)} steps{excluded}"


def _mean(values: list[float]) -> float:
    there = [value for value in values if value == value]
    return sum(there) / len(there) if there else math.nan


def _with_nan(values: dict[Any, Any]) -> dict[Any, Any]:
    return {name: math.nan if value is None else value for name, value in values.items()}


def _by_step(values: dict[str, Any]) -> dict[int, float]:
    return {int(time): value for time, value in _with_nan(values).items()}
