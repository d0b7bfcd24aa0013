"""A run from its options: the dataset, the trainer, and the training."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from tkg_incremental.cli.errors import UsageError
from tkg_incremental.cli.graph_io import is_graph
from tkg_incremental.cli.options import RunOptions
from tkg_incremental.cli.outcome import print_dataset
from tkg_incremental.communicator import LOCAL, Communicator
from tkg_incremental.datasets import DataError, TabularTKG, TKGDataset
from tkg_incremental.metrics import Evaluator
from tkg_incremental.models import TKGModel
from tkg_incremental.ops.memory import keep_freed_memory
from tkg_incremental.registry import make_dataset, make_model, make_strategy
from tkg_incremental.run_file import RUN_FILE
from tkg_incremental.strategies import Deleted, ReplayOptions, Strategy, UnlikelihoodLoss
from tkg_incremental.training import (
    BaseSettings,
    Callback,
    IncrementalTrainer,
    LearningSettings,
    Result,
    RunFolderError,
    TrainerSettings,
)

# Memory per replayed quad while it is drawn and learnt, about.
_BYTES_PER_QUAD = 100


def train(
    options: RunOptions,
    run_dir: str | Path,
    callbacks: Sequence[Callback] = (),
    resume: bool = False,
    overwrite: bool = False,
    communicator: Communicator = LOCAL,
    command: str = "",
) -> Result:
    """Trains a base model and learns all steps, or continues to.

    Args:
        options: The options.
        run_dir: Folder of the run.
        callbacks: Called during the run.
        resume: Continue the run in the folder.
        overwrite: Replace the run in the folder.
        communicator: The processes that train together.
        command: The command that began the run, for its report.
    """
    keep_freed_memory()
    run_dir = Path(run_dir)
    with communicator.first() as is_first:
        if is_first and is_graph(run_dir):
            raise RunFolderError(f"'{run_dir}' is a live graph; train needs a folder of its own")
        if is_first and holds_run(run_dir) and not (resume or overwrite):
            raise RunFolderError(f"'{run_dir}' holds an earlier run: --resume continues it, --overwrite replaces it")
    dataset = open_dataset(options)  # the first process builds it, under a lock
    if communicator.is_first:
        print_dataset(dataset)
        if dataset.timeline.is_events and options.learns_deleted_facts:
            print(
                "All facts are events of one step: nothing is learnt from their end (--deletion, --contrast and "
                "--unlikelihood are 0 by default).",
                file=sys.stderr,
            )
    options = options.suited_to(dataset.timeline.train.num_rows, dataset.timeline.is_events)
    trainer = make_trainer(options, dataset, run_dir, callbacks, overwrite, communicator)
    try:
        # A run may have been stopped before its first checkpoint.
        if resume and communicator.broadcast(trainer.folder is not None and bool(trainer.folder.checkpoints)):
            trainer.resume()
        if communicator.is_first:
            options.save(run_dir, command)
        if options.protocol == "joint":
            trainer.fit_all(options.base)
            return trainer.result
        trainer.pretrain(options.base)
        return trainer.fit()
    except KeyboardInterrupt:
        for callback in trainer.callbacks if communicator.is_first else ():
            callback.on_end(trainer)
        raise
    finally:
        if trainer.folder is not None:
            trainer.folder.release()


def open_dataset(options: RunOptions) -> TKGDataset:
    """The dataset by its name, or a user's own facts."""
    if options.facts is None:
        return make_dataset(options.dataset, options.root)
    try:
        return TabularTKG(
            options.facts,
            options.val,
            options.test,
            unit=options.unit,
            binning=options.threshold,
            read=options.read_options(),
            holdout=options.holdout,
        )
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
    communicator: Communicator = LOCAL,
) -> IncrementalTrainer:
    """The trainer of a run.

    Args:
        options: The options.
        dataset: The dataset.
        run_dir: Folder of the run.
        callbacks: Called during the run.
        overwrite: Replace the run in the folder.
        communicator: The processes that train together.
    """
    check_device(options.device)
    options = options.suited_to(dataset.timeline.train.num_rows, dataset.timeline.is_events)
    check_memory(options)
    try:
        model = _model(options, dataset)
        return IncrementalTrainer(
            model,
            dataset,
            _strategy(options),
            run_dir=run_dir,
            seed=options.seed,
            device=options.device,
            settings=_settings(options, model),
            evaluator=_evaluator(options, dataset, communicator),
            callbacks=callbacks,
            overwrite=overwrite,
            communicator=communicator,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


def _model(options: RunOptions, dataset: TKGDataset) -> TKGModel:
    choice: dict[str, Any] = {"hidden_channels": options.hidden_channels, "seed": options.seed}
    for name in ("decoder", "max_frequency", "dropout", "temporal_share"):
        if getattr(options, name) is not None:
            choice[name] = getattr(options, name)
    if options.reciprocal:
        choice["reciprocal"] = True
    return make_model(options.model, dataset, **choice)


def _evaluator(options: RunOptions, dataset: TKGDataset, communicator: Communicator) -> Evaluator | None:
    if not options.exclude_ended:
        return None
    if dataset.timeline.is_events:
        raise UsageError("--exclude-ended is for facts that last; all facts of this dataset are events of one step")
    return Evaluator(dataset.timeline.to(communicator.device(options.device)), exclude_ended=True)


def _strategy(options: RunOptions) -> Strategy:
    if options.protocol == "joint":
        return Strategy([], "joint", sees_future=True)
    names = ["negatives", "window", "regularization", "contrast", "deletion", "repeats"]
    chosen: dict[str, Any] = {name: getattr(options, name) for name in names if options.uses(name)}
    if options.uses("learn_from"):
        chosen["facts"] = options.learn_from
    if options.uses("current"):
        chosen["current_limit"] = None if options.current == "all" else options.current
        if options.shared_negatives:  # negatives that are shared cost little
            chosen["current_negatives"] = options.negatives
    if options.uses("unlikelihood") and options.unlikelihood:
        unreplaced = options.unlikelihood_of == "unreplaced"
        view = Deleted(options.window, unreplaced=unreplaced)
        given = options.unlikelihood_negatives, options.unlikelihood
        chosen["unlikelihood"] = UnlikelihoodLoss(view, *given, open_only=unreplaced)
    if options.shared_negatives and options.strategy in ("ft", "tr", "tie", "supersede"):
        chosen["shared"] = "batch"
    if options.uses("replay"):
        chosen["replay"] = ReplayOptions(
            sampling=options.replay,  # type: ignore[arg-type]
            size=options.replay_size,
            window=options.replay_window,  # type: ignore[arg-type]
            negatives=options.replay_negatives,  # type: ignore[arg-type]
            weight=1.0 if options.replay_weight is None else options.replay_weight,
        )
    return make_strategy(options.strategy, **chosen)


def _settings(options: RunOptions, model: TKGModel) -> TrainerSettings:
    names = ["batch_size", "optimizer", "lr", "weight_decay", "n3", "smoothness"]
    names += ["validate_every", "autocast", "together"]
    chosen: dict[str, Any] = {name: getattr(options, name) for name in names}
    # Adagrad is not sensitive to the scale of gradients.
    max_norm = options.max_norm if options.max_norm is not None else float(options.optimizer != "adagrad")
    chosen["max_norm"] = max_norm or None
    chosen["patience"] = options.patience or None
    learning = LearningSettings(epochs=options.epochs or 1, accumulator=options.accumulator, **chosen)
    # Scores against all entities are one matrix product, if the score is a product.
    negatives = options.base_negatives or ("all" if model.decoder.similarity == "dot" else 500)
    assert options.base_epochs is not None
    base = BaseSettings(
        learning=replace(learning, epochs=options.base_epochs, accumulator=0.0, cooldown=options.cooldown),
        negatives=negatives,  # type: ignore[arg-type]
        shared=options.shared_negatives and ("batch" if model.static_entities else True),
        visits=options.base_visits or "auto",
        # Link prediction ranks all entities at every step.
        candidates="last" if options.protocol == "joint" else options.candidates,  # type: ignore[arg-type]
        metric="MRR" if options.protocol == "joint" else "C@10",
    )
    return TrainerSettings(
        learning=learning,
        base=base,
        negative_pool=options.negative_pool,
        new_entities=options.new_entities,  # type: ignore[arg-type]
        candidates=options.candidates,  # type: ignore[arg-type]
        checkpoint_every=options.checkpoint_every,
    )


def holds_run(run_dir: Path) -> bool:
    """Whether a folder has files of a run."""
    names = (RUN_FILE, "config.json", "metrics.json", "model.pt")
    return any((run_dir / name).exists() for name in names) or any((run_dir / "checkpoints").glob("[0-9]*.pt"))


def check_device(device: str) -> None:
    """Refuses a device that is not available."""
    kind = device.partition(":")[0]
    there: dict[str, Callable[[], bool]] = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}
    if kind in there and not there[kind]():
        raise UsageError(f"--device {device}: torch finds no {kind} device here; --device auto takes the best there is")


def check_memory(options: RunOptions) -> None:
    """Refuses a replay that does not fit into the memory of the machine."""
    if options.replay_size is None or not hasattr(os, "sysconf"):
        return
    needed = options.replay_size * _BYTES_PER_QUAD
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        raise UsageError(
            f"--replay-size {options.replay_size} needs about {needed / 1e9:.0f} GB of memory (this machine has "
            f"{there / 1e9:.0f} GB)"
        )
