"""The parts of a batch for several processes: the mean of their weighted losses is the loss of the batch."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from learning import Lesson
from oracles import TimelineOracle
from timelines import make_timeline, timelines, to_tensor

from tkg_incremental.data import Timeline
from tkg_incremental.loader import Candidates, NegativeSampler, TermBatch, TKGBatch
from tkg_incremental.strategies import Contrast, CrossEntropy, DeletedFacts, Replay, Term, UnlikelihoodLoss


def numbered(size: int) -> torch.Tensor:
    return torch.arange(size)[:, None].expand(size, 4).contiguous()


def test_repr_and_size() -> None:
    timeline = make_timeline([(0, 0, 1, 0)], num_entities=3, num_relations=1, num_steps=1)
    batch = TKGBatch([TermBatch(numbered(3)), None, TermBatch(numbered(2))], NegativeSampler(timeline))
    assert str(batch) == "TKGBatch([3, –, 2] quads, NegativeSampler(3 of 3 entities))"
    assert len(batch) == 5
    assert [len(term.quads) for term in batch] == [3, 2]


@given(st.integers(1, 30), st.integers(1, 8), st.sampled_from(["own", "shared"]), st.booleans())
def test_parts_by_hand(total: int, size: int, kind: str, masked: bool) -> None:
    entities, mask = torch.arange(2 * total)[:, None] * 10 + torch.arange(3), torch.arange(2 * total)[:, None] % 3 == 0
    lists = None if kind == "own" else torch.arange(2 * total) % 2
    drawn = Candidates(
        entities if lists is None else entities[:2],
        torch.arange(2 * total if lists is None else 2),
        lists,
        mask if masked else None,
        from_pool=False,
    )
    whole = TermBatch(numbered(total), drawn)
    parts = [whole.part(rank, size) for rank in range(size)]
    if total < size:  # no process may be left without quads
        assert all(part is whole for part in parts)
        return
    assert torch.equal(torch.cat([part.quads for part in parts]), whole.quads)
    assert sum(part.weight for part in parts) == pytest.approx(size)
    assert all(part.weight == pytest.approx(len(part.quads) * size / total) for part in parts)
    for part in parts:
        mine = part.candidates
        assert mine is not None
        assert not mine.from_pool
        rows = torch.cat([part.quads[:, 0], total + part.quads[:, 0]])
        if lists is None:
            assert mine.list_of_query is None
            assert torch.equal(mine.entities, entities[rows])
            assert torch.equal(mine.time, rows)
        else:
            assert torch.equal(mine.entities, drawn.entities)
            assert mine.list_of_query is not None
            assert torch.equal(mine.list_of_query, lists[rows])
        assert (mine.mask is None) == (not masked)
        if mine.mask is not None:
            assert torch.equal(mine.mask, mask[rows])


def test_a_part_without_candidates() -> None:
    part = TermBatch(numbered(4)).part(1, 2)
    assert part.candidates is None
    assert part.quads[:, 0].tolist() == [2, 3]


TERMS = [
    CrossEntropy(negatives=4),
    CrossEntropy(negatives=4, shared=True),
    CrossEntropy(negatives="all"),
    DeletedFacts(),
    Replay(negatives=3),
    Replay(negatives=3, shared=True),
    Contrast(window=3),
    UnlikelihoodLoss(negatives=4),
]


@pytest.mark.parametrize("term", TERMS, ids=str)
@settings(max_examples=15)
@given(drawn=timelines(), size=st.integers(2, 4), stride=st.sampled_from([1, 2]), together=st.booleans())
def test_mean_over_the_processes(
    term: Term, drawn: tuple[Timeline, TimelineOracle], size: int, stride: int, together: bool
) -> None:
    timeline, oracle = drawn
    time = oracle.num_steps - 1
    quads = sorted(set(oracle.train))
    if isinstance(term, Contrast):
        quads = [quad for quad in quads if quad[3] == time]
    assume(quads)
    lesson = Lesson(timeline, time, "DE complex", stride=stride, together=together)
    batch = lesson.batch([term], [to_tensor(quads)])
    whole = lesson.losses([term], batch)
    tables = list(lesson.model.parameters())
    wanted = torch.autograd.grad(sum(whole.values()), tables, materialize_grads=True)  # type: ignore[arg-type]
    mean, gradients = dict.fromkeys(whole, 0.0), [torch.zeros_like(table) for table in tables]
    for rank in range(size):
        part = batch.part(rank, size)
        (mine,) = part
        losses = lesson.losses([term], part)
        for name, loss in losses.items():
            mean[name] += mine.weight * loss.item() / size
        total = mine.weight / size * sum(losses.values())
        for sums, each in zip(gradients, torch.autograd.grad(total, tables, materialize_grads=True), strict=True):  # type: ignore[arg-type]
            sums += each
    assert mean == pytest.approx({name: loss.item() for name, loss in whole.items()}, abs=1e-12)
    for found, want in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(found, want, rtol=1e-9, atol=1e-9)
