"""Questions that a model is measured on before and after it learns. Everything but the scores is looked up once."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.known import StoreFacts
from tkg_incremental.live.store import FactStore
from tkg_incremental.metrics.evaluator import eval_mode
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import REL, SIDES, TIME, Side, query_columns

# Candidates of a type that answers are ranked among, and scores that are held at once.
MAX_CANDIDATES, MAX_SCORES = 2_000, 4_000_000


# Quads of one relation, and of one step if the vectors of entities depend on time: which ``[n]``, the candidates of a
# side ``[c]``, ascending, the place of each quad's answer ``[n]``, and those of known answers as pairs ``[2, m]`` of
# quad and candidate.
_Group = tuple[Tensor, Tensor, Tensor, Tensor]


class Questions:
    """Both questions of each quad, among at most ``MAX_CANDIDATES`` of the right type and the known answers.

    Args:
        quads: ``[n, 4]``.
        store: Known facts and types, as they are now.
        clock: The time axis.
        static: Whether the vectors of entities do not depend on time: then quads of all steps are scored together.
    """

    def __init__(self, quads: Tensor, store: FactStore, clock: GraphClock, static: bool) -> None:
        self.quads = quads
        kinds = quads[:, [REL, TIME]] * torch.tensor([1, 0 if static else 1])
        distinct, kind = torch.unique(kinds, dim=0, return_inverse=True)
        self._groups: dict[Side, list[_Group]] = {
            side: [
                _make_group((kind == number).nonzero().flatten(), quads, rel, side, store, clock)
                for number, rel in enumerate(distinct[:, 0].tolist())
            ]
            for side in SIDES
        }

    def __len__(self) -> int:
        return len(self.quads)

    @torch.no_grad()
    def _scores(self, model: TKGModel, side: Side) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Some quads of a group ``[n]``, the scores ``[n, c]`` of its candidates, the places of the quads' own answers
        ``[n]``, and which candidates are known answers ``[n, c]``."""
        with eval_mode(model):
            for rows, candidates, own, known in self._groups[side]:
                quads = self.quads[rows]
                vectors = model.candidate_vectors(candidates.to(model.device), int(quads[0, TIME]))
                is_known = torch.zeros(len(quads), len(candidates), dtype=torch.bool)
                is_known[known[0], known[1]] = True
                for part in torch.arange(len(quads)).split(max(1, MAX_SCORES // len(candidates))):
                    scores = model.score_all(quads[part].to(model.device), side, vectors).cpu()
                    yield rows[part], scores, own[part], is_known[part]

    def ranks(self, model: TKGModel) -> Tensor:
        """Ranks of both answers without other known answers, ``[2n]``, tail queries first."""
        ranks = torch.ones(2, len(self), dtype=torch.double)
        for i, side in enumerate(SIDES):
            for rows, scores, place, known in self._scores(model, side):
                own = scores.gather(1, place[:, None])
                # NaN is no rank: scores that are not finite rank last.
                better = ~(scores <= own) & ~known
                better.scatter_(1, place[:, None], ~own.isfinite())
                ranks[i, rows] = 1 + better.sum(1).double()
        return ranks.flatten()

    def share_first(self, model: TKGModel) -> float:
        """Share of answers that rank first; NaN without quads."""
        return float((self.ranks(model) <= 1).double().mean()) if len(self) else math.nan

    def share_outranked(self, model: TKGModel) -> float:
        """Share of answers, over both queries, that score below every known answer of their query, or, if there is
        none, do not rank among the first ten. NaN without quads."""
        if not len(self):
            return math.nan
        outranked = []
        for side in SIDES:
            for _, scores, place, known in self._scores(model, side):
                own = scores.gather(1, place[:, None])
                lowest = scores.masked_fill(~known, torch.inf).min(1, keepdim=True).values
                below = (own < lowest).flatten()
                not_listed = ((scores > own).sum(1) >= 10) | (scores.size(1) <= 10)
                outranked.append(torch.where(known.any(1), below, not_listed))
        return float(torch.cat(outranked).double().mean())


def _make_group(rows: Tensor, quads: Tensor, rel: int, side: Side, store: FactStore, clock: GraphClock) -> _Group:
    given, answer = query_columns(side)
    some, facts = quads[rows], StoreFacts(store, clock)
    known = [list(facts.answers(entity, rel, side, step)) for entity, step in some[:, [given, TIME]].tolist()]
    entities = torch.tensor([entity for answers in known for entity in answers], dtype=torch.long)
    quad_of = torch.arange(len(rows)).repeat_interleave(torch.tensor([len(answers) for answers in known]))
    members = facts.some_members(rel, side, MAX_CANDIDATES)
    candidates = torch.unique(torch.cat([members, entities, some[:, answer]]))
    own = torch.searchsorted(candidates, some[:, answer].contiguous())
    return rows, candidates, own, torch.stack([quad_of, torch.searchsorted(candidates, entities)])
