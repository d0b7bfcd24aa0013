import torch
from learning import model_for
from timelines import make_interval_timeline

from tkg_incremental.metrics import Evaluator
from tkg_incremental.metrics.exclusion import ignore_excluded, ranks_with_excluded
from tkg_incremental.ops.ranking import RankedAnswers, count_ranks


def test_by_hand() -> None:
    """One query, five candidates with the scores 5, 4, 3, 2, 1. The first two are excluded; the answers at 1 and 3 are
    both true, so that each filters the other."""
    table, query = torch.tensor([[5.0], [4.0], [3.0], [2.0], [1.0]]), torch.ones(1, 1)
    owner, column = torch.tensor([0, 0]), torch.tensor([1, 3])
    true = torch.tensor([0, 0, 1, 1]), torch.tensor([1, 3, 1, 3])
    excluded = torch.tensor([0, 0]), torch.tensor([0, 1])
    answers = RankedAnswers(query, owner, column, true)
    counts = count_ranks(ignore_excluded(answers, excluded, 5), table, "dot")
    filtered, raw = ranks_with_excluded(answers, excluded, 5, counts)
    # The answer at 1 is tied with the candidate at 0, behind 2 and 4 and, unless it is filtered, 3.
    assert raw.tolist() == [4.5, 2]
    assert filtered.tolist() == [3.5, 2]


def test_a_fact_that_begins_again_ranks_last() -> None:
    train = [(0, 0, 1, 0, 1), (0, 0, 2, 2, 4), (3, 0, 1, 0, 4)]
    sizes = {"num_entities": 4, "num_relations": 1, "num_steps": 5}
    timeline = make_interval_timeline(train, [], [(0, 0, 1, 3, 4)], **sizes)
    model = model_for(timeline)
    for window, last in ((10, True), (1, False)):  # it ended two steps before step 3
        ranks = Evaluator(timeline, window=window, exclude_ended=True).rank(model, 3)
        assert ranks is not None
        # Behind 0 and 3; 2 is true and filtered, as is 3 for the head.
        assert (ranks.filtered.tolist() == [3, 3]) == last
        assert (ranks.raw.tolist() == [4, 4]) == last


def test_evaluators_with_and_without_it_differ() -> None:
    timeline = make_interval_timeline([(0, 0, 1, 0, 1)], num_entities=2, num_relations=1, num_steps=2)
    without, with_ = Evaluator(timeline), Evaluator(timeline, exclude_ended=True)
    assert "exclude_ended" not in without.options  # such runs have the configuration of earlier versions
    assert with_.options == {**without.options, "exclude_ended": True}
    assert repr(with_) == "Evaluator(test, window=10, per_query=False, exclude_ended=True)"
