"""What the two main examples share: options, the questions they ask while learning, the run itself."""

from __future__ import annotations

import argparse
from typing import Any

from tkg_incremental import IncrementalTrainer, LearningSettings
from tkg_incremental.ops.memory import keep_freed_memory
from tkg_incremental.registry import DATASETS, STRATEGIES, make_dataset, make_model, make_strategy
from tkg_incremental.training import Callback, ProgressBar, StepLearner

QUESTIONS = [
    ("president of", "United States"),
    ("prime minister of", "United Kingdom"),
    ("chancellor of", "Germany"),
]


def parse_arguments(model: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=f"Learn a temporal knowledge graph step by step with {model}, and see it change its mind.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--dataset", choices=list(DATASETS), default="WorldLeaders", help="what to learn")
    parser.add_argument("--strategy", choices=list(STRATEGIES), default="tie", help="what to learn from at each step")
    parser.add_argument(
        "--replay", choices=["uniform", "frequency", "inverse"], default="uniform", help="replay sampling"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random")
    parser.add_argument("--epochs", type=int, help="at most so many epochs a step")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    parser.add_argument("--root", default="data", help="folder of the datasets")
    parser.add_argument("--run-dir", default=f"runs/{model.lower()}", help="folder of this run")
    parser.add_argument("--published", action="store_true", help="the dense optimiser of the released TIE code")
    return parser.parse_args()


class Interviewer(Callback):
    """Asks a few questions before and after each step, and tells when an answer changes hands."""

    def on_step_begin(self, trainer: IncrementalTrainer, learner: StepLearner) -> None:
        self.before = self._ask(trainer, learner.step.snapshot.time) if trainer.base_is_ready else {}

    def on_step_end(self, trainer: IncrementalTrainer, record: dict[str, Any] | None) -> None:
        if record is None:
            return
        for question, after in self._ask(trainer, record["time"]).items():
            before = self.before[question]
            if before[0] != after[0]:
                print(f"\n{record['label']}: who is {question[0]} {question[1]}?")
                print(f"   before this step: {', '.join(before)}")
                print(f"   after this step:  {', '.join(after)}")

    @staticmethod
    def _ask(trainer: IncrementalTrainer, time: int) -> dict[tuple[str, str], list[str]]:
        catalog = trainer.model.catalog
        assert catalog is not None
        year = str(catalog.axis.first[time])
        return {
            (rel, tail): [answer.name for answer in trainer.model.query(None, rel, tail, year, k=3)]
            for rel, tail in QUESTIONS
            if rel in catalog.relations and tail in catalog.entities
        }


def run(model_name: str) -> None:
    keep_freed_memory()
    options = parse_arguments(model_name)
    dataset = make_dataset(options.dataset, options.root)
    print(dataset)
    small = options.dataset == "WorldLeaders"
    settings = LearningSettings(
        optimizer="published" if options.published else "rowwise",
        epochs=options.epochs or (20 if small else 100),
        patience=5 if small else 20,
        lr=5e-3 if small else 1e-3,
    )
    model = make_model(model_name, dataset, 64 if small else 128, seed=options.seed)
    trainer = IncrementalTrainer(
        model,
        dataset,
        make_strategy(options.strategy, replay=options.replay),
        run_dir=options.run_dir,
        seed=options.seed,
        device=options.device,
        settings=settings,
        base_negatives="all" if model.decoder.similarity == "dot" else 500,
        callbacks=[ProgressBar(), Interviewer()],
        overwrite=True,
    )
    trainer.pretrain()
    result = trainer.fit()
    print(f"\n{result}")
    print(f"\nWritten to {options.run_dir}: metrics.json, model.pt")
