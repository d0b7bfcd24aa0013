"""How a step is learnt, and how a run is organized."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from tkg_incremental.strategies.regularizers import N3, TemporalSmoothness
from tkg_incremental.strategies.terms import Negatives, Shared, Term, check_negatives, check_weight

OPTIMIZERS = ("rowwise", "published", "adagrad")
AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}

#: Values of entities that appear after the base model.
NewEntities = Literal["warm_up", "initialize", "keep"]
NEW_ENTITIES: tuple[NewEntities, ...] = ("warm_up", "initialize", "keep")


@dataclass(frozen=True)
class LearningSettings:
    """How a step is learnt.

    Args:
        epochs: Maximum number of epochs.
        patience: Stop when the best epoch is this many epochs old. With :obj:`None` every epoch is trained and the last
            weights are kept, whatever is validated.
        batch_size: Quads per batch, over all terms together.
        optimizer: ``"rowwise"`` is Adam on touched rows; ``"published"`` is the dense Adam with weight decay of the
            released TIE code; ``"adagrad"`` is Adagrad on touched rows.
        lr: Learning rate.
        cooldown: Number of epochs at the end in which the learning rate falls linearly towards zero.
        weight_decay: L2 penalty; by default 1e-4 for ``"published"`` and 0 otherwise.
        max_norm: Gradients are clipped to this norm; :obj:`None` for no clipping.
        n3: Weight of the N3 regularization of the batch's vectors.
        smoothness: Weight of the temporal smoothness of tables with a row per step.
        validate_every: Epochs between validations.
        short_last: Fill every batch but the last, as the released TIE code does, instead of batches of equal size.
        together: Number of quads of one step that are put into a batch together. With more than 1, a batch has quads of
            fewer steps, and models whose entities depend on time cost a fraction.
        accumulator: Initial sum of squared gradients of Adagrad. A small number, such as 1e-6, keeps rows with tiny
            gradients almost in place.
        autocast: ``"bf16"`` or ``"fp16"`` computes the matrix products of the losses in that precision.
    """

    epochs: int = 100
    patience: int | None = 20
    batch_size: int = 2048
    optimizer: str = "rowwise"
    lr: float = 1e-3
    cooldown: int = 0
    weight_decay: float | None = None
    max_norm: float | None = 1.0
    n3: float = 0.0
    smoothness: float = 0.0
    validate_every: int = 1
    short_last: bool = False
    together: int = 1
    accumulator: float = 0.0
    autocast: str | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "patience", "batch_size", "validate_every", "together"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1 (got {getattr(self, name)})")
        if not 0 <= self.cooldown <= self.epochs:
            raise ValueError(f"cooldown must lie in 0 … {self.epochs}, the epochs (got {self.cooldown})")
        for name in ("n3", "smoothness", "weight_decay", "accumulator"):
            check_weight(name, getattr(self, name) or 0.0)
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer must be one of {', '.join(OPTIMIZERS)} (got {self.optimizer!r})")
        if not 0 < self.lr < float("inf"):
            raise ValueError(f"lr must be above 0 (got {self.lr})")
        if self.max_norm is not None and not self.max_norm > 0:
            raise ValueError(f"max_norm must be None or above 0 (got {self.max_norm})")
        if self.autocast is not None and self.autocast not in AUTOCAST:
            raise ValueError(f"autocast must be None or one of {', '.join(AUTOCAST)} (got {self.autocast!r})")

    def lr_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0."""
        return self.lr * min(1.0, (self.epochs - epoch) / (self.cooldown + 1))

    def precision(self, device: torch.device) -> AbstractContextManager[Any]:
        """The context to compute losses in."""
        if self.autocast is None:
            return nullcontext()
        return torch.autocast(device.type, AUTOCAST[self.autocast])

    def regularizers(self) -> list[Term]:
        """The terms that these settings add to a strategy."""
        terms: list[Term] = []
        if self.n3:
            terms.append(N3(self.n3))
        if self.smoothness:
            terms.append(TemporalSmoothness(self.smoothness))
        return terms


@dataclass(frozen=True)
class BaseSettings:
    """How the base model is learnt.

    Args:
        learning: Epochs, optimizer and so on; by default those of the steps.
        seed: Seed of the base model; by default the run's, so that runs of several seeds can share a base model.
        negatives: Negatives per query, or ``"all"``. ``"auto"`` takes all, unless there are too many steps to encode
            the entities at each of them, or the tables are sharded; then it takes 50.
        shared: Quads of one time, or of one ``"batch"``, share their negatives.
        candidates: What the facts are scored against: entities known at the ``"own"`` step of a fact, as in the paper,
            or at the ``"last"`` step of the base model, as in the released code.
        visits: Number of quads per fact and epoch, at steps drawn from its interval. :obj:`None` for every quad, the
            paper's protocol. ``"auto"`` takes every quad if there are at most ten per fact; otherwise ten per fact, and
            fewer if there are many facts, but at least one.
        metric: What early stopping maximizes: ``"C@10"``, Hits@10 as in the paper, or ``"MRR"``, among all entities.
    """

    learning: LearningSettings | None = None
    seed: int | None = None
    negatives: Negatives | Literal["auto"] = "auto"
    shared: Shared = False
    candidates: Literal["own", "last"] = "own"
    visits: int | Literal["auto"] | None = "auto"
    metric: Literal["C@10", "MRR"] = "C@10"

    def __post_init__(self) -> None:
        if self.negatives != "auto":
            check_negatives(self.negatives)
        if self.candidates not in ("own", "last"):
            raise ValueError(f"candidates must be 'own' or 'last' (got {self.candidates!r})")
        if self.metric not in ("C@10", "MRR"):
            raise ValueError(f"metric must be 'C@10' or 'MRR' (got {self.metric!r})")
        if isinstance(self.visits, int) and self.visits < 1:
            raise ValueError(f"visits must be at least 1 (got {self.visits})")


@dataclass(frozen=True)
class TrainerSettings:
    """How a run is organized.

    Args:
        learning: How each step is learnt.
        base: How the base model is learnt.
        negative_pool: If at least twice this many entities are known, the negatives of a step are drawn from a pool of
            about this size, so that the cost of a step does not grow with the graph; :obj:`None` for no pool.
        new_entities: Entities that appear after the base model are drawn from the initial distribution
            (``"initialize"``, the paper), keep their values (``"keep"``, the released code, in which weight decay has
            moved them close to zero), or are initialized and learn their own facts first (``"warm_up"``).
        candidates: What facts of earlier steps are scored against: entities known at the ``"own"`` step of a fact, as
            in the paper, or at the step that is learnt, the ``"last"`` one. Questions about the past rank entities that
            appeared later, too; a model that never saw them as wrong answers may rank them first.
        checkpoint_every: Epochs between checkpoints inside a step; one is saved after every step in any case.
        keep_checkpoints: Number of checkpoints to keep.
    """

    learning: LearningSettings = field(default_factory=LearningSettings)
    base: BaseSettings = field(default_factory=BaseSettings)
    negative_pool: int | None = 5_000
    new_entities: NewEntities = "warm_up"
    candidates: Literal["own", "last"] = "own"
    checkpoint_every: int = 10
    keep_checkpoints: int = 2

    def __post_init__(self) -> None:
        if self.checkpoint_every < 1:
            raise ValueError(f"checkpoint_every must be at least 1 (got {self.checkpoint_every})")
        if self.negative_pool is not None and self.negative_pool < 1:
            raise ValueError(f"negative_pool must be None or at least 1 (got {self.negative_pool})")
        if self.candidates not in ("own", "last"):
            raise ValueError(f"candidates must be 'own' or 'last' (got {self.candidates!r})")
        if self.new_entities not in NEW_ENTITIES:
            raise ValueError(f"new_entities must be one of {', '.join(NEW_ENTITIES)} (got {self.new_entities!r})")

    @property
    def base_learning(self) -> LearningSettings:
        return self.base.learning or self.learning
