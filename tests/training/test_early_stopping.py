import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tkg_incremental.training import EarlyStopping


def test_name() -> None:
    assert str(EarlyStopping(patience=3)) == "EarlyStopping(patience=3, best=-inf, best_epoch=0)"


def test_by_hand() -> None:
    stopping = EarlyStopping(patience=2)
    told = []
    for epoch, value in enumerate([1.0, 3.0, 2.0, 3.0], start=1):
        told.append((stopping.update(value, epoch), stopping.is_over()))
    # What only equals the best is not better: epoch 2 stays, and after epoch 4 it is two epochs old.
    assert told == [(True, False), (True, False), (False, False), (False, True)]
    assert (stopping.best, stopping.best_epoch) == (3.0, 2)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=20), st.integers(1, 5))
def test_it_stops_when_the_best_is_old_enough(values: list[int], patience: int) -> None:
    stopping = EarlyStopping(patience)
    for epoch, value in enumerate(values, start=1):
        past = values[:epoch]
        is_best = value > max(past[:-1], default=-math.inf)
        assert stopping.update(value, epoch) == is_best
        best_epoch = past.index(max(past)) + 1
        assert (stopping.best, stopping.best_epoch) == (max(past), best_epoch)
        assert stopping.is_over() == (epoch - best_epoch >= patience)


def test_it_does_not_stop_between_validations() -> None:
    """Validated every seventh epoch, patience 5: the second value decides, not the fifth epoch after the first."""
    stopping = EarlyStopping(patience=5)
    stopping.update(1.0, 7)
    assert not stopping.is_over()
    stopping.update(2.0, 14)
    assert not stopping.is_over()
    stopping.update(2.0, 21)
    assert stopping.is_over()


def test_the_first_value_is_the_best_whatever_it_is() -> None:
    for value in (-math.inf, math.nan):
        assert EarlyStopping().update(value, 1)


def test_state() -> None:
    stopping = EarlyStopping(patience=4)
    stopping.update(5.0, 1)
    again = EarlyStopping.from_state(stopping.state_dict())
    assert again == stopping
    assert again is not stopping


def test_without_patience_the_last_epoch_counts() -> None:
    stopping = EarlyStopping(patience=None)
    for epoch, value in enumerate([3.0, 1.0, 2.0], start=1):
        assert stopping.update(value, epoch)
        assert not stopping.is_over(epoch)
    assert (stopping.best, stopping.best_epoch) == (2.0, 3)


def test_patience() -> None:
    with pytest.raises(ValueError, match=r"patience must be at least 1 \(got 0\)"):
        EarlyStopping(patience=0)
