"""Incremental training: a base model, then one step after the other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import torch

from tkg_incremental.data import Snapshot, Timeline
from tkg_incremental.datasets.base import TKGDataset
from tkg_incremental.distributed.world import ALONE, World
from tkg_incremental.metrics import Evaluator
from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.saving import save_model
from tkg_incremental.models.zoo import ZOO
from tkg_incremental.sampling import NegativeSampler, Pool
from tkg_incremental.strategies import History, Link, Strategy
from tkg_incremental.strategies.candidates import Negatives
from tkg_incremental.training.base_file import BaseFile
from tkg_incremental.training.callbacks import Callback, ProgressBar
from tkg_incremental.training.checkpoint import capture, restore
from tkg_incremental.training.checks import check_shared, check_whole
from tkg_incremental.training.fingerprint import base_fingerprint, refuse_other, run_fingerprint
from tkg_incremental.training.learner import LearningSettings, StepLearner
from tkg_incremental.training.newcomers import NEW_ENTITIES, NewEntities, welcome
from tkg_incremental.training.result import Result
from tkg_incremental.training.run_folder import RunFolder, RunFolderError


class IncrementalTrainer:
    """Trains a base model on the first 70% of the steps, then visits the others one by one.

    Args:
        model: The model; it is trained in place.
        dataset: The dataset.
        strategy: What is learnt at each step.
        run_dir: Where checkpoints, metrics and the model are kept; nothing is written without it.
        seed: Seed of everything random in training.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, …
        settings: How each step is learnt.
        base_settings: How the base model is learnt; as ``settings`` by default.
        base_seed: Seed of the base model's training; as ``seed`` by default. By it, runs of several seeds can share a
            base model.
        base_negatives: Negatives a side for the base model, or ``"all"``.
        base_candidates: What the facts of the base model are held against while it is trained and validated:
            entities known at the ``"own"`` step of a fact, as in the paper, or at the ``"last"`` step of the base
            model, as in the released code.
        negative_pool: Where twice as many entities as this or more are known, the negatives of a step are drawn from at
            least so many of them, chosen at random when it begins: what a step touches does not grow with the graph.
            With :obj:`None` they are always drawn from everybody.
        new_entities: Entities that appear after the base model start ``"fresh"`` from the initial distribution, as in
            the paper; are ``"kept"`` as they are, as in the released code, where weight decay has taken them to about
            zero by then; or start fresh and are ``"settled"`` before their first step is learnt
            (:func:`~tkg_incremental.training.settle`).
        evaluator: Computes the metrics; on test rows, with the paper's definitions, by default.
        callbacks: What watches the run; progress bars by default.
        checkpoint_every: Epochs between checkpoints inside a step; one is saved after every step in any case.
        keep_checkpoints: How many checkpoints to keep.
        overwrite: Begin anew in a folder that holds an earlier run.
        world: The processes that train together, from :func:`tkg_incremental.distributed.join`. Each makes the same
            trainer; files and callbacks are the first one's.
    """

    def __init__(
        self,
        model: TKGModel,
        dataset: TKGDataset,
        strategy: Strategy,
        run_dir: str | os.PathLike[str] | None = None,
        seed: int = 0,
        device: str = "auto",
        settings: LearningSettings | None = None,
        base_settings: LearningSettings | None = None,
        base_seed: int | None = None,
        base_negatives: Negatives = "all",
        base_candidates: Literal["own", "last"] = "own",
        negative_pool: int | None = 5_000,
        new_entities: NewEntities = "settled",
        evaluator: Evaluator | None = None,
        callbacks: Sequence[Callback] | None = None,
        checkpoint_every: int = 10,
        keep_checkpoints: int = 2,
        overwrite: bool = False,
        world: World = ALONE,
    ) -> None:
        if checkpoint_every < 1:
            raise ValueError(f"checkpoint_every must be at least 1 (got {checkpoint_every})")
        if negative_pool is not None and negative_pool < 1:
            raise ValueError(f"negative_pool must be None or at least 1 (got {negative_pool})")
        if base_candidates not in ("own", "last"):
            raise ValueError(f"base_candidates must be 'own' or 'last' (got {base_candidates!r})")
        if new_entities not in NEW_ENTITIES:
            raise ValueError(f"new_entities must be one of {', '.join(NEW_ENTITIES)} (got {new_entities!r})")
        check_shared(strategy, world)
        check_whole(model, "run_dir", run_dir)
        self.world = world
        place = world.place(device)
        self.model = model.to(place)
        self.timeline: Timeline = dataset.timeline.to(place)
        self.strategy, self.seed, self.base_seed = strategy, seed, seed if base_seed is None else base_seed
        self.settings = settings or LearningSettings()
        self.base_settings = base_settings or self.settings
        self.base_negatives, self.base_candidates = base_negatives, base_candidates
        self.negative_pool, self.new_entities = negative_pool, new_entities
        self.evaluator = evaluator or Evaluator(self.timeline)
        self.evaluator.world = world
        self.validator = Evaluator(self.timeline, "val", self.evaluator.window, world=world)
        self.callbacks = [ProgressBar()] if callbacks is None else list(callbacks)
        self.checkpoint_every = checkpoint_every
        self.generator = torch.Generator(place).manual_seed(self.base_seed)
        self.base_is_ready = False
        names = (type(dataset).__name__, type(model).__name__, strategy.name)
        self.result = Result(*names, seed=seed, num_steps=self.timeline.num_steps)
        self._variant = dataset.variant
        self._sampler: tuple[int, NegativeSampler] | None = None
        #: What is being learnt: a step, or the base model.
        self.active: StepLearner | None = None
        self.folder: RunFolder | None = None
        self._run_dir = run_dir
        with world.first() as is_first:
            if is_first and run_dir is not None:
                self.folder = RunFolder(run_dir, keep_checkpoints)
                if overwrite:
                    self.folder.clear()

    # The three things one does -------------------------------------------------------------------------

    def pretrain(self, base: str | os.PathLike[str] | None = None) -> TKGModel:
        """Trains the base model on all facts of the first 70% of the steps.

        Args:
            base: A file to share the base model between runs: taken from there if it exists, left there if not.
        """
        check_whole(self.model, "base", base)
        self._begin()
        if self.base_is_ready:
            return self.model
        file = None if base is None else BaseFile(base, base_fingerprint(self, self._variant))
        if file is not None and self.world.tell(file.exists()):
            file.load(self.model, self.world)
            self.active = None  # a base model that was half learnt when the run was stopped
        else:
            self._learn(self.active or self.base_learner())
            with self.world.first() as is_first:
                if is_first and file is not None:
                    file.save(self.model)
        # Every run starts its steps from the same random state, however its base model came about.
        self.generator.manual_seed(self.seed)
        self.base_is_ready = True
        self._checkpoint()
        self._tell("on_step_end", None)
        return self.model

    def fit(self) -> Result:
        """Visits the remaining steps, one after the other, and evaluates after each."""
        self._begin()
        if not self.base_is_ready:
            raise RuntimeError("there is no base model yet: call pretrain() before fit()")
        first = self.timeline.base_step + len(self.result.steps)
        for time in range(first, self.timeline.num_steps):
            self._fit_step(time)
        self._tell("on_end")
        self._write_results()
        return self.result

    def resume(self) -> IncrementalTrainer:
        """Takes up the run of the folder where its last checkpoint left it; :meth:`pretrain` and :meth:`fit` go on
        from there, to the same bits as if they had never stopped."""
        if self._run_dir is None:
            raise RuntimeError("resume() needs a run_dir")
        state = self.world.load(self._read_checkpoint, self.model.device)
        try:
            restore(self, state)
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
            raise RunFolderError(f"cannot continue the checkpoint in '{self._run_dir}': {error!r}") from error
        return self

    # One step ------------------------------------------------------------------------------------------

    def _fit_step(self, time: int) -> None:
        # Who has seen the future knows everybody already.
        if self.active is None and time > self.timeline.base_step and not self.strategy.sees_future:
            snapshot = Snapshot(self.timeline, time)
            negatives, seed = self._negatives(time), self._seed_of(time)
            welcome(self.model, snapshot, self.new_entities, negatives, seed, self.world)
        learner = self._learn(self.active or self.learner(time))
        metrics, alpha = self.evaluator.evaluate(self.model, time)
        seconds = learner.seconds
        self.result.add(
            time,
            self.timeline.labels[time],
            metrics,
            alpha,
            data_size=learner.examples,
            epochs=learner.epoch,
            best_epoch=learner.stopping.best_epoch,
            epoch_seconds=sum(seconds) / len(seconds) if seconds else float("nan"),
        )
        self.result.history += [{"time": time, **record} for record in learner.history]
        self._checkpoint()
        self._write_results()  # also the model: a run that is stopped here can be asked already
        self._tell("on_step_end", self.result.steps[-1])

    def _learn(self, learner: StepLearner) -> StepLearner:
        self.active = learner
        self._tell("on_step_begin", learner)
        while not learner.is_over:
            record = learner.run_epoch()
            self._tell("on_epoch_end", learner, record)
            if learner.epoch % self.checkpoint_every == 0 and not learner.is_over:
                self._checkpoint()
        learner.finish()
        self.active = None
        return learner

    def learner(self, time: int) -> StepLearner:
        """What learns one step."""

        def validate() -> float:
            return self.strategy.validate(self.validator, self.model, time)

        sources = self._negatives(time), self.generator
        snapshot = Snapshot(self.timeline, time)
        return StepLearner(self.model, snapshot, self.strategy, self.settings, *sources, validate, self.world)

    def _negatives(self, time: int) -> NegativeSampler:
        """Newcomers and the others draw from the same pool; kept until the next step."""
        if self._sampler is None or self._sampler[0] != time:
            pool = Pool.draw(self.timeline, time, self.negative_pool, self._seed_of(time))
            self._sampler = time, NegativeSampler(self.timeline, pool)
        return self._sampler[1]

    def base_learner(self) -> StepLearner:
        """What learns the base model."""
        last = self.timeline.num_steps - 1 if self.strategy.sees_future else self.timeline.base_step
        line = self.timeline.knowing(last) if self.base_candidates == "last" else self.timeline
        validator = Evaluator(line, "val", world=self.world)

        def validate() -> float:
            return validator.hits(self.model, 0, last)

        strategy = Strategy([Link(History(), self.base_negatives)], "base")
        sources = NegativeSampler(line), self.generator
        snapshot = Snapshot(line, last)
        return StepLearner(self.model, snapshot, strategy, self.base_settings, *sources, validate, self.world)

    def _seed_of(self, time: int) -> int:
        """Seed of what is drawn once for a step: a run that is resumed has to draw the same."""
        return self.seed * 1_000_003 + time

    # Checkpoints ---------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Refuses to mix two runs in one folder, and says in it what this run is."""
        if self.active or self.base_is_ready:
            return
        with self.world.first():
            if self.folder is not None:
                self.folder.begin(self._about)

    def _checkpoint(self) -> None:
        with self.world.first():
            if self.folder is not None:
                self.folder.save({"about": self._about, **capture(self)})

    def _read_checkpoint(self) -> dict[str, Any]:
        assert self.folder is not None
        state = self.folder.latest(self.model.device)
        refuse_other(state["about"], self._about, "the checkpoint")
        return state

    def _write_results(self) -> None:
        with self.world.first():
            if self.folder is None:
                return
            with self.folder.writing("the results"):
                self.result.save(self.folder / "metrics.json")
                if type(self.model).__name__ in ZOO:
                    save_model(self.model, self.folder / "model.pt")

    @cached_property
    def _about(self) -> dict[str, Any]:
        return run_fingerprint(self, self._variant)

    def _tell(self, event: str, *args: Any) -> None:
        with self.world.first() as is_first:
            for callback in self.callbacks if is_first else ():
                getattr(callback, event)(self, *args)

    def __repr__(self) -> str:
        return f"IncrementalTrainer({self.result.model}, {self.result.dataset}, {self.strategy.name}, seed={self.seed})"
