"""Two ways to move the tables: all rows at every update, or the touched ones alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.encoder import Axis
from tkg_incremental.ops import native
from tkg_incremental.ops.rows import pull_back, pull_back_rows, rows_not_zero, touched_rows
from tkg_incremental.training.memory import Growing, StepMemory, TouchedRows, WholeCopy


class StepOptimizer(Protocol):
    """Moves the model's tables, and remembers what they were."""

    memory: StepMemory

    def zero_grad(self) -> None: ...

    def step(self) -> None: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class PublishedAdam(torch.optim.Adam):
    """Dense Adam with L2 weight decay inside the gradient, as in the released TIE code.

    Rows that no batch touches still move towards zero by up to the learning rate per update, which is a good
    part of what fine-tuning forgets in the published tables.

    Args:
        model: The model to optimise.
        lr: Learning rate.
        weight_decay: Weight of the L2 penalty.
        max_norm: The norm of the whole gradient is clipped to this.
        pull: Adds ``pull`` × (row − row before the step) to the gradient.
        pulled: Tells of rows of an axis which are pulled; by default all.
    """

    def __init__(
        self,
        model: TKGModel,
        lr: float = 1e-3,
        weight_decay: float = 1e-4,
        max_norm: float = 1.0,
        pull: float = 0.0,
        pulled: Callable[[Axis, Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__(model.parameters(), lr=lr, weight_decay=weight_decay, fused=True)
        model.encoder.sparse_gradients = False
        self._encoder, self.max_norm, self.pull = model.encoder, max_norm, pull
        self.memory: StepMemory = WholeCopy(model)
        self._pulled = {}
        for name, axis in model.encoder.axes.items():
            index = torch.arange(model.encoder.sizes[axis], device=model.device)
            self._pulled[name] = index if pulled is None else index[pulled(axis, index)]

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:  # weight decay reaches every table, also one no term used
                    parameter.grad = torch.zeros_like(parameter)
        if self.pull:
            self._pull_back()
        norm = nn.utils.get_total_norm([parameter.grad for group in self.param_groups for parameter in group["params"]])
        # Gradients are divided by this on their way into the update: clipping, without a walk of its own.
        self.grad_scale = ((norm + 1e-6) / self.max_norm).clamp(min=1.0).float()
        tables = self.param_groups[0]["params"]
        if native.takes(*tables) and all(table.grad.is_contiguous() for table in tables):
            self._move(tables)
        else:
            super().step(closure)
        for name in self._encoder.axes:
            self._encoder.restore_units(name)

    @torch.no_grad()
    def _move(self, tables: list[nn.Parameter]) -> None:
        """The update of the base class, in a kernel that takes as zero what is too small for full precision: rows that
        only decay end there, and torch needs thirty times as long for them."""
        group = self.param_groups[0]
        by = [group["lr"], *group["betas"], group["eps"], group["weight_decay"], 1 / float(self.grad_scale)]
        settings = torch.tensor(by, dtype=torch.float)
        for table in tables:
            state = self.state[table]
            if not state:
                state |= {"step": torch.zeros(()), "exp_avg": torch.zeros_like(table)}
                state["exp_avg_sq"] = torch.zeros_like(table)
            state["step"] += 1
            means, squares = state["exp_avg"], state["exp_avg_sq"]
            native.call("move_table", table, table.grad, state["step"], means, squares, settings, table.numel())

    @torch.no_grad()
    def _pull_back(self) -> None:
        former = self.memory.previous.encoder.tables()
        for name, table in self._encoder.tables().items():
            assert table.grad is not None
            pull_back(table.grad, table, former[name], self._pulled[name], self.pull)


class RowAdam:
    r"""Adam that moves the rows a batch touched, and no others: a row is touched if its gradient is not zero.

    Each row counts its own updates for the bias correction. What pulls rows, weight decay towards zero and the
    temporal regularisation towards their values before the step, is lazy: it acts on a row when it is touched.

    Args:
        model: The model to optimise.
        lr: Learning rate.
        weight_decay: Weight of the L2 penalty on touched rows.
        max_norm: The norm of the whole gradient is clipped to this.
        pull: Adds ``pull`` × (row − row before the step) to the gradient of touched rows.
        pulled: Tells of rows of an axis which are pulled; by default all.
        betas: Decay of the running averages of the gradient and its square.
        eps: Added to the denominator.
    """

    memory_kind: type[TouchedRows] = TouchedRows

    def __init__(
        self,
        model: TKGModel,
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        max_norm: float = 1.0,
        pull: float = 0.0,
        pulled: Callable[[Axis, Tensor], Tensor] | None = None,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self.lr, self.weight_decay, self.max_norm = lr, weight_decay, max_norm
        self.pull, self._pulled, self._axes = pull, pulled, model.encoder.axes
        self.betas, self.eps = betas, eps
        model.encoder.sparse_gradients = True
        self._encoder, self._tables = model.encoder, model.encoder.tables()
        self.rows = self.memory_kind(model)
        self.memory: StepMemory = self.rows
        # By slot of a touched row: updates so far, running mean of the gradient and of its square.
        self._state = {
            name: (
                Growing(table.new_zeros(0, 1)),
                Growing(table.detach()[:0]),
                Growing(table.detach()[:0]),
            )
            for name, table in self._tables.items()
        }
        self._pull = self._no_pull()

    def _no_pull(self) -> dict[str, Growing]:
        """Also by slot: how strongly the row is pulled back."""
        return {name: Growing(table.new_zeros(0, 1)) for name, table in self._tables.items()}

    def zero_grad(self) -> None:
        for table in self._tables.values():
            table.grad = None

    @torch.no_grad()
    def step(self) -> None:
        touched = []
        for name, table in self._tables.items():
            if table.grad is not None:
                index, slots, gradient = self._touched(name, table.grad)
                if self.pull:
                    where = None if isinstance(slots, slice) else slots
                    former, strength = self.rows.former(name), self._pull[name].values
                    pull_back_rows(gradient, table.detach(), index, former, strength, where)
                touched.append((name, index, slots, gradient))
        if not touched:
            return
        norm = self._norm({name: gradient for name, *_, gradient in touched})
        scale = (self.max_norm / (norm + 1e-6)).clamp(max=1.0)
        for name, index, slots, gradient in touched:
            self._move(name, index, slots, gradient, scale)
            self._encoder.restore_units(name, index)

    def _touched(self, name: str, gradient: Tensor) -> tuple[Tensor, Tensor | slice, Tensor]:
        """Index, slots and gradient of the rows that a batch touched."""
        if gradient.is_sparse:
            index, rows = touched_rows(gradient)
            return index, self._slots(name, index), rows
        index = rows_not_zero(gradient)
        slots: Tensor | slice = self._slots(name, index)
        ever = self.rows.index[name].values
        if len(index) == len(ever):
            # All that were ever touched, as is usual in a small graph: in the order of their slots, nothing that is
            # kept by slot has to be copied.
            index, slots = ever, slice(None)
        return index, slots, gradient.index_select(0, index)

    def _slots(self, name: str, index: Tensor) -> Tensor:
        """The slots of rows, with room in all that is kept by slot."""
        slots = self.rows.slots(name, index)
        new = self.rows.index[name].values[len(self._pull[name]) :]
        if len(new):
            pull = self._tables[name].new_full((len(new), 1), self.pull)
            if self._pulled is not None:
                pull *= self._pulled(self._axes[name], self._numbers(name, new))[:, None]
            self._pull[name].append(pull)
            for state in self._state[name]:
                state.grow_to(len(self.rows.index[name]))
        return slots

    def _numbers(self, name: str, index: Tensor) -> Tensor:
        """What rows of a table are called outside of it."""
        return index

    def _norm(self, gradients: dict[str, Tensor]) -> Tensor:
        """The norm of the whole gradient, from its touched rows by table."""
        return torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(rows) for rows in gradients.values()]))

    def _move(self, name: str, index: Tensor, slots: Tensor | slice, gradient: Tensor, scale: Tensor) -> None:
        """Moves rows against their gradient times ``scale``."""
        table, (counts, means, squares) = self._tables[name], self._state[name]
        if native.takes(table, index, gradient):
            settings = torch.tensor([self.lr, *self.betas, self.eps, self.weight_decay, float(scale)])
            states = counts.values, means.values, squares.values
            where = None if isinstance(slots, slice) else slots
            native.call("move_rows", table, index, where, gradient.contiguous(), *states, settings, *gradient.shape)
            return
        value, gradient = table.index_select(0, index), gradient.mul_(scale)
        if self.weight_decay:
            gradient.add_(value, alpha=self.weight_decay)
        counts[slots] = count = counts[slots].add_(1)
        means[slots] = mean = means[slots].lerp_(gradient, 1 - self.betas[0])
        squares[slots] = square = (
            squares[slots].mul_(self.betas[1]).addcmul_(gradient, gradient, value=1 - self.betas[1])
        )
        # value - lr · m̂ / (√v̂ + ε), with the bias corrections of each row.
        denominator = (square / (1 - torch.pow(self.betas[1], count))).sqrt_().add_(self.eps)
        value.addcdiv_(mean / (1 - torch.pow(self.betas[0], count)), denominator, value=-self.lr)
        table.index_copy_(0, index, value)

    def state_dict(self) -> dict[str, Any]:
        return {name: [state.values for state in states] for name, states in self._state.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._state = {name: tuple(map(Growing, values)) for name, values in state.items()}  # type: ignore[misc]
        self._pull = self._no_pull()  # made again for the slots there are

    def __repr__(self) -> str:
        return f"RowAdam(lr={self.lr}, weight_decay={self.weight_decay}, pull={self.pull})"


OPTIMIZERS = ("rowwise", "published")
