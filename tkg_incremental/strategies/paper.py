"""The paper's strategies, baselines and skylines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from tkg_incremental.loader.replay import ReplaySampling
from tkg_incremental.strategies.strategy import Strategy
from tkg_incremental.strategies.terms import (
    CrossEntropy,
    DeletedFacts,
    Losses,
    Negatives,
    Replay,
    Shared,
    TemporalRegularization,
    Term,
)
from tkg_incremental.strategies.views import Added, Current, Deleted, Reach, Replayed


@dataclass(frozen=True)
class ReplayOptions:
    r"""How a strategy replays.

    Args:
        sampling: ``"uniform"``, ``"frequency"``, ``"inverse"``, ``"boundary"`` or ``"fact"``
            (:func:`~tkg_incremental.loader.sample_replay`).
        size: Number of replayed quads per step; by default ``per_step`` for each step of the strategy's window.
        window: Number of steps that replayed quads reach back, or ``"all"``; by default the strategy's window.
        negatives: Negatives per query, or ``"all"``.
        weight: Weight :math:`\alpha_3` of the cross-entropy.
        distill: Weight :math:`\alpha_4` of the distillation; by default 1, or 0 with ``negatives="all"`` and with
            negatives that a batch shares.
    """

    sampling: ReplaySampling = "uniform"
    size: int | None = None
    window: Reach | None = None
    negatives: Negatives = 50
    weight: float = 1.0
    distill: float | None = None

    def term(self, window: int, per_step: int = 1000, shared: Shared = False) -> Replay:
        """The term of a strategy with this window."""
        size = per_step * window if self.size is None else self.size
        distill = float(self.negatives != "all" and shared != "batch") if self.distill is None else self.distill
        view = Replayed(window if self.window is None else self.window, size, self.sampling)
        return Replay(view, self.negatives, shared, self.weight, distill)


def FT(facts: str = "added", negatives: Negatives = 500, shared: Shared = False, weight: float = 1.0) -> Strategy:
    r"""Fine-tuning: :math:`L_{CE}` on the added facts.

    Args:
        facts: ``"added"`` or ``"all"`` facts of the step.
        negatives: Negatives per query, or ``"all"``.
        shared: Quads of one time, or of one ``"batch"``, share their negatives.
        weight: Weight :math:`\alpha_1`.
    """
    return Strategy([_current(facts, negatives, shared, weight)], "FT")


def TR(
    facts: str = "added",
    negatives: Negatives = 500,
    shared: Shared = False,
    weight: float = 1.0,
    regularization: float = 1.0,
) -> Strategy:
    r"""Temporal regularization: fine-tuning plus :math:`L_{TR}`.

    Args:
        facts: ``"added"`` or ``"all"`` facts of the step.
        negatives: Negatives per query, or ``"all"``.
        shared: Quads of one time, or of one ``"batch"``, share their negatives.
        weight: Weight :math:`\alpha_1`.
        regularization: Weight :math:`\alpha_5`.
    """
    return Strategy([_current(facts, negatives, shared, weight), TemporalRegularization(regularization)], "TR")


def TIE(
    facts: str = "added",
    negatives: Negatives = 500,
    shared: Shared = False,
    replay: ReplayOptions | None = ReplayOptions(),  # noqa: B008 (frozen)
    deletion: float = 1.0,
    window: int = 10,
    weight: float = 1.0,
    regularization: float = 1.0,
) -> Strategy:
    r"""The whole of `TIE <https://doi.org/10.1145/3404835.3462961>`_:
    :math:`L = \alpha_1 L_{CE} + \alpha_2 L_{del} + \alpha_3 L_{RCE} + \alpha_4 L_{RKD} + \alpha_5 L_{TR}`.

    Args:
        facts: ``"added"`` or ``"all"`` facts of the step.
        negatives: Negatives per query for current facts, or ``"all"``.
        shared: Quads of one time, or of one ``"batch"``, share their negatives.
        replay: Replay of past quads; :obj:`None` switches it off.
        deletion: Weight :math:`\alpha_2` of the deleted facts; 0 switches them off.
        window: Number of steps that deleted facts reach back, and replayed ones by default.
        weight: Weight :math:`\alpha_1`.
        regularization: Weight :math:`\alpha_5`.
    """
    terms: list[Term] = [_current(facts, negatives, shared, weight), TemporalRegularization(regularization)]
    if deletion:
        terms.append(DeletedFacts(Deleted(window), deletion))
    if replay is not None:
        terms.append(replay.term(window, shared=shared))
    return Strategy(terms, "TIE")


def FB(window: int = 10, negatives: Negatives = 500) -> Strategy:
    r"""Full batch: everything in the window and the current step, without distillation. The skyline FB of the `TIE
    <https://doi.org/10.1145/3404835.3462961>`_ paper.

    Args:
        window: Number of steps back.
        negatives: Negatives per query, or ``"all"``.
    """
    past = CrossEntropy(Replayed(window, size=None), negatives, name="RCE")
    return Strategy([CrossEntropy(Current(), negatives), past], "FB")


def FBFuture() -> Strategy:
    r"""Full batch with the future: one training over all steps, and nothing is learnt step by step. The skyline
    FB_future of the `TIE <https://doi.org/10.1145/3404835.3462961>`_ paper."""
    return Strategy([], "FB_future", sees_future=True)


class AGEM(Strategy):
    r"""TIE with the gradient projection of `"Efficient Lifelong Learning with A-GEM"
    <https://arxiv.org/abs/1812.00420>`_ in place of the replay loss.

    If the gradient :math:`g_i` of a row would raise the replay loss, :math:`g_i^\top g^{ref}_i < 0`, that part is
    removed: :math:`g_i - \frac{g_i^\top g^{ref}_i}{g^{ref\top}_i g^{ref}_i} g^{ref}_i`. The gradient of
    :math:`L_{TR}` is added after that.

    Args:
        facts: ``"added"`` or ``"all"`` facts of the step.
        replay: Replay of past quads; its weights are not used.
        deletion: Weight :math:`\alpha_2` of the deleted facts; 0 switches them off.
        window: Number of steps that deleted facts reach back, and replayed ones by default.
        regularization: Weight :math:`\alpha_5`.
    """

    def __init__(
        self,
        facts: str = "added",
        replay: ReplayOptions = ReplayOptions(),  # noqa: B008 (frozen)
        deletion: float = 1.0,
        window: int = 10,
        regularization: float = 1.0,
    ) -> None:
        replay = replace(replay, weight=1.0, distill=0.0)
        tie = TIE(facts, replay=replay, deletion=deletion, window=window, regularization=regularization)
        super().__init__(tie.terms, "A-GEM")

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
    """Removes from each row of ``gradient`` the part that points against the same row of ``reference``."""
    along = (gradient * reference).sum(-1, keepdim=True)
    norm = reference.square().sum(-1, keepdim=True)
    against = (along < 0) & (norm > 0)
    return torch.where(against, gradient - along / norm.clamp(min=torch.finfo(norm.dtype).tiny) * reference, gradient)


def _dense(gradient: Tensor | None, parameter: Tensor) -> Tensor:
    if gradient is None:
        return torch.zeros_like(parameter)
    return gradient.to_dense() if gradient.is_sparse else gradient


def _current(facts: str, negatives: Negatives, shared: Shared, weight: float) -> CrossEntropy:
    views = {"added": Added(), "all": Current()}
    if facts not in views:
        raise ValueError(f"facts must be 'added' or 'all' (got {facts!r})")
    return CrossEntropy(views[facts], negatives, shared, weight)
