"""The protocol of the paper's tables. Where the paper and its released code differ, the code gave the tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from paper_cells import NEGATIVES, Cell

from tkg_incremental import IncrementalTrainer, LearningSettings, TrainerSettings
from tkg_incremental.metrics import Evaluator
from tkg_incremental.registry import make_dataset, make_model
from tkg_incremental.training import BaseSettings


def learning(optimizer: str = "published", patience: int = 20) -> LearningSettings:
    """Dense Adam with weight decay 1e-4, and full batches but for the last of an epoch."""
    return LearningSettings(optimizer=optimizer, patience=patience, short_last=True)


def settings(cell: Cell) -> TrainerSettings:
    """How the base model and the steps of a cell are learnt."""
    if cell.optimizer == "adagrad":
        return adagrad_settings(cell)
    base = BaseSettings(
        # The base model of every cell is the published one, so that cells differ in their strategy only.
        learning=learning(patience=cell.base_patience),
        seed=cell.base_seed,
        # Sampled negatives matter: against all entities the base model is more confident, and later steps change less.
        negatives=500,
        # Candidates are all entities known at the last step of the base model.
        candidates="last",
        # Every epoch visits every quad (fact, step).
        visits=None,
    )
    return TrainerSettings(
        learning=learning(cell.optimizer),
        base=base,
        negative_pool=cell.negative_pool,
        new_entities=cell.new_entities,
    )


def adagrad_settings(cell: Cell) -> TrainerSettings:
    """Settings of models of product form: Adagrad, N3, and few epochs, all of which are learnt."""
    # N3 is a penalty of products.
    n3 = 0.1 if cell.model == "DE" else 0.0
    learning = LearningSettings(
        epochs=4, patience=None, batch_size=1000, optimizer="adagrad", lr=0.1, max_norm=None, n3=n3, validate_every=4
    )
    base = BaseSettings(
        learning=replace(learning, epochs=6, validate_every=6), seed=cell.base_seed, negatives=NEGATIVES
    )
    return TrainerSettings(learning, base, new_entities=cell.new_entities)


def make_trainer(cell: Cell, seed: int, root: str, run_dir: Path) -> IncrementalTrainer:
    """The trainer of a cell.

    Args:
        cell: The cell.
        seed: Seed of the steps. All seeds share the base model, as in the paper, where its training is no part of the
            deviation over seeds.
        root: Folder of the datasets.
        run_dir: Folder of the run.
    """
    dataset = make_dataset(cell.dataset, root)
    # A second vector per relation, for head queries, is part of the other settings.
    model = make_model(cell.model, dataset, seed=cell.base_seed, reciprocal=cell.optimizer == "adagrad")
    # Deleted facts count once per query, and repeated test facts once.
    evaluator = Evaluator(dataset.timeline, per_query=True, count_repeats=False, max_past_steps=None)
    return IncrementalTrainer(
        model,
        dataset,
        cell.strategy(),
        run_dir=run_dir,
        seed=seed,
        settings=settings(cell),
        evaluator=evaluator,
    )
