"""The gate: whether an update may answer questions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tkg_incremental.answers.engine import AnswerEngine
from tkg_incremental.live.settings import check_table
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import REL, SIDES, TIME, Side, query_columns
from tkg_incremental.seeding import make_generator

# Candidates of a type that answers are ranked among, and scores that are held at once.
MAX_CANDIDATES, MAX_SCORES = 2_000, 4_000_000


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
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in values.items()}


def judge(report: GateReport, settings: GateSettings) -> GateReport:
    """The report with the reasons for a refusal."""
    reasons = []
    if not report.finite:
        reasons.append("some parameters are not finite")
    if report.learned < settings.learned:
        reasons.append(f"learned {report.learned:.1%} of the added facts (expected at least {settings.learned:.0%})")
    if report.kept < report.kept_before - settings.kept:
        reasons.append(
            f"kept {report.kept:.1%} of older facts, {report.kept_before:.1%} before (at most {settings.kept:.0%} less)"
        )
    if report.outranked < settings.outranked:
        reasons.append(f"outranked {report.outranked:.1%} of the ended facts (expected {settings.outranked:.0%})")
    if report.drift < settings.drift:
        reasons.append(f"nearest neighbours overlap by {report.drift:.1%} (expected at least {settings.drift:.0%})")
    values = {f.name: getattr(report, f.name) for f in fields(report)}
    return GateReport(**{**values, "reasons": tuple(reasons)})


class _Group(NamedTuple):
    """Quads of one relation and step, with the candidates of one side.

    Args:
        rows: ``[n]`` which quads.
        scores: ``[n, c]`` of the candidates.
        own: ``[n]`` place of each quad's answer.
        known: ``[n, c]`` whether a candidate is a known answer.
    """

    rows: Tensor
    scores: Tensor
    own: Tensor
    known: Tensor


@torch.no_grad()
def _groups(engine: AnswerEngine, quads: Tensor, side: Side) -> Iterator[_Group]:
    """Scores quads of one relation together, among at most ``MAX_CANDIDATES`` of the right type, the known answers and
    their own. If the vectors of entities depend on time, quads of one relation and step."""
    model = engine.model.eval()
    given, answer = query_columns(side)
    kinds = quads[:, [REL, TIME]]
    if model.encoder.static_entities:
        kinds = kinds * torch.tensor([1, 0])
    distinct, kind = torch.unique(kinds, dim=0, return_inverse=True)
    for number, rel in enumerate(distinct[:, 0].tolist()):
        rows = (kind == number).nonzero().flatten()
        some = quads[rows]
        step = int(some[0, TIME])
        members = engine.facts.type_members(rel, side)
        if len(members) > MAX_CANDIDATES:
            # The same ones before and after an update, as far as the type has not grown.
            members = members[torch.randperm(len(members), generator=make_generator(rel, side))[:MAX_CANDIDATES]]
        known = [
            list(engine.facts.known_answers(entity, rel, side, at)) for entity, at in some[:, [given, TIME]].tolist()
        ]
        everything = torch.tensor([entity for answers in known for entity in answers], dtype=torch.long)
        candidates = torch.unique(torch.cat([members, everything, some[:, answer]]))
        vectors = model.candidate_vectors(candidates.to(model.device), step)
        is_known = torch.zeros(len(rows), len(candidates), dtype=torch.bool)
        for row, answers in enumerate(known):
            is_known[row, torch.searchsorted(candidates, torch.tensor(answers, dtype=torch.long))] = True
        own = torch.searchsorted(candidates, some[:, answer].contiguous())
        for part in torch.arange(len(rows)).split(max(1, MAX_SCORES // len(candidates))):
            scores = model.score_all(some[part].to(model.device), side, vectors).cpu()
            yield _Group(rows[part], scores, own[part], is_known[part])


def type_ranks(engine: AnswerEngine, quads: Tensor) -> Tensor:
    """Ranks of both answers of quads among candidates of the right type without other known answers, ``[n, 4] → [2n]``,
    tail queries first."""
    ranks = torch.ones(2, len(quads), dtype=torch.double)
    for i, side in enumerate(SIDES):
        for rows, scores, place, known in _groups(engine, quads, side):
            own = scores.gather(1, place[:, None])
            # NaN is no rank: scores that are not finite rank last.
            better = ~(scores <= own) & ~known
            better.scatter_(1, place[:, None], ~own.isfinite())
            ranks[i, rows] = 1 + better.sum(1).double()
    return ranks.flatten()


def share_first(engine: AnswerEngine, quads: Tensor) -> float:
    """Share of answers that rank first; NaN without quads."""
    return float((type_ranks(engine, quads) <= 1).double().mean()) if len(quads) else math.nan


def share_outranked(engine: AnswerEngine, ended: Tensor) -> float:
    """Share of ended answers, over both queries, that score below every known answer of their query, or, if there is
    none, do not rank among the first ten of the right type. NaN without quads."""
    if not len(ended):
        return math.nan
    outranked = []
    for side in SIDES:
        for _, scores, place, known in _groups(engine, ended, side):
            own = scores.gather(1, place[:, None])
            lowest = scores.masked_fill(~known, torch.inf).min(1, keepdim=True).values
            below = (own < lowest).flatten()
            not_listed = ((scores > own).sum(1) >= 10) | (scores.size(1) <= 10)
            outranked.append(torch.where(known.any(1), below, not_listed))
    return float(torch.cat(outranked).double().mean())


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
