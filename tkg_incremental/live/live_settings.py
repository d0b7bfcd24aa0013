"""The model of a live graph and how it learns: what ``graph.toml`` says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tkg_incremental.live.graph_toml import check_table
from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.zoo import ZOO
from tkg_incremental.training.settings import LearningSettings

# Updates of graphs with at most this number of times `replay` facts visit each of them in every epoch.
_EVERY_FACT = 4
# More facts than this are learnt by wider vectors and with a higher rate; otherwise one in six might not rank first.
_MANY_FACTS, _WIDTH, _LARGE_WIDTH, _LARGE_LR = 3_000, 128, 256, 0.3
# An update ends after this number of rounds that are not better than the best one.
_PATIENCE = 5


@dataclass(frozen=True)
class LiveSettings:
    """The tables ``[model]`` and ``[learning]`` of ``graph.toml``.

    Args:
        name: The model.
        hidden_channels: Width of its vectors; 0 for one that fits the number of facts when the graph is created:
            128, or 256 with more than 3,000 facts, then with ``lr = 0.3`` unless another one is given.
        seed: Seed of everything random.
        epochs: Epochs of the first training; each visits every fact ``visits`` times.
        visits: Quads per fact and epoch.
        update_epochs: Epochs of an update before it is judged.
        rounds: Maximum number of times that an update is judged and continued.
        repeats: Visits of an ended fact per epoch of an update; an added one has twice as many.
        current: Facts that hold now, per epoch of an update.
        replay: Quads of the past per epoch of an update. A graph with at most four times as many facts visits each of
            them at random steps, new ones in each epoch: twice, or more often as long as that takes at most twice as
            many quads. A larger one draws half of them uniformly from all (fact, step) pairs and half from the facts of
            entities that changes are about; no other entities move.
        lr: Learning rate of Adagrad in the first training.
        update_lr: The same in updates, which should move little else than what changed.
        n3: Weight of the N3 regularization.
        smoothness: Weight of the temporal smoothness.
        unlikelihood: Weight of the loss on facts that have ended or were retracted.
        batch_size: Quads per batch.
        accumulator: Initial sum of squared gradients of Adagrad in updates.
        options: Further arguments of the model, the table ``[model_options]``. Relations are reciprocal by default.
    """

    name: str = "TNTComplEx"
    hidden_channels: int = 0
    seed: int = 0
    epochs: int = 20
    visits: int = 10
    update_epochs: int = 3
    rounds: int = 20
    repeats: int = 5
    current: int = 1000
    replay: int = 5000
    lr: float = 0.1
    update_lr: float = 0.1
    n3: float = 5e-3
    smoothness: float = 0.01
    unlikelihood: float = 0.5
    batch_size: int = 1000
    accumulator: float = 1e-6
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("epochs", "visits", "update_epochs", "rounds", "repeats", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1 (got {getattr(self, name)})")
        for name in ("hidden_channels", "current", "replay"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0 (got {getattr(self, name)})")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed must be in 0 … 2^63 - 1 (got {self.seed})")

    @classmethod
    def from_tables(cls, model: Any, learning: Any = None, options: Any = None) -> LiveSettings:
        """From the tables ``[model]``, ``[learning]`` and ``[model_options]`` of ``graph.toml``; unknown options and
        values of other types are refused."""
        values = {**check_table("model", model, cls), **check_table("learning", learning or {}, cls)}
        if not isinstance(options or {}, dict):
            raise ValueError(f"[model_options] must be a table (got {options!r})")
        return cls(**values, options=dict(options or {}))

    def to_tables(self) -> dict[str, dict[str, Any]]:
        """The tables of ``graph.toml``."""
        learning = asdict(self)
        options = learning.pop("options")
        model = {key: learning.pop(key) for key in ("name", "hidden_channels", "seed")}
        return {"model": model, **({"model_options": options} if options else {}), "learning": learning}

    @property
    def update_learning(self) -> LearningSettings:
        """How an update learns: rows without a part in what changed stay almost in place. It is judged every
        ``update_epochs``, and ends after several times without progress."""
        return replace(
            self.learning,
            epochs=self.update_epochs * self.rounds,
            patience=_PATIENCE * self.update_epochs,
            validate_every=self.update_epochs,
            lr=self.update_lr,
            accumulator=self.accumulator,
        )

    @property
    def learning(self) -> LearningSettings:
        forever = 10**6  # epochs are counted by the caller, and nothing is validated
        return LearningSettings(
            epochs=forever,
            patience=forever,
            validate_every=forever,
            batch_size=self.batch_size,
            optimizer="adagrad",
            lr=self.lr,
            max_norm=None,
            n3=self.n3,
            smoothness=self.smoothness,
        )

    def visits_every_fact(self, facts: int) -> bool:
        """Whether each epoch of an update visits every fact of a graph."""
        return facts <= _EVERY_FACT * self.replay

    def sized(self, facts: int) -> LiveSettings:
        """The settings of a new graph with this number of facts."""
        if self.hidden_channels:
            return self
        if facts <= _MANY_FACTS:
            return replace(self, hidden_channels=_WIDTH)
        return replace(self, hidden_channels=_LARGE_WIDTH, lr=_LARGE_LR if self.lr == LiveSettings.lr else self.lr)

    def check(self) -> None:
        """Refuses a model that is unknown, before anything is written."""
        if self.name not in ZOO:
            raise ValueError(f"model must be one of {', '.join(ZOO)} (got {self.name!r})")

    def make_model(self, num_entities: int, num_relations: int, num_steps: int) -> TKGModel:
        """A new model."""
        self.check()
        sizes = (num_entities, num_relations, num_steps)
        make: Callable[..., TKGModel] = ZOO[self.name]
        options = {"hidden_channels": self.hidden_channels, "reciprocal": True, "seed": self.seed, **self.options}
        return make(*sizes, **options)
