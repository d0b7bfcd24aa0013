"""Runs that differ by their seed alone, taken together: means and standard deviations."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tkg_incremental.cli.errors import BadDataError
from tkg_incremental.cli.opened import open_config, open_result
from tkg_incremental.training import Result


class Spread(NamedTuple):
    """A mean and, of at least two values, their standard deviation (with n - 1)."""

    mean: float
    std: float


@dataclass
class Group:
    """Runs of the same configuration.

    Args:
        label: What to call them.
        results: What they found.
        folders: Where they are.
    """

    label: str
    results: list[Result]
    folders: list[Path]

    @property
    def dataset(self) -> str:
        return self.results[0].dataset

    def summary(self, metric: str) -> Spread:
        """The metric's mean over steps, over the runs."""
        return spread([result.summary[metric] for result in self.results])

    def at_step(self, metric: str) -> dict[int, Spread]:
        """The metric at each step, over the runs."""
        values: dict[int, list[float]] = {}
        for result in self.results:
            for step in result.steps:
                values.setdefault(step["time"], []).append(step.get(metric, math.nan))
        return {time: spread(found) for time, found in sorted(values.items())}


def spread(values: Sequence[float]) -> Spread:
    """Mean and standard deviation of those that are numbers.

    >>> spread([1.0, 3.0, float("nan")])
    Spread(mean=2.0, std=1.4142135623730951)
    """
    there = [value for value in values if not math.isnan(value)]
    if not there:
        return Spread(math.nan, math.nan)
    return Spread(statistics.fmean(there), statistics.stdev(there) if len(there) > 1 else math.nan)


def group_runs(folders: Sequence[Path]) -> list[Group]:
    """Runs by configuration, in the order given."""
    groups: dict[str, Group] = {}
    for folder in dict.fromkeys(folders):
        result = open_result(folder)
        if not result.steps:
            raise BadDataError(f"the run in '{folder}' has no steps yet")
        config = open_config(folder) or {"dataset": result.dataset, "model": result.model, "strategy": result.strategy}
        same = {name: value for name, value in config.items() if name not in ("seed", "base_seed")}
        key = json.dumps(same, sort_keys=True)
        label = f"{result.strategy} · {result.model} · {result.dataset}"
        group = groups.setdefault(key, Group(label, [], []))
        group.results.append(result)
        group.folders.append(folder)
    labels = [group.label for group in groups.values()]
    for group in groups.values():  # of the same names, yet not the same: their folders tell them apart
        if labels.count(group.label) > 1:
            group.label += f" ({', '.join(map(str, group.folders))})"
    return list(groups.values())
