"""Runs that differ by their seed alone, taken together: means and standard deviations."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tkg_incremental.run_file import read_run_file
from tkg_incremental.training.result import Result

#: A mean and, of at least two values, their standard deviation (with n - 1).
Spread = tuple[float, float]


@dataclass
class Group:
    """Runs of the same configuration.

    Args:
        label: Their name.
        dataset: Name of their dataset.
        results: Their metrics.
        folders: Their folders.
    """

    label: str
    dataset: str
    results: list[Result]
    folders: list[Path]

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
    """Mean and standard deviation of the values that are numbers.

    >>> spread([1.0, 3.0, float("nan")])
    (2.0, 1.4142135623730951)
    """
    there = [value for value in values if not math.isnan(value)]
    if not there:
        return math.nan, math.nan
    return statistics.fmean(there), statistics.stdev(there) if len(there) > 1 else math.nan


def group_runs(runs: Iterable[tuple[Path, Result, dict[str, Any]]]) -> dict[str, list[Group]]:
    """Runs by dataset and configuration, in the order given.

    Args:
        runs: Folder, metrics and configuration (``config.json``) of each run.
    """
    groups: dict[str, Group] = {}
    for folder, result, config in runs:
        config = config or {"dataset": result.dataset, "model": result.model, "strategy": result.strategy}
        same = {name: value for name, value in config.items() if name not in ("seed", "base_seed")}
        key = json.dumps(same, sort_keys=True)
        # Facts of the same name may differ: their digests are part of the configuration.
        dataset = json.dumps([result.dataset, *(config.get(name) for name in ("variant", "facts", "held_out"))])
        label = f"{result.strategy} · {result.model}" + (" · ended facts excluded" if result.exclude_ended else "")
        group = groups.setdefault(key, Group(label, dataset, [], []))
        group.results.append(result)
        group.folders.append(folder)
    titles = _titles(list(groups.values()))
    found: dict[str, list[Group]] = {}
    for group in groups.values():
        group.dataset = titles[group.dataset]
        found.setdefault(group.dataset, []).append(group)
    for members in found.values():
        labels = [group.label for group in members]
        for group in members:  # the same names, but other options
            if labels.count(group.label) > 1:
                group.label += f" ({', '.join(map(str, group.folders))})"
    return found


def _titles(groups: Sequence[Group]) -> dict[str, str]:
    """A title for each distinct dataset: the name of the file for a user's own data."""
    titles: dict[str, str] = {}
    for group in groups:
        title = dataset_title(group.folders[0], group.results[0])
        others = [other for key, other in titles.items() if key != group.dataset]
        titles.setdefault(group.dataset, title if title not in others else f"{title} ({group.folders[0]})")
    return titles


def dataset_title(folder: Path, result: Result) -> str:
    """The name of a run's dataset; the name of the file for a user's own facts."""
    facts = read_run_file(folder).get("options", {}).get("facts")
    return Path(facts).name if facts else result.dataset
