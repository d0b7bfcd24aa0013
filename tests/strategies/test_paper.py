import pytest
import torch
from learning import Lesson
from oracles import project as project_row
from timelines import make_timeline
from torch import Tensor, nn

from tkg_incremental.data import Timeline
from tkg_incremental.strategies import (
    AGEM,
    FB,
    FT,
    TIE,
    TR,
    Added,
    CrossEntropy,
    Current,
    Deleted,
    DeletedFacts,
    FBFuture,
    Replay,
    Replayed,
    ReplayOptions,
    Strategy,
    TemporalRegularization,
)
from tkg_incremental.strategies.paper import project


def test_repr() -> None:
    assert (
        str(FT())
        == "FT([\n  CrossEntropy(view=Added(repeats=1), negatives=500, shared=False, weight=1.0, name='CE'),\n])"
    )
    names = [kind().name for kind in (FT, TR, TIE, FB, FBFuture, AGEM)]
    assert names == ["FT", "TR", "TIE", "FB", "FB_future", "A-GEM"]
    assert str(FBFuture()) == "FB_future([])"


def test_terms() -> None:
    assert FT().terms == (CrossEntropy(Added(), 500),)
    assert TR().terms == (CrossEntropy(Added(), 500), TemporalRegularization())
    assert TIE().terms == (
        CrossEntropy(Added(), 500),
        TemporalRegularization(),
        DeletedFacts(Deleted(10)),
        Replay(Replayed(10, 10_000, "uniform"), 50),
    )
    assert FB().terms == (CrossEntropy(Current(), 500), CrossEntropy(Replayed(10, None), 500, name="RCE"))
    assert FBFuture().terms == ()
    assert FBFuture().sees_future
    assert not TIE().sees_future


def test_switches() -> None:
    assert FT("all").terms == (CrossEntropy(Current(), 500),)
    assert TR("all", negatives="all").terms == (CrossEntropy(Current(), "all"), TemporalRegularization())
    assert TIE("all", replay=None, deletion=0).terms == TR("all").terms
    assert [type(term) for term in TIE(replay=None).terms] == [CrossEntropy, TemporalRegularization, DeletedFacts]
    assert [type(term) for term in TIE(deletion=0).terms] == [CrossEntropy, TemporalRegularization, Replay]
    assert TIE(window=4).terms[2:] == (DeletedFacts(Deleted(4)), Replay(Replayed(4, 4000)))
    small = TIE(replay=ReplayOptions("inverse", size=7, negatives=3), shared=True)
    assert small.terms[0] == CrossEntropy(Added(), 500, shared=True)
    assert small.terms[3] == Replay(Replayed(10, 7, "inverse"), 3, shared=True)
    far = AGEM(replay=ReplayOptions("boundary", window=8), window=5, regularization=0.5)
    assert far.terms[1:] == (
        TemporalRegularization(0.5),
        DeletedFacts(Deleted(5)),
        Replay(Replayed(8, 5000, "boundary"), distill=0.0),
    )
    far_back = TIE(replay=ReplayOptions("boundary", window="all"), window=5)
    assert far_back.terms[2:] == (DeletedFacts(Deleted(5)), Replay(Replayed("all", 5000, "boundary")))
    for kind in (FT, TR, TIE, AGEM):
        with pytest.raises(ValueError, match=r"facts must be 'added' or 'all' \(got 'new'\)"):
            kind(facts="new")


def test_replay_options() -> None:
    assert ReplayOptions().term(4) == Replay(Replayed(4, 4000), 50, False, 1.0, 1.0)
    assert ReplayOptions().term(4, per_step=600, shared=True) == Replay(Replayed(4, 2400), 50, True, 1.0, 1.0)
    assert ReplayOptions(negatives="all").term(4) == Replay(Replayed(4, 4000), "all", False, 1.0, 0.0)
    own = ReplayOptions("inverse", 7, 2, 5, 0.3, 0.4)
    assert own.term(4) == Replay(Replayed(2, 7, "inverse"), 5, False, 0.3, 0.4)


def test_weights() -> None:
    replay = ReplayOptions(weight=0.3, distill=0.4)
    strategy = TIE(weight=0.1, deletion=0.2, replay=replay, regularization=0.5)
    current, regularization, deleted, replayed = strategy.terms
    assert current == CrossEntropy(Added(), weight=0.1)
    assert deleted == DeletedFacts(Deleted(10), 0.2)
    assert replayed == Replay(Replayed(10, 10_000), weight=0.3, distill=0.4)
    assert regularization == TemporalRegularization(0.5)
    assert FT(weight=0.1).terms[0] == CrossEntropy(Added(), weight=0.1)
    assert TR(weight=0.1, regularization=0.5).terms == (
        CrossEntropy(Added(), weight=0.1),
        TemporalRegularization(0.5),
    )


@pytest.mark.parametrize("name", ["weight", "deletion", "regularization"])
def test_weights_must_not_be_negative(name: str) -> None:
    with pytest.raises(ValueError, match=r"weight must be at least 0 \(got -0.1\)"):
        TIE(**{name: -0.1})
    with pytest.raises(ValueError, match=r"distill must be at least 0 \(got -2\)"):
        TIE(replay=ReplayOptions(distill=-2))


# A-GEM -------------------------------------------------------------------------------------------------


@pytest.fixture
def timeline() -> Timeline:
    train = [(e, 0, (e + t) % 6, t) for t in range(3) for e in range(5)]
    return make_timeline(train, num_entities=6, num_relations=1, num_steps=3)


def gradients(losses: dict[str, Tensor], strategy: Strategy, parameters: list[nn.Parameter]) -> list[Tensor]:
    for parameter in parameters:
        parameter.grad = None
    strategy.backward(losses, parameters)
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in parameters]


def test_agem_projects_row_by_row(timeline: Timeline) -> None:
    lesson, strategy = Lesson(timeline, 2), AGEM()
    assert [type(term) for term in strategy.terms] == [CrossEntropy, TemporalRegularization, DeletedFacts, Replay]
    assert strategy.terms[3].loss_names == ("RCE",)
    parameters: list[nn.Parameter] = list(lesson.model.parameters())
    quads = timeline.observed.quads()
    terms = [CrossEntropy(negatives=4), DeletedFacts(), Replay(negatives=4, distill=0.0)]
    for sparse in (False, True):
        lesson.model.sparse_gradients = sparse
        losses = lesson.losses(terms, lesson.batch(terms, [quads] * 3))
        own = torch.autograd.grad(losses["CE"] + losses["del"], parameters, retain_graph=True)
        reference = torch.autograd.grad(losses["RCE"], parameters, retain_graph=True)
        found = gradients(losses, strategy, parameters)
        changed = 0
        for gradient, g, ref in zip(found, own, reference, strict=True):
            dense = g.to_dense().tolist()
            wanted = [project_row(a, b) for a, b in zip(dense, ref.to_dense().tolist(), strict=True)]
            assert torch.allclose(gradient.to_dense(), torch.tensor(wanted, dtype=torch.double))
            changed += sum(a != b for a, b in zip(dense, wanted, strict=True))
        assert changed  # some row did point against the replay loss


@pytest.mark.parametrize("name", ["CE", "RCE"])
def test_agem_with_one_loss_is_its_own_gradient(timeline: Timeline, name: str) -> None:
    lesson = Lesson(timeline, 2)
    parameters: list[nn.Parameter] = list(lesson.model.parameters())
    losses = lesson.learn(CrossEntropy(negatives=4, name=name), timeline.observed.quads())
    wanted = torch.autograd.grad(losses[name], parameters, retain_graph=True)
    for found, want in zip(gradients(losses, AGEM(), parameters), wanted, strict=True):
        assert torch.equal(found, want)


def test_projection_by_hand() -> None:
    gradient = torch.tensor([[1.0, -1.0], [1.0, 1.0], [-3.0, 0.0], [2.0, 2.0]])
    reference = torch.tensor([[0.0, 2.0], [0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    assert project(gradient, reference).tolist() == [[1, 0], [1, 1], [0, 0], [2, 2]]
    assert (project(gradient, reference) * reference).sum(1).ge(0).all()
