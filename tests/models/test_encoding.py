"""What the terms of a batch have encoded together is what each would have encoded for itself."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from learning import MODELS
from torch import Tensor

from tkg_incremental.data import Snapshot
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.models import TKGModel
from tkg_incremental.registry import make_model
from tkg_incremental.sampling import NegativeSampler, Pool
from tkg_incremental.strategies import TIE, Forget, Link, Replay, Step, Strategy, Supersede
from tkg_incremental.strategies.encoding import BatchEncoding
from tkg_incremental.training.objective import Objective

DATASET = SyntheticTKG(num_entities=40, num_relations=3, num_steps=10, facts_per_step=120, seed=1)
TIME = 7


def step_with(name: str, dtype: torch.dtype, stride: int = 1) -> Step:
    model, previous = (make_model(name, DATASET, 8, seed=seed).to(dtype) for seed in range(2))
    line = DATASET.timeline
    generator, negatives = torch.Generator().manual_seed(0), NegativeSampler(line, Pool(line, stride))
    return Step(Snapshot(line, TIME), model, previous.frozen_copy(), negatives, generator)


def views(strategy: Strategy, step: Step) -> list[Tensor | None]:
    drawn = torch.Generator().manual_seed(1)
    terms = [term for term in strategy.terms if not term.pull]
    return [None if term.view is None else term.view.rows(step.snapshot, drawn) for term in terms]


def learn(strategy: Strategy, name: str, dtype: torch.dtype, stride: int) -> tuple[dict[str, float], list[Tensor]]:
    step = step_with(name, dtype, stride)
    terms = [term for term in strategy.terms if not term.pull]
    losses = Objective(step, terms)(views(strategy, step))
    sum(losses.values()).backward()  # type: ignore[union-attr]
    gradients = [torch.zeros(()) if table.grad is None else table.grad for table in step.model.parameters()]
    return {key: loss.item() for key, loss in losses.items()}, gradients


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many steps each call for all known entities was about."""
    calls: list[int] = []

    def make(step: Step) -> None:
        known = type(step.model.encoder).known

        def counted(self: Any, order: Tensor, steps: Any, sizes: Any) -> Tensor:
            if torch.is_grad_enabled():
                calls.append(len(steps))
            return known(self, order, steps, sizes)

        monkeypatch.setattr(type(step.model.encoder), "known", counted)

    for name in ("DE", "HyTE", "Static"):
        make(step_with(name, torch.float))
    return calls


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
@pytest.mark.parametrize("name", sorted({model.split()[0] for model in MODELS}))
@pytest.mark.parametrize("strategy", [TIE(window=3), Supersede(window=3, lapse=2.0)], ids=["TIE", "Supersede"])
def test_together_as_alone(
    strategy: Strategy,
    name: str,
    dtype: torch.dtype,
    stride: int,
    encoded: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    losses, gradients = learn(strategy, name, dtype, stride)
    # Once, for the step and the three before. What a pool cannot have in it, facts that were replaced, comes beside it.
    assert encoded == ([4] if stride == 1 or strategy.name == "TIE" else [4, 1])
    encoded.clear()
    monkeypatch.setattr(BatchEncoding, "_encoded", None)
    wanted, wanted_gradients = learn(strategy, name, dtype, stride)
    assert len(encoded) > 1
    precision = 1e-4 if dtype == torch.float else 1e-12
    assert losses == pytest.approx(wanted, rel=precision)
    for found, want in zip(gradients, wanted_gradients, strict=True):
        torch.testing.assert_close(found, want, rtol=precision, atol=precision)


@pytest.mark.parametrize("name", ["DE", "HyTE", "Static"])
def test_gradients_of_few_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tkg_incremental.models.encoder._FEW", 1)  # one in one is few
    found = []
    for sparse in (True, False):
        step = step_with(name, torch.double, stride=5)
        step.model.encoder.sparse_gradients = sparse
        rows = step.snapshot.added[:3]
        losses = Objective(step, [Link(negatives=50), Forget()])([rows, rows[:2]])
        sum(losses.values()).backward()  # type: ignore[union-attr]
        gradient = step.model.encoder.get_parameter("entity_vectors").grad
        assert gradient is not None
        assert gradient.is_sparse == sparse
        found.append((losses, gradient.to_dense()))
    (losses, gradient), (wanted, wanted_gradient) = found
    torch.testing.assert_close(losses, wanted)
    torch.testing.assert_close(gradient, wanted_gradient)


def test_a_few_of_many_are_not_worth_it(encoded: list[int]) -> None:
    step = step_with("DE", torch.float)
    rows = step.snapshot.deleted()[:3]
    found = Objective(step, [Forget()])([rows])["del"]
    assert encoded == []
    assert found.item() == pytest.approx(torch.nn.functional.softplus(step.model(rows)).mean().item())


@pytest.mark.parametrize("term", [Link(negatives=99), Replay(negatives=99)], ids=str)
def test_what_rows_share_occurs_once(term: Link | Replay) -> None:
    rows = step_with("DE", torch.float).snapshot.added[:5]
    assert term.occurrences(len(rows)) == 1000
    assert replace(term, shared=True).occurrences(len(rows)) == 10
    assert replace(term, negatives="all").occurrences(len(rows)) == 10


def test_an_empty_batch() -> None:
    assert Objective(step_with("DE", torch.float), [Forget()])([torch.empty(0, 4, dtype=torch.long)]) == {}


def test_scores_of_rows(encoded: list[int]) -> None:
    step = step_with("DE", torch.float)
    rows = step.snapshot.current

    def scores(model: TKGModel, occurrences: int) -> Tensor:
        step.encoding = BatchEncoding(model, step.timeline, step.negatives.pool, rows, occurrences)
        return step.scores(rows)

    torch.testing.assert_close(scores(step.model, 10**6), scores(step.model, 0))
    assert encoded == [1]


@pytest.mark.parametrize("stride", [1, 3])
def test_scores_of_rows_that_are_not_in_the_batch(stride: int) -> None:
    step = step_with("DE", torch.float, stride)
    batch = step.snapshot.added[:2]
    step.encoding = BatchEncoding(step.model, step.timeline, step.negatives.pool, batch, 10**6)
    torch.testing.assert_close(step.scores(batch), step.model(batch))
    for others in (step.snapshot.current, step.timeline.observed.rows):  # other heads and tails, other steps
        torch.testing.assert_close(step.scores(others), step.model(others))


def test_scores_of_who_is_not_known_yet() -> None:
    step = step_with("DE", torch.float)
    batch = step.timeline.observed.between(0, TIME)
    step.encoding = BatchEncoding(step.model, step.timeline, step.negatives.pool, batch, 10**6)
    last = int(step.timeline.order[int(step.timeline.num_known[1])])  # appears after step 1
    rows = torch.tensor([[last, 0, last, 0], [last, 0, last, 1]])
    torch.testing.assert_close(step.scores(rows), step.model(rows))


def test_other_rows_than_the_batch_s_are_refused() -> None:
    step = step_with("DE", torch.float, stride=3)
    rows = step.snapshot.current
    step.encoding = BatchEncoding(step.model, step.timeline, step.negatives.pool, rows[:2], 10**6)
    with pytest.raises(RuntimeError, match="these rows are not of the batch"):
        Link().losses(step, rows)
    alone = replace(step, encoding=None)
    assert Link().losses(alone, rows)["CE"].isfinite()
