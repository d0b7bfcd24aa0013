"""Learning one step: epochs of batches, early stopping, the best epoch kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tkg_incremental.data import Snapshot
from tkg_incremental.distributed.gradients import average_rows, replicate
from tkg_incremental.distributed.sharded import is_sharded, whole_parameters
from tkg_incremental.distributed.sharded_learning import ShardedRowAdam
from tkg_incremental.distributed.world import ALONE, World
from tkg_incremental.models.base import TKGModel
from tkg_incremental.sampling import NegativeSampler
from tkg_incremental.strategies import Step, Strategy, Term
from tkg_incremental.strategies.step import is_known_before
from tkg_incremental.training.batches import spread
from tkg_incremental.training.checks import check_sharded
from tkg_incremental.training.early_stopping import EarlyStopping
from tkg_incremental.training.objective import Objective
from tkg_incremental.training.optimizers import OPTIMIZERS, PublishedAdam, RowAdam

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
# The gradients of a mean over a batch fall below what 16 bits with a short exponent can hold; a power of two, so that
# taking it out again is exact.
_FP16_SCALE = 1024.0


class TrainingError(RuntimeError):
    """Training went wrong in a way that no further step can mend."""


@dataclass(frozen=True)
class LearningSettings:
    """How a step is learnt.

    Args:
        epochs: At most so many epochs.
        patience: Stop when the best epoch is so many epochs old.
        batch_size: Rows in a batch, over all terms together.
        optimizer: ``"rowwise"`` moves touched rows alone; ``"published"`` is the dense Adam with weight decay of the
            released TIE code.
        lr: Learning rate.
        weight_decay: L2 penalty; by default 1e-4 for ``"published"`` and none for ``"rowwise"``.
        max_norm: Gradients are clipped to this norm.
        autocast: ``"bf16"`` or ``"fp16"`` lets matrix products of the losses run in that precision, which GPUs do
            several times faster; weights, sums and the optimiser keep theirs.
    """

    epochs: int = 100
    patience: int = 20
    batch_size: int = 2048
    optimizer: str = "rowwise"
    lr: float = 1e-3
    weight_decay: float | None = None
    max_norm: float = 1.0
    autocast: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("epochs", "patience", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1 (got {getattr(self, name)})")
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer must be one of {', '.join(OPTIMIZERS)} (got {self.optimizer!r})")
        if not self.lr > 0:
            raise ValueError(f"lr must be above 0 (got {self.lr})")
        if self.autocast is not None and self.autocast not in AUTOCAST:
            raise ValueError(f"autocast must be None or one of {', '.join(AUTOCAST)} (got {self.autocast!r})")

    def precision(self, device: torch.device) -> AbstractContextManager[Any]:
        """The context to compute losses in."""
        if self.autocast is None:
            return nullcontext()
        return torch.autocast(device.type, AUTOCAST[self.autocast])

    def make_optimizer(self, model: TKGModel, strategy: Strategy, snapshot: Snapshot) -> PublishedAdam | RowAdam:
        """The optimiser of one step."""
        sharded = is_sharded(model)
        if sharded:
            check_sharded(strategy, self.optimizer)
        is_published = self.optimizer == "published"
        decay = (1e-4 if is_published else 0.0) if self.weight_decay is None else self.weight_decay
        pull = sum(term.pull for term in strategy.terms)
        kind = PublishedAdam if is_published else ShardedRowAdam if sharded else RowAdam
        # What is new at this step has nowhere to be pulled back to.
        return kind(model, self.lr, decay, self.max_norm, pull, partial(is_known_before, snapshot))


class StepLearner:
    """Learns one step. Its state can be saved after any epoch and taken up again to the same bits.

    Args:
        model: The model that learns.
        snapshot: The step's data.
        strategy: What it learns from.
        settings: How it learns.
        negatives: Draws negatives.
        generator: Source of all randomness.
        validate: What early stopping watches, higher is better; NaN if there is nothing to validate on.
        world: The processes that learn the step together. Each has the model, the data and the generator in the same
            state, and learns its part of every batch.
    """

    def __init__(
        self,
        model: TKGModel,
        snapshot: Snapshot,
        strategy: Strategy,
        settings: LearningSettings,
        negatives: NegativeSampler,
        generator: torch.Generator,
        validate: Callable[[], float],
        world: World = ALONE,
    ) -> None:
        self.strategy, self.settings, self.validate, self.world = strategy, settings, validate, world
        self.optimizer = settings.make_optimizer(model, strategy, snapshot)
        self._memory = self.optimizer.memory
        self.step = Step(snapshot, model, self._memory.previous, negatives, generator)
        self.views: list[Tensor | None] = [
            None if term.view is None else term.view.rows(snapshot, generator) for term in strategy.terms
        ]
        self._rowwise = isinstance(self.optimizer, RowAdam)
        self._terms = self._with_views()
        objective = Objective(self.step, [term for term, _ in self._terms], world)
        # Gradients are averaged whole on the way back, or row by row after it.
        self._losses = objective if self._rowwise else replicate(objective, world, objective.is_ours)
        self.stopping = EarlyStopping(settings.patience)
        self.epoch = 0
        self.seconds: list[float] = []
        self.history: list[dict[str, float]] = []
        self._parameters = whole_parameters(model)
        self._whole_tables = [
            table for table in model.encoder.tables().values() if any(table is whole for whole in self._parameters)
        ]

    def _with_views(self) -> list[tuple[Term, Tensor | None]]:
        """The terms that losses are taken of, with their rows. Optimisers pull rows back themselves."""
        return [pair for pair in zip(self.strategy.terms, self.views, strict=True) if not pair[0].pull]

    @property
    def rows(self) -> int:
        """How many rows an epoch has."""
        return sum(len(rows) for rows in self.views if rows is not None)

    @property
    def examples(self) -> int:
        """How many labelled facts an epoch has, negatives included."""
        pairs = zip(self.strategy.terms, self.views, strict=True)
        return sum(term.examples(self.step, len(rows)) for term, rows in pairs if rows is not None)

    @property
    def is_over(self) -> bool:
        return (
            self.rows == 0
            or self.epoch >= self.settings.epochs
            or (self.epoch > 0 and self.stopping.is_over(self.epoch))
        )

    def run_epoch(self) -> dict[str, float]:
        """One epoch; its mean losses by term, and what validation said."""
        begin = time.perf_counter()
        losses = self._train()
        self.seconds.append(time.perf_counter() - begin)
        self.epoch += 1
        for name, value in losses.items():
            if not torch.isfinite(torch.tensor(value)):
                snapshot = self.step.snapshot
                raise TrainingError(
                    f"the loss term {name} became {value} in epoch {self.epoch} of step {snapshot.time} "
                    f"({snapshot.label}); a smaller learning rate may help"
                )
        value = self.validate()
        # Without validation rows the training loss has to do.
        if self.stopping.update(-sum(losses.values()) if value != value else value, self.epoch):
            self._memory.mark()
        self.history.append({**losses, f"val {self.strategy.watches}": value})
        return self.history[-1]

    def _train(self) -> dict[str, float]:
        views = [rows for _, rows in self._terms]
        sums: dict[str, Tensor] = {}
        counts: dict[str, int] = {}
        for batch in spread(views, self.settings.batch_size, self.step.generator):
            with self.world.talking("a batch"):
                with self.settings.precision(self.step.model.device):
                    losses = self._losses(batch)
                self.optimizer.zero_grad()
                self._backward(losses)
                self.optimizer.step()
            for name, loss in losses.items():
                sums[name] = sums.get(name, 0) + loss.detach()
                counts[name] = counts.get(name, 0) + 1
        totals = torch.tensor([float(total) for total in sums.values()], dtype=torch.double)
        return {name: total / counts[name] for name, total in zip(sums, self.world.mean(totals).tolist(), strict=True)}

    def _backward(self, losses: dict[str, Tensor]) -> None:
        scale = _FP16_SCALE if self.settings.autocast == "fp16" else None
        if scale is not None:
            losses = {name: loss * scale for name, loss in losses.items()}
        self.strategy.backward(losses, self._parameters)
        if self._rowwise:
            average_rows(self._whole_tables, self.world)
        if scale is not None:
            for parameter in self._parameters:
                if parameter.grad is not None:
                    parameter.grad.mul_(1 / scale)

    def finish(self) -> None:
        """Puts the best epoch's weights back."""
        self._memory.rewind()

    def state_dict(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "views": self.views,
            "stopping": self.stopping.state_dict(),
            "seconds": self.seconds,
            "history": self.history,
            "memory": self._memory.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epoch, self.views = state["epoch"], state["views"]
        self._terms = self._with_views()
        self.seconds, self.history = list(state["seconds"]), list(state["history"])
        self.stopping = EarlyStopping.from_state(state["stopping"])
        self._memory.load_state_dict(state["memory"])
        self.step.forget()
        self.optimizer.load_state_dict(state["optimizer"])
