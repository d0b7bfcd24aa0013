import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learning import model_for
from oracles import ScoreOracle, TimelineOracle
from oracles.scores import with_answer
from timelines import make_interval_timeline, timelines

from tkg_incremental.data import Timeline
from tkg_incremental.metrics import interval_ranks


@settings(max_examples=40)
@given(timelines(), st.sampled_from(["Static complex", "DE complex", "HyTE"]), st.sampled_from(["test", "val"]))
def test_ranks(drawn: tuple[Timeline, TimelineOracle], name: str, split: str) -> None:
    """The mean, over the steps of a fact, of its rank among the candidates that are not true at this step."""
    timeline, line = drawn
    model = model_for(timeline, name)
    score, expected = ScoreOracle(model), []
    for side in ("tail", "head"):
        for head, rel, tail, first, last in timeline.split(split).facts.tolist():
            own, query = tail if side == "tail" else head, (head, rel, tail, first)
            scores = [score(with_answer(query, side, entity)) for entity in range(line.num_entities)]
            ranks = []
            for step in range(first, last + 1):
                true = line.answers(side, "all", (head, rel, tail, step))
                others = [entity for entity in range(line.num_entities) if entity not in true]
                ranks.append(1 + sum(scores[entity] > scores[own] - 1e-5 for entity in others))
            expected.append(sum(ranks) / len(ranks))
    assert interval_ranks(model, timeline, split).tolist() == pytest.approx(expected)


def test_an_answer_that_holds_half_of_the_time_counts_half() -> None:
    train, test = [(0, 0, 2, 0, 1)], [(0, 0, 1, 0, 3)]
    timeline = make_interval_timeline(train, [], test, num_entities=3, num_relations=1, num_steps=4)
    model = model_for(timeline, "Static distmult")
    for table in model.parameters():
        table.data.fill_(1.0)  # all scores are equal, and ties count as better
    # Tail: 0 always, 2 at half of the steps. Head: 1 and 2.
    assert interval_ranks(model, timeline).tolist() == [2.5, 3]
    model.train()
    interval_ranks(model, timeline)
    assert model.training
