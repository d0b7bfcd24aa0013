"""Every term of the loss against the paper's equation, given the same negatives, in all ways of encoding."""

import math
from typing import Any

import pytest
import torch
from drawing import all_draws, assert_same_gradients, draws_of, plain_cross_entropy, plain_distillation
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from learning import MODELS, Lesson, model_for
from oracles import Row, ScoreOracle, TimelineOracle, deletion, distillation, drift, link
from oracles.scores import with_answer
from timelines import make_timeline, timelines, to_tensor

from tkg_incremental.data import Timeline
from tkg_incremental.strategies import CrossEntropy, DeletedFacts, Losses, Replay, TemporalRegularization, Term
from tkg_incremental.strategies.terms import cross_entropy

few = settings(max_examples=20)
Drawn = tuple[Timeline, TimelineOracle]
strides = st.sampled_from([1, 1, 2, 3])


def some_quads(line: TimelineOracle) -> list[Row]:
    quads = sorted(set(line.train), key=lambda quad: quad[3])
    assume(quads)
    return quads


@pytest.fixture
def chain() -> Timeline:
    return make_timeline([(0, 0, 1, 0), (1, 0, 2, 1)], num_entities=3, num_relations=1, num_steps=2)


# Cross-entropy -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Static complex", "Static transe"])
@few
@given(timelines(), st.integers(1, 8), st.integers(0, 3), strides, st.booleans())
def test_cross_entropy_with_negatives_of_the_batch(
    name: str, drawn: Drawn, negatives: int, seed: int, stride: int, together: bool
) -> None:
    timeline, line = drawn
    quads = some_quads(line)
    lesson = Lesson(timeline, timeline.num_steps - 1, name, seed, stride, together)
    term = CrossEntropy(negatives=negatives, shared="batch", weight=0.3)
    batch = lesson.batch([term], [to_tensor(quads)])
    candidates = next(iter(batch)).candidates
    assert candidates is not None
    (entities,) = candidates.entities.tolist()
    assert len(set(entities)) == len(entities) <= negatives
    score, total = ScoreOracle(lesson.model), 0.0
    for quad in quads:
        known = line.known_entities(quad[3])
        among = [entity for entity in entities if entity in known]
        for side in ("tail", "head"):
            others = [entity for entity in among if entity not in line.answers(side, "train", quad)]
            weight = len(known) / max(1, len(among))  # each of those drawn stands for several
            against = sum(math.exp(score(with_answer(quad, side, entity))) for entity in others)
            own = score(quad)
            total += math.log(math.exp(own) + weight * against) - own
    loss = lesson.losses([term], batch)["CE"]
    assert loss.item() == pytest.approx(0.3 * total / len(quads))
    if negatives >= timeline.num_entities and stride == 1:
        term = CrossEntropy(negatives="all", weight=0.3)
        whole = lesson.losses([term], lesson.batch([term], [to_tensor(quads)]))["CE"]
        assert_same_gradients(lesson.model, loss, whole)


def test_a_pool_of_which_no_entity_is_known_yet_has_no_negatives() -> None:
    timeline = make_timeline([(0, 0, 0, 0), (1, 0, 1, 1)], num_entities=2, num_relations=1, num_steps=2)
    lesson, term = Lesson(timeline, 0, "Static complex", seed=1, stride=2), CrossEntropy(negatives=2, shared="batch")
    assert lesson.sampler.entities.tolist() == [1]
    batch = lesson.batch([term], [to_tensor([(0, 0, 0, 0)])])
    assert lesson.losses([term], batch)["CE"].item() == pytest.approx(0, abs=1e-12)


def test_negatives_of_the_batch_need_static_entities(chain: Timeline) -> None:
    lesson, term = Lesson(chain, 1, "DE complex"), CrossEntropy(negatives=2, shared="batch")
    batch = lesson.batch([term], [to_tensor([(0, 0, 1, 0)])])
    with pytest.raises(ValueError, match="a model whose entities do not depend on time"):
        lesson.losses([term], batch)


@pytest.mark.parametrize("name", MODELS)
@few
@given(timelines(), st.integers(1, 12), st.booleans(), st.integers(0, 3), strides, st.booleans())
def test_cross_entropy_with_sampled_negatives(
    name: str, drawn: Drawn, negatives: int, shared: bool, seed: int, stride: int, together: bool
) -> None:
    timeline, line = drawn
    quads = some_quads(line)
    lesson = Lesson(timeline, timeline.num_steps - 1, name, seed, stride, together)
    term = CrossEntropy(negatives=negatives, shared=shared, weight=0.3)
    batch = lesson.batch([term], [to_tensor(quads)])
    draws = draws_of(next(iter(batch)))
    assert sorted(draw.row for draw in draws) == sorted(quads * 2)
    for draw in draws:
        members = line.known_entities(draw.row[3]) & set(lesson.sampler.entities.tolist())
        assert set(draw.negatives) <= members - line.answers(draw.side, "train", draw.row)
    losses = lesson.losses([term], batch)
    assert {key: loss.item() for key, loss in losses.items()} == {
        "CE": pytest.approx(0.3 * link(ScoreOracle(lesson.model), draws))
    }
    assert_same_gradients(lesson.model, losses["CE"], 0.3 * plain_cross_entropy(lesson.model, draws))


@pytest.mark.parametrize("name", MODELS)
@few
@given(timelines())
def test_cross_entropy_with_all_negatives(name: str, drawn: Drawn) -> None:
    timeline, line = drawn
    quads = some_quads(line)
    draws = all_draws(line, quads)
    lesson = Lesson(timeline, timeline.num_steps - 1, name)
    losses = lesson.learn(CrossEntropy(negatives="all", weight=2.0, name="RCE"), to_tensor(quads))
    assert {key: loss.item() for key, loss in losses.items()} == {
        "RCE": pytest.approx(2 * link(ScoreOracle(lesson.model), draws))
    }
    assert_same_gradients(lesson.model, losses["RCE"], 2 * plain_cross_entropy(lesson.model, draws))


@pytest.mark.parametrize("name", ["Static complex", "Static transe", "DE complex"])
@pytest.mark.parametrize("rows", [1, 3, 256])
def test_all_negatives_in_blocks(name: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Static entities are scored in blocks that mix steps: quads have as many candidates as are known at their time."""
    monkeypatch.setattr("tkg_incremental.models.encoding._BLOCK_ROWS", rows)
    train = [(e, 0, e + 1, t) for t in range(4) for e in range(2 * t + 2)]
    timeline, line = (
        make_timeline(train, num_entities=12, num_relations=1, num_steps=4),
        TimelineOracle(train, [], [], 12, 4),
    )
    assert len(set(timeline.num_known.tolist())) == 4
    lesson = Lesson(timeline, 3, name)
    loss = lesson.learn(CrossEntropy(negatives="all"), to_tensor(train))["CE"]
    draws = all_draws(line, train)
    assert loss.item() == pytest.approx(link(ScoreOracle(lesson.model), draws))
    assert_same_gradients(lesson.model, loss, plain_cross_entropy(lesson.model, draws))


def test_shared_negatives_are_shared_by_time() -> None:
    train = [(e, 0, (e + 1) % 30, t) for t in range(2) for e in range(30)]
    timeline = make_timeline(train, num_entities=30, num_relations=1, num_steps=2)
    lesson = Lesson(timeline, 1)
    draws = draws_of(lesson.draw(CrossEntropy(negatives=5, shared=True), to_tensor(train)))
    for time in range(2):
        assert len({entity for draw in draws if draw.row[3] == time for entity in draw.negatives}) <= 5
    draws = draws_of(lesson.draw(CrossEntropy(negatives=5), to_tensor(train)))
    assert len({entity for draw in draws for entity in draw.negatives}) > 10


def test_queries_without_negatives_have_no_loss() -> None:
    train = [(0, 0, 0, 0), (0, 0, 1, 0), (1, 0, 0, 0), (1, 0, 1, 0)]
    lesson = Lesson(make_timeline(train, num_entities=2, num_relations=1, num_steps=1), 0)
    for negatives in (3, "all"):
        loss = lesson.learn(CrossEntropy(negatives=negatives), to_tensor(train))["CE"]  # type: ignore[arg-type]
        assert loss.item() == 0
        loss.backward()
        assert all(table.grad is None or not table.grad.any() for table in lesson.model.parameters())
    losses = lesson.learn(Replay(negatives=3), to_tensor(train))
    assert [loss.item() for loss in losses.values()] == [0, 0]


def test_the_sum_over_queries(chain: Timeline) -> None:
    lesson = Lesson(chain, 1)
    batch = lesson.batch([CrossEntropy(negatives=3)], [chain.observed.quads()])
    encoded = lesson.model.encode(batch, chain)[0]
    assert encoded is not None
    wanted = lesson.losses([CrossEntropy(negatives=3)], batch)["CE"]
    assert cross_entropy(encoded).item() == pytest.approx(2 * wanted.item())


def test_quads_of_any_order_have_the_same_loss() -> None:
    train = [(e, 0, (e + t) % 6, t) for t in range(3) for e in range(6)]
    timeline = make_timeline(train, num_entities=6, num_relations=1, num_steps=3)
    quads, lesson, term = to_tensor(train), Lesson(timeline, 2), CrossEntropy(negatives="all")
    shuffled = quads[torch.randperm(len(quads), generator=torch.Generator().manual_seed(0))]
    assert lesson.learn(term, quads)["CE"].item() == pytest.approx(lesson.learn(term, shuffled)["CE"].item())


# Replay ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@few
@given(timelines(), st.integers(1, 12), st.booleans(), st.integers(0, 3), strides, st.booleans())
def test_replay(name: str, drawn: Drawn, negatives: int, shared: bool, seed: int, stride: int, together: bool) -> None:
    timeline, line = drawn
    quads = some_quads(line)
    lesson = Lesson(timeline, timeline.num_steps - 1, name, seed, stride, together)
    term = Replay(negatives=negatives, shared=shared, weight=0.7, distill=0.2)
    batch = lesson.batch([term], [to_tensor(quads)])
    draws = draws_of(next(iter(batch)))
    score, previous = ScoreOracle(lesson.model), ScoreOracle(lesson.previous)
    for _ in range(2):  # a frozen model reuses its vectors
        losses = lesson.losses([term], batch)
        found = {key: loss.item() for key, loss in losses.items()}
        assert found == {
            "RCE": pytest.approx(0.7 * link(score, draws)),
            "RKD": pytest.approx(0.2 * distillation(previous, score, draws), abs=1e-12),
        }
        assert found["RKD"] >= -1e-12
    assert_same_gradients(lesson.model, losses["RCE"], 0.7 * plain_cross_entropy(lesson.model, draws))
    assert_same_gradients(lesson.model, losses["RKD"], 0.2 * plain_distillation(lesson.previous, lesson.model, draws))


@few
@given(timelines(), st.sampled_from(MODELS))
def test_replay_with_all_negatives(drawn: Drawn, name: str) -> None:
    timeline, line = drawn
    quads = some_quads(line)
    lesson = Lesson(timeline, timeline.num_steps - 1, name)
    losses = lesson.learn(Replay(negatives="all", weight=0.7, distill=0.0), to_tensor(quads))
    assert {key: loss.item() for key, loss in losses.items()} == {
        "RCE": pytest.approx(0.7 * link(ScoreOracle(lesson.model), all_draws(line, quads)))
    }


def test_without_distillation_the_previous_model_is_not_used(chain: Timeline) -> None:
    lesson = Lesson(chain, 1)
    lesson.context.previous = None  # type: ignore[assignment]
    assert set(lesson.learn(Replay(distill=0.0), chain.observed.quads())) == {"RCE"}


def test_an_unchanged_model_has_no_distillation(chain: Timeline) -> None:
    lesson = Lesson(chain, 1)
    lesson.context.previous = lesson.model.frozen_copy()
    loss = lesson.learn(Replay(), chain.observed.quads())["RKD"]
    assert loss.item() == pytest.approx(0, abs=1e-12)
    gradients = torch.autograd.grad(loss, list(lesson.model.parameters()), allow_unused=True)
    assert all(gradient is None or gradient.abs().max() < 1e-12 for gradient in gradients)


def test_the_previous_model_does_not_learn(chain: Timeline) -> None:
    lesson = Lesson(chain, 1)
    losses = {**lesson.learn(Replay(), chain.observed.quads()), **lesson.learn(TemporalRegularization())}
    sum(losses.values()).backward()  # type: ignore[union-attr]
    assert all(parameter.grad is None for parameter in lesson.previous.parameters())
    assert all(parameter.grad is not None for parameter in lesson.model.parameters())


# Deleted facts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@few
@given(timelines(), st.integers(1, 4), st.booleans(), st.booleans())
def test_deleted_facts(name: str, drawn: Drawn, window: int, together: bool, crowded: bool) -> None:
    timeline, line = drawn
    time = timeline.num_steps - 1
    lesson = Lesson(timeline, time, name, together=together)
    quads = line.deleted(time, window)
    assume(quads)
    terms: list[Term] = [DeletedFacts(weight=0.5)]
    views = [to_tensor(quads)]
    if crowded:  # another term has so many candidates that all known entities are encoded
        terms.append(CrossEntropy(negatives=60))
        views.append(to_tensor(quads))
    loss = lesson.losses(terms, lesson.batch(terms, views))["del"]
    assert loss.item() == pytest.approx(0.5 * deletion(ScoreOracle(lesson.model), quads))
    plain = -0.5 * torch.nn.functional.logsigmoid(-lesson.model(to_tensor(quads))).mean()
    assert_same_gradients(lesson.model, loss, plain)


def test_deleted_facts_that_score_high() -> None:
    timeline = make_timeline([(0, 0, 1, 0)], num_entities=2, num_relations=1, num_steps=2)
    lesson = Lesson(timeline, 1)
    for parameter in lesson.model.parameters():
        parameter.data.fill_(40.0)
    score = ScoreOracle(lesson.model)((0, 0, 1, 1))
    assert score > 1000  # the sigmoid is 1 to the last bit: -log(1 - σ) must not be infinite
    assert lesson.learn(DeletedFacts(), to_tensor([(0, 0, 1, 1)]))["del"].item() == pytest.approx(score)


# Temporal regularization -------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["squares", "norm"])
@few
@given(drawn=timelines(), name=st.sampled_from(MODELS), data=st.data())
def test_temporal_regularization(reduction: Any, drawn: Drawn, name: str, data: st.DataObject) -> None:
    timeline, line = drawn
    time = data.draw(st.integers(min(1, line.num_steps - 1), line.num_steps - 1))
    lesson = Lesson(timeline, time, name)
    now, before = ScoreOracle(lesson.model).tables, ScoreOracle(lesson.previous).tables
    known = {
        "entity": line.known_entities(max(time - 1, 0)),
        "relation": range(timeline.num_relations),
        "time": range(time),
    }
    axes = lesson.model.axes
    wanted = sum(drift(now[table], before[table], known[axes[table]], reduction == "squares") for table in now)
    found = lesson.learn(TemporalRegularization(weight=0.1, reduction=reduction))
    assert {key: loss.item() for key, loss in found.items()} == {"TR": pytest.approx(0.1 * wanted)}


def test_the_optimizer_takes_the_squares() -> None:
    assert TemporalRegularization(0.3).anchor_weight == 0.3
    assert TemporalRegularization(0.3, "norm").anchor_weight == 0
    assert CrossEntropy().anchor_weight == 0


def test_temporal_regularization_without_a_change_has_a_gradient(chain: Timeline) -> None:
    lesson = Lesson(chain, 1)
    lesson.context.previous = lesson.model.frozen_copy()
    for reduction in ("squares", "norm"):
        loss = lesson.learn(TemporalRegularization(reduction=reduction))["TR"]  # type: ignore[arg-type]
        gradients = torch.autograd.grad(loss, list(lesson.model.parameters()))
        assert all(gradient.isfinite().all() and not gradient.any() for gradient in gradients)


# Gradients, names, arguments ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_those_of_the_equations(name: str) -> None:
    """A finite difference of the oracle, for one number of each table."""
    train = [(0, 0, 1, 0), (1, 1, 2, 1), (2, 0, 3, 2), (0, 0, 1, 2)]
    timeline, line = (
        make_timeline(train, num_entities=4, num_relations=2, num_steps=3),
        TimelineOracle(train, [], [], 4, 3),
    )
    lesson, draws = Lesson(timeline, 2, name), all_draws(line, train)
    checks = [
        (CrossEntropy(negatives="all"), lambda score: link(score, draws)),
        (DeletedFacts(), lambda score: deletion(score, train)),
    ]
    for term, oracle in checks:
        lesson.model.zero_grad()
        sum(lesson.learn(term, to_tensor(train)).values()).backward()  # type: ignore[union-attr]
        for table in lesson.model.parameters():
            if table.grad is None:  # static models have no table of steps in use
                continue
            values = []
            for nudge in (1e-6, -2e-6):
                table.data[0, 0] += nudge
                values.append(oracle(ScoreOracle(lesson.model)))
            table.data[0, 0] += 1e-6
            assert table.grad[0, 0].item() == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-6)


def test_names_of_losses() -> None:
    assert CrossEntropy().loss_names == ("CE",)
    assert CrossEntropy(name="own").loss_names == ("own",)
    assert Replay().loss_names == ("RCE", "RKD")
    assert Replay(distill=0).loss_names == ("RCE",)
    assert DeletedFacts().loss_names == ("del",)
    assert TemporalRegularization().loss_names == ("TR",)
    losses: Losses = {}
    assert losses == {}


def test_number_of_examples_counts_negatives() -> None:
    assert CrossEntropy().num_examples(7, 3) == 7 * 1000
    assert CrossEntropy(negatives="all").num_examples(7, 3) == 7 * 2 * 3
    assert Replay().num_examples(7, 3) == 7 * 100
    assert DeletedFacts().num_examples(7, 3) == 7


@pytest.mark.parametrize("negatives", [0, -3])
def test_negatives(negatives: int) -> None:
    for term in (CrossEntropy, Replay):
        with pytest.raises(ValueError, match=rf"negatives must be 'all' or at least 1 \(got {negatives}\)"):
            term(negatives=negatives)


@pytest.mark.parametrize("weight", [-1.0, float("nan")])
def test_weights_must_not_be_negative(weight: float) -> None:
    for term in (CrossEntropy, DeletedFacts, Replay, TemporalRegularization):
        with pytest.raises(ValueError, match=rf"weight must be at least 0 \(got {weight}\)"):
            term(weight=weight)
    with pytest.raises(ValueError, match=r"distill must be at least 0 \(got -1\)"):
        Replay(distill=-1)


def test_other_arguments() -> None:
    with pytest.raises(ValueError, match=r"reduction must be 'squares' or 'norm' \(got 'mean'\)"):
        TemporalRegularization(reduction="mean")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"distill must be 0 with negatives='all' or shared='batch' \(got 1.0\)"):
        Replay(negatives="all")


def test_a_term_must_have_losses(chain: Timeline) -> None:
    with pytest.raises(NotImplementedError):
        Lesson(chain, 1).learn(Term())


def test_a_term_of_ones_own(chain: Timeline) -> None:
    """A term may use scores without candidates; without candidates there are no logits."""

    class Own(Term):
        def losses(self, encoded: Any, context: Any) -> Losses:
            with pytest.raises(RuntimeError, match=r"this term has drawn no candidates: its draw\(\) must return some"):
                encoded.logits()
            return {"own": encoded.scores().sum()}

    lesson, quads = Lesson(chain, 1), chain.observed.quads()
    assert lesson.learn(Own(), quads)["own"].item() == pytest.approx(model_for(chain, seed=1)(quads).sum().item())
