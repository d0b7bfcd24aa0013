"""The features of an answer that a calibration turns into a probability."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tkg_incremental.answers.facts import KnownFacts, Marks
from tkg_incremental.ops.answers import Side

#: Features that a probability is fitted on, and how many of them compare the score with those of other candidates.
NUM_FEATURES, NUM_OWN = 13, 2
_OPPOSITE: dict[Side, Side] = {"head": "tail", "tail": "head"}
# A score of one unit in the softmax of the features.
_SHARPNESS = 10.0
# Up to this number of candidates, ranks are counted one by one instead of sorting all candidates.
_COUNTED = 50


def answer_features(
    facts: KnownFacts, rel: int, side: Side, scores: Tensor, marks: Marks, unit: float, chosen: Tensor | None = None
) -> Tensor:
    """Features of the candidates of queries about one relation, ``[*, n] → [*, n, 14]``, or of those at the places
    ``chosen``, ``[*, k]``.

    The first three features compare a candidate with those whose facts are neither known nor over: its log-odds in the
    softmax, its margin to the best of them and the logarithm of its rank. Then its score, and whether the fact is known
    at another time. The next four are the same for all candidates: whether the given entity ever was on its side of the
    relation, whether the query has known answers, the usual number of answers and the number of candidates (both as
    logarithms). Last, four products: the log-odds count less if the given entity does not fit or if there is a known
    answer, a known answer rules out others only where there usually is one, and a given entity that does not fit is odd
    only where entities usually have many answers over time: a country that never had a president, not a person who
    never was one.

    The last column is the limit of the probability of an unknown candidate, which is not fitted: see
    :func:`answer_limit`.

    Args:
        facts: Known facts and types.
        rel: The relation.
        side: The side that is asked for.
        scores: ``[*, n]`` scores of the candidates.
        marks: What is known about them.
        unit: Unit of the scores, as of the calibration.
        chosen: Places of candidates; all by default.
    """
    if chosen is None:
        chosen = torch.arange(scores.size(-1)).expand(scores.shape)
    everything = scores.double() * (_SHARPNESS / unit)
    scores = everything.gather(-1, chosen)
    everything = everything.masked_fill(~marks.open, -torch.inf)
    others, is_known = everything.gather(-1, chosen), marks.known.gather(-1, chosen)
    before = (marks.other & marks.open).gather(-1, chosen).double()
    fits, has_known = (
        some.any(-1, keepdim=True).double().expand(chosen.shape) for some in (marks.known | marks.other, marks.known)
    )
    if chosen.size(-1) <= _COUNTED:  # sorting costs more than counting for each
        rank = torch.stack([(everything > score[..., None]).sum(-1) for score in scores.unbind(-1)], -1)
    else:
        rank = torch.searchsorted(-everything.sort(-1, descending=True).values, -scores)
    top = everything.topk(min(2, everything.size(-1)), dim=-1).values
    rival = torch.where(is_known | (scores < top[..., :1]), top[..., :1], top[..., -1:])
    # The softmax over the unknown candidates without the candidate itself.
    total = torch.logsumexp(everything, -1, keepdim=True)
    rest = total + torch.log1p(-(others - total).exp().nan_to_num(0.0).clamp(max=1 - 1e-9))
    odds, margin = ((scores - other).clamp(-20, 20).nan_to_num(posinf=20.0) for other in (rest, rival))
    asked, other = (len(facts.type_members(rel, end)) for end in (side, _OPPOSITE[side]))
    per_query, size, usual = (
        torch.full_like(scores, math.log(value))
        for value in (
            facts.answers_per_query(rel, side),
            everything.size(-1),
            max(1, asked) / max(1, other),
        )
    )
    columns = [odds, margin, (rank.double() + 1).log(), scores, before, fits, has_known, per_query, size]
    columns += [fits * odds, has_known * odds, has_known * per_query, (1 - fits) * usual]
    columns.append(answer_limit(facts, rel, side, marks)[..., None].expand(chosen.shape))
    return torch.stack(columns, dim=-1)


def answer_limit(facts: KnownFacts, rel: int, side: Side, marks: Marks) -> Tensor:
    """``[*]`` the expected number of answers of questions beyond the known ones: no candidate is more probable.

    There is no limit (infinity) for a question without a known answer if the given entity never was on its side of the
    relation, or if facts may have been left out, as in runs. Arguments as of :func:`answer_features`.
    """
    further, number = facts.further_answers(rel, side), marks.known.sum(-1)
    is_limited = (marks.known | marks.other).any(-1) if marks.is_closed else number > 0
    return further[number.clamp(max=len(further) - 1)].masked_fill(~is_limited, torch.inf)
