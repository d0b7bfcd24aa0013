"""Incremental training: a base model, then one step after the other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tkg_incremental.communicator import LOCAL, Communicator
from tkg_incremental.data import Timeline
from tkg_incremental.distributed.checks import check_distributed
from tkg_incremental.loader import NegativeSampler
from tkg_incremental.metrics import Evaluator
from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.saving import can_save, save_model
from tkg_incremental.seeding import derive_seed, make_generator
from tkg_incremental.strategies import Strategy
from tkg_incremental.training.base_model import base_strategy
from tkg_incremental.training.callbacks import Callback, ProgressBar
from tkg_incremental.training.final_metrics import add_final_metrics
from tkg_incremental.training.learner import StepLearner
from tkg_incremental.training.new_entities import initialize_new_entities
from tkg_incremental.training.result import Result
from tkg_incremental.training.run_folder import RunFolder, RunFolderError
from tkg_incremental.training.run_state import (
    capture,
    check_fingerprint,
    load_base,
    restore,
    run_fingerprint,
    save_base,
)
from tkg_incremental.training.settings import TrainerSettings

if TYPE_CHECKING:  # updates of a live graph need no dataset, which would import torch_geometric
    from tkg_incremental.datasets.base import TKGDataset

# A base model is validated on at most this many quads per epoch.
_VALIDATION_QUADS = 1 << 16


class IncrementalTrainer:
    """Trains a base model on the first 70% of the steps, then learns the others one by one.

    Args:
        model: The model; it is trained in place.
        dataset: The dataset.
        strategy: What is learnt at each step.
        run_dir: Folder for checkpoints, metrics and the model; nothing is written without it.
        seed: Seed of everything random in training.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, …
        settings: How the base model and the steps are learnt.
        evaluator: Computes the metrics; by default on test quads, with the paper's definitions. Early stopping ranks
            validation quads in the same way as to ended facts.
        callbacks: Called during the run; by default progress bars.
        overwrite: Replace an earlier run in the folder.
        communicator: The processes that train together, from :func:`tkg_incremental.distributed.connect`. Each makes
            the same trainer; the first one writes files and calls the callbacks.
    """

    def __init__(
        self,
        model: TKGModel,
        dataset: TKGDataset,
        strategy: Strategy,
        run_dir: str | os.PathLike[str] | None = None,
        seed: int = 0,
        device: str = "auto",
        settings: TrainerSettings | None = None,
        evaluator: Evaluator | None = None,
        callbacks: Sequence[Callback] | None = None,
        overwrite: bool = False,
        communicator: Communicator = LOCAL,
    ) -> None:
        self.settings = settings or TrainerSettings()
        check_distributed(model, strategy, self.settings, communicator, run_dir)
        self.communicator = communicator
        place = communicator.device(device)
        self.model = model.to(place)
        self.timeline: Timeline = dataset.timeline.to(place)
        self.strategy, self.seed = strategy, seed
        strategy + self.settings.learning.regularizers()  # raises an error if names of losses are not unique
        self.base_seed = seed if self.settings.base.seed is None else self.settings.base.seed
        self.evaluator = evaluator or Evaluator(self.timeline)
        self.evaluator.communicator = communicator
        self.validator = self._validator(self.timeline)
        self.callbacks = [ProgressBar()] if callbacks is None else list(callbacks)
        self.generator = make_generator(self.base_seed, "base model", device=place)
        self.base_is_ready = False
        names = (type(dataset).__name__, type(model).__name__, strategy.name)
        num_steps, excluded = self.timeline.num_steps, self.evaluator.exclude_ended
        self.result = Result(*names, seed=seed, num_steps=num_steps, exclude_ended=excluded)
        #: Options that the dataset was built with.
        self.variant = dataset.variant
        #: The last step that the base model learns.
        self.base_last = self.timeline.num_steps - 1 if strategy.sees_future else self.timeline.base_step
        #: The learner of the current step or of the base model.
        self.active: StepLearner | None = None
        self.folder: RunFolder | None = None
        self._sampler: tuple[int, NegativeSampler] | None = None
        self._run_dir = run_dir
        with communicator.first() as is_first:
            if is_first and run_dir is not None:
                self.folder = RunFolder(run_dir, self.settings.keep_checkpoints)
                if overwrite:
                    self.folder.clear()

    # Runs ----------------------------------------------------------------------------------------------

    def pretrain(self, base: str | os.PathLike[str] | None = None) -> TKGModel:
        """Trains the base model on all facts of the first 70% of the steps.

        Args:
            base: A file to share the base model between runs: loaded if it exists, written if not.
        """
        if base is not None and self.model.is_sharded:
            raise ValueError(f"base must be None for a model with sharded tables (got '{base}')")
        self._begin()
        if self.base_is_ready:
            return self.model
        if base is not None and self.communicator.broadcast(Path(base).exists()):
            load_base(self, base)
            self.active = None  # a base model that was half trained when the run was stopped
        else:
            self._learn(self.active or self.base_learner())
            with self.communicator.first() as is_first:
                if is_first and base is not None:
                    save_base(self, base)
        # Every run starts its steps from the same random state, whether its base model was trained or loaded.
        self.generator.set_state(make_generator(self.seed, "steps", device=self.generator.device).get_state())
        self.base_is_ready = True
        self._checkpoint()
        self._call_callbacks("on_step_end", None)
        return self.model

    def fit(self, until: int | str | None = None) -> Result:
        """Learns the remaining steps one after the other and evaluates after each.

        Args:
            until: The last step to learn, as an index or a date; by default the last of the dataset.
        """
        self._begin()
        if not self.base_is_ready:
            raise RuntimeError("there is no base model yet: call pretrain() before fit()")
        if self.base_last != self.timeline.base_step and not self.strategy.sees_future:
            raise RuntimeError("the model has learnt all steps in fit_all(): there is nothing left for fit()")
        last = self.timeline.num_steps - 1
        if until is not None:
            until = until if isinstance(until, int) else self.timeline.axis.step_of(until)
            if not 0 <= until <= last:
                raise ValueError(f"until must lie in 0 … {last} (got {until})")
            last = until
        for time in range(self.timeline.base_step + len(self.result.steps), last + 1):
            self._fit_step(time)
        self._end(self.timeline.base_step + len(self.result.steps) - 1)
        return self.result

    def fit_all(self, base: str | os.PathLike[str] | None = None) -> dict[str, float]:
        """Trains on all steps at once and ranks the test quads among all entities: ordinary link prediction.

        Args:
            base: A file to share the model between runs: loaded if it exists, written if not.

        Returns:
            MRR and Hits@k over the test quads.
        """
        last = self.timeline.num_steps - 1
        if self.base_last != last and (self.base_is_ready or self.active):
            raise RuntimeError(f"fit_all() must come first: there is a base model up to step {self.base_last}")
        self._set_base_last(last)
        self.pretrain(base)
        self.result.link_prediction = self.evaluator.link_prediction(self.model, candidates="all")
        self._end(self.base_last)
        return self.result.link_prediction

    def resume(self) -> IncrementalTrainer:
        """Restores the last checkpoint of the folder; :meth:`pretrain` and :meth:`fit` continue from there, to the same
        bits as an uninterrupted run."""
        if self._run_dir is None:
            raise RuntimeError("resume() needs a run_dir")
        state = self.communicator.load(self._read_checkpoint, self.model.device)
        try:
            self._set_base_last(state["about"]["base_last"])
            restore(self, state)
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
            raise RunFolderError(f"cannot continue the checkpoint in '{self._run_dir}': {error!r}") from error
        return self

    # One step ------------------------------------------------------------------------------------------

    def _fit_step(self, time: int) -> None:
        # A model that has seen the future has no new entities.
        if self.active is None and time > self.base_last:
            initialize_new_entities(
                self.model,
                self.timeline,
                time,
                self.settings.new_entities,
                self._sampler_at(time),
                self.seed,
                self.communicator,
            )
        if self.active is None:
            self.result.before[time] = self.evaluator.current(self.model, time)
        learner = self._learn(self.active or self.learner(time))
        metrics, alpha = self.evaluator.evaluate(self.model, time)
        seconds = learner.seconds
        self.result.add(
            time,
            self.timeline.labels[time],
            metrics,
            alpha,
            data_size=learner.loader.num_examples,
            epochs=learner.epoch,
            best_epoch=learner.stopping.best_epoch,
            epoch_seconds=sum(seconds) / len(seconds) if seconds else float("nan"),
        )
        if self.model.catalog is not None:
            self.model.catalog = replace(self.model.catalog, last_step=max(time, self.base_last), calibration=None)
        self.result.history += [{"time": time, **record} for record in learner.history]
        self._checkpoint()
        self._write_results()  # with the model, so that a run that is stopped here can be queried
        self._call_callbacks("on_step_end", self.result.steps[-1])

    def _learn(self, learner: StepLearner) -> StepLearner:
        self.active = learner
        self._call_callbacks("on_step_begin", learner)
        while not learner.is_finished:
            record = learner.run_epoch()
            self._call_callbacks("on_epoch_end", learner, record)
            if learner.epoch % self.settings.checkpoint_every == 0 and not learner.is_finished:
                self._checkpoint()
        learner.finish()
        self.active = None
        return learner

    def learner(self, time: int) -> StepLearner:
        """The learner of one step."""
        return StepLearner(
            self.model,
            self._timeline_at(time),
            time,
            self.strategy,
            self.settings.learning,
            self._sampler_at(time),
            self.generator,
            lambda: self.strategy.validate(self.validator, self.model, time),
            self.communicator,
        )

    def base_learner(self) -> StepLearner:
        """The learner of the base model."""
        base, last = self.settings.base, self.base_last
        timeline = self.timeline.with_known_until(last) if base.candidates == "last" else self.timeline
        validator = self._validator(timeline)
        find = validator.hits if base.metric == "C@10" else validator.reciprocal_rank
        return StepLearner(
            self.model,
            timeline,
            last,
            base_strategy(self.model, self.timeline, last, base),
            self.settings.base_learning,
            NegativeSampler(timeline),
            self.generator,
            lambda: find(self.model, 0, last, max_quads=_VALIDATION_QUADS),
            self.communicator,
        )

    def _validator(self, timeline: Timeline) -> Evaluator:
        options = {name: getattr(self.evaluator, name) for name in ("window", "exclude_ended")}
        return Evaluator(timeline, "val", **options, communicator=self.communicator)

    def _sampler_at(self, time: int) -> NegativeSampler:
        """The warm-up and the step draw from the same pool."""
        if self._sampler is None or self._sampler[0] != time:
            seed = derive_seed(self.seed, "negatives")
            timeline = self._timeline_at(time)
            self._sampler = time, NegativeSampler.with_pool(timeline, time, self.settings.negative_pool, seed)
        return self._sampler[1]

    def _timeline_at(self, time: int) -> Timeline:
        """The timeline that a step learns from."""
        return self.timeline.with_known_until(time) if self.settings.candidates == "last" else self.timeline

    # Checkpoints ---------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Refuses to mix two runs in one folder, and writes into it what this run is."""
        with self.communicator.first():
            if self.folder is not None:
                self.folder.acquire()
                if not self.active and not self.base_is_ready:
                    self.folder.begin(self._about)

    def _end(self, last_step: int) -> None:
        add_final_metrics(self.result, self.model, self.evaluator, max(last_step, self.base_last), self.seed)
        self._call_callbacks("on_end")
        self._write_results()
        if self.folder is not None:
            self.folder.release()

    def _checkpoint(self) -> None:
        with self.communicator.first():
            if self.folder is not None:
                self.folder.save({"about": self._about, **capture(self)})

    def _read_checkpoint(self) -> dict[str, Any]:
        assert self.folder is not None
        state = self.folder.latest(self.model.device)
        # A run of fit_all() has another last step of its base model, and is continued by fit_all().
        last = state["about"].get("base_last") if isinstance(state["about"], dict) else None
        check_fingerprint(state["about"], {**self._about, "base_last": last}, "the checkpoint")
        return state

    def _set_base_last(self, last: int) -> None:
        self.base_last = last
        self.__dict__.pop("_about", None)

    def _write_results(self) -> None:
        with self.communicator.first():
            if self.folder is None:
                return
            with self.folder.writing("the results"):
                self.result.save(self.folder / "metrics.json")
                if can_save(self.model):
                    save_model(self.model, self.folder / "model.pt")

    @cached_property
    def _about(self) -> dict[str, Any]:
        return run_fingerprint(self)

    def _call_callbacks(self, event: str, *args: Any) -> None:
        with self.communicator.first() as is_first:
            for callback in self.callbacks if is_first else ():
                getattr(callback, event)(self, *args)

    def __repr__(self) -> str:
        return f"IncrementalTrainer({self.result.model}, {self.result.dataset}, {self.strategy.name}, seed={self.seed})"
