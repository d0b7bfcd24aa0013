"""What groups of processes are given to do."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from learning import stir
from mortal import die_at

from tkg_incremental import IncrementalTrainer, LearningSettings
from tkg_incremental.data import Snapshot
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.distributed import LostProcessError, Processes, World
from tkg_incremental.distributed.sharded import shard_entities
from tkg_incremental.metrics import Evaluator
from tkg_incremental.models import DE, HyTE, TKGModel
from tkg_incremental.ops import ranking
from tkg_incremental.sampling import NegativeSampler, Pool
from tkg_incremental.strategies import AGEM, FT, TIE, Strategy, Supersede
from tkg_incremental.training import StepLearner

MODELS = {"DE": DE, "HyTE": HyTE}
QUICK: dict[str, Any] = {"device": "cpu", "callbacks": []}


def graph() -> SyntheticTKG:
    return SyntheticTKG(
        num_entities=150, num_relations=3, num_steps=10, facts_per_step=300, added_per_step=60, test=0.4
    )


def exactly(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.double)


# Evaluation ------------------------------------------------------------------------------------------------


def metrics(world: World) -> dict[str, Any]:
    """Everything an evaluator says of fixed models, with products of a few rows: there are many to divide."""
    ranking._SCORES_AT_A_TIME = 1 << 10
    whole = _metrics(world)
    with wide_tables():
        return whole | {f"{name}, in blocks": value for name, value in _metrics(world).items()}


@contextmanager
def wide_tables() -> Iterator[None]:
    """Ranks as if tables were wide, a block at a time."""
    kept = ranking._WIDE, ranking._BLOCK, ranking._ANSWERS_TO_A_BLOCK
    ranking._WIDE, ranking._BLOCK, ranking._ANSWERS_TO_A_BLOCK = 0, 64, 5
    try:
        yield
    finally:
        ranking._WIDE, ranking._BLOCK, ranking._ANSWERS_TO_A_BLOCK = kept


def _metrics(world: World) -> dict[str, Any]:
    found: dict[str, Any] = {}
    dataset = graph()
    line = dataset.timeline
    for name, kind in MODELS.items():
        model = kind.from_dataset(dataset, 32)
        stir(model, seed=1)
        for per_query in (False, True):
            evaluator = Evaluator(line, per_query=per_query, world=world)
            values, alpha = evaluator.evaluate(model, line.num_steps - 1)
            found |= {
                f"{name} {per_query} {metric}": torch.tensor(value, dtype=torch.double)
                for metric, value in values.items()
            }
            found[f"{name} {per_query} alpha"] = alpha
        for step in (0, line.base_step):
            ranks = evaluator.rank(model, step, deleted=True)
            assert ranks is not None
            found |= {f"{name} {step} {field}": value for field, value in vars(ranks).items()}
        found[f"{name} hits"] = exactly(evaluator.hits(model, 0, line.base_step))
        found[f"{name} current"] = exactly(evaluator.current(model, line.base_step))
    return found


# Learning --------------------------------------------------------------------------------------------------


def strategies() -> dict[str, Strategy]:
    small: dict[str, Any] = {"replay_size": 200, "window": 3}
    return {
        "FT": FT(negatives=20),
        "FT all": FT("all", negatives="all"),
        "TIE shared": TIE(negatives=20, replay_negatives=5, shared=True, **small),
        "TIE": TIE(negatives=20, replay_negatives=5, **small),
        "Supersede": Supersede(negatives=20, lapse=2.0, replay_negatives="all", **small),
    }


CASES = [
    *(("DE", name, optimizer) for name in ("FT", "FT all", "TIE") for optimizer in ("rowwise", "published")),
    ("DE", "TIE shared", "rowwise"),
    ("DE", "Supersede", "rowwise"),
    ("HyTE", "TIE", "rowwise"),
]


class Enough(Exception):
    """The batches that are compared have been seen."""


def losses(world: World) -> dict[str, Any]:
    """The losses of 20 batches after each other, each the mean over the processes, and the weights they lead to."""
    dataset, found = graph(), {}
    for kind, name, optimizer in CASES:
        model, strategy = MODELS[kind].from_dataset(dataset, 8), strategies()[name]
        settings = LearningSettings(batch_size=32, optimizer=optimizer)
        pool = 40 if optimizer == "rowwise" else None
        trainer = IncrementalTrainer(
            model, dataset, strategy, settings=settings, negative_pool=pool, world=world, **QUICK
        )
        learner = trainer.learner(dataset.timeline.base_step)
        batches: list[dict[str, float]] = []

        def keep(module: Any, args: Any, output: dict[str, torch.Tensor], batches: Any = batches) -> None:
            means = world.mean(torch.stack(list(output.values())).detach().double())
            batches.append(dict(zip(output, means.tolist(), strict=True)))
            if len(batches) == 20:
                raise Enough

        learner._losses.register_forward_hook(keep)
        with suppress(Enough):
            while True:
                learner._train()
        found[f"{kind} {name} {optimizer}"] = {
            "batches": batches,
            "weights": {name: table.detach().clone() for name, table in model.named_parameters()},
            "generator": trainer.generator.get_state(),
        }
    return found


def runs(world: World) -> dict[str, Any]:
    """Whole runs, base model and all, with fewer rows in some batches than there are processes."""
    dataset, found = SyntheticTKG(num_entities=20, num_steps=7, added_per_step=3), {}
    for optimizer in ("rowwise", "published"):
        settings = LearningSettings(epochs=2, batch_size=40, optimizer=optimizer)
        trainer = IncrementalTrainer(
            DE.from_dataset(dataset, 8),
            dataset,
            TIE(negatives=5, replay_negatives=3, replay_size=40),
            settings=settings,
            world=world,
            **QUICK,
        )
        trainer.pretrain()
        found[optimizer] = trainer.fit().to_dict()
    return found


# Tables that are spread over the processes -----------------------------------------------------------------


def sharded(world: World) -> dict[str, Any]:
    """Initial values, losses of ten batches, the weights they lead to, and ranks, in double precision."""
    dataset, found = graph(), {}
    line = dataset.timeline
    sizes = (line.num_entities, line.num_relations, line.num_steps, 8)
    torch.set_default_dtype(torch.double)
    cases = (("DE", "TIE", 1), ("DE", "TIE", 4), ("DE", "TIE shared", 1), ("HyTE", "Supersede", 1), ("HyTE", "TIE", 4))
    for kind, name, stride in cases:
        options = {"max_frequency": 0.5} if kind == "DE" else {}  # a table with a bound of its own

        def make(kind: str = kind, options: dict[str, Any] = options) -> TKGModel:
            return MODELS[kind](*sizes, seed=3, **options)

        model = shard_entities(make, world, seed=3)
        strategy = strategies()[name]
        if name == "Supersede":
            strategy = Supersede(negatives=20, lapse=2.0, replay_negatives=5, rkd=1.0, replay_size=200, window=3)
        begin = whole(model, world)
        learner = StepLearner(
            model,
            Snapshot(line, line.base_step),
            strategy,
            LearningSettings(batch_size=160, lr=0.01),
            NegativeSampler(line, Pool(line, stride)),
            torch.Generator().manual_seed(0),
            lambda: 0.0,
            world,
        )
        losses = [learner._train() for _ in range(2)]
        learner._memory.mark()
        marked = whole(model, world)
        learner._train()
        learner.finish()
        evaluator = Evaluator(line, world=world)
        metrics, alpha = evaluator.evaluate(model, line.base_step)
        ranks = evaluator.rank(model, line.base_step, deleted=True)
        with wide_tables():
            in_blocks = evaluator.rank(model, line.base_step, deleted=True)
        assert ranks is not None
        assert in_blocks is not None
        assert all(torch.equal(value, vars(ranks)[field]) for field, value in vars(in_blocks).items())
        found[f"{kind} {name} {stride}"] = {
            "begin": begin,
            "losses": losses,
            "marked": marked,
            "rewound": whole(model, world),
            "metrics": metrics,
            "alpha": alpha,
            "ranks": vars(ranks),
            "rows here": len(next(iter(model.encoder.tables("entity").values()))),
        }
    model = shard_entities(lambda: DE(*sizes), world)
    trainer = IncrementalTrainer(
        model,
        dataset,
        TIE(negatives=5, shared=True, replay_negatives=3, replay_size=40),
        settings=LearningSettings(epochs=1, batch_size=500),
        base_negatives=5,
        world=world,
        **QUICK,
    )
    trainer.pretrain()
    found["run"] = trainer.fit().to_dict()
    torch.set_default_dtype(torch.float)
    return found


def whole(model: TKGModel, world: World) -> dict[str, torch.Tensor]:
    """All tables, put together from the processes' parts."""
    parts = {name: world.gather(table.detach()) for name, table in model.encoder.tables("entity").items()}
    others = {name: table.detach().clone() for name, table in model.encoder.tables().items() if name not in parts}
    return {**others, **{name: torch.cat(rows) for name, rows in parts.items()}}


def saved(world: World) -> dict[str, Any]:
    """A group of four leaves a model; a group of two takes it up."""
    import torch.distributed.checkpoint as checkpoint

    model = shard_entities(lambda: DE(150, 3, 10, 8), world, seed=world.size)
    place = Path(os.environ["TASK_FOLDER"]) / "saved"
    if world.size == 4:
        checkpoint.save(model.state_dict(), checkpoint_id=place)
    elif world.size == 2:
        checkpoint.load(model.state_dict(), checkpoint_id=place)
    return whole(model, world)


def refused(world: World) -> dict[str, str]:
    """What several processes, or spread tables, cannot do."""
    if world.size == 1:
        return {}
    dataset = graph()
    model = shard_entities(lambda: DE(150, 3, 10, 8), world)
    learn: dict[str, Any] = {**QUICK, "world": world}
    said = {}
    attempts: dict[str, Any] = {
        "agem": lambda: IncrementalTrainer(DE.from_dataset(dataset, 8), dataset, AGEM(), **learn),
        "folder": lambda: IncrementalTrainer(model, dataset, FT(), run_dir="/nowhere", **learn),
        "all": lambda: IncrementalTrainer(model, dataset, FT(), **learn).pretrain(),
        "published": lambda: IncrementalTrainer(
            model, dataset, FT(), base_negatives=5, settings=LearningSettings(optimizer="published"), **learn
        ).pretrain(),
        "mps": lambda: IncrementalTrainer(model, dataset, FT(), **{**learn, "device": "mps"}),
    }
    for name, make in attempts.items():
        try:
            make()
        except ValueError as error:
            said[name] = str(error)
    return said


def silent(world: World) -> dict[str, Any]:
    """One of two processes does not answer for longer than the other waits; then the first fails at something."""
    said: dict[str, Any] = {}
    if not isinstance(world, Processes) or world.size != 2:
        return said
    world.group = dist.new_group(timeout=timedelta(seconds=1))
    if world.rank == 1:
        time.sleep(3)
    try:
        with world.talking("gradients"):
            dist.all_reduce(torch.zeros(1), group=world.group)
    except LostProcessError as error:
        said["silent"] = str(error)
    try:
        with world.first() as is_first:
            if is_first:
                raise OSError("no space left")
    except (OSError, LostProcessError) as error:
        said["first"] = f"{type(error).__name__}: {error}"
    try:
        with world.talking("a batch"):
            raise RuntimeError("shapes do not match")
    except RuntimeError as error:
        said["other"] = f"{type(error).__name__}: {error}"
    return said


def interrupted(world: World) -> dict[str, Any]:
    """A run of four processes that loses one in the middle of a step, goes on with two, and is done by one at once."""
    folder = Path(os.environ["TASK_FOLDER"])
    dataset = SyntheticTKG(num_entities=20, num_steps=7, added_per_step=10)
    trainer = IncrementalTrainer(
        DE.from_dataset(dataset, 8),
        dataset,
        TIE(negatives=5, replay_negatives=3, replay_size=40),
        run_dir=folder / ("whole" if world.size == 1 else "run"),
        settings=LearningSettings(epochs=3, batch_size=20),
        checkpoint_every=1,
        world=world,
        **QUICK,
    )
    if world.size == 4 and world.rank == 2:
        die_at(20, folder / "killed")
    if world.size == 2:
        trainer.resume()
    taken_up = len(trainer.result.steps)
    try:
        trainer.pretrain()
        trainer.fit()
    except LostProcessError as error:
        return {"said": str(error), "at": time.time(), "killed": (folder / "killed").stat().st_mtime}
    return {"result": trainer.result.to_dict(), "taken up": taken_up}
