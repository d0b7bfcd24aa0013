import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from learning import MODELS, model_for, step_for
from oracles import ScoreOracle, TimelineOracle, rows_of, with_answer
from timelines import make_timeline, timelines, to_tensor
from torch import Tensor

from tkg_incremental.data import Snapshot, Timeline
from tkg_incremental.models import Encoder, TKGModel, TransE
from tkg_incremental.ops.answers import SIDES
from tkg_incremental.sampling import NegativeSampler, Pool
from tkg_incremental.strategies import Step
from tkg_incremental.training import newcomers
from tkg_incremental.training.newcomers import newcomers_of, settle

few = settings(max_examples=25, deadline=None)


def settle_at(timeline: Timeline, model: TKGModel, time: int, stride: int = 1, **options: float) -> TKGModel:
    negatives = NegativeSampler(timeline, Pool(timeline, stride))
    settle(model, Snapshot(timeline, time), negatives, torch.Generator().manual_seed(0), **options)  # type: ignore[arg-type]
    return model


def who_is_new(line: TimelineOracle, time: int) -> set[int]:
    past, now = ({e for s, _, o, t in line.train if t in steps for e in (s, o)} for steps in (range(time), [time]))
    return now - past


@given(timelines(), st.integers(0, 3))
def test_newcomers_and_their_facts(drawn: tuple[Timeline, TimelineOracle], time: int) -> None:
    timeline, line = drawn
    time = min(time, timeline.num_steps - 1)
    new = who_is_new(line, time)
    entities, facts = newcomers_of(Snapshot(timeline, time))
    assert entities.tolist() == sorted(new)
    assert rows_of(facts) == sorted({row for row in line.train if row[3] == time and new & {row[0], row[2]}})


@few
@given(timelines(), st.sampled_from(MODELS), st.integers(1, 3))
def test_nobody_else_moves(drawn: tuple[Timeline, TimelineOracle], name: str, stride: int) -> None:
    timeline, line = drawn
    assume(line.train and stride <= timeline.num_entities)
    time = max(time for time in range(timeline.num_steps) if who_is_new(line, time))
    before, model = model_for(timeline, name).encoder.tables(), model_for(timeline, name)
    new = sorted(who_is_new(line, time))
    settle_at(timeline, model, time, stride, epochs=2)
    for (key, was), table in zip(before.items(), model.encoder.tables().values(), strict=True):
        others = torch.ones(len(table), dtype=torch.bool)
        if model.encoder.axes[key] == "entity":
            others[new] = False
        assert torch.equal(table[others], was[others])
        assert table.grad is None


@few
@given(timelines(), st.sampled_from(MODELS))
def test_current_facts_against_newcomers(drawn: tuple[Timeline, TimelineOracle], name: str) -> None:
    timeline, line = drawn
    assume(line.train)
    time = max(time for time in range(timeline.num_steps) if who_is_new(line, time))
    new, rows = who_is_new(line, time), [(*triple, time) for triple in sorted(line.holding(time))]
    step = step_for(timeline, time, name)
    score, total = ScoreOracle(step.model), 0.0
    for row in rows:
        for side in SIDES:
            wrong = new - line.answers(side, "train", row)
            total += math.log1p(sum(math.exp(score(with_answer(row, side, e)) - score(row)) for e in wrong))
    found = newcomers._intrusion(step, to_tensor(rows), torch.tensor(sorted(new)))
    assert found.item() == pytest.approx(total / len(rows))


@pytest.fixture
def growing() -> Timeline:
    """Ten heads lead to one of two tails each; at step 2 two more heads come, one for each tail."""
    train = [(e, 0, 10 + e % 2, t) for e in range(10) for t in range(3)] + [(12, 0, 10, 2), (13, 0, 11, 2)]
    return make_timeline(train, num_entities=14, num_relations=1, num_steps=3)


@pytest.mark.parametrize("name", ["DE complex", "HyTE"])
def test_they_find_their_place(growing: Timeline, name: str) -> None:
    model = model_for(growing, name)
    rows = to_tensor([(12, 0, 10, 2), (13, 0, 11, 2)])
    wrong = to_tensor([(12, 0, 11, 2), (13, 0, 10, 2)])
    for key, table in model.encoder.tables("entity").items():
        model.encoder.put(key, torch.tensor([12, 13]), 0.01 * table[12:])
    before = model(rows) - model(wrong)
    settle_at(growing, model, 2, epochs=200)
    assert bool((model(rows) - model(wrong) > before + 1).all())


def test_many_newcomers_are_met_in_turn(growing: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newcomers, "_AT_A_TIME", 1)
    before, model = model_for(growing), settle_at(growing, model_for(growing), 2, epochs=3)
    moved = (before.encoder.tables()["entity_vectors"] != model.encoder.tables()["entity_vectors"]).any(1)
    assert moved.nonzero().flatten().tolist() == [12, 13]


def test_the_same_draws_give_the_same_bits(growing: Timeline) -> None:
    first, second = (settle_at(growing, model_for(growing), 2, epochs=3).state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


class _OnASphere(Encoder):
    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.add_table("entity_vectors", "entity", sizes[-1], unit=True)
        self.add_table("relation_vectors", "relation", sizes[-1])

    def entity(self, index: Tensor, time: Tensor) -> Tensor:
        index, _ = torch.broadcast_tensors(index, time)
        return self.rows("entity_vectors", index)

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        return self.rows("relation_vectors", index)


def test_on_a_sphere(growing: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    model = TKGModel(_OnASphere(14, 1, 3, 4), TransE())
    model.encoder.reset_parameters(torch.Generator().manual_seed(0))
    lengths = []

    def keep(step: Step, *args: Tensor) -> Tensor:
        lengths.append(step.model.encoder.rows("entity_vectors", torch.tensor([12, 13])).norm(dim=1).detach())
        return intrusion(step, *args)

    intrusion = newcomers._intrusion
    monkeypatch.setattr(newcomers, "_intrusion", keep)
    settle_at(growing, model, 2, epochs=3)
    torch.testing.assert_close(torch.stack(lengths), torch.ones(3, 2))


class _Featured(_OnASphere):
    """Nothing of an entity is learnt."""

    def __init__(self, *sizes: int) -> None:
        Encoder.__init__(self, *sizes)
        self.add_table("relation_vectors", "relation", sizes[-1])

    def entity(self, index: Tensor, time: Tensor) -> Tensor:
        index, _ = torch.broadcast_tensors(index, time)
        return index[..., None] / torch.arange(1.0, 1 + self.hidden_channels)


def test_nothing_to_settle(growing: Timeline) -> None:
    model = TKGModel(_Featured(14, 1, 3, 4), TransE())
    model.encoder.reset_parameters(torch.Generator().manual_seed(0))
    before = model.encoder.tables()["relation_vectors"].clone()
    settle_at(growing, model, 2)
    assert torch.equal(before, model.encoder.tables()["relation_vectors"])


def test_in_half_precision(growing: Timeline) -> None:
    before = model_for(growing).bfloat16()
    model = settle_at(growing, model_for(growing).bfloat16(), 2, epochs=2)
    moved = (before.encoder.tables()["entity_vectors"] != model.encoder.tables()["entity_vectors"]).any(1)
    assert moved.nonzero().flatten().tolist() == [12, 13]
