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
from tkg_incremental.sampling import NegativeSampler
from tkg_incremental.strategies import TIE, Forget, Link, Replay, Step, Strategy, Supersede
from tkg_incremental.strategies.encoding import BatchEncoding
from tkg_incremental.training.objective import Objective

DATASET = SyntheticTKG(num_entities=40, num_relations=3, num_steps=10, facts_per_step=120, seed=1)
TIME = 7


def step_with(name: str, dtype: torch.dtype) -> Step:
    model, previous = (make_model(name, DATASET, 8, seed=seed).to(dtype) for seed in range(2))
    line = DATASET.timeline
    generator = torch.Generator().manual_seed(0)
    return Step(Snapshot(line, TIME), model, previous.frozen_copy(), NegativeSampler(line), generator)


def views(strategy: Strategy, step: Step) -> list[Tensor | None]:
    drawn = torch.Generator().manual_seed(1)
    terms = [term for term in strategy.terms if not term.pull]
    return [None if term.view is None else term.view.rows(step.snapshot, drawn) for term in terms]


def learn(strategy: Strategy, name: str, dtype: torch.dtype) -> tuple[dict[str, float], list[Tensor]]:
    step = step_with(name, dtype)
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


@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
@pytest.mark.parametrize("name", sorted({model.split()[0] for model in MODELS}))
@pytest.mark.parametrize("strategy", [TIE(window=3), Supersede(window=3)], ids=str)
def test_together_as_alone(
    strategy: Strategy, name: str, dtype: torch.dtype, encoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    losses, gradients = learn(strategy, name, dtype)
    assert encoded == [4]  # once, for the step and the three before
    encoded.clear()
    monkeypatch.setattr(BatchEncoding, "find", lambda *_: None)
    wanted, wanted_gradients = learn(strategy, name, dtype)
    assert len(encoded) > 1
    precision = 1e-4 if dtype == torch.float else 1e-12
    assert losses == pytest.approx(wanted, rel=precision)
    for found, want in zip(gradients, wanted_gradients, strict=True):
        torch.testing.assert_close(found, want, rtol=precision, atol=precision)


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
        step.encoding = BatchEncoding(model, step.timeline, rows[:, 3], occurrences)
        return step.scores(rows)

    torch.testing.assert_close(scores(step.model, 10**6), scores(step.model, 0))
    assert encoded == [1]
