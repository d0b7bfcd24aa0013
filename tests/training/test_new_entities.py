import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from learning import MODELS, Lesson, model_for
from oracles import ScoreOracle, TimelineOracle, rows_of, with_answer
from timelines import make_timeline, timelines, to_tensor
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.loader import NegativeSampler, TKGBatch
from tkg_incremental.models import TKGModel, TransE
from tkg_incremental.ops.answers import SIDES
from tkg_incremental.strategies.terms import cross_entropy
from tkg_incremental.training import initialize_new_entities, new_entities, warm_up
from tkg_incremental.training.new_entities import new_entities_of

few = settings(max_examples=25, deadline=None)
Drawn = tuple[Timeline, TimelineOracle]


def warm_up_at(timeline: Timeline, model: TKGModel, time: int, stride: int = 1, **options: float) -> TKGModel:
    sampler = NegativeSampler(timeline, stride)
    warm_up(model, timeline, time, sampler, torch.Generator().manual_seed(0), **options)  # type: ignore[arg-type]
    return model


def new_at(line: TimelineOracle, time: int) -> set[int]:
    past, now = ({e for s, _, o, t in line.train if t in steps for e in (s, o)} for steps in (range(time), [time]))
    return now - past


@given(timelines(), st.integers(0, 3))
def test_new_entities_and_their_facts(drawn: Drawn, time: int) -> None:
    timeline, line = drawn
    time = min(time, timeline.num_steps - 1)
    new = new_at(line, time)
    entities, facts = new_entities_of(timeline, time)
    assert entities.tolist() == sorted(new)
    assert rows_of(facts) == sorted({row for row in line.train if row[3] == time and new & {row[0], row[2]}})


@few
@given(timelines(), st.sampled_from(MODELS), st.integers(1, 3))
def test_other_rows_stay(drawn: Drawn, name: str, stride: int) -> None:
    timeline, line = drawn
    assume(line.train and stride <= timeline.num_entities)
    time = max(time for time in range(timeline.num_steps) if new_at(line, time))
    before, model = model_for(timeline, name).tables(), model_for(timeline, name)
    new = sorted(new_at(line, time))
    warm_up_at(timeline, model, time, stride, epochs=2)
    for (key, was), table in zip(before.items(), model.tables().values(), strict=True):
        others = torch.ones(len(table), dtype=torch.bool)
        if model.axes[key] == "entity":
            others[new] = False
        assert torch.equal(table[others], was[others])
        assert table.grad is None


@few
@given(timelines(), st.sampled_from(MODELS), st.integers(1, 2))
def test_current_facts_against_new_entities(drawn: Drawn, name: str, stride: int) -> None:
    timeline, line = drawn
    assume(line.train and stride <= timeline.num_entities)
    time = max(time for time in range(timeline.num_steps) if new_at(line, time))
    new, quads = new_at(line, time), [(*triple, time) for triple in sorted(line.holding(time))]
    lesson = Lesson(timeline, time, name, stride=stride)
    score, total = ScoreOracle(lesson.model), 0.0
    for quad in quads:
        for side in SIDES:
            wrong = new - line.answers(side, "train", quad)
            total += math.log1p(sum(math.exp(score(with_answer(quad, side, e)) - score(quad)) for e in wrong))
    entities = torch.tensor(sorted(new))
    part = new_entities._against_new(to_tensor(quads), entities, lesson.sampler, lesson.generator, 100)
    (encoded,) = lesson.model.encode(TKGBatch([part], lesson.sampler), timeline)
    assert encoded is not None
    assert cross_entropy(encoded).item() == pytest.approx(total)


@pytest.fixture
def growing() -> Timeline:
    """Ten heads lead to one of two tails each; at step 2 two more heads appear, one for each tail."""
    train = [(e, 0, 10 + e % 2, t) for e in range(10) for t in range(3)] + [(12, 0, 10, 2), (13, 0, 11, 2)]
    return make_timeline(train, num_entities=14, num_relations=1, num_steps=3)


@pytest.mark.parametrize("name", ["DE complex", "HyTE", "Static complex"])
def test_they_learn_their_facts(growing: Timeline, name: str) -> None:
    model = model_for(growing, name)
    quads = to_tensor([(12, 0, 10, 2), (13, 0, 11, 2)])
    wrong = to_tensor([(12, 0, 11, 2), (13, 0, 10, 2)])
    for key, table in model.tables("entity").items():
        model.put(key, torch.tensor([12, 13]), 0.01 * table[12:])
    before = model(quads) - model(wrong)
    warm_up_at(growing, model, 2, epochs=200)
    assert bool((model(quads) - model(wrong) > before + 1).all())


@pytest.mark.parametrize("name", ["DE complex", "HyTE", "Static complex"])
def test_vectors_are_not_longer_than_those_before(growing: Timeline, name: str) -> None:
    model = model_for(growing, name)
    for key, table in model.tables("entity").items():
        model.put(key, torch.arange(12), 0.01 * table[:12])
    warm_up_at(growing, model, 2)
    for key, table in model.tables("entity").items():
        norms = table.norm(dim=1)
        assert bool((norms[12:] <= norms[:12].sort().values[10] * 1.001).all()), key


def test_many_new_entities_are_used_in_turn(growing: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_entities, "_MAX_NEW_NEGATIVES", 1)
    before, model = model_for(growing), warm_up_at(growing, model_for(growing), 2, epochs=3)
    moved = (before.tables()["entity_vectors"] != model.tables()["entity_vectors"]).any(1)
    assert moved.nonzero().flatten().tolist() == [12, 13]


def test_the_same_bits_twice(growing: Timeline) -> None:
    first, second = (warm_up_at(growing, model_for(growing), 2, epochs=3).state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


class _UnitVectors(TKGModel):
    def __init__(self) -> None:
        super().__init__(14, 1, 3, 4, TransE())
        self.add_table("entity_vectors", "entity", 4, unit=True)
        self.add_table("relation_vectors", "relation", 4)
        self.reset_parameters()


def test_unit_vectors(growing: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    model = _UnitVectors()
    before, lengths = model.tables()["entity_vectors"].clone(), list[Tensor]()
    encode = TKGModel.encode

    def keep(self: TKGModel, *args: object) -> object:
        lengths.append(self.rows("entity_vectors", torch.tensor([12, 13])).norm(dim=1).detach())
        return encode(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(TKGModel, "encode", keep)
    warm_up_at(growing, model, 2, epochs=3)
    torch.testing.assert_close(torch.stack(lengths), torch.ones(3, 2))
    assert not torch.equal(before, model.tables()["entity_vectors"])


class _Features(TKGModel):
    """Nothing of an entity is learnt."""

    def __init__(self) -> None:
        super().__init__(14, 1, 3, 4, TransE())
        self.add_table("relation_vectors", "relation", 4)
        self.reset_parameters()

    def entity(self, index: Tensor, time: Tensor) -> Tensor:
        index, _ = torch.broadcast_tensors(index, time)
        return index[..., None] / torch.arange(1.0, 1 + self.hidden_channels)


def test_no_tables_of_entities(growing: Timeline) -> None:
    model = _Features()
    before = model.tables()["relation_vectors"].clone()
    warm_up_at(growing, model, 2)
    assert torch.equal(before, model.tables()["relation_vectors"])


def test_in_half_precision(growing: Timeline) -> None:
    before = model_for(growing).bfloat16()
    model = warm_up_at(growing, model_for(growing).bfloat16(), 2, epochs=2)
    moved = (before.tables()["entity_vectors"] != model.tables()["entity_vectors"]).any(1)
    assert moved.nonzero().flatten().tolist() == [12, 13]


@pytest.mark.parametrize("name", ["DE complex", "HyTE"])
@pytest.mark.parametrize("how", ["warm_up", "initialize", "keep"])
def test_initial_values(growing: Timeline, name: str, how: str) -> None:
    models = {}
    for seed in (0, 0, 2**32):
        model = model_for(growing, name)
        before = {key: table.detach().clone() for key, table in model.tables().items()}
        initialize_new_entities(model, growing, 2, how, NegativeSampler(growing), seed)  # type: ignore[arg-type]
        for key, table in model.tables().items():
            changed = (table != before[key]).any(1).nonzero().flatten().tolist()
            wanted = {"entity": [12, 13], "relation": [], "time": [2]}[model.axes[key]]
            assert changed == ([] if how == "keep" else wanted)
        values = model.tables()["entity_vectors"][12:].detach()
        if seed in models:
            assert torch.equal(values, models[seed])
        models[seed] = values
    assert torch.equal(models[0], models[2**32]) == (how == "keep")


def test_known_from_test_quads_only() -> None:
    """An entity of a test quad is initialized when it occurs first, and warmed up when it has a train fact."""
    train = [(0, 0, 1, 0), (0, 0, 1, 1), (0, 0, 2, 2)]
    timeline = make_timeline(train, test=[(2, 0, 0, 1)], num_entities=3, num_relations=1, num_steps=3)
    model, sampler = model_for(timeline), NegativeSampler(timeline)
    changes = []
    for time in (1, 2):
        before = model.tables()["entity_vectors"].detach().clone()
        initialize_new_entities(model, timeline, time, "warm_up", sampler, 0)
        changes.append((model.tables()["entity_vectors"] != before).any(1).nonzero().flatten().tolist())
    assert changes == [[2], [2]]
