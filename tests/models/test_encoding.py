"""The vectors of a batch are encoded once, in the cheapest way, and are those of single look-ups."""

from typing import Any

import pytest
import torch
from drawing import assert_same_gradients
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from learning import MODELS, Lesson
from oracles import TimelineOracle
from timelines import make_timeline, timelines, to_tensor
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.loader import Candidates, NegativeSampler, TermBatch, TKGBatch
from tkg_incremental.models import ZOO, TKGModel
from tkg_incremental.models.batch_vectors import ends_of, pair_keys, table_of_pairs, table_of_pool
from tkg_incremental.models.encoding import EncodedTerm
from tkg_incremental.ops import native
from tkg_incremental.ops.scores import compare
from tkg_incremental.registry import make_model
from tkg_incremental.strategies import (
    TIE,
    CrossEntropy,
    DeletedFacts,
    Losses,
    ReplayOptions,
    Strategy,
    Supersede,
    Term,
    TrainingContext,
)

DATASET = SyntheticTKG(num_entities=40, num_relations=3, num_steps=10, facts_per_step=120, seed=1)
LINE, TIME = DATASET.timeline, 7


def losses_of(
    terms: list[Term], name: str, dtype: torch.dtype, stride: int, together: bool = True, limit: int = 10**9
) -> tuple[Losses, TKGModel]:
    model, previous = (make_model(name, DATASET, 8, seed=seed).to(dtype) for seed in range(2))
    model.encodes_together = together
    generator, sampler = torch.Generator().manual_seed(0), NegativeSampler(LINE, stride)
    parts = []
    for term in terms:
        quads = None if term.view is None else term.view.select(LINE, TIME, generator)
        if isinstance(quads, Tensor):
            quads = quads[:limit]
            quads = quads[torch.argsort(quads[:, 3], stable=True)]
            parts.append(TermBatch(quads, term.draw(quads, sampler, generator)))
        else:
            parts.append(None)
    batch = model.encode(TKGBatch(parts, sampler), LINE)
    context = TrainingContext(LINE, TIME, model, previous.frozen_copy(), batch)
    losses: Losses = {}
    for term, part in zip(terms, batch, strict=True):
        losses |= term.losses(part, context)
    return losses, model


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of steps of each call that encodes known entities for learning."""
    found: list[int] = []
    kinds = {type(make_model(name, DATASET, 8)) for name in ("DE", "HyTE", "Static")}
    for kind in kinds:

        def counted(self: Any, order: Tensor, steps: Any, sizes: Any, encode: Any = kind.encode_known) -> Tensor:
            if torch.is_grad_enabled():
                found.append(len(steps))
            return encode(self, order, steps, sizes)

        monkeypatch.setattr(kind, "encode_known", counted)
    return found


STRATEGIES = [TIE(window=3), Supersede(window=3, unlikelihood=2.0), TIE(window=3, shared=True)]


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
@pytest.mark.parametrize("name", ["DE", "HyTE", "Static"])
@pytest.mark.parametrize("strategy", STRATEGIES[:2], ids=["TIE", "Supersede"])
def test_the_pool_is_encoded_once(
    strategy: Strategy, name: str, dtype: torch.dtype, stride: int, calls: list[int]
) -> None:
    losses, model = losses_of(list(strategy.terms), name, dtype, stride)
    if native.is_available() and dtype == torch.float and name != "Static":
        assert calls == []  # step by step
    else:
        assert calls == [1 if name == "Static" else 4]  # the step and the three before
    calls.clear()
    wanted, other = losses_of(list(strategy.terms), name, dtype, stride, together=False)
    assert calls == []
    precision = 1e-4 if dtype == torch.float else 1e-12
    assert {key: loss.item() for key, loss in losses.items()} == pytest.approx(
        {key: loss.item() for key, loss in wanted.items()}, rel=precision
    )
    sum(losses.values()).backward()  # type: ignore[union-attr]
    sum(wanted.values()).backward()  # type: ignore[union-attr]
    for found, want in zip(model.parameters(), other.parameters(), strict=True):
        assert (found.grad is None) == (want.grad is None)
        if found.grad is not None:
            torch.testing.assert_close(found.grad, want.grad, rtol=precision, atol=precision)


@pytest.mark.parametrize("name", ["DE", "HyTE"])
def test_a_few_of_many_are_encoded_as_pairs(name: str, calls: list[int]) -> None:
    terms: list[Term] = [DeletedFacts(), CrossEntropy(negatives=2)]
    losses, model = losses_of(terms, name, torch.double, stride=1, limit=3)
    assert calls == []
    quads = LINE.observed.deleted(TIME, 10)[:3]
    assert losses["del"].item() == pytest.approx(torch.nn.functional.softplus(model(quads)).mean().item())


@pytest.mark.parametrize("stride", [1, 5])
@pytest.mark.parametrize("name", ["DE", "HyTE", "Static"])
def test_sparse_gradients(name: str, stride: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tkg_incremental.models.encoder._SPARSE_SHARE", 1)
    found = []
    for sparse in (True, False):
        model = make_model(name, DATASET, 8).double()
        model.sparse_gradients = sparse
        generator, sampler = torch.Generator().manual_seed(0), NegativeSampler(LINE, stride)
        quads = LINE.observed.added(TIME)[:3]
        terms = [TermBatch(quads, sampler.draw(quads, 50, generator)), TermBatch(quads[:2])]
        batch = model.encode(TKGBatch(terms, sampler), LINE)
        context = TrainingContext(LINE, TIME, model, model, batch)
        losses = {
            **CrossEntropy(negatives=50).losses(batch[0], context),
            **DeletedFacts().losses(batch[1], context),
        }
        sum(losses.values()).backward()  # type: ignore[union-attr]
        gradient = model.get_parameter("entity_vectors").grad
        assert gradient is not None
        assert gradient.is_sparse == (sparse and (stride > 1 or not gradient.to_dense().any(1).all()))
        found.append((losses, gradient.to_dense()))
    (losses, gradient), (wanted, wanted_gradient) = found
    torch.testing.assert_close(losses, wanted)
    torch.testing.assert_close(gradient, wanted_gradient)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=20)
@given(timelines(), st.integers(1, 20), st.sampled_from([1, 1, 2, 3]), st.booleans(), st.booleans())
def test_scores_of_any_quads(
    name: str, drawn: tuple[Timeline, TimelineOracle], negatives: int, stride: int, together: bool, shared: bool
) -> None:
    """Quads of a view of one's own may have entities that are not known at their time."""
    timeline, oracle = drawn
    entities, steps = range(oracle.num_entities), range(oracle.num_steps)
    quads = to_tensor([(e, 0, (e + t) % oracle.num_entities, t) for t in steps for e in entities])
    lesson = Lesson(timeline, oracle.num_steps - 1, name, stride=stride, together=together)
    terms = [CrossEntropy(negatives=negatives, shared=shared), DeletedFacts()]
    batch = lesson.batch(terms, [quads, quads[::2]])
    encoded = lesson.model.encode(batch, timeline)
    for part, wanted in zip(encoded, (quads, quads[::2]), strict=True):
        assert isinstance(part, EncodedTerm)
        assert part.model is lesson.model
        torch.testing.assert_close(part.scores(), lesson.model(wanted))
        torch.testing.assert_close(part.true_scores, lesson.model(wanted).repeat(2))
        head, tail = part.ends
        torch.testing.assert_close(head, lesson.model.entity(wanted[:, 0], wanted[:, 3]))
        torch.testing.assert_close(tail, lesson.model.entity(wanted[:, 2], wanted[:, 3]))
        torch.testing.assert_close(part.relation, lesson.model.relation(wanted[:, 1], wanted[:, 3]))
    first = encoded[0]
    assert first is not None
    assert_same_gradients(lesson.model, first.scores().square().sum(), lesson.model(quads).square().sum())


def both_logits(model: TKGModel, quads: Tensor, drawn: Candidates) -> Tensor:
    """The true answer and all candidates by single look-ups, minus infinity for masked ones."""
    lists = drawn.entities if drawn.list_of_query is None else drawn.entities[drawn.list_of_query]
    rows = []
    for (side, column), half in zip((("tail", 2), ("head", 0)), lists.split(len(quads)), strict=True):
        for quad, others in zip(quads, half, strict=True):
            candidates = torch.cat([quad[column, None], others])
            vectors = model.entity(candidates, quad[3].expand_as(candidates))
            query = model.query_vectors(quad[None], side)  # type: ignore[arg-type]
            rows.append(compare(query, vectors, model.decoder.similarity))
    found = torch.stack(rows)
    if drawn.mask is not None:
        found[:, 1:] = found[:, 1:].masked_fill(drawn.mask, -torch.inf)
    return found


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("name", sorted(ZOO))
def test_logits_of_all_models(name: str, together: bool, stride: int, shared: bool) -> None:
    """Also with reciprocal relations, where a head query is a tail query of the inverse relation."""
    model = ZOO[name](LINE.num_entities, LINE.num_relations, LINE.num_steps, 8).double()  # type: ignore[call-arg]
    model.eval()  # without dropout
    model.encodes_together &= together
    quads = LINE.observed.between(3, 6).sample(12, torch.Generator().manual_seed(0))
    quads = quads[torch.argsort(quads[:, 3], stable=True)]
    sampler = NegativeSampler(LINE, stride)
    drawn = sampler.draw(quads, 30, torch.Generator().manual_seed(0), shared)
    (term,) = model.encode(TKGBatch([TermBatch(quads, drawn)], sampler), LINE)
    assert term is not None
    logits, wanted = term.logits(), both_logits(model, quads, drawn)
    torch.testing.assert_close(logits, wanted)
    weights = torch.randn(logits.shape, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    weights = weights.masked_fill(~logits.isfinite(), 0)
    finite = [torch.where(each.isfinite(), each, 0.0) for each in (logits, wanted)]
    assert_same_gradients(model, *((each * weights).sum() for each in finite))
    torch.testing.assert_close(term.scores(), model(quads))


@settings(max_examples=20)
@given(timelines(), st.sampled_from(MODELS), st.sampled_from([1, 2]), st.booleans())
def test_terms_without_quads(drawn: tuple[Timeline, TimelineOracle], name: str, stride: int, together: bool) -> None:
    timeline, oracle = drawn
    assume(oracle.train)
    lesson = Lesson(timeline, oracle.num_steps - 1, name, stride=stride, together=together)
    terms: list[Term] = [CrossEntropy(negatives=3), DeletedFacts(), CrossEntropy(negatives=3)]
    batch = lesson.batch(terms, [None, to_tensor(oracle.train), None])
    encoded = lesson.model.encode(batch, timeline)
    assert [part is None for part in encoded] == [True, False, True]


def test_replay_takes_the_vectors_of_a_frozen_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    train = [(e, 0, (e + t) % 6, t) for t in range(3) for e in range(5)]
    timeline = make_timeline(train, num_entities=6, num_relations=1, num_steps=3)
    lesson = Lesson(timeline, 2)
    term = ReplayOptions(negatives=20).term(2)
    kind, calls = type(lesson.previous), list[int]()
    encode = kind.encode_known

    def counted(self: Any, order: Tensor, steps: Any, sizes: Any) -> Tensor:
        if not torch.is_grad_enabled():
            calls.append(len(steps))
        return encode(self, order, steps, sizes)

    monkeypatch.setattr(kind, "encode_known", counted)
    for quads in (train[:5], train[:10], train[:10]):
        lesson.learn(term, to_tensor(quads))
    assert calls == [1, 1]  # steps 0 and 1, each once


def test_tables() -> None:
    vectors = torch.arange(8.0)[:, None]
    _, find = table_of_pairs(vectors, torch.tensor([1, 4, 5, 9]), 4)
    assert find(torch.tensor([[1, 0], [2, 2]]), torch.tensor([1, 1])).tolist() == [[2, 0], [3, 3]]
    pool = NegativeSampler(make_timeline([(0, 0, 2, 0)], num_entities=4, num_relations=1, num_steps=2), 2)
    _, find = table_of_pool(vectors, torch.tensor([0, 5]), pool.position)
    assert pool.entities.tolist() == [0, 1]
    assert find(torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 1])).tolist() == [[0, 1], [6, 5]]


def test_keys_and_ends() -> None:
    quads = to_tensor([(3, 0, 4, 1), (5, 1, 6, 2)])
    assert ends_of(quads).tolist() == [[3, 4], [5, 6]]
    assert pair_keys(ends_of(quads), quads[:, 3], 10).tolist() == [[31, 41], [52, 62]]
    assert pair_keys(ends_of(quads), quads[:, 3], 1).tolist() == [[3, 4], [5, 6]]
