"""Each part of TIE has the effect that its paper reports, averaged over seeds."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import nameless

from tkg_incremental import IncrementalTrainer, LearningSettings
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.models import DE
from tkg_incremental.strategies import FT, TIE, TR, ReplayOptions, Strategy
from tkg_incremental.training import BaseSettings, TrainerSettings

SEEDS = range(3)
Summary = dict[str, float]


def strategies() -> dict[str, Strategy]:
    replay = ReplayOptions(size=1000, negatives=50)
    return {
        "FT": FT(negatives=50),
        "TR": TR(negatives=50),
        "TR + deletion": TIE(negatives=50, replay=None),
        "FT + replay": TIE(negatives=50, replay=replay, deletion=0, regularization=0),
        "TR + replay": TIE(negatives=50, replay=replay, deletion=0),
        "TIE": TIE(negatives=50, replay=replay),
    }


@pytest.fixture(scope="module", params=["rowwise", "published"])
def summaries(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Summary]:
    """The mean over seeds of each strategy's metrics; all strategies of a seed start from one base model.

    Without validation quads every step takes all its epochs, so that fine-tuning forgets.
    """
    folder: Path = tmp_path_factory.mktemp("base")
    steps = LearningSettings(epochs=20, batch_size=512, lr=1e-2, optimizer=request.param)
    base = LearningSettings(epochs=40, lr=1e-2)
    found: dict[str, list[Summary]] = {name: [] for name in strategies()}
    for seed in SEEDS:
        graph = SyntheticTKG(
            num_entities=200, num_relations=4, num_steps=20, num_clusters=20,
            facts_per_step=1000, added_per_step=60, val=0.0, seed=seed,
        )  # fmt: skip
        for name, strategy in strategies().items():
            model = nameless(DE.from_dataset(graph, hidden_channels=32, seed=seed))
            settings = TrainerSettings(steps, BaseSettings(base))
            trainer = IncrementalTrainer(model, graph, strategy, None, seed, "cpu", settings, callbacks=[])
            trainer.pretrain(base=folder / f"{seed}.pt")
            found[name].append(trainer.fit().summary)
    means = {
        name: {metric: sum(run[metric] for run in runs) / len(runs) for metric in runs[0]}
        for name, runs in found.items()
    }
    shown = ("C@10", "DF@10", "RRD", "A@10", "F@10")
    for name, summary in means.items():
        print(request.param, name, {metric: round(summary[metric], 2) for metric in shown})  # noqa: T201
    return means


@pytest.mark.slow
def test_temporal_regularization_keeps_the_past(summaries: dict[str, Summary]) -> None:
    assert summaries["TR"]["A@10"] > summaries["FT"]["A@10"] + 2
    assert summaries["TR"]["F@10"] < summaries["FT"]["F@10"]


@pytest.mark.slow
@pytest.mark.parametrize(("without", "deletion"), [("TR", "TR + deletion"), ("TR + replay", "TIE")])
def test_deleted_facts_lose_their_rank(summaries: dict[str, Summary], without: str, deletion: str) -> None:
    assert summaries[deletion]["DF@10"] < summaries[without]["DF@10"] - 10
    assert summaries[deletion]["RRD"] > summaries[without]["RRD"] + 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("without", "replay"), [("FT", "FT + replay"), ("TR", "TR + replay"), ("TR + deletion", "TIE")]
)
def test_replay_keeps_the_past(summaries: dict[str, Summary], without: str, replay: str) -> None:
    assert summaries[replay]["A@10"] > summaries[without]["A@10"]
    assert summaries[replay]["F@10"] < summaries[without]["F@10"]
