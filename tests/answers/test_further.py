"""The expected number of further answers, against loops over all entities and steps."""

import random

import pytest
import torch

from tkg_incremental.answers.further import further_answers


def drawn(seed: int, steps: int) -> list[tuple[int, int, int]]:
    rng = random.Random(seed)
    spans = [(rng.randrange(4), *sorted(rng.choices(range(steps), k=2))) for _ in range(rng.randrange(1, 12))]
    return [(given, first, last) for given, first, last in spans]


@pytest.mark.parametrize("seed", range(20))
def test_against_loops(seed: int) -> None:
    steps, rows = 9, drawn(seed, 9)
    numbers = [
        sum(first <= step <= last for entity, first, last in rows if entity == given)
        for given in {row[0] for row in rows}
        for step in range(steps)
    ]
    unit = sum(last - first + 1 for _, first, last in rows) / len(rows)
    expected = []
    for known in range(max(numbers) + 1):
        more = [number - known for number in numbers if number >= known]
        expected.append((sum(more) / unit + 0.5) / (len(more) / unit + 1))
    expected = [expected[0], *(max(value, expected[1]) for value in expected[1:])]
    assert further_answers(torch.tensor(rows), steps).tolist() == pytest.approx(expected)


def test_a_successor_is_no_second_answer() -> None:
    """An office with 40 holders, one after the other: 1 in 80, half an answer among 41 facts."""
    rows = torch.tensor([(0, 5 * i, 5 * i + 4) for i in range(40)])
    assert further_answers(rows, 200).tolist() == pytest.approx([40.5 / 41, 0.5 / 41])


def test_steps_may_be_days_or_years() -> None:
    years = torch.tensor([(0, 0, 3), (0, 2, 5), (1, 1, 1)])
    days = torch.stack([years[:, 0], 365 * years[:, 1], 365 * years[:, 2] + 364], 1)
    assert torch.allclose(further_answers(days, 365 * 8), further_answers(years, 8))


def test_the_largest_group_is_not_complete() -> None:
    """No group with more than 30 members has been seen."""
    rows = torch.tensor([(group, 0, 9) for group, size in enumerate([10, 20, 30]) for _ in range(size)])
    found = further_answers(rows, 10)
    assert len(found) == 31
    assert float(found[30]) == float(found[1]) > 10


def test_few_facts_say_little() -> None:
    nothing, one = torch.empty(0, 3, dtype=torch.long), torch.tensor([(0, 0, 3)])
    assert further_answers(nothing, 8).tolist() == [0.5, 0.5]
    assert further_answers(one, 4).tolist() == [0.75, 0.25]
    assert further_answers(torch.tensor([(0, 3, 2)]), 4).tolist() == [0.5, 0.5]  # holds at no step
