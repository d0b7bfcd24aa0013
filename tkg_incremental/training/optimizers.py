"""Two ways to move the tables: all rows at every update, or the touched ones alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


class PublishedAdam(torch.optim.Adam):
    """Dense Adam with L2 weight decay inside the gradient, as in the released TIE code.

    Rows that no batch touches still move towards zero by up to the learning rate per update, which is a good
    part of what fine-tuning forgets in the published tables.

    Args:
        parameters: What to optimise.
        lr: Learning rate.
        weight_decay: Weight of the L2 penalty.
        max_norm: The norm of the whole gradient is clipped to this.
    """

    sparse_gradients = False

    def __init__(
        self, parameters: Iterable[nn.Parameter], lr: float = 1e-3, weight_decay: float = 1e-4, max_norm: float = 1.0
    ) -> None:
        super().__init__(parameters, lr=lr, weight_decay=weight_decay, fused=True)
        self.max_norm = max_norm

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            nn.utils.clip_grad_norm_(group["params"], self.max_norm)
            for parameter in group["params"]:
                if parameter.grad is None:  # weight decay reaches every table, also one no term used
                    parameter.grad = torch.zeros_like(parameter)
        super().step(closure)


class RowAdam(torch.optim.Optimizer):
    r"""Adam that moves the rows a batch touched, and no others: a row is touched if its gradient is not zero.

    Each row counts its own updates for the bias correction. Weight decay is lazy: a row is pulled towards zero when
    it is touched.

    Args:
        parameters: What to optimise; gradients may be sparse.
        lr: Learning rate.
        weight_decay: Weight of the L2 penalty on touched rows.
        max_norm: The norm of the whole gradient is clipped to this.
        betas: Decay of the running averages of the gradient and its square.
        eps: Added to the denominator.
    """

    sparse_gradients = True

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        max_norm: float = 1.0,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay, "betas": betas, "eps": eps})
        self.max_norm = max_norm

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        touched = [
            (group, parameter, *_touched_rows(parameter.grad))
            for group in self.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]
        if not touched:
            return
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(rows) for *_, rows in touched]))
        scale = (self.max_norm / (norm + 1e-6)).clamp(max=1.0)
        for group, parameter, index, rows in touched:
            self._update(parameter, index, rows * scale, **{k: v for k, v in group.items() if k != "params"})

    def _update(
        self,
        parameter: Tensor,
        index: Tensor,
        gradient: Tensor,
        lr: float,
        weight_decay: float,
        betas: tuple[float, float],
        eps: float,
    ) -> None:
        state = self.state[parameter]
        if not state:
            state["updates"] = torch.zeros(len(parameter), dtype=torch.int32, device=parameter.device)
            state["mean"], state["square"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        value = parameter.index_select(0, index)
        if weight_decay:
            gradient = gradient.add(value, alpha=weight_decay)
        updates = state["updates"].index_select(0, index) + 1
        mean = state["mean"].index_select(0, index).lerp_(gradient, 1 - betas[0])
        square = state["square"].index_select(0, index).mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
        state["updates"].index_copy_(0, index, updates)
        state["mean"].index_copy_(0, index, mean)
        state["square"].index_copy_(0, index, square)
        count = updates.to(value.dtype).unsqueeze(1)
        step = mean / (1 - torch.pow(betas[0], count))
        step /= (square / (1 - torch.pow(betas[1], count))).sqrt_().add_(eps)
        parameter.index_copy_(0, index, value.add_(step, alpha=-lr))


def _touched_rows(gradient: Tensor) -> tuple[Tensor, Tensor]:
    """(index, rows) of a gradient's rows that are not zero."""
    if gradient.is_sparse:
        gradient = gradient.coalesce()
        index, rows = gradient.indices()[0], gradient.values()
    else:
        index, rows = torch.arange(len(gradient), device=gradient.device), gradient
    used = rows.ne(0).any(1)
    return index[used], rows[used]


OPTIMIZERS: dict[str, type[PublishedAdam | RowAdam]] = {"rowwise": RowAdam, "published": PublishedAdam}
