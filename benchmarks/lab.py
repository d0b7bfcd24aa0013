"""What the benchmarks work with: sizes, the dataset, models and learners."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness import Timing, Unavailable, Work, interleave
from tkg_incremental import IncrementalTrainer, LearningSettings
from tkg_incremental.datasets import SyntheticTKG, TKGDataset, Wikidata12k
from tkg_incremental.datasets.download import DownloadError
from tkg_incremental.registry import make_model
from tkg_incremental.strategies import ReplayOptions, Strategy
from tkg_incremental.training import StepLearner, TrainerSettings


@dataclass(frozen=True)
class Sizes:
    """Sizes of all benchmarks; by default the paper's setting.

    Args:
        hidden_channels: Width of the vectors.
        negatives: Negatives per query for current facts.
        replay_negatives: Negatives per query for replayed facts.
        replay_size: Replayed facts.
        graphs: Numbers of entities of the graphs on which the same change is learnt.
        changed: Facts added to and deleted from each of them.
        queries: Queries to rank against a large table.
        candidates: Rows of that table.
        peer_entities: Entities of the static graph that peers rank.
        peer_facts: Its train facts, all of them in the filter.
        peer_triples: Its test facts, which are ranked.
        day_facts: Train facts of the graph at day granularity.
        day_steps: Its number of days.
        day_entities: Its entities.
        live_graphs: Numbers of entities of the live graphs, with ten facts each.
    """

    hidden_channels: int = 128
    negatives: int = 500
    replay_negatives: int = 50
    replay_size: int = 10_000
    graphs: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    changed: int = 400
    queries: int = 2_000
    candidates: int = 1_000_000
    peer_entities: int = 8_349
    peer_facts: int = 32_000
    peer_triples: int = 2_000
    day_facts: int = 200_000
    day_steps: int = 3_650
    day_entities: int = 20_000
    live_graphs: tuple[int, int, int] = (10_000, 100_000, 1_000_000)

    @property
    def replay(self) -> ReplayOptions:
        """The replay of TIE with these sizes."""
        return ReplayOptions(size=self.replay_size, negatives=self.replay_negatives)


TINY = Sizes(
    hidden_channels=16,
    negatives=20,
    replay_negatives=5,
    replay_size=100,
    graphs=(200, 400, 800),
    changed=20,
    queries=20,
    candidates=1_000,
    peer_entities=100,
    peer_facts=400,
    peer_triples=40,
    day_facts=500,
    day_steps=40,
    day_entities=60,
    live_graphs=(200, 200, 200),
)
TINY_GRAPH = {"num_entities": 200, "num_relations": 4, "num_steps": 10}


class Lab:
    """Data and models for the benchmarks, made when they are first needed.

    Args:
        root: Folder of the datasets.
        quick: Tiny sizes and a synthetic graph instead of Wikidata12k, to check that all benchmarks run.
        threads: Threads of torch in this process and in those it starts.
        large: Whether benchmarks that take half an hour may run.
    """

    def __init__(
        self, root: str | Path = "data", quick: bool = False, threads: int | None = None, large: bool = False
    ) -> None:
        self.quick, self.large, self.sizes = quick, large, TINY if quick else Sizes()
        self.threads = threads or torch.get_num_threads()
        self._scratch = tempfile.TemporaryDirectory() if quick else None
        self._root = Path(self._scratch.name if self._scratch else root)

    # The dataset ---------------------------------------------------------------------------------------

    @property
    def recipe(self) -> dict[str, Any]:
        """Arguments with which another process opens the same dataset."""
        name = "SyntheticTKG" if self.quick else "Wikidata12k"
        return {"dataset": name, "root": str(self._root / name), "options": TINY_GRAPH if self.quick else {}}

    @cached_property
    def dataset(self) -> TKGDataset:
        recipe = self.recipe
        kind: Any = SyntheticTKG if self.quick else Wikidata12k
        try:
            return kind(recipe["root"], **recipe["options"])
        except DownloadError as error:
            raise Unavailable(f"{recipe['dataset']} is not available ({str(error).splitlines()[0]})") from error

    @property
    def time(self) -> int:
        """The first incremental step, t = 54 of Wikidata12k."""
        return self.dataset.timeline.base_step

    # Learning ------------------------------------------------------------------------------------------

    def trainer(self, model: str, strategy: Strategy, optimizer: str = "rowwise") -> IncrementalTrainer:
        return IncrementalTrainer(
            make_model(model, self.dataset, self.sizes.hidden_channels),
            self.dataset,
            strategy,
            device="cpu",
            settings=TrainerSettings(LearningSettings(optimizer=optimizer)),
            callbacks=[],
        )

    def learner(self, model: str, strategy: Strategy, optimizer: str = "rowwise") -> StepLearner:
        """Learns step :attr:`time`; its ``_train()`` is one epoch without validation."""
        return self.trainer(model, strategy, optimizer).learner(self.time)

    # Timing --------------------------------------------------------------------------------------------

    def time_work(self, work: Work, reference: Work | None = None, long: bool = False) -> Timing:
        """Rounds of the work and its reference in turn; ``long`` work takes many seconds and gets fewer rounds."""
        if self.quick:
            return interleave(work, reference, rounds=(1, 2), budget=0.0)
        return interleave(work, reference, rounds=(3, 5) if long else (5, 25), warm=not long)

    @property
    def processes(self) -> int:
        """Number of processes to start if each can measure only once."""
        return 1 if self.quick else 5
