from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tkg_incremental.datasets import SyntheticTKG

SMALL = {"num_entities": 200, "num_relations": 4, "num_steps": 12, "facts_per_step": 300}


def test_synthetic() -> None:
    dataset = SyntheticTKG(**SMALL, added_per_step=30, deleted_per_step=20)
    assert str(dataset).startswith("SyntheticTKG(12 steps 0 … 11, 200 entities, 4 relations, ")
    assert dataset.timeline.train.num_rows == sum(300 + 10 * step for step in range(12))
    assert dataset.entities.index("entity 17") == 17
    assert dataset.relations.index("relation 3") == 3
    assert dataset.step_of(5) == 5


@st.composite
def sizes(draw: st.DrawFn) -> dict[str, int]:
    facts, added, deleted = draw(st.integers(1, 40)), draw(st.integers(0, 6)), draw(st.integers(0, 6))
    num_steps = draw(st.integers(1, 8))
    assume(num_steps == 1 or deleted <= min(facts, facts + (added - deleted) * (num_steps - 2)))
    return {
        "num_entities": draw(st.integers(30, 60)),
        "num_relations": draw(st.integers(2, 4)),
        "num_steps": num_steps,
        "facts_per_step": facts,
        "added_per_step": added,
        "deleted_per_step": deleted,
        "num_phases": draw(st.integers(1, 3)),
        "seed": draw(st.integers(0, 99)),
    }


@given(sizes())
@settings(max_examples=50)
def test_exactly_what_is_asked_for(sizes: dict[str, int]) -> None:
    dataset = SyntheticTKG(**sizes)
    assert len(dataset[0].train) == len(dataset[0].current) == sizes["facts_per_step"]
    for snapshot in list(dataset)[1:]:
        assert len(snapshot.added) == sizes["added_per_step"]
        assert len(snapshot.removed) == sizes["deleted_per_step"]


def test_a_step_without_new_entities() -> None:
    dataset = SyntheticTKG(num_entities=4, num_steps=20, facts_per_step=5, added_per_step=3, num_relations=20)
    assert len(dataset[19].known_entities) == 4


def test_the_seed_decides() -> None:
    one, same, other = (SyntheticTKG(**SMALL, seed=seed).timeline for seed in (1, 1, 2))
    for split in ("train", "val", "test"):
        assert torch.equal(one.split(split).facts, same.split(split).facts)
        assert not torch.equal(one.split(split).facts, other.split(split).facts)


def triples(facts: torch.Tensor) -> set[tuple[int, ...]]:
    return set(map(tuple, facts[:, :3].tolist()))


def test_held_out_facts_are_new_and_supported() -> None:
    timeline = SyntheticTKG(**SMALL, val=0.2, test=0.1).timeline
    train, val, test = (triples(timeline.split(name).facts) for name in ("train", "val", "test"))
    assert not train & val
    assert not train & test
    assert not val & test
    assert (len(val), len(test)) == (round(len(train) * 0.2), round(len(train) * 0.1))
    asked_in_train = {(head, rel, time) for head, rel, _, time in timeline.train.quads().tolist()}
    held_out = torch.cat([timeline.val.quads(), timeline.test.quads()]).tolist()
    assert all((head, rel, time) in asked_in_train for head, rel, _, time in held_out)


def test_entities_appear_over_time() -> None:
    dataset = SyntheticTKG(**SMALL, added_per_step=60)
    known = dataset.timeline.num_known
    assert int(known[0]) <= 100
    assert int(known[-1]) > 180
    assert bool((known.diff() > 0).all())
    # Their ids are in no order that a model could use.
    assert not torch.equal(dataset.timeline.order, torch.arange(200))


def test_half_of_the_added_facts_are_about_new_entities() -> None:
    dataset = SyntheticTKG(num_entities=2000, num_steps=10, facts_per_step=8000, added_per_step=200)
    for snapshot in list(dataset)[1:]:
        new = dataset.timeline.first_seen[snapshot.added[:, 0]] == snapshot.time
        assert 0.35 < float(new.float().mean()) < 0.65  # they are fewer than one in ten of those known


def test_every_second_relation_changes_with_the_phase() -> None:
    # All facts of a step are new, so those of steps 1 and 2 belong to different phases. Five clusters leave
    # some chance that a phase draws the same as the last one: not with this seed.
    sizes = {"num_entities": 100, "num_relations": 4, "num_steps": 4, "num_clusters": 5, "num_phases": 2}
    dataset = SyntheticTKG(**sizes, facts_per_step=900, added_per_step=900, seed=4)
    same = []
    for relation in range(4):
        before, after = (dataset[step].train for step in (1, 2))
        before, after = before[before[:, 1] == relation], after[after[:, 1] == relation]
        tails = torch.zeros(100, 100).index_put_((before[:, 0], before[:, 2]), torch.ones(len(before)))
        # Heads and tails that the facts of step 1 connect, directly or not: one pair of clusters.
        connected = tails @ tails.t() @ tails @ tails.t() @ tails > 0
        known = tails.any(1)[after[:, 0]] & tails.any(0)[after[:, 2]]
        same.append(float(connected[after[:, 0], after[:, 2]][known].float().mean()))
    assert min(same[::2]) > 0.9
    assert max(same[1::2]) < 0.1


@pytest.mark.parametrize("relation", range(4))
def test_structure_can_be_found(relation: int) -> None:
    """Entities that share a tail are of one cluster, and so are all their tails: this alone finds answers."""
    dataset = SyntheticTKG(num_entities=200, num_relations=4, num_steps=8, facts_per_step=1200)
    hits = total = 0
    for snapshot in dataset:
        now = snapshot.train[snapshot.train[:, 1] == relation]
        tails = torch.zeros(200, 200).index_put_((now[:, 0], now[:, 2]), torch.ones(len(now)))
        scores = tails @ tails.t() @ tails @ tails.t() @ tails
        asked = snapshot.test[snapshot.test[:, 1] == relation]
        best = scores.masked_fill(tails > 0, -1)[asked[:, 0]].topk(10).indices
        hits += int((best == asked[:, 2:3]).any(1).sum())
        total += len(asked)
    assert total > 100
    assert hits / total > 0.4  # 10 guesses among 200 entities would find 5%


def test_cached(tmp_path: Path) -> None:
    built = SyntheticTKG(tmp_path, **SMALL)
    opened = SyntheticTKG(tmp_path, **SMALL)
    memory = SyntheticTKG(**SMALL)
    assert torch.equal(built.timeline.train.facts, opened.timeline.train.facts)
    assert torch.equal(built.timeline.train.facts, memory.timeline.train.facts)
    SyntheticTKG(tmp_path, **SMALL, seed=1)
    assert len(list((tmp_path / "processed").iterdir())) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_entities": 0}, r"num_entities must be at least 1 \(got 0\)"),
        ({"num_steps": 0}, r"num_steps must be at least 1 \(got 0\)"),
        ({"facts_per_step": 0}, r"facts_per_step must be at least 1 \(got 0\)"),
        ({"added_per_step": -1}, r"added_per_step must be at least 0 \(got -1\)"),
        ({"val": -0.1}, r"val must be at least 0 \(got -0.1\)"),
        ({"num_clusters": 501}, r"num_clusters must lie in 1 … 500 \(got 501\)"),
        ({"facts_per_step": 10, "deleted_per_step": 11}, r"deleted_per_step must leave facts to delete"),
        (
            {"facts_per_step": 10, "added_per_step": 1, "deleted_per_step": 2},
            r"deleted_per_step must leave facts",
        ),
        (
            {"num_entities": 4, "num_relations": 1, "facts_per_step": 50},
            r"must leave room for different facts",
        ),
    ],
)
def test_sizes_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SyntheticTKG(**options)
