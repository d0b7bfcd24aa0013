import pytest
import torch
from drawing import assert_same_gradients
from learning import MODELS, Lesson
from timelines import make_timeline

from tkg_incremental.data import Timeline
from tkg_incremental.strategies import N3, CrossEntropy, DeletedFacts, TemporalSmoothness
from tkg_incremental.strategies.regularization import n3, temporal_smoothness


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
    encoder = lesson.model.encoder
    factors = [encoder.entity(head, time), encoder.relation(rel, time), encoder.entity(tail, time)]
    wanted = 0.3 * 2 * n3(factors)
    assert loss.item() == pytest.approx(wanted.item())
    assert_same_gradients(lesson.model, loss, wanted)


def test_smoothness_up_to_the_step(timeline: Timeline) -> None:
    for time in range(3):
        lesson = Lesson(timeline, time, "HyTE")
        loss = lesson.learn(TemporalSmoothness(0.3))["smoothness"]
        wanted = 0.3 * temporal_smoothness(lesson.model.encoder.tables()["normals"][: time + 1])
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
