"""Everything that decides a run, by name: what flags, a configuration file and ``run.json`` say."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from tkg_incremental.cli.errors import BadDataError
from tkg_incremental.datasets import TKGDataset
from tkg_incremental.registry import MODELS, takes
from tkg_incremental.storage import atomic_write
from tkg_incremental.strategies.candidates import Negatives
from tkg_incremental.strategies.views import Reach
from tkg_incremental.training.newcomers import NewEntities

RUN_FILE = "run.json"

# From so many train rows on a graph is large. A small one needs fewer epochs and larger steps.
_LARGE = 100_000

#: Defaults for small and for large datasets.
SUITED: dict[str, tuple[Any, Any]] = {
    "epochs": (10, 100),
    "patience": (5, 20),
    # All entities of a small graph are fewer than the negatives one would draw, and say more.
    "negatives": ("all", 500),
    "replay_negatives": ("all", 50),
    "lr": (5e-3, 1e-3),
    # Answers of a small graph can change from one step to the next, and the turns of its past be learnt again at each.
    "max_frequency": (0.3, None),
    "drift": (0.03, 1.0),
    "replay": ("turns", "uniform"),
    "replay_window": ("all", None),
    "replay_weight": (5.0, 1.0),
    # Half of the answers that change in WorldLeaders have no known successor; few in YAGO11k, where it does not pay.
    "lapse": (2.0, 0.0),
}


@dataclass(frozen=True)
class RunOptions:
    """The options of a run. What is :obj:`None` is chosen to suit the dataset or the model.

    Args:
        dataset: Name of a dataset of the registry.
        facts: A user's own facts, instead of ``dataset``; split at random unless ``val`` or ``test`` is given.
        val: Validation facts, with ``facts``.
        test: Test facts, with ``facts``.
        binning: With ``facts``: what a step is, see :class:`~tkg_incremental.datasets.TabularTKG`.
        unit: With ``facts`` and ``binning="count"``: what an instant is.
        threshold: With ``facts`` and ``binning="count"``: how full a step gets.
        root: Folder of the datasets.
        model: Name of a model of the registry.
        decoder: Score function, for models that have a choice.
        hidden_channels: Width of the vectors.
        max_frequency: With DE: how fast vectors swing at first, in radians a step; as in the released code if it stays
            :obj:`None`.
        strategy: Name of a strategy of the registry.
        learn_from: ``"added"`` or ``"all"`` facts of a step.
        replay: How past facts are sampled.
        window: How many steps back deleted facts reach, and replayed ones unless ``replay_window`` says otherwise.
        replay_window: How many steps back replayed facts reach, or ``"all"``.
        replay_size: How many facts are replayed in a step.
        replay_weight: How much replayed facts weigh; 1 in the paper.
        drift: How strongly vectors are held to those of the step before; 1 in the paper.
        lapse: How much facts weigh that ended with nothing known in their place; with Supersede.
        negatives: Negatives a side at each step, or ``"all"``.
        replay_negatives: The same for replayed facts.
        base_negatives: Negatives a side for the base model, or ``"all"``.
        negative_pool: Where many more entities are known, the negatives of a step are drawn from so many of them.
        new_entities: How entities that appear at a step start.
        optimizer: ``"rowwise"`` or ``"published"``.
        epochs: At most so many epochs a step.
        base_epochs: The same for the base model; twice as many for a small dataset.
        patience: Stop a step when the best epoch is so many epochs old.
        lr: Learning rate.
        batch_size: Rows in a batch.
        weight_decay: L2 penalty.
        autocast: ``"bf16"`` or ``"fp16"``: the precision of matrix products.
        seed: Seed of everything random.
        base: A file to share the base model between runs.
        checkpoint_every: Epochs between checkpoints.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
    """

    dataset: str = "WorldLeaders"
    facts: str | None = None
    val: str | None = None
    test: str | None = None
    binning: str = "year"
    unit: str = "year"
    threshold: int = 300
    root: str = "data"
    model: str = "DE"
    decoder: str | None = None
    hidden_channels: int = 128
    max_frequency: float | None = None
    strategy: str = "tie"
    learn_from: str = "added"
    replay: str | None = None
    window: int = 10
    replay_window: Reach | None = None
    replay_size: int | None = None
    replay_weight: float | None = None
    drift: float | None = None
    lapse: float | None = None
    negatives: Negatives | None = None
    replay_negatives: Negatives | None = None
    base_negatives: Negatives | None = None
    negative_pool: int = 5_000
    new_entities: NewEntities = "settled"
    optimizer: str = "rowwise"
    epochs: int | None = None
    base_epochs: int | None = None
    patience: int | None = None
    lr: float | None = None
    batch_size: int = 2048
    weight_decay: float | None = None
    autocast: str | None = None
    seed: int = 0
    base: str | None = None
    checkpoint_every: int = 10
    device: str = "auto"

    def suited_to(self, dataset: TKGDataset) -> RunOptions:
        """The same with every choice that depends on the size of the dataset made."""
        large = len(dataset.timeline.train) >= _LARGE
        chosen: dict[str, Any] = {name: values[large] for name, values in SUITED.items() if getattr(self, name) is None}
        if self.model in MODELS and not takes(self.model, "max_frequency"):
            chosen.pop("max_frequency", None)
        if chosen.get("replay", self.replay) != "turns":  # of other samplings the whole past would be too much
            chosen.pop("replay_window", None)
        suited = replace(self, **chosen)
        if suited.base_epochs is None:
            assert suited.epochs is not None
            suited = replace(suited, base_epochs=suited.epochs * (1 if large else 2))
        return suited

    def save(self, run_dir: Path) -> None:
        """Writes ``run.json``, from which a run can be taken up without any flag."""
        state: dict[str, Any] = asdict(self)
        for name in ("facts", "val", "test", "root", "base"):  # a run may be resumed from another folder
            if state[name] is not None:
                state[name] = str(Path(state[name]).absolute())
        with atomic_write(run_dir / RUN_FILE) as file:
            file.write(json.dumps(state, indent=1, ensure_ascii=False).encode())

    @classmethod
    def load(cls, run_dir: Path) -> RunOptions:
        """Reads ``run.json``."""
        path = run_dir / RUN_FILE
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise BadDataError(f"there is no run of the command line in '{run_dir}' (no {RUN_FILE})") from None
        except (ValueError, TypeError) as error:
            raise BadDataError(f"'{path}' is damaged or of another version: {error}") from None


OPTION_NAMES = [field.name for field in fields(RunOptions)]
DEFAULTS = RunOptions()
