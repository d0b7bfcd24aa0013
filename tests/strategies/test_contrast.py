"""The terms for facts that are over, by hand and against their equations, given the same candidates."""

import math

import pytest
import torch
from drawing import assert_same_gradients, draws_of, plain_logits
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from learning import MODELS, Lesson
from oracles import Row, ScoreOracle, TimelineOracle
from timelines import make_timeline, timelines, to_tensor

from tkg_incremental.data import Timeline
from tkg_incremental.strategies import Contrast, CrossEntropy, Deleted, Successors, Term, UnlikelihoodLoss

few = settings(max_examples=20)
Drawn = tuple[Timeline, TimelineOracle]


def deleted_answers(line: TimelineOracle, quad: Row, side: str, window: int) -> set[int]:
    """Train answers in the window before that are none now."""
    before = [line.answers(side, "train", (*quad[:3], then)) for then in range(quad[3] - window, quad[3])]
    return set().union(*before) - line.answers(side, "train", quad)


def with_crowd(terms: list[Term], crowded: bool) -> list[Term]:
    """Another term with so many candidates that all known entities are encoded."""
    return [*terms, CrossEntropy(negatives=60)] if crowded else terms


# Contrast ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@few
@given(timelines(), st.integers(1, 4), st.integers(1, 3), st.sampled_from([1, 2]), st.booleans(), st.booleans())
def test_contrast(
    name: str, drawn: Drawn, window: int, rivals: int, stride: int, together: bool, crowded: bool
) -> None:
    timeline, line = drawn
    time = timeline.num_steps - 1
    quads = [(*triple, time) for triple in sorted(line.holding(time))]
    assume(quads)
    lesson = Lesson(timeline, time, name, stride=stride, together=together)
    terms = with_crowd([Contrast(window=window, rivals=rivals, weight=2.0)], crowded)
    batch = lesson.batch(terms, [to_tensor(quads)] * len(terms))
    draws = draws_of(next(iter(batch)))
    total, plain, score = 0.0, torch.zeros((), dtype=torch.double), ScoreOracle(lesson.model)
    for draw in draws:
        former = deleted_answers(line, draw.row, draw.side, window)
        assert set(draw.negatives) <= former
        assert len(draw.negatives) == (rivals if former else 0)
        own, *others = draw.scores(score)
        total += math.log(1 + sum(math.exp(other - own) for other in others))
        plain = plain - plain_logits(lesson.model, draw).log_softmax(0)[0]
    loss = lesson.losses(terms, batch)["contrast"]
    assert loss.item() == pytest.approx(2 * total / len(quads), abs=1e-12)
    assert_same_gradients(lesson.model, loss, 2 * plain / len(quads))


def test_contrast_by_hand() -> None:
    """2 replaced 1 as the tail of 0; 3 leads to 2 and led to nothing before."""
    train = [(0, 0, 1, 0), (0, 0, 2, 1), (3, 0, 2, 1)]
    lesson = Lesson(make_timeline(train, num_entities=4, num_relations=1, num_steps=2), 1)
    score = ScoreOracle(lesson.model)
    quads = Successors(1).select(lesson.timeline, 1, lesson.generator)
    assert quads.tolist() == [[0, 0, 2, 1]]
    found = lesson.learn(Contrast(window=1, rivals=3), quads)["contrast"].item()
    above = score((0, 0, 1, 1)) - score((0, 0, 2, 1))
    assert found == pytest.approx(math.log(1 + 3 * math.exp(above)))


def test_all_replaced_facts_are_drawn_equally_often() -> None:
    train = [(0, 0, entity, 0) for entity in range(1, 5)] + [(0, 0, 5, 1)]
    lesson = Lesson(make_timeline(train, num_entities=6, num_relations=1, num_steps=2), 1)
    drawn = lesson.draw(Contrast(window=1, rivals=20_000), to_tensor([(0, 0, 5, 1)])).candidates
    assert drawn is not None
    counts = torch.bincount(drawn.entities[0], minlength=6)
    assert counts[[0, 5]].tolist() == [0, 0]
    assert ((counts[1:5] - 5000) ** 2 / 5000).sum() < 16.3  # 99.9%, three degrees of freedom
    assert drawn.mask is not None
    assert drawn.mask.tolist() == [[False], [True]]  # nothing else led to 5 before
    assert not drawn.from_pool


def test_an_index_is_made_for_each_step_and_graph() -> None:
    """A term that is used again with another graph or step does not keep the old answers."""
    train = [(0, 0, 1, 0), (0, 0, 2, 1), (0, 0, 3, 2)]
    term = Contrast(window=1, rivals=1)
    for graph in (train, [(0, 0, 3, 0), *train[1:]]):
        timeline = make_timeline(graph, num_entities=4, num_relations=1, num_steps=3)
        for time in (1, 2):
            drawn = Lesson(timeline, time).draw(term, timeline.observed.at(time)).candidates
            assert drawn is not None
            assert drawn.entities[0].tolist() == [graph[time - 1][2]]


# Unlikelihood ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("open_only", [True, False])
@pytest.mark.parametrize("name", MODELS)
@few
@given(timelines(), st.integers(1, 9), st.sampled_from([1, 2]), st.booleans())
def test_unlikelihood(name: str, open_only: bool, drawn: Drawn, negatives: int, stride: int, together: bool) -> None:
    timeline, line = drawn
    time = timeline.num_steps - 1
    quads = line.deleted(time, 3)
    assume(quads)
    lesson = Lesson(timeline, time, name, stride=stride, together=together)
    term = UnlikelihoodLoss(negatives=negatives, weight=2.0, open_only=open_only)
    batch = lesson.batch([term], [to_tensor(quads)])
    total, plain, score = 0.0, torch.zeros((), dtype=torch.double), ScoreOracle(lesson.model)
    for draw in draws_of(next(iter(batch))):
        assert not set(draw.negatives) & line.answers(draw.side, "train", draw.row)
        if open_only and line.answers(draw.side, "train", draw.row):
            continue
        if not draw.negatives:
            continue
        own, *others = draw.scores(score)
        # -log(1 - e^own / (e^own + Σ)) = log(1 + e^own / Σ), which keeps its digits where the share is close to 1.
        total += math.log1p(math.exp(own) / sum(map(math.exp, others)))
        logits = plain_logits(lesson.model, draw)
        plain = plain + torch.nn.functional.softplus(logits[0] - logits[1:].logsumexp(0))
    loss = lesson.losses([term], batch)["unlikelihood"]
    # Torch's softplus is the identity above 20, which leaves out up to 2e-9 per query.
    assert loss.item() == pytest.approx(2 * total / len(quads), abs=1e-8)
    assert_same_gradients(lesson.model, loss, 2 * plain / len(quads))


def test_unlikelihood_by_hand() -> None:
    """0 led to 1 and leads to nothing now; 3 leads to 1 now, so that the head query is not asked."""
    train = [(0, 0, 1, 0), (3, 0, 1, 1)]
    lesson = Lesson(make_timeline(train, num_entities=4, num_relations=1, num_steps=2), 1)
    quads = Deleted(1, unreplaced=True).select(lesson.timeline, 1, lesson.generator)
    assert quads.tolist() == [[0, 0, 1, 1]]
    scores = [ScoreOracle(lesson.model)((0, 0, entity, 1)) for entity in (0, 1, 3)]
    found = lesson.learn(UnlikelihoodLoss(negatives=20_000), quads)["unlikelihood"].item()
    mean = sum(math.exp(value) for value in scores) / 3
    assert found == pytest.approx(math.log1p(math.exp(scores[1]) / (20_000 * mean)), rel=0.05)


def test_a_query_without_negatives_is_finite() -> None:
    """All known entities answer the head query now, so that none can be drawn for it."""
    train = [(0, 0, 1, 0), (1, 0, 1, 0), (0, 0, 0, 1), (1, 0, 0, 1)]
    timeline = make_timeline(train, num_entities=2, num_relations=1, num_steps=2)
    for open_only in (True, False):
        lesson = Lesson(timeline, 1)
        loss = lesson.learn(UnlikelihoodLoss(open_only=open_only), to_tensor([(0, 0, 0, 1)]))["unlikelihood"]
        assert loss.isfinite()
        assert (loss == 0) == open_only  # the tail query has a negative, but also an answer
        loss.backward()
        assert all(table.grad is None or table.grad.isfinite().all() for table in lesson.model.parameters())


def test_learning_lowers_deleted_facts() -> None:
    train = [(0, 0, 1, 0), (2, 0, 3, 0), (2, 0, 3, 1)]
    lesson = Lesson(make_timeline(train, num_entities=4, num_relations=1, num_steps=2), 1)
    quads = to_tensor([(0, 0, 1, 1)])
    lesson.learn(UnlikelihoodLoss(), quads)["unlikelihood"].backward()
    before = lesson.model(quads).item()
    with torch.no_grad():
        for parameter in lesson.model.parameters():
            if parameter.grad is not None:
                parameter -= 0.1 * parameter.grad
    assert lesson.model(quads).item() < before


# Arguments ---------------------------------------------------------------------------------------------


def test_number_of_examples() -> None:
    assert Contrast(rivals=3).num_examples(5, 9) == 5 * 2 * 4
    assert UnlikelihoodLoss(negatives=7).num_examples(5, 9) == 5 * 14


def test_arguments() -> None:
    with pytest.raises(ValueError, match=r"rivals must be at least 1 \(got 0\)"):
        Contrast(rivals=0)
    with pytest.raises(ValueError, match=r"negatives must be a number \(got 'all'\)"):
        UnlikelihoodLoss(negatives="all")
    with pytest.raises(ValueError, match=r"negatives must be 'all' or at least 1 \(got 0\)"):
        UnlikelihoodLoss(negatives=0)
    for term in (Contrast, UnlikelihoodLoss):
        with pytest.raises(ValueError, match=r"weight must be at least 0 \(got -1\)"):
            term(weight=-1)


def test_defaults() -> None:
    assert str(Contrast()) == "Contrast(view=Successors(window=10, limit=10000), window=10, rivals=4, weight=1.0)"
