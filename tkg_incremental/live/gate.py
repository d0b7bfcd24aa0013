"""The gate: whether an update may answer questions."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from tkg_incremental.live.graph_toml import check_table
from tkg_incremental.models.base import TKGModel


@dataclass(frozen=True)
class GateSettings:
    """The table ``[gate]`` of ``graph.toml``. Shares lie in 0 … 1.

    Args:
        learned: Minimum share of added facts that rank first.
        kept: Maximum drop of the share of older facts that rank first, against the current release.
        outranked: Minimum share of ended facts that rank below what replaced them.
        drift: Minimum overlap of the nearest neighbours of old entities.
        sample: Number of older facts that are ranked.
    """

    learned: float = 0.9
    kept: float = 0.02
    outranked: float = 0.9
    drift: float = 0.2
    sample: int = 500

    def __post_init__(self) -> None:
        for name in ("learned", "kept", "outranked", "drift"):
            if not 0 <= getattr(self, name) < math.inf:  # NaN would let everything pass
                raise ValueError(f"{name} must be at least 0 and finite (got {getattr(self, name)})")
        if self.sample < 1:
            raise ValueError(f"sample must be at least 1 (got {self.sample})")

    @classmethod
    def from_table(cls, table: Any) -> GateSettings:
        return cls(**check_table("gate", table, cls))


@dataclass(frozen=True)
class GateReport:
    """What the gate measured. NaN where there was nothing to measure.

    Args:
        learned: Share of added facts that rank first.
        kept: Share of older facts that rank first.
        kept_before: The same with the current release.
        outranked: Share of ended facts that rank below what replaced them, or not among the first ten.
        drift: Overlap of the nearest neighbours of old entities, before and after.
        finite: Whether all numbers are finite.
        reasons: Why the update must not be released; empty if it may.
    """

    learned: float
    kept: float
    kept_before: float
    outranked: float
    drift: float
    finite: bool
    reasons: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.reasons

    def to_dict(self) -> dict[str, Any]:
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(self).items()}


def judge(report: GateReport, settings: GateSettings) -> GateReport:
    """The report with the reasons for a refusal."""
    reasons = []
    if not report.finite:
        reasons.append("some parameters are not finite")
    if report.learned < settings.learned:
        reasons.append(f"learned {report.learned:.1%} of the added facts (expected at least {_text(settings.learned)})")
    if report.kept < report.kept_before - settings.kept:
        reasons.append(
            f"kept {report.kept:.1%} of older facts, {report.kept_before:.1%} before (at most {_text(settings.kept)} "
            "less)"
        )
    if report.outranked < settings.outranked:
        reasons.append(f"outranked {report.outranked:.1%} of the ended facts (expected {_text(settings.outranked)})")
    if report.drift < settings.drift:
        reasons.append(f"nearest neighbours overlap by {report.drift:.1%} (expected at least {_text(settings.drift)})")
    return replace(report, reasons=tuple(reasons))


def _text(threshold: float) -> str:
    """A threshold as it was set: 0.999 is not 100%."""
    return f"{100 * threshold:g}%"


@torch.no_grad()
def neighbour_overlap(before: Tensor, model: TKGModel, entities: Tensor, others: Tensor, k: int = 10) -> float:
    """Mean share of the ``k`` nearest neighbours of entities that are the same before and after.

    Args:
        before: ``[n, k]`` neighbours before, from :func:`neighbours`.
        model: The model after the update.
        entities: ``[n]``.
        others: ``[m]`` among which neighbours are searched.
        k: Number of neighbours.
    """
    if len(entities) == 0 or len(others) <= k:
        return math.nan
    after = neighbours(model, entities, others, k)
    return float(torch.stack([torch.isin(a, b).double().mean() for a, b in zip(after, before, strict=True)]).mean())


@torch.no_grad()
def neighbours(model: TKGModel, entities: Tensor, others: Tensor, k: int = 10) -> Tensor:
    """The ``k`` nearest of ``others`` by cosine similarity of the vectors at the first step, ``[n, k]``."""
    a, b = (
        torch.nn.functional.normalize(model.candidate_vectors(some.to(model.device), 0), dim=-1)
        for some in (entities, others)
    )
    similarity = a @ b.t()
    similarity[entities[:, None] == others[None]] = -torch.inf
    return similarity.topk(min(k, len(others)), dim=1).indices.cpu()
