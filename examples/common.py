"""Shared parts of the two main examples: options, questions asked during training, the run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tkg_incremental import IncrementalTrainer
from tkg_incremental.cli.options import SAMPLINGS, RunOptions
from tkg_incremental.cli.progress import watchers
from tkg_incremental.cli.report import report_of
from tkg_incremental.cli.run import train
from tkg_incremental.registry import DATASETS, STRATEGIES
from tkg_incremental.text import printable
from tkg_incremental.training import Callback, StepLearner

QUESTIONS = [
    ("president of", "United States"),
    ("prime minister of", "United Kingdom"),
    ("chancellor of", "Germany"),
]


def parse_arguments(model: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=f"Learn a temporal knowledge graph step by step with {model}, and show which answers change.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--dataset", choices=list(DATASETS), default="WorldLeaders", help="the dataset")
    parser.add_argument("--strategy", choices=list(STRATEGIES), default="tie", help="what is learnt at each step")
    parser.add_argument("--replay", choices=SAMPLINGS, help="replay sampling")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random")
    parser.add_argument("--epochs", type=int, help="maximum number of epochs per step")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    parser.add_argument("--root", default="data", help="folder of the datasets")
    parser.add_argument("--run-dir", default=f"runs/{model.lower()}", help="folder of this run")
    parser.add_argument("--published", action="store_true", help="the dense optimizer of the released TIE code")
    return parser.parse_args()


class Interviewer(Callback):
    """Asks a few questions before and after each step, and prints those whose first answer changes."""

    def on_step_begin(self, trainer: IncrementalTrainer, learner: StepLearner) -> None:
        self.before = self._ask(trainer, learner.time - 1) if trainer.base_is_ready else {}

    def on_step_end(self, trainer: IncrementalTrainer, record: dict[str, Any] | None) -> None:
        if record is None:
            return
        for question, after in self._ask(trainer, record["time"]).items():
            before = self.before[question]
            if before[0] != after[0]:
                print(f"\n{record['label']}: who is {question[0]} {question[1]}?")
                print(f"   before this step: {printable(', '.join(before))}")
                print(f"   after this step:  {printable(', '.join(after))}")

    @staticmethod
    def _ask(trainer: IncrementalTrainer, time: int) -> dict[tuple[str, str], list[str]]:
        catalog = trainer.model.catalog
        assert catalog is not None
        year = catalog.axis.labels[time]
        return {
            (rel, tail): [answer.name for answer in trainer.model.query(None, rel, tail, year, k=3)]
            for rel, tail in QUESTIONS
            if rel in catalog.relations and tail in catalog.entities
        }


def run(model_name: str) -> None:
    arguments = vars(parse_arguments(model_name))
    run_dir, published = arguments.pop("run_dir"), arguments.pop("published")
    options = RunOptions(model=model_name, optimizer="published" if published else "rowwise", **arguments)
    watch = [(None, rel, tail) for rel, tail in QUESTIONS] if options.dataset == "WorldLeaders" else []
    print(f"\n{train(options, run_dir, [*watchers(watch), Interviewer()], overwrite=True)}")
    print(f"\nWritten to {run_dir}: metrics.json, model.pt, {report_of(Path(run_dir)).name}")
