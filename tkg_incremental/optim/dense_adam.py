"""Adam on whole tables, as in the released TIE code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from tkg_incremental.ops import native
from tkg_incremental.ops.rows import pull_back
from tkg_incremental.optim.plain import PlainOptimizer


class DenseAdam(PlainOptimizer, torch.optim.Adam):
    r"""Dense Adam with the L2 penalty inside the gradient, as in the released TIE code.

    Rows that no batch touches still move towards zero by up to the learning rate per update. That is a good part of
    what fine-tuning forgets in the published tables.

    Args:
        tables: The parameters, or a mapping from names to parameters.
        lr: Learning rate.
        weight_decay: Weight of the L2 penalty.
        max_norm: The norm of the whole gradient is clipped to this.
        anchor_weight: Adds the gradient of ``anchor_weight`` × ‖row − anchor‖².
        anchors: For each name, the rows that have an anchor ``[n]`` and the table of anchors ``[N, d]``.
    """

    def __init__(
        self,
        tables: Mapping[str, Tensor] | Iterable[Tensor],
        lr: float = 1e-3,
        weight_decay: float = 1e-4,
        max_norm: float = 1.0,
        anchor_weight: float = 0.0,
        anchors: Mapping[str, tuple[Tensor, Tensor]] | None = None,
    ) -> None:
        self._tables = by_name(tables)
        super().__init__(list(self._tables.values()), lr=lr, weight_decay=weight_decay, fused=True)
        # Clipping takes the place of the scale that a GradScaler could pass: it has to unscale the gradients itself.
        self._step_supports_amp_scaling = False
        self.max_norm, self.anchor_weight, self._anchors = max_norm, anchor_weight, anchors or {}

    @property
    def touched(self) -> dict[str, Tensor | None]:
        """For each table the rows that the last update moved; :obj:`None` for all."""
        return dict.fromkeys(self._tables)

    def _step(self) -> None:
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        for parameter in parameters:
            if parameter.grad is None:  # weight decay reaches every table, also one that no term used
                parameter.grad = torch.zeros_like(parameter)
        if self.anchor_weight:
            self._add_anchor_gradient()
        # `nn.utils.get_total_norm` does the same, from torch 2.6 on.
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(p.grad) for p in parameters]))
        # Adam divides gradients by this: clipping without another pass.
        self.grad_scale = ((norm + 1e-6) / self.max_norm).clamp(min=1.0).float()
        if native.takes(*parameters) and all(parameter.grad.is_contiguous() for parameter in parameters):
            self._move()
        else:
            torch.optim.Adam.step(self)

    @torch.no_grad()
    def _add_anchor_gradient(self) -> None:
        for name, (index, anchor) in self._anchors.items():
            table = self._tables[name]
            assert table.grad is not None
            pull_back(table.grad, table, anchor, index, 2 * self.anchor_weight)

    @torch.no_grad()
    def anchor_loss(self) -> Tensor:
        """``anchor_weight`` × ‖row − anchor‖², summed over the anchored rows."""
        total = torch.zeros((), dtype=torch.double)
        for name, (index, anchor) in self._anchors.items():
            total += (self._tables[name].detach()[index] - anchor[index]).square().sum().cpu()
        return self.anchor_weight * total

    @torch.no_grad()
    def _move(self) -> None:
        """The update of the base class, in a kernel that takes denormal numbers as zero: rows that only decay end
        there, and torch needs thirty times as long for them."""
        for group in self.param_groups:
            by = [group["lr"], *group["betas"], group["eps"], group["weight_decay"], 1 / float(self.grad_scale)]
            settings = torch.tensor(by, dtype=torch.float)
            for table in group["params"]:
                state = self.state[table]
                if not state:
                    state |= {"step": torch.zeros(()), "exp_avg": torch.zeros_like(table)}
                    state["exp_avg_sq"] = torch.zeros_like(table)
                state["step"] += 1
                moments = state["exp_avg"], state["exp_avg_sq"]
                native.call("move_table", table, table.grad, state["step"], *moments, settings, table.numel())


def by_name(tables: Mapping[str, Tensor] | Iterable[Tensor]) -> dict[str, Tensor]:
    """Tables by name; a sequence of tables gets its positions as names."""
    if isinstance(tables, Mapping):
        return dict(tables)
    return {str(number): table for number, table in enumerate(tables)}
