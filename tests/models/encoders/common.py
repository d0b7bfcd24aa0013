"""Checks that every encoder must pass."""

from __future__ import annotations

import torch
from learning import stir

from tkg_incremental.models import Encoder

#: Entities, relations, steps, width.
SIZES = (5, 2, 7, 8)


def make(kind: type[Encoder], **options: object) -> Encoder:
    """An encoder in double precision whose tables hold standard normal numbers."""
    encoder = kind(*SIZES, **options).double()  # type: ignore[arg-type]
    stir(encoder, seed=1)  # type: ignore[arg-type]
    return encoder


def rows(encoder: Encoder, name: str) -> list[list[float]]:
    return encoder.get_parameter(name).tolist()


def check_known(encoder: Encoder) -> None:
    """``encode_known`` gives the vectors and gradients of ``entity``."""
    order, steps, sizes = torch.tensor([3, 0, 4, 3]), [6, 0, 2, 2], [3, 1, 4, 0]
    index = torch.cat([order[:size] for size in sizes])
    time = torch.tensor(steps).repeat_interleave(torch.tensor(sizes))
    expected, found = encoder.entity(index, time), encoder.encode_known(order, steps, sizes)
    torch.testing.assert_close(found, expected)
    weights = torch.randn(found.shape, dtype=found.dtype, generator=torch.Generator().manual_seed(0))
    tables = list(encoder.parameters())
    wanted = torch.autograd.grad((expected * weights).sum(), tables, allow_unused=True)
    for gradient, want in zip(
        torch.autograd.grad((found * weights).sum(), tables, allow_unused=True), wanted, strict=True
    ):
        assert (gradient is None) == (want is None)
        if want is not None:
            torch.testing.assert_close(gradient, want)
    torch.testing.assert_close(encoder.encode_known(order, [5], [4]), encoder.entity(order, torch.tensor(5)))
    assert encoder.encode_known(order, [2], [0]).shape == (0, SIZES[3])


def check_gradients(encoder: Encoder) -> None:
    """Gradients of both kinds of vectors by all tables, against differences."""
    index, time = torch.tensor([0, 1, 1]), torch.tensor([2, 2, 6])
    names = list(encoder.tables())

    def vectors(*tables: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        given = encoder.with_rows_of(Given(dict(zip(names, tables, strict=True))))
        return given.entity(index, time), given.relation(index, time)

    tables = [table.detach().clone().requires_grad_() for table in encoder.tables().values()]
    assert torch.autograd.gradcheck(vectors, tables)


class Given:
    """Rows of given tables."""

    def __init__(self, tables: dict[str, torch.Tensor]) -> None:
        self.tables = tables

    def look_up(self, name: str, index: torch.Tensor) -> torch.Tensor:
        return self.tables[name][index]


def check_growth(encoder: Encoder) -> None:
    """Known rows keep their values, and vectors of the new ones can be asked for."""
    before = {name: table.detach().clone() for name, table in encoder.tables().items()}
    encoder.expand(50, 3, 9, torch.Generator().manual_seed(0))
    assert encoder.sizes == {"entity": 50, "relation": 3, "time": 9}
    for name, table in encoder.tables().items():
        assert len(table) == encoder.sizes[encoder.axes[name]]
        assert torch.equal(table[: len(before[name])], before[name])
        assert (table != 0).all()
    new = torch.tensor([8])
    assert encoder.entity(torch.tensor([49]), new).shape == (1, SIZES[3])
    assert encoder.relation(torch.tensor([2]), new).shape == (1, SIZES[3])
    assert encoder.encode_known(torch.arange(50), [8, 0], [50, 2]).shape == (52, SIZES[3])


def check_few_rows(encoder: Encoder) -> None:
    """Gradients hold the rows touched if these are few, and a subset of the entities is encoded alike."""
    encoder.expand(num_entities=20)
    some, time = torch.tensor([2, 7, 11]), torch.tensor(3)
    places = torch.arange(3)
    subset = encoder.subset(some)
    torch.testing.assert_close(subset.entity(places, time), encoder.entity(some, time))
    torch.testing.assert_close(subset.encode_known(places, [3, 1], [3, 2])[:3], encoder.entity(some, time))
    encoder.sparse_gradients = True
    encoder.entity(some, time).square().sum().backward()
    for table in encoder.tables("entity").values():
        assert table.grad is not None
        assert table.grad.is_sparse


def check_all(encoder_of: type[Encoder], **options: object) -> None:
    for check in (check_known, check_gradients, check_growth, check_few_rows):
        check(make(encoder_of, **options))
