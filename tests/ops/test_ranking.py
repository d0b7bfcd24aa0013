import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles.ranks import place

from tkg_incremental.communicator import LOCAL
from tkg_incremental.ops import ranking
from tkg_incremental.ops.ranking import RankedAnswers, count_in_parts, count_ranks, ranks_of
from tkg_incremental.ops.scores import Similarity


def test_by_hand() -> None:
    # One query that scores the candidates 3, 1, 1, 1, 0; the answers are the second and the last.
    table = torch.tensor([[3.0], [1.0], [1.0], [1.0], [0.0]])
    ignored = (torch.tensor([0, 0, 0, 1, 1]), torch.tensor([0, 1, 2, 1, 4]))
    counts = count_ranks(
        RankedAnswers(torch.ones(1, 1), torch.tensor([0, 0]), torch.tensor([1, 4]), ignored), table, "dot"
    )
    assert counts[:, 0].tolist() == [1, 4]  # better
    assert counts[:, 1].tolist() == [2, 0]  # tied
    filtered, raw = ranks_of(counts)
    assert raw.tolist() == [3, 5]  # places 2 … 4, and 5
    assert filtered.tolist() == [1.5, 4]  # against one tie; with one better left out


def test_ranks_of_ties() -> None:
    filtered, raw = ranks_of(torch.tensor([[0, 3, 0, 0], [2, 3, 1, 3]]))
    assert raw.tolist() == [2.5, 4.5]
    assert filtered.tolist() == [2.5, 2]


def test_as_many_answers_as_queries_between_the_first_and_the_last() -> None:
    """Query 1 has one answer, 2 none and 3 two: three answers, three queries, and yet not one each."""
    query = torch.tensor([[0.0], [1.0], [0.0], [-1.0]])
    table = torch.tensor([[1.0], [2.0], [3.0]])
    owner, column, none = torch.tensor([1, 3, 3]), torch.tensor([0, 0, 1]), torch.empty(0, dtype=torch.long)
    assert ranks_of(count_ranks(RankedAnswers(query, owner, column, (none, none)), table, "dot"))[1].tolist() == [
        3,
        1,
        2,
    ]


@pytest.mark.parametrize("similarity", ["dot", "l1"])
@given(data=st.data())
def test_ranks_by_sorting(similarity: Similarity, data: st.DataObject) -> None:
    queries, candidates, width = (data.draw(st.integers(1, limit)) for limit in (4, 7, 2))
    # Small integers: scores tie often, and exactly.
    numbers = st.lists(st.integers(-2, 2), min_size=width, max_size=width)
    query = torch.tensor([data.draw(numbers) for _ in range(queries)], dtype=torch.float)
    table = torch.tensor([data.draw(numbers) for _ in range(candidates)], dtype=torch.float)
    # Queries without an answer and with several; an answer may be asked for twice.
    column = st.integers(0, candidates - 1)
    answers = sorted(data.draw(st.lists(st.tuples(st.integers(0, queries - 1), column), min_size=1, max_size=8)))
    ignored = [sorted(data.draw(st.sets(column))) for _ in answers]
    owner = torch.tensor([query for query, _ in answers])
    columns = torch.tensor([column for _, column in answers])
    left_out = torch.tensor([(i, c) for i, cs in enumerate(ignored) for c in cs], dtype=torch.long).view(-1, 2)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "_SCORES_AT_A_TIME", data.draw(st.sampled_from([1, candidates * 2, candidates * 3 + 1])))
        patch.setattr(ranking, "_WIDE", data.draw(st.sampled_from([0, 100])))
        patch.setattr(ranking, "_BLOCK", data.draw(st.integers(1, 3)))
        patch.setattr(ranking, "_ANSWERS_TO_A_BLOCK", data.draw(st.integers(1, 3)))
        patch.setattr(ranking, "_SORTED_CHUNKS", data.draw(st.integers(1, 3)))
        given = RankedAnswers(query, owner, columns, (left_out[:, 0].contiguous(), left_out[:, 1]))
        filtered, raw = ranks_of(count_ranks(given, table, similarity))
        patch.setattr(ranking, "_SCREEN", 1)
        limit = data.draw(st.integers(1, 4))
        (limited,) = count_in_parts([given], table, similarity, LOCAL, limit)

    among_first = filtered <= limit
    assert torch.equal(ranks_of(limited)[0] <= limit, among_first)
    assert torch.equal(ranks_of(limited)[0][among_first], filtered[among_first])

    def score(q: int, c: int) -> float:
        if similarity == "dot":
            return sum(a * b for a, b in zip(query[q].tolist(), table[c].tolist(), strict=True))
        return -sum(abs(a - b) for a, b in zip(query[q].tolist(), table[c].tolist(), strict=True))

    for i, (q, own) in enumerate(answers):
        everything = [score(q, c) for c in range(candidates)]
        allowed = [s for c, s in enumerate(everything) if c == own or c not in ignored[i]]
        assert raw[i].item() == place(everything, everything[own])
        assert filtered[i].item() == place(allowed, everything[own])


def test_counts_add_up_over_shards() -> None:
    query, table = torch.ones(2, 1), torch.tensor([[2.0], [1.0], [1.0], [3.0]])
    owner, column, none = torch.tensor([0, 1]), torch.tensor([1, 3]), torch.empty(0, dtype=torch.long)
    whole = count_ranks(RankedAnswers(query, owner, column, (none, none)), table, "dot")
    # A shard that does not hold an answer gets it as a last row, which ties with nothing but itself.
    found = torch.zeros(2, 4, dtype=torch.long)
    for shard in ([0, 1], [2, 3]):
        for answer in range(2):
            extended = torch.cat([table[[i for i in shard if i != column[answer]]], table[column[answer]][None]])
            last = torch.tensor([len(extended) - 1])
            given = RankedAnswers(query[answer, None], torch.tensor([0]), last, (none, none))
            found[answer] += count_ranks(given, extended, "dot")[0]
    assert torch.equal(found, whole)


@pytest.mark.parametrize(("value", "rank"), [("inf", 1), ("-inf", 3), ("nan", 2)])
def test_scores_that_are_no_finite_numbers(value: str, rank: int) -> None:
    table, none = torch.tensor([[1.0], [float(value)], [2.0]]), torch.empty(0, dtype=torch.long)
    answers = RankedAnswers(torch.ones(1, 1), torch.tensor([0]), torch.tensor([1]), (none, none))
    assert ranks_of(count_ranks(answers, table, "dot"))[1].tolist() == [rank]


@pytest.mark.parametrize("similarity", ["dot", "l1", "l2"])
def test_equal_vectors_tie_in_a_narrower_last_block(similarity: Similarity) -> None:
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(ranking._WIDE + 5, 32, generator=generator)
    column, none = torch.tensor([5, 3005, 6005, 9005]), torch.empty(0, dtype=torch.long)
    table[-4:] = table[column]
    answers = RankedAnswers(torch.randn(4, 32, generator=generator), torch.arange(4), column, (none, none))
    assert count_ranks(answers, table, similarity)[:, 1].tolist() == [1, 1, 1, 1]
