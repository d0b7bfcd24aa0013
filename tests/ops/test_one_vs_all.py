from collections.abc import Sequence
from itertools import accumulate

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import cross_entropy
from torch import Tensor

from tkg_incremental.ops.one_vs_all import Group, one_vs_all_loss
from tkg_incremental.ops.scores import Similarity, compare

SIMILARITIES = ("dot", "l1", "l2")
Masks = list[list[tuple[int, int]]]


def draw_vectors(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(sum(shape)))


def pairs(mask: list[tuple[int, int]]) -> tuple[Tensor, Tensor]:
    rows = torch.tensor(sorted(mask), dtype=torch.long).view(-1, 2)
    return rows[:, 0].contiguous(), rows[:, 1].contiguous()


def groups_of(sizes: list[int], widths: list[int]) -> list[Group]:
    """Groups of rows, each with candidates of its own, one after the other."""
    ends = zip(accumulate(sizes), accumulate(widths), strict=True)
    return [(end - n, n, start - w, w) for (end, start), n, w in zip(ends, sizes, widths, strict=True)]


def by_row(
    query: Tensor,
    table: Sequence[Tensor],
    positive: Tensor,
    sizes: list[int],
    widths: list[int],
    masks: Masks,
    limits: list[int] | None,
    sim: Similarity,
) -> list[list[Tensor]]:
    """The scores each row competes with, its own first."""
    group_of = [group for group, size in enumerate(sizes) for _ in range(size)]
    return [
        [positive[side, row]]
        + [
            compare(query[side, row], table[group][column], sim)
            for column in range(widths[group] if limits is None else limits[row])
            if (row, column) not in mask
        ]
        for side, mask in enumerate(masks)
        for row, group in enumerate(group_of)
    ]


@pytest.mark.parametrize("similarity", SIMILARITIES)
@settings(max_examples=40)
@given(data=st.data())
def test_loss_and_gradients(similarity: Similarity, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    width, rows = 3, sum(sizes)
    widths = [data.draw(st.integers(1, 4)) for _ in sizes]
    # Any candidate may be masked, all of them too; only those that count may be named.
    places = [
        (row, column)
        for row, group in enumerate(group for group, size in enumerate(sizes) for _ in range(size))
        for column in range(widths[group])
    ]
    masks = [data.draw(st.lists(st.sampled_from(places), unique=True)) for _ in range(2)]
    query = draw_vectors(2, rows, width).requires_grad_()
    table = draw_vectors(sum(widths), width).requires_grad_()
    positive = draw_vectors(2, rows).requires_grad_()

    limits = None
    if data.draw(st.booleans()):  # some rows have fewer candidates than their group
        limits = [
            data.draw(st.integers(0, width)) for size, width in zip(sizes, widths, strict=True) for _ in range(size)
        ]
    given = None if limits is None else torch.tensor(limits)
    groups, left_out = groups_of(sizes, widths), [pairs(mask) for mask in masks]
    loss = one_vs_all_loss(query, table, positive, groups, left_out, similarity, limits=given)
    competing = by_row(query, table.split(widths), positive, sizes, widths, masks, limits, similarity)
    expected = sum(cross_entropy([score.item() for score in scores]) for scores in competing)
    assert loss.item() == pytest.approx(expected)

    naive = sum(torch.logsumexp(torch.stack(scores), 0) - scores[0] for scores in competing)
    wanted = torch.autograd.grad(2.5 * naive, (query, table, positive), materialize_grads=True)
    found = torch.autograd.grad(2.5 * loss, (query, table, positive))
    for gradient, want in zip(found, wanted, strict=True):
        assert torch.allclose(gradient, want)


def test_scores_too_large_to_exponentiate() -> None:
    query, table = torch.tensor([[[1000.0]]]), torch.tensor([[2.0], [1.0]])
    nothing = pairs([])
    loss = one_vs_all_loss(query, table, torch.tensor([[1000.0]]), groups_of([1], [2]), [nothing], "dot")
    assert loss.item() == pytest.approx(1000.0)  # log(e^1000 + e^2000 + e^1000) - 1000


def test_a_row_whose_candidates_are_all_true() -> None:
    query, table = draw_vectors(1, 1, 3).requires_grad_(), draw_vectors(2, 3)
    positive = draw_vectors(1, 1)
    loss = one_vs_all_loss(query, table, positive, groups_of([1], [2]), [pairs([(0, 0), (0, 1)])], "dot")
    assert loss.item() == 0
    assert not torch.autograd.grad(loss, query)[0].any()


def test_groups_that_share_their_candidates() -> None:
    """Blocks of rows against the same table, each row with a limit, as static entities have them."""
    query, table, positive = draw_vectors(2, 5, 3), draw_vectors(6, 3).requires_grad_(), draw_vectors(2, 5)
    limits = torch.tensor([2, 3, 3, 6, 6])
    groups = [(0, 2, 0, 6), (2, 3, 0, 6)]
    masks: Masks = [[(0, 1), (4, 5)], [(3, 0)]]
    loss = one_vs_all_loss(query, table, positive, groups, [pairs(mask) for mask in masks], "l2", limits=limits)
    competing = by_row(query, [table], positive, [5], [6], masks, limits.tolist(), "l2")
    naive = sum(torch.logsumexp(torch.stack(scores), 0) - scores[0] for scores in competing)
    assert loss.item() == pytest.approx(naive.item())  # type: ignore[union-attr]
    torch.testing.assert_close(*(torch.autograd.grad(each, table)[0] for each in (loss, naive)))  # type: ignore[arg-type]


def test_a_scale_multiplies_loss_and_gradients() -> None:
    query, table = draw_vectors(1, 2, 3).requires_grad_(), draw_vectors(4, 3).requires_grad_()
    positive = draw_vectors(1, 2).requires_grad_()
    given = query, table, positive, groups_of([2], [4]), [pairs([(0, 1)])], "dot"
    scaled, plain = one_vs_all_loss(*given, scale=0.25), one_vs_all_loss(*given)  # type: ignore[arg-type]
    assert scaled.item() == pytest.approx(plain.item() / 4)
    inputs = query, table, positive
    for mine, theirs in zip(torch.autograd.grad(scaled, inputs), torch.autograd.grad(plain, inputs), strict=True):
        torch.testing.assert_close(mine, theirs / 4)
