"""References for optimizers: plain torch on copies of the same tables, in double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Tables = dict[str, nn.Parameter]
Loss = Callable[[Tables], Tensor]


def make_tables(dtype: torch.dtype = torch.double, seed: int = 0) -> Tables:
    """Two tables of standard normal numbers."""
    generator = torch.Generator().manual_seed(seed)
    sizes = {"entity": (7, 3), "relation": (4, 2)}
    return {
        name: nn.Parameter(torch.randn(*size, dtype=torch.double, generator=generator).to(dtype))
        for name, size in sizes.items()
    }


def copy_of(tables: Tables) -> Tables:
    return {name: nn.Parameter(table.detach().clone()) for name, table in tables.items()}


def everything(tables: Tables) -> Tensor:
    """A loss that touches every row, with curvature."""
    return torch.stack([(table.pow(4) + 0.3 * table).sum() for table in tables.values()]).sum()


def some_rows(*rows: int) -> Loss:
    """A loss that touches some rows of the first table, and row 0 of the second."""

    def loss(tables: Tables) -> Tensor:
        return tables["entity"][list(rows)].pow(4).sum() + tables["relation"][0].pow(2).sum()

    return loss


def update(tables: Tables, optimizer: torch.optim.Optimizer, *losses: Loss) -> None:
    for loss in losses:
        optimizer.zero_grad()
        loss(tables).backward()
        optimizer.step()


def reference(
    tables: Tables, make: Callable[[Any], torch.optim.Optimizer], max_norm: float | None, *losses: Loss
) -> Tables:
    """Torch's own optimizer with clipping, on a copy; tables without a gradient have a gradient of zeros."""
    twin = copy_of(tables)
    optimizer = make(list(twin.values()))
    for loss in losses:
        optimizer.zero_grad()
        loss(twin).backward()
        for table in twin.values():
            if table.grad is None:
                table.grad = torch.zeros_like(table)
        if max_norm is not None:
            nn.utils.clip_grad_norm_(twin.values(), max_norm)
        optimizer.step()
    return twin


def assert_same(found: Tables, wanted: Tables, rtol: float = 1e-6) -> None:
    for name, table in wanted.items():
        torch.testing.assert_close(found[name], table, rtol=rtol, atol=1e-9)


def assert_same_bits(found: Tables, wanted: Tables) -> None:
    for name, table in wanted.items():
        assert torch.equal(found[name], table), name
