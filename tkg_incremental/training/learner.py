"""Learning one step: epochs of batches, early stopping, the best epoch restored."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tkg_incremental.communicator import LOCAL, Communicator
from tkg_incremental.data import Timeline
from tkg_incremental.loader import NegativeSampler, TKGBatch, TKGLoader
from tkg_incremental.models.base import TKGModel
from tkg_incremental.optim import DenseAdam, RowAdagrad, RowAdam, RowOptimizer, TouchedRows
from tkg_incremental.strategies import Losses, Strategy, TrainingContext
from tkg_incremental.strategies.context import is_known_before
from tkg_incremental.training.early_stopping import EarlyStopping
from tkg_incremental.training.settings import LearningSettings
from tkg_incremental.training.weights import WholeWeights

# The gradients of a mean over a batch are too small for 16 bits with a short exponent. A power of two is exact.
_FP16_SCALE = 1024.0


class StepLearner:
    """Learns one step. Its state can be saved after any epoch and restored to the same bits.

    Args:
        model: The model that learns.
        timeline: The graph.
        time: The step.
        strategy: What it learns from.
        settings: How it learns.
        sampler: Draws negatives.
        generator: Source of all randomness.
        validate: What early stopping maximizes; NaN if there is nothing to validate on.
        communicator: The processes that learn the step together. Each has the model, the data and the generator in the
            same state, and learns its part of every batch.
        initial_sums: Initial sums of squared gradients by row, as of :class:`~tkg_incremental.optim.RowAdagrad`.
    """

    def __init__(
        self,
        model: TKGModel,
        timeline: Timeline,
        time: int,
        strategy: Strategy,
        settings: LearningSettings,
        sampler: NegativeSampler,
        generator: torch.Generator,
        validate: Callable[[], float],
        communicator: Communicator = LOCAL,
        initial_sums: Callable[[str, Tensor], Tensor] | None = None,
    ) -> None:
        self._initial_sums = initial_sums
        self.model, self.time, self.settings, self.communicator = model, time, settings, communicator
        self.strategy, self.validate = strategy, validate
        self.label = timeline.labels[time]
        self.terms = (strategy + settings.regularizers()).terms
        self._anchor_weight = sum(term.anchor_weight for term in self.terms)
        self._weights, previous, self.optimizer = self._make_optimizer(partial(is_known_before, timeline, time))
        self.context = TrainingContext(timeline, time, model, previous)
        self.loader = TKGLoader(
            timeline, time, self.terms, sampler, generator, settings.batch_size, settings.short_last, settings.together
        )
        self.stopping = EarlyStopping(settings.patience)
        self.epoch = 0
        self.seconds: list[float] = []
        self.history: list[dict[str, float]] = []

    def _make_optimizer(
        self, was_known: Callable[..., Tensor]
    ) -> tuple[WholeWeights | TouchedRows, TKGModel, DenseAdam | RowOptimizer]:
        """What saves and restores the weights, the model before the step, and the optimizer. Rows that are new at the
        step have no anchor."""
        model, settings = self.model, self.settings
        tables = model.tables()
        model.sparse_gradients = settings.optimizer != "published"
        if settings.optimizer == "published":
            decay = 1e-4 if settings.weight_decay is None else settings.weight_decay
            max_norm = math.inf if settings.max_norm is None else settings.max_norm
            whole = WholeWeights(model)
            former = whole.previous.tables()
            anchors = {}
            for name, axis in model.axes.items():
                index = torch.arange(model.sizes[axis], device=model.device)
                anchors[name] = index[was_known(axis, index)], former[name].detach()
            optimizer = DenseAdam(tables, settings.lr, decay, max_norm, self._anchor_weight, anchors)
            return whole, whole.previous, optimizer
        rows = TouchedRows(tables)
        kind: Callable[..., RowOptimizer] = RowAdam
        own: dict[str, Any] = {}
        if settings.optimizer == "adagrad":
            kind = RowAdagrad
            own = {"initial_accumulator_value": settings.accumulator, "initial_sums": self._initial_sums}
        return (
            rows,
            model.frozen_view(model.former_rows(rows)),
            kind(
                tables,
                **own,
                lr=settings.lr,
                weight_decay=settings.weight_decay or 0.0,
                max_norm=settings.max_norm,
                rows=rows,
                anchor_weight=self._anchor_weight,
                anchored=lambda name, index: was_known(model.axes[name], model.row_ids(name, index)),
                norm=model.gradient_norm,
                total=model.sum_tables,
            ),
        )

    @property
    def is_finished(self) -> bool:
        return self.loader.num_quads == 0 or self.epoch >= self.settings.epochs or self.stopping.is_over()

    def run_epoch(self) -> dict[str, float]:
        """Trains one epoch; returns its mean losses by name and the validation metric. A loss that is not finite is a
        :class:`FloatingPointError`."""
        begin = clock.perf_counter()
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.lr_at(self.epoch)
        losses = self._train()
        self.seconds.append(clock.perf_counter() - begin)
        self.epoch += 1
        for name, value in losses.items():
            if not math.isfinite(value):
                raise FloatingPointError(
                    f"the loss {name} became {value} in epoch {self.epoch} of step {self.time} ({self.label}); "
                    "a smaller learning rate may help"
                )
        record = dict(losses)
        if self.epoch % self.settings.validate_every == 0 or self.epoch >= self.settings.epochs:
            value = self.validate()
            # Without validation quads, early stopping uses the training loss.
            if self.stopping.update(-sum(losses.values()) if math.isnan(value) else value, self.epoch):
                self._weights.save()
            record[f"val {self.strategy.validation_metric}"] = value
        self.history.append(record)
        return record

    def _train(self) -> dict[str, float]:
        self.model.train()
        sums: dict[str, Tensor] = {}
        counts: dict[str, int] = {}
        communicator = self.communicator
        for batch in self.loader:
            with communicator.translate_errors("a batch"):
                with self.settings.precision(self.model.device):
                    losses = self.losses(batch.part(communicator.rank, communicator.size))
                self.optimizer.zero_grad()
                self._backward(losses)
                self.optimizer.step()
                for name, index in self.optimizer.touched.items():
                    self.model.constrain_table(name, index)
            for name, loss in losses.items():
                sums[name] = sums.get(name, 0) + loss.detach()
                counts[name] = counts.get(name, 0) + 1
        totals = torch.tensor([float(total) for total in sums.values()], dtype=torch.double)
        means = communicator.mean(totals).tolist()
        found = {name: total / counts[name] for name, total in zip(sums, means, strict=True)}
        if self._anchor_weight:
            found["TR"] = float(self.optimizer.anchor_loss())
        return found

    def losses(self, batch: TKGBatch) -> Losses:
        """The losses of a batch by name. Terms with an anchor weight are left to the optimizer."""
        encoded = self.context.terms = self.model.encode(batch, self.context.timeline)
        losses: Losses = {}
        for term, part in zip(self.terms, encoded, strict=True):
            if term.anchor_weight or (term.view is not None and part is None):
                continue
            weight = 1.0 if part is None else part.weight
            for name, loss in term.losses(part, self.context).items():
                if name in losses:
                    raise ValueError(f"losses must have different names (got {name!r} again from {term!r})")
                losses[name] = loss if weight == 1 else weight * loss
        return losses

    def _backward(self, losses: Losses) -> None:
        scale = _FP16_SCALE if self.settings.autocast == "fp16" else None
        if scale is not None:
            losses = {name: loss * scale for name, loss in losses.items()}
        tables = list(self.model.replicated_tables().values())
        self.strategy.backward(losses, tables)
        self.communicator.average_gradients(tables, sparse=isinstance(self.optimizer, RowOptimizer))
        if scale is not None:
            for table in self.model.tables().values():
                if table.grad is not None:
                    table.grad.mul_(1 / scale)

    def finish(self) -> None:
        """Restores the weights of the best epoch."""
        self._weights.restore()

    def state_dict(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "loader": self.loader.state_dict(),
            "stopping": self.stopping.state_dict(),
            "seconds": self.seconds,
            "history": self.history,
            "weights": self._weights.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epoch = state["epoch"]
        self.loader.load_state_dict(state["loader"])
        self.seconds, self.history = list(state["seconds"]), list(state["history"])
        self.stopping = EarlyStopping.from_state(state["stopping"])
        self._weights.load_state_dict(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
