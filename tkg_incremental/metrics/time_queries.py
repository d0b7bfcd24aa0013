r"""When does a fact hold? Ranks of steps, predicted intervals, and how well they agree with the true ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tkg_incremental.data.timeline import Timeline
from tkg_incremental.metrics.evaluator import eval_mode
from tkg_incremental.metrics.functional import hits_at, mean_reciprocal_rank
from tkg_incremental.ops.answers import FIRST, LAST, TAIL, TIME

if TYPE_CHECKING:
    from tkg_incremental.models import TKGModel

# Facts that are scored at all steps at a time.
_FACTS = 256


def ae_iou(true: Tensor, predicted: Tensor) -> Tensor:
    r"""The affinity-enhanced intersection over union of intervals, from `"Temporal Knowledge Base Completion: New
    Algorithms and Evaluation Protocols" <https://aclanthology.org/2020.emnlp-main.305>`_:

    .. math::
        \mathrm{aeIOU}(I, J) = \frac{\max(1, |I \cap J|)}{|\mathrm{hull}(I \cup J)|}

    Args:
        true: ``[n, 2]`` first and last step.
        predicted: ``[n, 2]`` first and last step.

    Returns:
        ``[n]`` values in 0 … 1.

    >>> ae_iou(torch.tensor([[2, 5], [0, 0]]), torch.tensor([[4, 7], [3, 3]]))
    tensor([0.3333, 0.2500])
    """
    first, last = torch.stack([true, predicted]).unbind(-1)
    common = last.amin(0) - first.amax(0) + 1
    hull = last.amax(0) - first.amin(0) + 1
    return common.clamp(min=1) / hull


def predicted_intervals(scores: Tensor, share: float = 0.5) -> Tensor:
    """Intervals from scores of steps, ``[n, T] → [n, 2]``: from the best step on, the better neighbour is added until
    the probability of the interval, by a softmax over the steps, is at least ``share``.

    >>> predicted_intervals(torch.tensor([[0.0, 2.0, 1.9, 0.0]]))
    tensor([[1, 2]])
    """
    probability = torch.nn.functional.pad(scores.double().softmax(1), (1, 1), value=-1.0)
    first = probability.argmax(1)
    last, rows = first.clone(), torch.arange(len(scores), device=scores.device)
    total = probability[rows, first]
    for _ in range(scores.size(1) - 1):
        before, after = probability[rows, first - 1], probability[rows, last + 1]
        grows = (total < share) & (torch.maximum(before, after) >= 0)
        if not grows.any():
            break
        left = grows & (before >= after)
        total = total + torch.where(grows, torch.maximum(before, after), 0.0)
        first, last = first - left.long(), last + (grows & ~left).long()
    return torch.stack([first, last], 1) - 1


def time_ranks(scores: Tensor, facts: Tensor, truth: Tensor) -> Tensor:
    """Ranks of the best true step of each fact, without other steps at which its triple holds; ties have the mean of
    the best and the worst rank.

    Args:
        scores: ``[n, T]`` scores of the steps.
        facts: ``[n, 5]`` head, rel, tail, first, last.
        truth: ``[n, T]`` whether the triple holds, in any split.
    """
    steps = torch.arange(scores.size(1), device=scores.device)
    own = (steps >= facts[:, FIRST, None]) & (steps <= facts[:, LAST, None])
    best = scores.masked_fill(~own, -torch.inf).amax(1, keepdim=True)
    others = ~(truth | own)
    above, ties = ((others & found).sum(1) for found in (scores > best, scores == best))
    return 1 + above + ties / 2


@torch.no_grad()
def time_prediction(
    model: TKGModel, timeline: Timeline, split: str = "test", last: int | None = None
) -> dict[str, float]:
    """Metrics of time queries (head, rel, tail, ?) in percent: MRR and Hits@1 of the best true step, and aeIOU.

    Args:
        model: The model.
        timeline: The graph.
        split: Its facts are asked for.
        last: Last step to rank; by default the last of the timeline.
    """
    last = timeline.num_steps - 1 if last is None else last
    asked, answers = timeline.split(split).between(0, last).facts, timeline.answers("tail")
    ranks, overlaps = [torch.empty(0, device=timeline.device)], [torch.empty(0, device=timeline.device)]
    with eval_mode(model):
        for facts in asked.split(_FACTS):
            quads = facts[:, : TIME + 1].repeat_interleave(last + 1, 0)
            quads[:, TIME] = torch.arange(last + 1, device=quads.device).repeat(len(facts))
            scores = model(quads).view(len(facts), last + 1)
            ranks.append(time_ranks(scores, facts, answers.contains(quads, quads[:, TAIL, None]).view_as(scores)))
            overlaps.append(ae_iou(facts[:, [FIRST, LAST]], predicted_intervals(scores)))
    found = torch.cat(ranks)
    return {
        "time MRR": mean_reciprocal_rank(found),
        "time Hits@1": hits_at(found, 1),
        "aeIOU": 100 * float(torch.cat(overlaps).double().mean()),
    }
