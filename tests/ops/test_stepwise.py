"""Scores, losses and gradients of the kernels that go step by step are those of the functions in torch."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.loader import NegativeSampler, TermBatch, TKGBatch
from tkg_incremental.models import DE, HyTE, TKGModel
from tkg_incremental.models.batch_vectors import StepwiseVectors
from tkg_incremental.ops import native
from tkg_incremental.ops.stepwise import QUADS_OF_A_GROUP, TILE, split_groups
from tkg_incremental.strategies.terms import cross_entropy

pytestmark = pytest.mark.skipif(not native.is_available(), reason="the kernels were not compiled")

LINE = SyntheticTKG(num_entities=40, num_relations=3, num_steps=9).timeline
QUADS = LINE.observed.between(2, 8).sample(50, torch.Generator().manual_seed(0))
QUADS = QUADS[torch.argsort(QUADS[:, 3], stable=True)]
MODELS = {
    "DE": lambda: DE(40, 3, 9, 12),
    "DE paper": lambda: DE(40, 3, 9, 12, layout="paper"),
    "DE distmult": lambda: DE(40, 3, 9, 70, decoder="distmult", temporal_share=0.95),  # more than one chunk of channels
    "HyTE": lambda: HyTE(40, 3, 9, 12),
}
Found = list[Tensor]


def make(name: str) -> TKGModel:
    torch.manual_seed(0)
    return MODELS[name]()


def loss_and_gradients(model: TKGModel, terms: list[TermBatch], sampler: NegativeSampler) -> Found:
    """The sum of the terms' losses, and the gradients of all tables."""
    model.zero_grad()
    encoded = model.encode(TKGBatch(terms, sampler), LINE)
    losses = []
    for term in encoded:
        assert term is not None
        losses.append(cross_entropy(term, 0.01) + term.scores().sigmoid().sum())
    loss = torch.stack(losses).sum()
    loss.backward()
    gradients = [table.grad for table in model.parameters()]
    dense = [each.to_dense() if each.is_sparse else each for each in gradients if each is not None]
    assert len(dense) == len(gradients)
    return [loss.detach(), *(each.clone() for each in dense)]


def in_torch(model: TKGModel, terms: list[TermBatch], sampler: NegativeSampler) -> Found:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "_KERNELS", None)
        assert not StepwiseVectors.can_encode(model)
        return loss_and_gradients(model, terms, sampler)


@pytest.mark.parametrize("sparse", [False, True], ids=["whole tables", "some rows"])
@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("shared", [False, True], ids=["own lists", "shared lists"])
@pytest.mark.parametrize("name", MODELS)
def test_sampled(name: str, shared: bool, stride: int, sparse: bool) -> None:
    model = make(name)
    model.sparse_gradients = sparse
    assert StepwiseVectors.can_encode(model)
    sampler, generator = NegativeSampler(LINE, stride), torch.Generator().manual_seed(1)
    # One term of many steps and few lists, and one of a single step with many.
    terms = [
        TermBatch(quads, sampler.draw(quads, count, generator, shared))
        for quads, count in ((QUADS, 7), (LINE.observed.at(8), 30))
    ]
    wanted = in_torch(model, terms, sampler)
    for found, want in zip(loss_and_gradients(model, terms, sampler), wanted, strict=True):
        torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True], ids=["whole tables", "some rows"])
@pytest.mark.parametrize("name", MODELS)
def test_one_vs_all(name: str, sparse: bool) -> None:
    model = make(name)
    model.sparse_gradients = sparse
    terms, sampler = [TermBatch(QUADS), TermBatch(LINE.observed.at(3))], NegativeSampler(LINE)
    wanted = in_torch(model, terms, sampler)
    for found, want in zip(loss_and_gradients(model, terms, sampler), wanted, strict=True):
        torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("one_vs_all", [False, True], ids=["sampled", "one-vs-all"])
@pytest.mark.parametrize("name", MODELS)
def test_same_bits_with_any_number_of_threads(name: str, one_vs_all: bool) -> None:
    model, sampler = make(name), NegativeSampler(LINE)
    drawn = None if one_vs_all else sampler.draw(QUADS, 9, torch.Generator().manual_seed(2))
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            encoded = model.encode(TKGBatch([TermBatch(QUADS, drawn)], sampler), LINE)[0]
            assert encoded is not None
            scores = encoded.one_vs_all_loss() if one_vs_all else encoded.logits()
            table = model.get_parameter("entity_vectors")
            found.append((scores, torch.autograd.grad(scores.square().sum(), table)[0]))
    finally:
        torch.set_num_threads(before)
    for scores, gradient in found[1:]:
        assert torch.equal(scores, found[0][0])
        assert torch.equal(gradient, found[0][1])


def test_groups_are_split() -> None:
    many = 2 * QUADS_OF_A_GROUP + 1
    found = split_groups(torch.tensor([[0, 0, 3, 10], [2, 3, many, 12]]))
    begins = [3 + many * i // 3 for i in range(4)]
    pieces = [[2, begin, end - begin, 12] for begin, end in pairwise(begins)]
    assert found.tolist() == [[0, 0, 3, 10], *pieces]


@pytest.mark.parametrize("name", ["DE", "HyTE"])
def test_one_vs_all_with_more_entities_than_a_tile_and_more_quads_than_a_group(name: str) -> None:
    line = SyntheticTKG(num_entities=4 * TILE, num_relations=3, num_steps=9).timeline
    quads = line.observed.at(8)[torch.arange(QUADS_OF_A_GROUP + 5) % len(line.observed.at(8))]
    torch.manual_seed(0)
    model = {"DE": DE, "HyTE": HyTE}[name](4 * TILE, 3, 9, 20)
    batch, found = TKGBatch([TermBatch(quads)], NegativeSampler(line)), []
    for kernels in (native._KERNELS, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(native, "_KERNELS", kernels)
            (term,) = model.encode(batch, line)
            assert term is not None
            found.append(torch.autograd.grad(term.one_vs_all_loss(0.5), list(model.parameters())))
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_a_use_without_gradient_changes_nothing() -> None:
    model, sampler = make("HyTE"), NegativeSampler(LINE)
    drawn = sampler.draw(QUADS, 4, torch.Generator().manual_seed(0))
    first, second = model.encode(TKGBatch([TermBatch(QUADS, drawn)] * 2, sampler), LINE)
    assert first is not None
    assert second is not None
    first.logits()  # hands the tables on, and is not part of the loss
    second.logits().sum().backward()
    found = model.get_parameter("entity_vectors").grad
    model.zero_grad()
    (alone,) = model.encode(TKGBatch([TermBatch(QUADS, drawn)], sampler), LINE)
    assert alone is not None
    alone.logits().sum().backward()
    torch.testing.assert_close(found, model.get_parameter("entity_vectors").grad)
