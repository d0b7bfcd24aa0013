"""Ranks the quads of a split with a model and computes the metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from tkg_incremental.communicator import LOCAL, Communicator
from tkg_incremental.data import Timeline
from tkg_incremental.metrics import functional as metric
from tkg_incremental.metrics.step_ranks import StepRanks, rank_side
from tkg_incremental.ops.answers import FIRST, LAST, SIDES, query_columns

if TYPE_CHECKING:
    from tkg_incremental.models import TKGModel

Candidates = Literal["known", "all"]


class Evaluator:
    r"""Computes C, A, DF, RRD and the metrics of link prediction on one split.

    The candidates of a query at step :math:`j` are the entities known at :math:`j`. Filtered ranks leave out every
    other true answer at :math:`j` in any split. DF and RRD use raw ranks; deleted answers are those that were true in
    the ``window`` steps before and are not true now, in any split.

    Args:
        timeline: The graph.
        split: ``"test"`` or ``"val"``.
        window: Number of past steps whose deleted facts count.
        per_query: Count the deleted facts of each distinct query once for DF, as the released code does, instead
            of once per quad, as the paper's equation does.
        average_from: First step that counts for A: 0 as in the paper; the released code begins with the base step.
        count_repeats: Count a quad as often as the split has it. The released code, and hence the paper's tables, count
            each distinct quad once.
        max_past_steps: Maximum number of past steps on which :math:`\alpha` is evaluated; :obj:`None` for all. See
            :func:`past_steps` for which ones.
        exclude_ended: Rank a candidate behind all others if train facts say that it has ended: its triple held in the
            ``window`` steps before and does not hold at the step that is asked for. A triple that begins again in
            another split is ranked last, too. Not for events, which may well happen again.
        communicator: Connects the processes that share the work. All of them have to make the same calls, and get
            the same bits.
    """

    def __init__(
        self,
        timeline: Timeline,
        split: str = "test",
        window: int = 10,
        per_query: bool = False,
        average_from: int = 0,
        count_repeats: bool = True,
        max_past_steps: int | None = 100,
        exclude_ended: bool = False,
        communicator: Communicator = LOCAL,
    ) -> None:
        if max_past_steps is not None and max_past_steps < 1:
            raise ValueError(f"max_past_steps must be at least 1 or None (got {max_past_steps})")
        self.timeline, self.split, self.window = timeline, split, window
        self.per_query, self.average_from, self.max_past_steps = per_query, average_from, max_past_steps
        self.communicator = communicator
        self.count_repeats, self.exclude_ended = count_repeats, exclude_ended
        self.table = timeline.split(split) if count_repeats else timeline.split(split).merged()

    @property
    def options(self) -> dict[str, object]:
        """The options that change metrics: runs that differ in them cannot be continued."""
        names = ("split", "window", "per_query", "average_from", "count_repeats", "max_past_steps")
        # Runs from before this option ranked all candidates by their scores.
        return {name: getattr(self, name) for name in names} | ({"exclude_ended": True} if self.exclude_ended else {})

    @torch.no_grad()
    def rank(
        self,
        model: TKGModel,
        step: int,
        deleted: bool = False,
        candidates: Candidates = "known",
        communicator: Communicator | None = None,
        limit: int | None = None,
        vectors: Tensor | None = None,
    ) -> StepRanks | None:
        """Ranks of the split's quads at one step; :obj:`None` if there are none.

        Args:
            model: The model.
            step: The step.
            deleted: Rank deleted answers, too.
            candidates: ``"known"``: the entities known at the step; ``"all"``: all entities.
            communicator: Connects the processes that share the work; the evaluator's by default.
            limit: For Hits@k alone: filtered ranks above this may be any others above it, and raw ranks mean nothing.
            vectors: Vectors of all entities in the order of the timeline, if they are the same at all steps; by default
                those of the candidates are encoded.
        """
        if candidates not in ("known", "all"):
            raise ValueError(f"candidates must be 'known' or 'all' (got {candidates!r})")
        quads = self.table.at(step)
        if len(quads) == 0:
            return None
        timeline = self.timeline
        former = timeline.truth.deleted(step, self.window) if deleted else quads[:0]
        ended = timeline.observed.deleted(step, self.window) if self.exclude_ended else None
        known = timeline.known_entities(step) if candidates == "known" else timeline.order
        with eval_mode(model):
            count = model.rank_counter(known, step, communicator or self.communicator, limit, vectors)
            given = count, len(known), former, ended
            return StepRanks.cat([rank_side(model, timeline, quads, side, *given) for side in SIDES])

    def current(self, model: TKGModel, step: int, k: int = 10) -> float:
        """C at one step: the metric of early stopping."""
        ranks = self.rank(model, step, limit=k)
        return metric.hits_at(ranks.filtered, k) if ranks else float("nan")

    def hits(self, model: TKGModel, first: int, last: int, k: int = 10, max_quads: int | None = None) -> float:
        """Hits@k over the pooled quads of the steps ``first … last``.

        Args:
            model: The model.
            first: First step.
            last: Last step.
            k: Ranks up to this one count.
            max_quads: Leave out steps, evenly, until at most this many quads are left; :obj:`None` for all steps.
        """
        return metric.hits_at(self._pooled_ranks(model, self._some_steps(first, last, max_quads), limit=k), k)

    def reciprocal_rank(self, model: TKGModel, first: int, last: int, max_quads: int | None = None) -> float:
        """MRR over the pooled quads of the steps ``first … last``, among all entities.

        Args:
            model: The model.
            first: First step.
            last: Last step.
            max_quads: Leave out steps, evenly, until at most this many quads are left; :obj:`None` for all steps.
        """
        ranks = self._pooled_ranks(model, self._some_steps(first, last, max_quads), "all")
        return metric.mean_reciprocal_rank(ranks)

    def _some_steps(self, first: int, last: int, max_quads: int | None) -> range:
        """Steps ``first … last``; every second, fourth, eighth, … of them if they have more quads than wanted."""
        facts, size = self.table.facts, self.timeline.num_steps + 1
        change = torch.bincount(facts[:, FIRST], minlength=size) - torch.bincount(facts[:, LAST] + 1, minlength=size)
        counts = torch.cumsum(change, 0)[first : last + 1]
        stride = 1
        while max_quads is not None and stride < len(counts) and int(counts[::stride].sum()) > max_quads:
            stride *= 2
        return range(first, last + 1, stride)

    def link_prediction(
        self, model: TKGModel, first: int = 0, last: int | None = None, candidates: Candidates = "known"
    ) -> dict[str, float]:
        """The usual metrics of temporal link prediction, over the pooled quads of the steps ``first … last``.

        Args:
            model: The model.
            first: First step.
            last: Last step; by default the last of the timeline.
            candidates: ``"known"``: the entities known at the quad's step; ``"all"``: all entities.
        """
        last = self.timeline.num_steps - 1 if last is None else last
        ranks = self._pooled_ranks(model, range(first, last + 1), candidates)
        hits = {f"Hits@{k}": metric.hits_at(ranks, k) for k in (1, 3, 10)}
        return {"MRR": metric.mean_reciprocal_rank(ranks), **hits}

    def mrr_by_interval(self, model: TKGModel, first: int = 0, last: int | None = None) -> dict[str, float]:
        """MRR over the pooled quads of the steps ``first … last``, by the kind of their facts' intervals: open to the
        left if they hold at step 0, open to the right if they hold at the last step of the timeline.

        Args:
            model: The model.
            first: First step.
            last: Last step; by default the last of the timeline.
        """
        end = self.timeline.num_steps - 1
        pooled: dict[str, list[Tensor]] = {}
        for step in range(first, (end if last is None else last) + 1):
            ranks = self.rank(model, step)
            if ranks is None:
                continue
            since, until = (self.table.holding(step)[:, column].repeat(2) for column in (FIRST, LAST))
            left, right = since == 0, until == end
            kinds = {"closed": ~(left | right), "open left": left & ~right, "open right": right & ~left}
            for name, which in {**kinds, "open": left & right}.items():
                pooled.setdefault(name, []).append(ranks.filtered[which])
        found = {f"MRR {name}": metric.mean_reciprocal_rank(torch.cat(parts)) for name, parts in pooled.items()}
        return {name: value for name, value in found.items() if value == value}

    def evaluate(self, model: TKGModel, step: int) -> tuple[dict[str, float], dict[int, float]]:
        r"""All metrics of the model after ``step``, and its row of :math:`\alpha`: step → Hits@10.

        Steps without quads, and past steps that are not sampled, have no entry in :math:`\alpha`.
        """
        alpha = self._past(model, step)
        now = self.rank(model, step, deleted=True)
        if now is None:
            return self._averages(alpha), alpha
        alpha[step] = metric.hits_at(now.filtered)
        new = now.filtered[self._asks_for_new_entity(step)]
        return {
            "C@10": alpha[step],
            "DF@10": metric.deleted_hits_at(now.deleted_once_per_query() if self.per_query else now.deleted),
            "RRD": metric.reciprocal_rank_difference(now.raw, now.deleted, now.deleted_row),
            **self._averages(alpha),
            **({"C@10 new entities": metric.hits_at(new)} if len(new) else {}),
            "MRR": metric.mean_reciprocal_rank(now.filtered),
            "Hits@1": metric.hits_at(now.filtered, 1),
            "Hits@3": metric.hits_at(now.filtered, 3),
            "MR": metric.mean_rank(now.filtered),
            "raw C@10": metric.hits_at(now.raw),
            "raw MRR": metric.mean_reciprocal_rank(now.raw),
        }, alpha

    def _past(self, model: TKGModel, step: int) -> dict[int, float]:
        group = self._step_group(model)
        steps = past_steps(step, self.max_past_steps)[group.rank :: group.size]
        ranked = ((j, ranks) for j, ranks in self._rank_steps(model, steps, limit=10) if ranks)
        found = [(j, metric.hits_at(ranks.filtered)) for j, ranks in ranked]
        mine = torch.tensor(found, dtype=torch.double, device=self.timeline.device).view(-1, 2)
        return {int(j): value for j, value in sorted(torch.cat(group.gather(mine)).tolist())}

    def _pooled_ranks(
        self, model: TKGModel, steps: Sequence[int], candidates: Candidates = "known", limit: int | None = None
    ) -> Tensor:
        """Filtered ranks of several steps, ascending: means have the same bits for any number of processes."""
        group = self._step_group(model)
        mine = self._rank_steps(model, steps[group.rank :: group.size], candidates, limit)
        none = torch.empty(0, device=self.timeline.device)
        gathered = group.gather(torch.cat([none, *(ranks.filtered for _, ranks in mine if ranks)]))
        return torch.cat(gathered).sort().values

    def _step_group(self, model: TKGModel) -> Communicator:
        """The processes that divide steps among themselves: all rank every step together if tables are sharded."""
        return LOCAL if model.is_sharded else self.communicator

    def _rank_steps(
        self, model: TKGModel, steps: Sequence[int], candidates: Candidates = "known", limit: int | None = None
    ) -> Iterator[tuple[int, StepRanks | None]]:
        """Ranks of steps of this process; of all processes together if they do not divide steps."""
        communicator = None if model.is_sharded else LOCAL
        vectors = None
        if model.static_entities and not model.is_sharded:
            # Once instead of at each step, whose copies would also scatter over the memory.
            with torch.no_grad(), eval_mode(model):
                vectors = model.candidate_vectors(self.timeline.order, 0)
        for step in steps:
            yield step, self.rank(model, step, False, candidates, communicator, limit, vectors)

    def _asks_for_new_entity(self, step: int) -> Tensor:
        """Which answers of a step's quads, tail and head queries, were not known at the base step."""
        quads = self.table.at(step)
        answers = torch.cat([quads[:, query_columns(side)[1]] for side in SIDES])
        return self.timeline.first_seen[answers] > self.timeline.base_step

    def _averages(self, alpha: dict[int, float]) -> dict[str, float]:
        """A from :attr:`average_from` on, and over the incremental steps, as in the paper's tables."""
        incremental = metric.average(alpha, self.timeline.base_step)
        return {"A@10": metric.average(alpha, self.average_from), "A@10 incremental": incremental}

    def __repr__(self) -> str:
        excluded = ", exclude_ended=True" if self.exclude_ended else ""
        return f"Evaluator({self.split}, window={self.window}, per_query={self.per_query}{excluded})"


def past_steps(step: int, limit: int | None = None) -> range:
    """The steps before ``step`` on which a model is evaluated: all, or if there are more than ``limit``, every second,
    fourth, eighth, … step from 0 on, such that at most ``limit`` are left.

    They are evenly spaced and depend on nothing else. The steps of a later call are among those of earlier calls or
    newer, so that the values of several models can be compared.

    Args:
        step: The current step.
        limit: Maximum number of steps; :obj:`None` for all.

    >>> list(past_steps(5)), list(past_steps(9, limit=4))
    ([0, 1, 2, 3, 4], [0, 4, 8])
    """
    stride = 1
    while limit is not None and len(range(0, step, stride)) > limit:
        stride *= 2
    return range(0, step, stride)


@contextmanager
def eval_mode(model: TKGModel) -> Iterator[None]:
    """Switches dropout and the like off, and restores the former mode of each module: models may share modules."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode
