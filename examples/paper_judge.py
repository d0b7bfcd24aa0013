"""Which figures differ from the paper's by more than two deviations, and what explains it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import NamedTuple

from paper_layout import BASES, SKYLINES
from paper_results import METRICS, Key, Row, Runs, deviation, is_new, mean

Deviations = dict[tuple[str, str, str], float]


class Difference(NamedTuple):
    """A figure outside two deviations of both."""

    key: Key
    metric: str
    ours: float
    published: float
    reason: str


class Judge:
    r"""Compares our figures with the paper's.

    A figure differs if it is further from the paper's than :math:`2 \sqrt{s^2 + p^2}`. Two seeds give a poor estimate
    of a deviation, so :math:`s` is that over seeds, pooled over all rows of a dataset and model (:math:`p` where there
    are none). :math:`p` is the published deviation of the row; where no table prints one, that of the other rows,
    pooled. Seeds share a base model, in the paper as here, so neither contains the spread :math:`b` of base models. A
    figure within :math:`2 \sqrt{s^2 + p^2 + 2 b^2}` is explained by it.

    Args:
        runs: All runs.
        rows: The rows of the paper's tables.
        reasons: Known reasons by row and metric.
    """

    def __init__(self, runs: Runs, rows: list[Row], reasons: dict[tuple[Key, str], str] | None = None) -> None:
        self.runs, self.rows, self.reasons = runs, rows, reasons or {}
        new = {key: found for key, found in runs.items() if is_new(found)}
        self.seeds = pooled((key, name, deviation(found, name)) for key, found in new.items() for name in METRICS)
        self.bases = pooled((key, name, spread(new, keys, name)) for key, keys in BASES.items() for name in METRICS)
        printed = [(row.key, name, value) for row in rows for name, value in row.deviation.items()]
        self.printed = {(key, name): value for key, name, value in reversed(printed)}
        self.published = pooled((key, name, value) for key, name, value in printed if key.cell not in SKYLINES)

    def differs(self, row: Row, metric: str, with_bases: bool = False) -> bool:
        """Whether the row's figure differs from the published one.

        Args:
            row: The row.
            metric: The metric.
            with_bases: Allow for the spread of base models.
        """
        found = self.runs.get(row.key, [])
        ours, published = mean(found, metric), row.paper.get(metric)
        if ours is None or published is None:
            return False
        group = (row.key.dataset, row.key.model, metric)
        theirs = self.printed.get((row.key, metric), self.published.get(group, 0.0))
        base = self.bases.get(group, 0.0) if with_bases else 0.0
        return abs(ours - published) > 2 * math.hypot(self.seeds.get(group, theirs), theirs, base, base)

    def differences(self) -> list[Difference]:
        """All figures that differ, each once, with what explains them."""
        found: dict[tuple[Key, str], Difference] = {}
        for row in self.rows:
            for name in METRICS:
                place, ours = (row.key, name), mean(self.runs.get(row.key, []), name)
                if place not in found and ours is not None and self.differs(row, name):
                    reason = self.reasons.get(place) or self._reason(row, name)
                    found[place] = Difference(row.key, name, ours, row.paper[name], reason)
        return list(found.values())

    def _reason(self, row: Row, metric: str) -> str:
        if not is_new(self.runs[row.key]):
            return "† not run again yet"
        return "not explained" if self.differs(row, metric, with_bases=True) else "spread of base models"


def spread(runs: Runs, keys: Iterable[Key], name: str) -> float | None:
    """The standard deviation of a metric over rows; None with fewer than two."""
    values = [value for key in keys if (value := mean(runs.get(key, []), name)) is not None]
    return statistics.stdev(values) if len(values) > 1 else None


def pooled(values: Iterable[tuple[Key, str, float | None]]) -> Deviations:
    """The root of the mean of the squared deviations of each dataset, model and metric."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for key, name, value in values:
        if value is not None:
            groups.setdefault((key.dataset, key.model, name), []).append(value)
    return {group: math.sqrt(sum(v * v for v in found) / len(found)) for group, found in groups.items()}
