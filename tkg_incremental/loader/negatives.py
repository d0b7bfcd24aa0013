"""Negative sampling: entities known at a quad's time that are no true answer of its query."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from tkg_incremental.data.lazy_quads import sample_indices
from tkg_incremental.data.timeline import Timeline
from tkg_incremental.loader.batch import Candidates
from tkg_incremental.ops import native
from tkg_incremental.ops.answers import SIDES, TIME, AnswerIndex, Side
from tkg_incremental.ops.keys import find_all
from tkg_incremental.seeding import make_generator

# A draw that hits a true answer is repeated at most this often, then masked. Only queries whose true answers are
# nearly all known entities come to that.
_MAX_DRAWS = 32
# A linear congruential generator makes the numbers of repeated draws, with the same bits in C and in torch.
_MULTIPLIER, _INCREMENT = 6364136223846793005, 1442695040888963407


class NegativeSampler:
    r"""Draws negatives uniformly from :math:`E_{known}(t) \setminus \{o : (s, r, o, t) \in D_{train}\}`, or from a pool
    of these entities.

    Negatives for ten thousand quads touch most entities of any graph. Drawn from a pool they touch the pool, so the
    cost of a step does not grow with the graph. The members of the pool that are known at ``t`` are
    ``entities[:num_known[t]]``.

    Args:
        timeline: The graph.
        stride: One entity in ``stride`` is a member of the pool, in the order of first appearance; 1 for all.
        start: Position of the first member, below ``stride``.
    """

    def __init__(self, timeline: Timeline, stride: int = 1, start: int = 0) -> None:
        if not 0 <= start < (limit := min(stride, timeline.num_entities)):
            raise ValueError(f"start must lie in 0 … {limit - 1} (got {start})")
        self.timeline, self.stride, self.start = timeline, stride, start

    @classmethod
    def with_pool(cls, timeline: Timeline, time: int, size: int | None, seed: int) -> NegativeSampler:
        """A sampler with a pool of at least ``size`` and fewer than ``2 × size`` of the entities known at ``time``; all
        of them if there are fewer or if ``size`` is :obj:`None`. Every entity is a member with the same probability."""
        stride = 1 if size is None else max(1, int(timeline.num_known[time]) // size)
        return cls(timeline, stride, int(torch.randint(stride, (), generator=make_generator(seed, "pool", time))))

    @property
    def has_all(self) -> bool:
        """Whether every entity is a member."""
        return self.stride == 1

    @cached_property
    def entities(self) -> Tensor:
        """``[P]`` the members by first appearance."""
        return self.timeline.order[self.start :: self.stride].contiguous()

    @cached_property
    def num_known(self) -> Tensor:
        """``[num_steps]`` number of members known at each step."""
        return (self.timeline.num_known + (self.stride - 1 - self.start)) // self.stride

    @cached_property
    def position(self) -> Tensor:
        """``[num_entities]`` the position of each entity in :attr:`entities`, -1 for those that are not members."""
        position = torch.full((self.timeline.num_entities,), -1, device=self.timeline.device)
        return position.index_copy_(0, self.entities, torch.arange(len(self.entities), device=position.device))

    def draw(self, quads: Tensor, count: int, generator: torch.Generator, shared: bool = False) -> Candidates:
        """Negatives for both queries of each quad.

        Args:
            quads: ``[B, 4]`` by ascending time.
            count: Number of negatives per query.
            generator: Source of randomness.
            shared: Draw one list per distinct time instead of one per query.
        """
        if count < 1:
            raise ValueError(f"count must be at least 1 (got {count})")
        if not shared:
            return self._draw_own(quads, count, generator)
        steps, list_of_quad = torch.unique_consecutive(quads[:, TIME], return_inverse=True)
        known = self.num_known[steps].clamp(min=1)
        places = torch.empty(len(steps), count, dtype=torch.long, device=quads.device).random_(generator=generator)
        return self.from_lists(quads, self.entities[places % known[:, None]], steps, list_of_quad)

    def draw_for_batch(self, quads: Tensor, count: int, generator: torch.Generator) -> Candidates:
        """One list of ``count`` distinct entities for all quads, of those that are known at the last of their times.

        Args:
            quads: ``[B, 4]`` by ascending time.
            count: Number of entities; all if fewer are known.
            generator: Source of randomness.
        """
        known = int(self.num_known[quads[-1, TIME]])
        places = sample_indices(known, min(count, known), generator).to(quads.device).sort().values
        return Candidates(self.entities[places][None], quads[-1:, TIME], for_batch=True)

    def _draw_own(self, quads: Tensor, count: int, generator: torch.Generator) -> Candidates:
        entities = quads.new_empty(2 * len(quads), count)
        entities.random_(generator=generator)
        missing = False
        for side, half in zip(SIDES, entities.view(2, len(quads), count), strict=True):
            missing |= self._choose(quads, side, half)
        mask = None
        if missing:
            mask = entities < 0
            # The first member of the pool is encoded at every step; any other entity may not be.
            entities.masked_fill_(mask, int(self.entities[0]))
        return Candidates(entities, quads[:, TIME].repeat(2), None, mask)

    def from_lists(
        self, quads: Tensor, lists: Tensor, time: Tensor, list_of_quad: Tensor, from_pool: bool = True
    ) -> Candidates:
        """Given lists ``[L, K]`` as the candidates of both queries; true answers are masked.

        Args:
            quads: ``[B, 4]``.
            lists: ``[L, K]`` entity ids.
            time: ``[L]`` the step of each list.
            list_of_quad: ``[B]`` the list of each quad, of the same step.
            from_pool: Whether the lists were drawn from the candidate pool.
        """
        unknown = self.timeline.column_of[lists] >= self.timeline.num_known[time, None]
        mask = unknown[list_of_quad].repeat(2, 1)
        # Each query has few answers: they are looked up in its list, not the list among the answers.
        count = self.timeline.num_entities
        listed, place = (lists + count * torch.arange(len(lists), device=lists.device)[:, None]).flatten().sort()
        for side, half in zip(SIDES, mask.view(2, len(quads), lists.size(1)), strict=True):
            row, entity = self._answers(side).expand(quads)
            answer, found = find_all(listed, list_of_quad[row] * count + entity)
            half[row[answer], place[found] % lists.size(1)] = True
        return Candidates(lists, time, list_of_quad.repeat(2), mask, from_pool)

    def _answers(self, side: Side) -> AnswerIndex:
        return self.timeline.answers(side, "train")

    def _choose(self, quads: Tensor, side: Side, numbers: Tensor) -> bool:
        """Turns random numbers ``[B, K]`` into entities in place, -1 where there is none; returns if there are such."""
        answers, time = self._answers(side), quads[:, TIME].contiguous()
        known, entities = self.num_known[time], self.entities
        if native.takes(numbers):
            missing = torch.zeros_like(time)
            index = answers.query_key(quads), answers.key, answers.first, answers.last
            sizes = len(answers), self.timeline.num_entities
            native.call("choose_negatives", entities, known, time, *index, *sizes, numbers, missing, *numbers.shape)
            return bool(missing.any())
        return _choose(quads, answers, entities, known, numbers)

    def __repr__(self) -> str:
        return f"NegativeSampler({len(self.entities)} of {self.timeline.num_entities} entities)"


def _choose(quads: Tensor, answers: AnswerIndex, entities: Tensor, known: Tensor, numbers: Tensor) -> bool:
    has_none = known == 0
    known = known.clamp(min=1)
    chosen = entities[numbers % known[:, None]]
    row, place = answers.contains(quads, chosen).nonzero(as_tuple=True)
    number = numbers[row, place]
    for _ in range(_MAX_DRAWS - 1):
        if not len(row):
            break
        number = number * _MULTIPLIER + _INCREMENT
        candidate = entities[((number >> 33) & 0x7FFFFFFF) % known[row]]
        chosen[row, place] = candidate
        # Integers from the mask, once: a device has to be waited for at each index by a mask.
        again = answers.contains(quads[row], candidate[:, None]).squeeze(1).nonzero().squeeze(1)
        row, place, number = row[again], place[again], number[again]
    chosen[row, place] = -1
    chosen.masked_fill_(has_none[:, None], -1)
    numbers.copy_(chosen)
    return bool(len(row)) or bool(has_none.any())
