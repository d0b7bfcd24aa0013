"""The base class of torch's optimizers, without what it imports for ``torch.compile``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _undecorated(method: Callable[..., Any]) -> Any:
    """A method of :class:`torch.optim.Optimizer` before it was wrapped. The wrapper imports ``torch._dynamo`` on the
    first call, which takes 1.6 s: more than an update of a small graph."""
    return getattr(method, "__wrapped__", method)


class PlainOptimizer(torch.optim.Optimizer):
    """An optimizer that is not to be compiled. Subclasses implement :meth:`_step`."""

    add_param_group = _undecorated(torch.optim.Optimizer.add_param_group)
    zero_grad = _undecorated(torch.optim.Optimizer.zero_grad)
    state_dict = _undecorated(torch.optim.Optimizer.state_dict)
    load_state_dict = _undecorated(torch.optim.Optimizer.load_state_dict)

    def step(self, closure: Any = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._step()
        return loss

    def _step(self) -> None:
        """Moves the parameters."""
        raise NotImplementedError
