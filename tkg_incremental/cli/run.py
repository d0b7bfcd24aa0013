"""A run from its options: the dataset, the trainer, and the training itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from tkg_incremental.cli.errors import UsageError
from tkg_incremental.cli.options import RUN_FILE, RunOptions
from tkg_incremental.datasets import DataError, TabularTKG, TKGDataset
from tkg_incremental.distributed import World
from tkg_incremental.distributed.world import ALONE
from tkg_incremental.ops.memory import keep_freed_memory
from tkg_incremental.registry import make_dataset, make_model, make_strategy, takes
from tkg_incremental.training import Callback, IncrementalTrainer, LearningSettings, Result, RunFolderError
from tkg_incremental.training.checks import check_shared


def train(
    options: RunOptions,
    run_dir: str | Path,
    callbacks: Sequence[Callback] = (),
    resume: bool = False,
    overwrite: bool = False,
    world: World = ALONE,
) -> Result:
    """Trains a base model and visits all steps, or continues to.

    Args:
        options: What to learn, and how.
        run_dir: Folder of the run.
        callbacks: What watches the run.
        resume: Continue the run of the folder.
        overwrite: Replace the run of the folder.
        world: The processes that train together.
    """
    keep_freed_memory()
    run_dir = Path(run_dir)
    with world.first() as is_first:
        if is_first and holds_run(run_dir) and not (resume or overwrite):
            raise RunFolderError(f"'{run_dir}' holds an earlier run: --resume continues it, --overwrite replaces it")
    dataset = open_dataset(options)  # the first to come builds it, behind a lock
    if world.is_first:
        print(dataset, file=sys.stderr)
    options = options.suited_to(dataset)
    trainer = make_trainer(options, dataset, run_dir, callbacks, overwrite, world)
    try:
        # A run may have been stopped before the first checkpoint.
        if resume and world.tell(trainer.folder is not None and bool(trainer.folder.checkpoints)):
            trainer.resume()
        if world.is_first:
            options.save(run_dir)
        trainer.pretrain(options.base)
        return trainer.fit()
    except KeyboardInterrupt:
        for callback in trainer.callbacks if world.is_first else ():
            callback.on_end(trainer)
        raise
    finally:
        if trainer.folder is not None:
            trainer.folder.release()


def open_dataset(options: RunOptions) -> TKGDataset:
    """The dataset by its name, or a user's own facts."""
    if options.facts is None:
        return make_dataset(options.dataset, options.root)
    steps = {"binning": options.binning, "unit": options.unit, "threshold": options.threshold}
    try:
        if options.val is None and options.test is None:
            return TabularTKG(options.facts, **steps)  # type: ignore[arg-type]
        return TabularTKG(train=options.facts, val=options.val, test=options.test, **steps)  # type: ignore[arg-type]
    except DataError:
        raise
    except ValueError as error:
        raise UsageError(str(error)) from error


def make_trainer(
    options: RunOptions,
    dataset: TKGDataset,
    run_dir: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    overwrite: bool = False,
    world: World = ALONE,
) -> IncrementalTrainer:
    """The trainer the options describe.

    Args:
        options: What to learn, and how.
        dataset: The dataset.
        run_dir: Folder of the run.
        callbacks: What watches the run.
        overwrite: Replace the run of the folder.
        world: The processes that train together.
    """
    check_device(options.device)
    options = options.suited_to(dataset)
    choice: dict[str, Any] = {"hidden_channels": options.hidden_channels, "seed": options.seed}
    for name in ("decoder", "max_frequency"):
        value = getattr(options, name)
        if value is not None:
            choice[name] = value
            if not takes(options.model, name):
                raise UsageError(f"--{name.replace('_', '-')}: {options.model} has no choice of it (got {value!r})")
    names = ("epochs", "patience", "batch_size", "optimizer", "lr", "weight_decay", "autocast")
    try:
        settings = LearningSettings(**{name: getattr(options, name) for name in names})
        model = make_model(options.model, dataset, **choice)
        strategy = make_strategy(
            options.strategy,
            facts=options.learn_from,
            replay=options.replay,
            window=options.window,
            replay_size=options.replay_size,
            replay_window=options.replay_window,
            rce=options.replay_weight,
            drift=options.drift,
            lapse=options.lapse,
            negatives=options.negatives,
            replay_negatives=options.replay_negatives,
        )
        check_shared(strategy, world)
    except ValueError as error:
        raise UsageError(str(error)) from error
    # Against all entities at once costs one matrix product, where a product is what the score is.
    one_vs_all = model.decoder.similarity == "dot"
    return IncrementalTrainer(
        model,
        dataset,
        strategy,
        run_dir=run_dir,
        seed=options.seed,
        device=options.device,
        settings=settings,
        base_settings=replace(settings, epochs=options.base_epochs or settings.epochs),
        base_negatives=options.base_negatives or ("all" if one_vs_all else 500),
        negative_pool=options.negative_pool,
        new_entities=options.new_entities,
        callbacks=callbacks,
        checkpoint_every=options.checkpoint_every,
        overwrite=overwrite,
        world=world,
    )


def holds_run(run_dir: Path) -> bool:
    """Whether a folder has anything of a run in it."""
    names = (RUN_FILE, "config.json", "metrics.json", "model.pt")
    return any((run_dir / name).exists() for name in names) or any((run_dir / "checkpoints").glob("[0-9]*.pt"))


def check_device(device: str) -> None:
    """Refuses a device that is not there."""
    kind = device.partition(":")[0]
    there: dict[str, Callable[[], bool]] = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}
    if kind in there and not there[kind]():
        raise UsageError(f"--device {device}: torch finds no {kind} device here; --device auto takes the best there is")
