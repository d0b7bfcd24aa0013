"""What is drawn for a part of a batch is part of what is drawn for the batch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tkg_incremental.sampling.share import WHOLE, Stretch

TIME = torch.tensor([1, 1, 1, 4, 4, 6])


def draw(count: int) -> Tensor:
    return torch.rand(count, 3, generator=torch.Generator().manual_seed(0))


def test_whole_batch() -> None:
    assert torch.equal(WHOLE.by_row(6, draw), draw(6))
    assert torch.equal(WHOLE.by_step(torch.tensor([1, 4, 6]), draw), draw(3))
    assert repr(WHOLE) == "Share()"


def test_stretches_are_parts_of_the_batch() -> None:
    parts = [Stretch(TIME, 0, 2), Stretch(TIME, 2, 6)]
    assert torch.equal(torch.cat([part.by_row(part.end - part.begin, draw) for part in parts]), draw(6))
    assert str(parts[1]) == "Stretch(2–6 of 6)"


def test_steps_that_stretches_share_draw_the_same() -> None:
    first, second = Stretch(TIME, 0, 2), Stretch(TIME, 2, 6)
    assert torch.equal(first.by_step(torch.tensor([1]), draw), draw(3)[:1])
    assert torch.equal(second.by_step(torch.tensor([1, 4, 6]), draw), draw(3))
    assert torch.equal(Stretch(TIME, 3, 6).by_step(torch.tensor([4, 6]), draw), draw(3)[1:])


def test_rows_must_be_those_of_the_stretch() -> None:
    with pytest.raises(ValueError, match=r"rows must be those of the stretch, 4 \(got 3\)"):
        Stretch(TIME, 2, 6).by_row(3, draw)
