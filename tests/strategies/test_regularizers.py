import pytest
import torch
from drawing import assert_same_gradients
from learning import MODELS, Lesson
from timelines import make_timeline
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.models import ChronoR, TComplEx, TNTComplEx
from tkg_incremental.strategies import N3, CrossEntropy, DeletedFacts, TemporalSmoothness
from tkg_incremental.strategies.regularizers import nuclear_norm, temporal_smoothness


@pytest.fixture
def timeline() -> Timeline:
    train = [(e, 0, (e + t) % 6, t) for t in range(3) for e in range(5)]
    return make_timeline(train, num_entities=6, num_relations=1, num_steps=3)


@pytest.mark.parametrize("negatives", [2, 60], ids=["pairs", "pool"])
@pytest.mark.parametrize("name", MODELS)
def test_n3_of_all_terms(timeline: Timeline, name: str, negatives: int) -> None:
    """Head, relation and tail of every quad in both directions, mean over the quads of all terms."""
    lesson, quads = Lesson(timeline, 2, name), timeline.observed.quads()
    terms = [CrossEntropy(negatives=negatives), DeletedFacts(), N3(0.3)]
    loss = lesson.losses(terms, lesson.batch(terms, [quads[:7], quads[5:8], None]))["N3"]
    both = torch.cat([quads[:7], quads[5:8]])
    head, rel, tail, time = both.unbind(1)
    model = lesson.model
    factors = [model.entity(head, time), model.relation(rel, time), model.entity(tail, time)]
    wanted = 0.3 * 2 * nuclear_norm(factors)
    assert loss.item() == pytest.approx(wanted.item())
    assert_same_gradients(lesson.model, loss, wanted)


@pytest.mark.parametrize(("kind", "products"), [(TComplEx, 1), (TNTComplEx, 2), (ChronoR, 1)])
def test_n3_of_models_with_time_in_relations(timeline: Timeline, kind: type, products: int) -> None:
    """The ends are factors of each product; the other factors are those of the encoder."""
    lesson, quads = Lesson(timeline, 2), timeline.observed.quads()[:7]
    lesson.context.model = lesson.model = model = kind(6, 1, 3, hidden_channels=8, reciprocal=True)
    loss = lesson.losses([CrossEntropy(), N3(0.3)], lesson.batch([CrossEntropy(), N3(0.3)], [quads, None]))["N3"]
    head, rel, tail, time = quads.unbind(1)
    ends = nuclear_norm([model.entity(head, time), model.entity(tail, time)])
    factors = [each for way in (0, 1) for each in model.relation_factors(2 * rel + way, time)]
    wanted = 0.3 * (2 * products * ends + nuclear_norm(factors))
    assert loss.item() == pytest.approx(wanted.item())


def test_smoothness_up_to_the_step(timeline: Timeline) -> None:
    for time in range(3):
        lesson = Lesson(timeline, time, "HyTE")
        loss = lesson.learn(TemporalSmoothness(0.3))["smoothness"]
        wanted = 0.3 * temporal_smoothness(lesson.model.tables()["normals"][: time + 1])
        assert loss.item() == pytest.approx(wanted.item())
    assert Lesson(timeline, 2, "DE complex").learn(TemporalSmoothness())["smoothness"].item() == 0  # no such table


def test_weights() -> None:
    for term in (N3, TemporalSmoothness):
        with pytest.raises(ValueError, match=r"weight must be at least 0 \(got -1\)"):
            term(weight=-1)


def test_n3_of_several_processes(timeline: Timeline) -> None:
    lesson, quads = Lesson(timeline, 2), timeline.observed.quads()
    terms = [CrossEntropy(negatives=9), DeletedFacts(), N3(0.3)]
    batch = lesson.batch(terms, [quads[:7], quads[5:10], None])
    parts = [lesson.losses(terms, batch.part(rank, 3))["N3"].item() for rank in range(3)]
    assert sum(parts) / 3 == pytest.approx(lesson.losses(terms, batch)["N3"].item())


def draw_vectors(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(sum(shape)))


def norm(vector: list[float], p: int) -> float:
    """The p-norm of a complex vector to the power of p."""
    half = len(vector) // 2
    return sum(abs(complex(re, im)) ** p for re, im in zip(vector[:half], vector[half:], strict=True))


def test_by_hand() -> None:
    factor = torch.tensor([[3.0, 0.0, 4.0, 0.0]])  # (3 + 4i, 0)
    assert nuclear_norm([factor]).item() == pytest.approx(125)
    assert nuclear_norm([factor, factor], 4).item() == pytest.approx(2 * 625)
    assert temporal_smoothness(torch.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]])).item() == pytest.approx(125 / 2)


@pytest.mark.parametrize("p", [2, 3, 4])
def test_nuclear_norm(p: int) -> None:
    factors = [draw_vectors(5, 6), draw_vectors(5, 4)]
    wanted = sum(norm(row, p) / 5 for factor in factors for row in factor.tolist())
    assert nuclear_norm(factors, p).item() == pytest.approx(wanted)
    if p == 3:
        assert torch.equal(nuclear_norm(factors), nuclear_norm(factors, 3))


@pytest.mark.parametrize("p", [2, 3, 4])
def test_smoothness(p: int) -> None:
    table = draw_vectors(6, 4)
    rows = table.tolist()
    wanted = sum(norm([b - a for a, b in zip(rows[i], rows[i + 1], strict=True)], p) for i in range(5)) / 5
    assert temporal_smoothness(table, p).item() == pytest.approx(wanted)


@pytest.mark.parametrize("p", [2, 3, 4])
def test_gradients(p: int) -> None:
    table = draw_vectors(4, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: temporal_smoothness(x, p), table)
    assert torch.autograd.gradcheck(lambda x: nuclear_norm([x], p), table)


def test_gradients_at_zero() -> None:
    table = torch.ones(3, 4, requires_grad=True)
    (found,) = torch.autograd.grad(temporal_smoothness(table) + nuclear_norm([table - 1]), table)
    assert found.isfinite().all()
    assert not found.abs().gt(1e-15).any()


def test_one_step() -> None:
    assert temporal_smoothness(torch.ones(1, 4)).item() == 0


def test_arguments() -> None:
    with pytest.raises(ValueError, match="factors must not be empty"):
        nuclear_norm([])
    with pytest.raises(ValueError, match=r"complex vectors must have an even width \(got 3\)"):
        nuclear_norm([torch.ones(1, 3)])
    with pytest.raises(ValueError, match=r"p must be at least 2 \(got 1\)"):
        nuclear_norm([torch.ones(1, 2)], 1)
