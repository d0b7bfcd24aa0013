import pytest
import torch
from learning import step_for
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
    Current,
    Deleted,
    Drift,
    FBFuture,
    Forget,
    Link,
    Replay,
    Replayed,
    Strategy,
    Window,
)
from tkg_incremental.strategies.zoo import project


def test_names() -> None:
    assert str(FT()) == ("FT([\n  Link(view=Added(), negatives=500, shared=False, weight=1.0, name='CE'),\n])")
    assert [kind().name for kind in (FT, TR, TIE, FB, FBFuture, AGEM)] == [
        "FT",
        "TR",
        "TIE",
        "FB",
        "FB_future",
        "A-GEM",
    ]
    assert str(FBFuture()) == "FB_future([])"


def test_what_they_are_made_of() -> None:
    assert FT().terms == (Link(Added(), 500),)
    assert TR().terms == (Link(Added(), 500), Drift())
    assert TIE().terms == (
        Link(Added(), 500),
        Drift(),
        Forget(Deleted(10)),
        Replay(Replayed(10, 10_000, "uniform"), 50),
    )
    assert FB().terms == (Link(Current(), 500), Link(Window(10), 500, name="RCE"))
    assert FBFuture().terms == ()
    assert FBFuture().sees_future
    assert not TIE().sees_future


def test_switches() -> None:
    assert FT("all").terms == (Link(Current(), 500),)
    assert TR("all", negatives="all").terms == (Link(Current(), "all"), Drift())
    assert TIE("all", replay=None, deletion=False).terms == TR("all").terms
    assert [type(term) for term in TIE(replay=None).terms] == [Link, Drift, Forget]
    assert [type(term) for term in TIE(deletion=False).terms] == [Link, Drift, Replay]
    assert TIE(window=4).terms[2:] == (Forget(Deleted(4)), Replay(Replayed(4, 4000)))
    small = TIE(replay="inverse", replay_size=7, replay_negatives=3, shared=True)
    assert small.terms[0] == Link(Added(), 500, shared=True)
    assert small.terms[3] == Replay(Replayed(10, 7, "inverse"), 3, shared=True)
    far = AGEM(replay="turns", window=5, replay_window=8, drift=0.5)
    assert far.terms[1:] == (Drift(0.5), Forget(Deleted(5)), Replay(Replayed(8, 5000, "turns"), distill=0.0))
    far = TIE(replay="turns", window=5, replay_window="all")
    assert far.terms[2:] == (Forget(Deleted(5)), Replay(Replayed("all", 5000, "turns")))
    for kind in (FT, TR, TIE, AGEM):
        with pytest.raises(ValueError, match=r"facts must be 'added' or 'all' \(got 'new'\)"):
            kind(facts="new")


def test_weights() -> None:
    link, drift, forget, replay = TIE(ce=0.1, forget=0.2, rce=0.3, rkd=0.4, drift=0.5).terms
    assert (link.weight, forget.weight, replay.weight, replay.distill, drift.weight) == (0.1, 0.2, 0.3, 0.4, 0.5)  # type: ignore[attr-defined]
    assert FT(ce=0.1).terms[0] == Link(Added(), weight=0.1)
    assert TR(ce=0.1, drift=0.5).terms == (Link(Added(), weight=0.1), Drift(0.5))


def test_a_strategy_and_more_terms() -> None:
    terms = [Forget()]
    more = FT() + terms
    assert type(more) is Strategy
    assert (more.name, more.terms) == ("FT+", (Link(), Forget()))


# Gradients ---------------------------------------------------------------------------------------------


@pytest.fixture
def timeline() -> Timeline:
    train = [(e, 0, (e + t) % 6, t) for t in range(3) for e in range(5)]
    return make_timeline(train, num_entities=6, num_relations=1, num_steps=3)


def gradients(losses: dict[str, Tensor], strategy: Strategy, parameters: list[nn.Parameter]) -> list[Tensor]:
    for parameter in parameters:
        parameter.grad = None
    strategy.backward(losses, parameters)
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in parameters]


def test_a_strategy_adds_its_losses(timeline: Timeline) -> None:
    step, strategy = step_for(timeline, 2), TIE(negatives=3, replay_negatives=3)
    parameters = list(step.model.parameters())
    losses: dict[str, Tensor] = {}
    for term in strategy.terms:
        rows = timeline.train.rows[:0] if term.view is None else term.view.rows(step.snapshot, step.generator)
        losses |= term.losses(step, rows)
    assert set(losses) == {"CE", "TR", "del", "RCE", "RKD"}
    each = [torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True) for loss in losses.values()]
    wanted = [sum(g for g in parts if g is not None) for parts in zip(*each, strict=True)]
    for found, want in zip(gradients(losses, strategy, parameters), wanted, strict=True):
        assert torch.allclose(found, want)  # type: ignore[arg-type]


def test_agem_projects_row_by_row(timeline: Timeline) -> None:
    step, strategy = step_for(timeline, 2), AGEM()
    assert [type(term) for term in strategy.terms] == [Link, Drift, Forget, Replay]
    assert strategy.terms[3].distill == 0  # type: ignore[attr-defined]
    parameters = list(step.model.parameters())
    rows = timeline.train.rows
    for sparse in (False, True):
        step.model.encoder.sparse_gradients = sparse
        losses = {
            **Link(negatives=4).losses(step, rows),
            **Forget().losses(step, rows),
            **Replay(negatives=4, distill=0.0).losses(step, rows),
        }
        own = torch.autograd.grad(losses["CE"] + losses["del"], parameters, retain_graph=True)
        reference = torch.autograd.grad(losses["RCE"], parameters, retain_graph=True)
        found = gradients(losses, strategy, parameters)
        changed = 0
        for gradient, g, ref in zip(found, own, reference, strict=True):
            dense = [list(map(float, row)) for row in g.to_dense()]
            wanted = [project_row(a, list(map(float, b))) for a, b in zip(dense, ref.to_dense(), strict=True)]
            assert torch.allclose(gradient.to_dense(), torch.tensor(wanted, dtype=torch.double))
            changed += sum(a != b for a, b in zip(dense, wanted, strict=True))
        assert changed  # some row did point against the replay loss


def test_agem_without_replay_is_its_own_gradient(timeline: Timeline) -> None:
    step, strategy = step_for(timeline, 2), AGEM()
    parameters = list(step.model.parameters())
    losses = Link(negatives=4).losses(step, timeline.train.rows)
    wanted = torch.autograd.grad(losses["CE"], parameters, retain_graph=True)
    for found, want in zip(gradients(losses, strategy, parameters), wanted, strict=True):
        assert torch.equal(found, want)


def test_projection_by_hand() -> None:
    gradient = torch.tensor([[1.0, -1.0], [1.0, 1.0], [-3.0, 0.0], [2.0, 2.0]])
    reference = torch.tensor([[0.0, 2.0], [0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    assert project(gradient, reference).tolist() == [[1, 0], [1, 1], [0, 0], [2, 2]]
    assert (project(gradient, reference) * reference).sum(1).ge(0).all()
