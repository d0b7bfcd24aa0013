from collections import Counter
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import expand
from timelines import facts_tensor, make_interval_timeline
from torch import Tensor

from tkg_incremental.data import LazyQuads, Timeline
from tkg_incremental.loader import Candidates, NegativeSampler, TKGBatch, TKGLoader
from tkg_incremental.strategies import CrossEntropy, DeletedFacts, Losses, Replay, Replayed, Term, View

TIMELINE = make_interval_timeline(
    [(e, 0, (e + 1) % 40, e % 5, e % 5 + 3) for e in range(40)], num_entities=40, num_relations=1, num_steps=9
)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def numbered(size: int, times: int = 3) -> Tensor:
    """Quads with a number of their own each."""
    index = torch.arange(size)
    return torch.stack([index, index * 0, index, index % times], dim=1)


@dataclass
class Fixed(View):
    """The quads it is given."""

    quads: Tensor | LazyQuads

    def select(self, timeline: Timeline, time: int, generator: torch.Generator) -> Tensor | LazyQuads:
        return self.quads


class Plain(Term):
    """A term that keeps the quads it draws for."""

    def __init__(self, quads: Tensor | LazyQuads | None) -> None:
        self.view = None if quads is None else Fixed(quads)
        self.asked: list[Tensor] = []

    def draw(self, quads: Tensor, sampler: NegativeSampler, generator: torch.Generator) -> Candidates | None:
        self.asked.append(quads)
        return None

    def losses(self, encoded: object, context: object) -> Losses:
        return {}


def loader_of(views: list[Tensor | LazyQuads | None], batch_size: int, seed: int = 0, **options: int) -> TKGLoader:
    terms = [Plain(quads) for quads in views]
    return TKGLoader(TIMELINE, 5, terms, NegativeSampler(TIMELINE), seeded(seed), batch_size, **options)


def sizes_of(epoch: list[TKGBatch]) -> list[list[int]]:
    return [[0 if term is None else len(term.quads) for term in batch.terms] for batch in epoch]


VIEWS = st.lists(st.one_of(st.none(), st.integers(0, 30)), min_size=1, max_size=4)


@given(VIEWS, st.integers(1, 12), st.integers(0, 3), st.booleans(), st.integers(1, 4))
def test_an_epoch(sizes: list[int | None], batch_size: int, seed: int, short_last: bool, together: int) -> None:
    views = [None if size is None else numbered(size) for size in sizes]
    loader = loader_of(views, batch_size, seed, short_last=short_last, together=together)  # type: ignore[arg-type]
    epoch = list(loader)
    total = sum(size or 0 for size in sizes)
    assert loader.num_quads == total
    assert len(epoch) == len(loader) == -(-total // batch_size)
    for batch in epoch:
        assert len(batch.terms) == len(views)
        assert len(batch) >= 1
        for term in batch:
            assert len(term.quads) > 0
            assert term.weight == 1
            time = term.quads[:, 3]
            assert (time[1:] >= time[:-1]).all()
    for i, view in enumerate(views):
        parts = [batch.terms[i] for batch in epoch]
        seen = sorted(number for part in parts if part is not None for number in part.quads[:, 0].tolist())
        assert seen == list(range(0 if view is None else len(view)))  # every quad once
    lengths = sizes_of(epoch)
    if not short_last:
        assert all(sum(row) <= batch_size for row in lengths)
        for column in zip(*lengths, strict=True):
            assert max(column) - min(column) <= 1  # every term has its share of each batch
        totals = [sum(row) for row in lengths]
        assert not totals or max(totals) - min(totals) <= 1


@given(st.integers(1, 60), st.integers(1, 12))
def test_only_the_last_batch_is_short(size: int, batch_size: int) -> None:
    epoch = list(loader_of([numbered(size), None], batch_size, short_last=True))
    assert [len(batch) for batch in epoch[:-1]] == [batch_size] * (len(epoch) - 1)
    assert len(epoch[-1]) == (size - 1) % batch_size + 1


def test_batches_of_equal_size() -> None:
    # Four terms of three quads and two batches: the terms with two quads alternate.
    assert sizes_of(list(loader_of([numbered(3)] * 4, 6))) == [[2, 1, 2, 1], [1, 2, 1, 2]]
    assert [len(batch) for batch in loader_of([numbered(10)], 6)] == [5, 5]


@pytest.mark.parametrize("virtual", [False, True])
def test_batches_of_few_steps(virtual: bool) -> None:
    facts = [(e, 0, e, e % 9, e % 9) for e in range(36)]
    view = LazyQuads(facts_tensor(facts)) if virtual else torch.tensor([fact[:4] for fact in facts])
    for together, steps in ((4, 1), (2, 2), (8, 1)):
        loader = loader_of([view], 4, together=together)
        epochs = [[term.quads[:, [0, 3]].tolist() for batch in loader for term in batch] for _ in range(2)]
        for epoch in epochs:
            assert sorted(quad for batch in epoch for quad in batch) == [[e, e % 9] for e in range(36)]
            assert max(len({time for _, time in batch}) for batch in epoch) == steps
        assert epochs[0] != epochs[1]  # other groups in another order


def test_virtual_quads() -> None:
    facts = [(0, 0, 1, 2, 4), (1, 0, 2, 0, 6), (2, 0, 3, 6, 6)]
    lazy = LazyQuads(facts_tensor(facts))
    epoch = list(loader_of([lazy], 4))
    found = torch.cat([term.quads for batch in epoch for term in batch])
    assert sorted(map(tuple, found.tolist())) == expand(facts)
    visits = loader_of([lazy.visits(2)], 4)
    assert visits.num_quads == 2 + 2 + 1
    steps = set()
    for _ in range(40):
        quads = torch.cat([term.quads for batch in visits for term in batch]).tolist()
        assert Counter(quad[0] for quad in quads) == {0: 2, 1: 2, 2: 1}
        steps |= {tuple(quad) for quad in quads}
    assert steps == set(expand(facts))


def test_uniform_shuffling() -> None:
    """Each quad is in each batch, and beside each other quad, equally often."""
    loader, times = loader_of([numbered(6, times=6)], 2), 3000
    batches: Counter[tuple[int, int]] = Counter()
    pairs: Counter[tuple[int, ...]] = Counter()
    for _ in range(times):
        for number, batch in enumerate(loader):
            quads = next(iter(batch)).quads[:, 0].tolist()
            batches.update((quad, number) for quad in quads)
            pairs[tuple(sorted(quads))] += 1
    for counts, cells, total in ((batches, 18, 6 * times), (pairs, 15, 3 * times)):
        mean = total / cells
        assert len(counts) == cells
        assert sum((count - mean) ** 2 / mean for count in counts.values()) < 45  # far above the 99.9% quantiles


def test_generators() -> None:
    first, same, other = ([batch.terms[0].quads for batch in loader_of([numbered(50)], 20, seed)] for seed in (0, 0, 1))  # type: ignore[union-attr]
    assert all(map(torch.equal, first, same))
    assert not all(map(torch.equal, first, other))
    loader = loader_of([numbered(50)], 20)
    one, two = (torch.cat([term.quads for batch in loader for term in batch]) for _ in range(2))
    assert not torch.equal(one, two)  # every epoch is shuffled


def test_terms_draw_for_their_own_quads() -> None:
    loader = loader_of([numbered(10), None, numbered(4)], 7)
    epoch = list(loader)
    for i, term in enumerate(loader.terms):
        assert isinstance(term, Plain)
        parts = [batch.terms[i] for batch in epoch]
        assert all(map(torch.equal, term.asked, [part.quads for part in parts if part is not None]))


def test_candidates_of_real_terms() -> None:
    terms = [CrossEntropy(negatives=7), DeletedFacts(), Replay(Replayed(3, 20), negatives=4)]
    loader = TKGLoader(TIMELINE, 5, terms, NegativeSampler(TIMELINE), seeded(), 16)
    for batch in loader:
        assert batch.sampler is loader.sampler
        for term, part in zip(terms, batch.terms, strict=True):
            if part is not None:
                count = {CrossEntropy: 7, Replay: 4}.get(type(term))
                assert (part.candidates is None) == (count is None)
                if part.candidates is not None:
                    assert part.candidates.entities.shape == (2 * len(part.quads), count)


def test_number_of_examples() -> None:
    added, deleted = len(TIMELINE.observed.added(4)), len(TIMELINE.observed.deleted(4, 10))
    terms = [CrossEntropy(negatives=7), DeletedFacts(), Replay(Replayed(3, 20), negatives=4)]
    loader = TKGLoader(TIMELINE, 4, terms, NegativeSampler(TIMELINE), seeded())
    assert loader.num_examples == added * 14 + deleted + 20 * 8
    assert min(added, deleted) > 0
    every = TKGLoader(TIMELINE, 4, [CrossEntropy(negatives="all")], NegativeSampler(TIMELINE), seeded())
    assert every.num_examples == added * 2 * 40
    assert str(loader) == f"TKGLoader({added + deleted + 20} quads in 1 batches, step 4)"


def test_state() -> None:
    """Quads that were drawn when the loader was made are part of its state; virtual ones are not."""
    lazy = LazyQuads(facts_tensor([(0, 0, 1, 2, 4)]))
    loader, other = loader_of([numbered(5), None, lazy], 20), loader_of([numbered(9), None, lazy], 20)
    state = loader.state_dict()
    assert torch.equal(state["views"][0], numbered(5))
    assert state["views"][1:] == [None, None]
    other.load_state_dict(state)
    assert other.num_quads == loader.num_quads == 8
    with pytest.raises(ValueError, match=r"views must have one entry per term, 3 \(got 1\)"):
        other.load_state_dict({"views": [None]})


def test_replayed_quads_are_drawn_once() -> None:
    loader = TKGLoader(TIMELINE, 5, [Replay(Replayed(3, 20), negatives=4)], NegativeSampler(TIMELINE), seeded())
    epochs = [sorted(map(tuple, torch.cat([term.quads for b in loader for term in b]).tolist())) for _ in range(2)]
    assert epochs[0] == epochs[1]
    assert len(epochs[0]) == 20


def test_nothing_to_load() -> None:
    loader = loader_of([numbered(0), None], 5)
    assert len(loader) == 0
    assert list(loader) == []
    assert list(loader_of([], 5)) == []
