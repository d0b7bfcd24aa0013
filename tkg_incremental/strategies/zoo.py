"""The paper's strategies, baselines and skylines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tkg_incremental.sampling.replay import ReplaySampling
from tkg_incremental.strategies.candidates import Negatives
from tkg_incremental.strategies.strategy import Strategy
from tkg_incremental.strategies.terms import Drift, Forget, Link, Losses, Replay, Term
from tkg_incremental.strategies.views import Added, Current, Deleted, Reach, Replayed, Window


class FT(Strategy):
    r"""Fine-tuning: :math:`L_{CE}` on the added facts.

    Args:
        facts: ``"added"`` or ``"all"`` facts of the step.
        negatives: Negatives a side, or ``"all"``.
        shared: Rows of one time share their negatives.
        ce: Weight :math:`\alpha_1`.
    """

    def __init__(self, facts: str = "added", negatives: Negatives = 500, shared: bool = False, ce: float = 1.0) -> None:
        super().__init__([_current(facts, negatives, shared, ce)], "FT")


class TR(Strategy):
    r"""Temporal regularisation: fine-tuning plus :math:`L_{TR}`.

    Args:
        facts: ``"added"`` or ``"all"`` facts of the step.
        negatives: Negatives a side, or ``"all"``.
        shared: Rows of one time share their negatives.
        ce: Weight :math:`\alpha_1`.
        drift: Weight :math:`\alpha_5`.
    """

    def __init__(
        self,
        facts: str = "added",
        negatives: Negatives = 500,
        shared: bool = False,
        ce: float = 1.0,
        drift: float = 1.0,
    ) -> None:
        super().__init__([_current(facts, negatives, shared, ce), Drift(drift)], "TR")


class TIE(Strategy):
    r"""The whole of `TIE <https://doi.org/10.1145/3404835.3462961>`_:
    :math:`L = \alpha_1 L_{CE} + \alpha_2 L_{del} + \alpha_3 L_{RCE} + \alpha_4 L_{RKD} + \alpha_5 L_{TR}`.

    Args:
        facts: ``"added"`` or ``"all"`` facts of the step.
        replay: ``"uniform"``, ``"frequency"``, ``"inverse"`` or ``"turns"`` sampling; :obj:`None` switches replay off.
        deletion: Learn from deleted facts.
        negatives: Negatives a side for current facts, or ``"all"``.
        shared: Rows of one time share their negatives.
        replay_negatives: Negatives a side for replayed facts, or ``"all"``.
        window: How many steps back deleted facts reach, and replayed ones unless ``replay_window`` says otherwise.
        replay_size: How many facts are replayed in a step; 1,000 for each step of ``window`` by default.
        replay_window: How many steps back replayed facts reach, or ``"all"``; as ``window`` by default.
        ce: Weight :math:`\alpha_1`.
        forget: Weight :math:`\alpha_2`.
        rce: Weight :math:`\alpha_3`.
        rkd: Weight :math:`\alpha_4`; 1 by default, or 0 if replayed facts are learnt against all entities, which leaves
            distillation little to add.
        drift: Weight :math:`\alpha_5`.
    """

    def __init__(
        self,
        facts: str = "added",
        replay: ReplaySampling | None = "uniform",
        deletion: bool = True,
        negatives: Negatives = 500,
        shared: bool = False,
        replay_negatives: Negatives = 50,
        window: int = 10,
        replay_size: int | None = None,
        replay_window: Reach | None = None,
        ce: float = 1.0,
        forget: float = 1.0,
        rce: float = 1.0,
        rkd: float | None = None,
        drift: float = 1.0,
    ) -> None:
        terms: list[Term] = [_current(facts, negatives, shared, ce), Drift(drift)]
        if deletion:
            terms.append(Forget(Deleted(window), forget))
        if replay is not None:
            size = 1000 * window if replay_size is None else replay_size
            distill = float(replay_negatives != "all") if rkd is None else rkd
            view = Replayed(window if replay_window is None else replay_window, size, replay)
            terms.append(Replay(view, replay_negatives, shared, rce, distill))
        super().__init__(terms, "TIE")


class FB(Strategy):
    r"""Full batch: everything in the window and the current step, no distillation. The skyline FB of the `TIE
    <https://doi.org/10.1145/3404835.3462961>`_ paper, and what it costs.

    Args:
        window: How many steps back.
        negatives: Negatives a side, or ``"all"``.
    """

    def __init__(self, window: int = 10, negatives: Negatives = 500) -> None:
        super().__init__([Link(Current(), negatives), Link(Window(window), negatives, name="RCE")], "FB")


class FBFuture(Strategy):
    r"""Full batch with the future: one training over all steps, and nothing is learnt step by step. The skyline
    FB_future of the `TIE <https://doi.org/10.1145/3404835.3462961>`_ paper."""

    sees_future = True

    def __init__(self) -> None:
        super().__init__([], "FB_future")


class AGEM(Strategy):
    r"""TIE with the gradient projection of `"Efficient Lifelong Learning with A-GEM"
    <https://arxiv.org/abs/1812.00420>`_ in the place of the replay loss.

    Where the gradient :math:`g_i` of a row would raise the replay loss, :math:`g_i^\top g^{ref}_i < 0`, the part that
    does so is taken out: :math:`g_i - \frac{g_i^\top g^{ref}_i}{g^{ref\top}_i g^{ref}_i} g^{ref}_i`. The pull of
    :math:`L_{TR}`, which is no lesson of any row, is the optimiser's and is added after that.

    Args:
        facts: ``"added"`` or ``"all"`` facts of the step.
        replay: ``"uniform"``, ``"frequency"``, ``"inverse"`` or ``"turns"`` sampling.
        deletion: Learn from deleted facts.
        window: How many steps back deleted facts reach, and replayed ones unless ``replay_window`` says otherwise.
        replay_size: How many facts are replayed in a step.
        replay_window: How many steps back replayed facts reach, or ``"all"``; as ``window`` by default.
        drift: Weight :math:`\alpha_5`.
    """

    def __init__(
        self,
        facts: str = "added",
        replay: ReplaySampling = "uniform",
        deletion: bool = True,
        window: int = 10,
        replay_size: int | None = None,
        replay_window: Reach | None = None,
        drift: float = 1.0,
    ) -> None:
        sizes: dict[str, Any] = {"window": window, "replay_size": replay_size, "replay_window": replay_window}
        whole = TIE(facts, replay, deletion, **sizes, rkd=0.0, drift=drift)
        super().__init__(whole.terms, "A-GEM")

    def backward(self, losses: Losses, parameters: Sequence[nn.Parameter]) -> None:
        reference = losses.get("RCE")
        others = [loss for name, loss in losses.items() if name != "RCE"]
        if reference is None or not others:
            super().backward(losses, parameters)
            return
        main = torch.autograd.grad(sum(others), parameters, retain_graph=True, allow_unused=True)  # type: ignore[arg-type]
        guide = torch.autograd.grad(reference, parameters, allow_unused=True)
        for parameter, gradient, towards in zip(parameters, main, guide, strict=True):
            parameter.grad = project(_dense(gradient, parameter), _dense(towards, parameter))


def project(gradient: Tensor, reference: Tensor) -> Tensor:
    """Takes out of each row of ``gradient`` what points against the same row of ``reference``."""
    along = (gradient * reference).sum(-1, keepdim=True)
    norm = reference.square().sum(-1, keepdim=True)
    against = (along < 0) & (norm > 0)
    return torch.where(against, gradient - along / norm.clamp(min=torch.finfo(norm.dtype).tiny) * reference, gradient)


def _dense(gradient: Tensor | None, parameter: Tensor) -> Tensor:
    if gradient is None:
        return torch.zeros_like(parameter)
    return gradient.to_dense() if gradient.is_sparse else gradient


def _current(facts: str, negatives: Negatives, shared: bool, weight: float) -> Link:
    views = {"added": Added(), "all": Current()}
    if facts not in views:
        raise ValueError(f"facts must be 'added' or 'all' (got {facts!r})")
    return Link(views[facts], negatives, shared, weight)
