"""Optimizers that move the rows a batch touched, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from tkg_incremental.ops import native
from tkg_incremental.ops.growing import Growing
from tkg_incremental.ops.rows import pull_back_rows, rows_not_zero, touched_rows
from tkg_incremental.optim.dense_adam import by_name
from tkg_incremental.optim.plain import PlainOptimizer
from tkg_incremental.optim.touched_rows import TouchedRows


def gradient_norm(gradients: dict[str, Tensor]) -> Tensor:
    """The norm of the whole gradient from its touched rows by table."""
    return torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(rows) for rows in gradients.values()]))


def sum_tables(values: dict[str, Tensor]) -> Tensor:
    """The sum of a number per table."""
    return torch.stack(list(values.values())).sum()


class RowOptimizer(PlainOptimizer):
    r"""Base class of row-wise optimizers. A row is touched if its gradient is not zero.

    Weight decay and the anchor, which pulls rows towards their former values, are lazy: they act on a row when it is
    touched. State is kept for touched rows only.

    Args:
        tables: The parameters, or a mapping from names to parameters.
        defaults: Defaults of the parameter groups.
        max_norm: The norm of the whole gradient is clipped to this; :obj:`None` for no clipping.
        rows: Keeps the former values of touched rows.
        anchor_weight: Adds the gradient of ``anchor_weight`` × ‖row − former row‖² to touched rows.
        anchored: Given the name of a table and rows ``[n]``, returns which of them are anchored; by default all.
        norm: Computes the norm of the whole gradient from the touched rows by table; for tables in several processes.
        total: Sums a number per table; for tables in several processes.
    """

    #: Widths of the state of a row: 1 or the width of the table.
    state_names: tuple[str, ...]

    def __init__(
        self,
        tables: Mapping[str, Tensor] | Iterable[Tensor],
        defaults: dict[str, Any],
        max_norm: float | None = 1.0,
        rows: TouchedRows | None = None,
        anchor_weight: float = 0.0,
        anchored: Callable[[str, Tensor], Tensor] | None = None,
        norm: Callable[[dict[str, Tensor]], Tensor] | None = None,
        total: Callable[[dict[str, Tensor]], Tensor] | None = None,
    ) -> None:
        self._tables = by_name(tables)
        super().__init__(list(self._tables.values()), defaults)
        self.max_norm, self.anchor_weight, self._anchored = max_norm, anchor_weight, anchored
        self._norm, self._total = norm or gradient_norm, total or sum_tables
        self.rows = TouchedRows(self._tables) if rows is None else rows
        # By slot of a touched row.
        self._state = {name: self._new_state(table) for name, table in self._tables.items()}
        self._anchor = {name: Growing(table.detach().new_zeros(0, 1)) for name, table in self._tables.items()}
        #: For each table the rows that the last update moved.
        self.touched: dict[str, Tensor] = {}

    def _new_state(self, table: Tensor) -> dict[str, Growing]:
        widths = {name: 1 if name == "step" else table.size(1) for name in self.state_names}
        return {name: Growing(table.detach().new_zeros(0, width)) for name, width in widths.items()}

    @torch.no_grad()
    def _step(self) -> None:
        moves = []
        for name, table in self._tables.items():
            if table.grad is not None:
                index, slots, gradient = self._read(name, table.grad)
                if self.anchor_weight:
                    where = None if isinstance(slots, slice) else slots
                    former, strength = self.rows.former(name), self._anchor[name].values
                    pull_back_rows(gradient, table.detach(), index, former, strength, where)
                moves.append((name, index, slots, gradient))
        self.touched = {name: index for name, index, *_ in moves}
        if not moves:
            return
        scale = torch.ones((), device=moves[0][3].device)
        if self.max_norm is not None:
            norm = self._norm({name: gradient for name, *_, gradient in moves})
            scale = (self.max_norm / (norm + 1e-6)).clamp(max=1.0)
        for name, index, slots, gradient in moves:
            self._move_rows(name, index, slots, gradient, scale)

    def _move_rows(self, name: str, index: Tensor, slots: Tensor | slice, gradient: Tensor, scale: Tensor) -> None:
        """Moves rows of a table against their gradient ``[n, d]`` times ``scale``."""
        table, decay = self._tables[name], self.param_groups[0].get("weight_decay", 0.0)
        value, gradient = table.index_select(0, index), gradient.mul_(scale)
        if decay:
            gradient.add_(value, alpha=decay)
        self._move(value, gradient, slots, self._state[name])
        table.index_copy_(0, index, value)

    def _move(self, value: Tensor, gradient: Tensor, slots: Tensor | slice, state: dict[str, Growing]) -> None:
        """Moves the values ``[n, d]`` of rows against their gradient in place, and updates their state."""
        raise NotImplementedError

    def _read(self, name: str, gradient: Tensor) -> tuple[Tensor, Tensor | slice, Tensor]:
        """Index, slots and gradient of the touched rows."""
        if gradient.is_sparse:
            index, rows = touched_rows(gradient)
            return index, self._slots(name, index), rows
        index = rows_not_zero(gradient)
        slots: Tensor | slice = self._slots(name, index)
        ever = self.rows.index[name].values
        if len(index) == len(ever):
            # All rows that were ever touched, as is usual on a small graph: in the order of their slots, no state has
            # to be copied.
            index, slots = ever, slice(None)
        return index, slots, gradient.index_select(0, index)

    def _slots(self, name: str, index: Tensor) -> Tensor:
        """Slots of rows, with room in all state that is kept by slot."""
        slots = self.rows.slots(name, index)
        self._grow(name)
        return slots

    def _grow(self, name: str) -> None:
        """Makes room for rows that have slots, but no state yet."""
        new = self.rows.index[name].values[len(self._anchor[name]) :]
        if len(new):
            strength = self._tables[name].detach().new_full((len(new), 1), 2 * self.anchor_weight)
            if self._anchored is not None:
                strength *= self._anchored(name, new)[:, None]
            self._anchor[name].append(strength)
            for state in self._state[name].values():
                state.grow_to(len(self.rows.index[name]))

    @torch.no_grad()
    def anchor_loss(self) -> Tensor:
        """``anchor_weight`` × ‖row − former row‖², summed over the anchored rows."""
        losses = {}
        for name, table in self._tables.items():
            self._grow(name)  # after a checkpoint was loaded, for tables that no batch has touched since
            change = table.detach()[self.rows.index[name].values] - self.rows.former(name)
            losses[name] = (change.square().sum(1, keepdim=True) * self._anchor[name].values / 2).sum().double().cpu()
        return self._total(losses)

    def state_dict(self) -> dict[str, Any]:
        groups = super().state_dict()["param_groups"]
        state = {name: {key: each.values for key, each in states.items()} for name, states in self._state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads state by slot: :attr:`rows` must have been loaded before."""
        super().load_state_dict({"state": {}, "param_groups": state_dict["param_groups"]})
        self._state = {
            name: {key: Growing(each) for key, each in states.items()} for name, states in state_dict["state"].items()
        }
        # The anchors of the slots are computed again when they are needed.
        self._anchor = {name: Growing(table.detach().new_zeros(0, 1)) for name, table in self._tables.items()}


class RowAdam(RowOptimizer):
    r"""Adam on touched rows. Each row counts its own updates for the bias correction.

    Args:
        tables: The parameters, or a mapping from names to parameters.
        lr: Learning rate.
        betas: Decay of the running averages of the gradient and of its square.
        eps: Added to the denominator.
        weight_decay: Weight of the L2 penalty on touched rows.
        **options: ``max_norm``, ``rows``, ``anchor_weight``, ``anchored``, ``norm``, ``total`` of
            :class:`RowOptimizer`.
    """

    state_names = ("step", "exp_avg", "exp_avg_sq")

    def __init__(
        self,
        tables: Mapping[str, Tensor] | Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(tables, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}, **options)

    def _move_rows(self, name: str, index: Tensor, slots: Tensor | slice, gradient: Tensor, scale: Tensor) -> None:
        table, group = self._tables[name], self.param_groups[0]
        if not native.takes(table, index, gradient):
            super()._move_rows(name, index, slots, gradient, scale)
            return
        settings = torch.tensor([group["lr"], *group["betas"], group["eps"], group["weight_decay"], float(scale)])
        states = (self._state[name][key].values for key in self.state_names)
        where = None if isinstance(slots, slice) else slots
        native.call("move_rows", table, index, where, gradient.contiguous(), *states, settings, *gradient.shape)

    def _move(self, value: Tensor, gradient: Tensor, slots: Tensor | slice, state: dict[str, Growing]) -> None:
        group = self.param_groups[0]
        beta1, beta2 = group["betas"]
        counts, means, squares = (state[name] for name in self.state_names)
        counts[slots] = count = counts[slots].add_(1)
        means[slots] = mean = means[slots].lerp_(gradient, 1 - beta1)
        squares[slots] = square = squares[slots].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        # value − lr · m̂ / (√v̂ + ε), with the bias corrections of each row.
        denominator = (square / (1 - torch.pow(beta2, count))).sqrt_().add_(group["eps"])
        value.addcdiv_(mean / (1 - torch.pow(beta1, count)), denominator, value=-group["lr"])


class RowAdagrad(RowOptimizer):
    r"""Adagrad on touched rows, which equals dense Adagrad without weight decay.

    Args:
        tables: The parameters, or a mapping from names to parameters.
        lr: Learning rate.
        eps: Added to the denominator.
        weight_decay: Weight of the L2 penalty on touched rows.
        initial_accumulator_value: Initial sum of squared gradients. With 0 the first step of every number has the
            length of the learning rate, however small its gradient is.
        initial_sums: Given the name of a table and rows ``[n]``, what is added to their initial sums, ``[n, 1]``.
        **options: ``max_norm``, ``rows``, ``anchor_weight``, ``anchored``, ``norm``, ``total`` of
            :class:`RowOptimizer`.
    """

    state_names = ("sum",)

    def __init__(
        self,
        tables: Mapping[str, Tensor] | Iterable[Tensor],
        lr: float = 0.1,
        eps: float = 1e-10,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        initial_sums: Callable[[str, Tensor], Tensor] | None = None,
        **options: Any,
    ) -> None:
        self._initial_sums = initial_sums
        defaults = {"lr": lr, "eps": eps, "weight_decay": weight_decay}
        super().__init__(tables, {**defaults, "initial_accumulator_value": initial_accumulator_value}, **options)

    def _grow(self, name: str) -> None:
        first = len(self._state[name]["sum"])
        super()._grow(name)
        new = self.rows.index[name].values[first:]
        if len(new) and self._initial_sums is not None:
            self._state[name]["sum"][slice(first, None)] = self._initial_sums(name, new).expand(
                -1, self._tables[name].size(1)
            )

    def _move(self, value: Tensor, gradient: Tensor, slots: Tensor | slice, state: dict[str, Growing]) -> None:
        group = self.param_groups[0]
        state["sum"][slots] = total = state["sum"][slots].addcmul_(gradient, gradient)
        total = (total + group["initial_accumulator_value"]).sqrt_().add_(group["eps"])
        value.addcdiv_(gradient, total, value=-group["lr"])
