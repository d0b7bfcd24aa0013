import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tkg_incremental.metrics import (
    average,
    backward_transfer,
    deleted_hits_at,
    forgetting,
    forward_transfer,
    hits_at,
    mean_rank,
    mean_reciprocal_rank,
    omega_new,
    omega_old,
    reciprocal_rank_difference,
)

NAN = float("nan")
halves = st.integers(2, 40).map(lambda n: n / 2)
shares = st.one_of(st.just(NAN), st.floats(0, 100))


@given(st.lists(halves, min_size=1), st.integers(1, 12))
def test_ranks(ranks: list[float], k: int) -> None:
    tensor = torch.tensor(ranks)
    share = 100 * sum(rank <= k for rank in ranks) / len(ranks)
    assert hits_at(tensor, k) == pytest.approx(share)
    assert deleted_hits_at(tensor, k) == pytest.approx(share)
    assert mean_rank(tensor) == pytest.approx(sum(ranks) / len(ranks))
    assert mean_reciprocal_rank(tensor) == pytest.approx(100 * sum(1 / rank for rank in ranks) / len(ranks))


def test_the_boundary() -> None:
    assert hits_at(torch.tensor([10.0, 10.5]), 10) == 50


@given(st.data())
def test_reciprocal_rank_difference(data: st.DataObject) -> None:
    ranks = data.draw(st.lists(halves, min_size=1, max_size=5))
    deleted = data.draw(st.lists(st.tuples(st.integers(0, len(ranks) - 1), halves), min_size=1, max_size=8))
    found = reciprocal_rank_difference(
        torch.tensor(ranks), torch.tensor([rank for _, rank in deleted]), torch.tensor([row for row, _ in deleted])
    )
    assert found == pytest.approx(100 * sum(1 / ranks[row] - 1 / rank for row, rank in deleted) / len(deleted))


def test_nothing_to_average() -> None:
    nothing = torch.empty(0)
    assert all(math.isnan(metric(nothing)) for metric in (hits_at, mean_rank, mean_reciprocal_rank, deleted_hits_at))
    assert math.isnan(reciprocal_rank_difference(torch.tensor([1.0]), nothing, torch.empty(0, dtype=torch.long)))
    assert math.isnan(average({0: NAN, 1: NAN}))
    assert math.isnan(average({0: 1.0}, first=1))
    assert math.isnan(average({}))


@given(st.lists(shares, min_size=1), st.integers(0, 3))
def test_average(row: list[float], first: int) -> None:
    there = [value for value in row[first:] if not math.isnan(value)]
    wanted = sum(there) / len(there) if there else NAN
    assert average(dict(enumerate(row)), first) == pytest.approx(wanted, nan_ok=True)


@given(st.integers(1, 5), st.data())
def test_forgetting(steps: int, data: st.DataObject) -> None:
    alpha = [[data.draw(shares) if j <= t else NAN for j in range(steps)] for t in range(steps)]
    # Values that do not exist are left out or NaN.
    keep_nan = data.draw(st.booleans())
    history = {
        t: {j: value for j, value in enumerate(row) if keep_nan or not math.isnan(value)} for t, row in enumerate(alpha)
    }
    for t in range(steps):
        lost = []
        for i in range(t):
            earlier = [alpha[model][i] for model in range(t) if not math.isnan(alpha[model][i])]
            if earlier and not math.isnan(alpha[t][i]):
                lost.append(max(earlier) - alpha[t][i])
        assert forgetting(history, t) == pytest.approx(sum(lost) / len(lost) if lost else NAN, nan_ok=True)


def test_forgetting_by_hand() -> None:
    alpha = {0: {0: 50.0}, 1: {0: 80.0, 1: 40.0}, 2: {0: 60.0, 1: 50.0, 2: 10.0}}
    assert forgetting(alpha, 2) == 5  # 80 − 60 forgotten, 40 − 50 gained
    assert math.isnan(forgetting(alpha, 0))
    assert math.isnan(forgetting(alpha, 7))


def mean(values: list[float]) -> float:
    there = [value for value in values if not math.isnan(value)]
    return sum(there) / len(there) if there else NAN


@given(st.integers(1, 5), st.integers(0, 2), st.data())
def test_transfer(steps: int, base: int, data: st.DataObject) -> None:
    # Models from step `base` on; rows reach back to step 0.
    alpha = {t: {j: data.draw(shares) for j in range(t + 1)} for t in range(base, base + steps)}
    last, approx = base + steps - 1, lambda value: pytest.approx(value, nan_ok=True)
    assert backward_transfer(alpha) == approx(mean([alpha[last][i] - alpha[i][i] for i in range(base, last)]))
    assert omega_new(alpha) == approx(mean([alpha[t][t] / 100 for t in alpha]))
    old = [mean([alpha[t][i] / 100 for i in range(t)]) for t in alpha]
    assert omega_old(alpha) == approx(mean(old))
    ideal = {j: data.draw(st.floats(1, 100)) for j in range(last + 1)}
    assert omega_new(alpha, ideal) == approx(mean([alpha[t][t] / ideal[t] for t in alpha]))
    assert omega_old(alpha, ideal) == approx(mean([mean([alpha[t][i] / ideal[i] for i in range(t)]) for t in alpha]))
    before = {t: data.draw(shares) for t in alpha}
    assert forward_transfer(before) == approx(mean(list(before.values())))


def test_transfer_of_nothing() -> None:
    assert all(math.isnan(metric({})) for metric in (backward_transfer, forward_transfer, omega_new, omega_old))
    assert math.isnan(omega_new({0: {0: 10.0}}, ideal={0: 0.0}))
