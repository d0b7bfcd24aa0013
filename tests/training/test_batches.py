import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tkg_incremental.training import batches as batches_module
from tkg_incremental.training.batches import spread


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def numbered(size: int, times: int = 3) -> Tensor:
    """Rows that can be told apart."""
    index = torch.arange(size)
    return torch.stack([index, index, index, index % times], dim=1)


@given(
    st.lists(st.one_of(st.none(), st.integers(0, 30)), min_size=1, max_size=4),
    st.integers(1, 12),
    st.integers(0, 3),
)
def test_an_epoch(sizes: list[int | None], batch_size: int, seed: int) -> None:
    views = [None if size is None else numbered(size) for size in sizes]
    epoch = list(spread(views, batch_size, seeded(seed)))
    total = sum(size or 0 for size in sizes)
    assert len(epoch) == -(-total // batch_size)
    for batch in epoch:
        assert len(batch) == len(views)
        assert 1 <= sum(len(rows) for rows in batch if rows is not None) <= batch_size
    for i, view in enumerate(views):
        parts = [batch[i] for batch in epoch]
        if view is None:
            assert all(part is None for part in parts)
            continue
        seen = [row for part in parts if part is not None for row in part[:, 0].tolist()]
        assert sorted(seen) == list(range(len(view)))  # every row once
        if parts:
            lengths = [len(part) for part in parts if part is not None]
            assert max(lengths) - min(lengths) <= 1  # spread evenly


def test_views_that_do_not_divide() -> None:
    # Three views of 4 rows and two batches of 6: not two of them with an extra row in the same batch.
    lengths = [sum(len(rows) for rows in batch) for batch in spread([numbered(3)] * 4, 6, seeded())]  # type: ignore[arg-type]
    assert lengths == [6, 6]


def test_epochs_are_shuffled_by_their_generator() -> None:
    view, generator = numbered(50), seeded()
    first, second = (next(spread([view], 50, generator))[0] for _ in range(2))
    again = next(spread([view], 50, seeded()))[0]
    assert torch.equal(first, again)  # type: ignore[arg-type]
    assert not torch.equal(first, second)  # type: ignore[arg-type]
    assert not torch.equal(first, view)  # type: ignore[arg-type]


def test_rows_of_one_time_stay_together_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches_module, "_PIECE", 4)
    view = numbered(40, times=10)  # four rows of each time: every piece is one time
    (batch,) = spread([view], 40, seeded())
    assert batch[0] is not None
    times = batch[0][:, 3].view(10, 4)
    assert (times == times[:, :1]).all()
    assert times[:, 0].tolist() != sorted(times[:, 0].tolist())  # but not in the order of time
    first, second = (next(spread([view], 40, seeded(seed)))[0] for seed in range(2))
    assert not torch.equal(first, second)  # type: ignore[arg-type]
