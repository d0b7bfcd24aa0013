"""The tasks of groups of processes. Each takes the communicator of its process."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from killed_process import kill_at
from runs import nameless

from tkg_incremental import IncrementalTrainer, LearningSettings
from tkg_incremental.communicator import Communicator
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.distributed import DistributedCommunicator, LostProcessError, shard_entities
from tkg_incremental.distributed.shards import Lookup, Shards
from tkg_incremental.loader import NegativeSampler
from tkg_incremental.metrics import Evaluator
from tkg_incremental.models import DE, HyTE, TKGModel
from tkg_incremental.ops import ranking
from tkg_incremental.strategies import AGEM, FT, TIE, ReplayOptions, Strategy, Supersede
from tkg_incremental.training import BaseSettings, StepLearner, TrainerSettings, new_entities

MODELS = {"DE": DE, "HyTE": HyTE}
QUICK: dict[str, Any] = {"device": "cpu", "callbacks": []}


def graph() -> SyntheticTKG:
    return SyntheticTKG(
        num_entities=150, num_relations=3, num_steps=10, facts_per_step=300, added_per_step=60, test=0.4
    )


def as_double(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.double)


@torch.no_grad()
def randomize(model: TKGModel, seed: int) -> None:
    """Fills all tables with standard normal numbers."""
    generator = torch.Generator().manual_seed(seed)
    for table in model.parameters():
        table.copy_(torch.randn(table.shape, generator=generator))


# Evaluation ------------------------------------------------------------------------------------------------


def metrics(communicator: Communicator) -> dict[str, Any]:
    """All metrics and ranks of fixed models. Products have few rows, so that there are many to divide."""
    ranking._SCORES_AT_A_TIME = 1 << 10
    found = {f"DE {name}": value for name, value in _metrics(communicator, DE, per_query=False).items()}
    found |= {f"HyTE {name}": value for name, value in _metrics(communicator, HyTE, per_query=True).items()}
    with wide_tables():
        blocks = _metrics(communicator, DE, per_query=True)
    return found | {f"DE in blocks {name}": value for name, value in blocks.items()}


@contextmanager
def wide_tables() -> Iterator[None]:
    """Ranks tables of any size block by block."""
    kept = ranking._WIDE, ranking._BLOCK, ranking._ANSWERS_TO_A_BLOCK
    ranking._WIDE, ranking._BLOCK, ranking._ANSWERS_TO_A_BLOCK = 0, 64, 5
    try:
        yield
    finally:
        ranking._WIDE, ranking._BLOCK, ranking._ANSWERS_TO_A_BLOCK = kept


def _metrics(communicator: Communicator, kind: type[DE | HyTE], per_query: bool) -> dict[str, Any]:
    dataset = graph()
    timeline, model = dataset.timeline, nameless(kind.from_dataset(dataset, 32))
    randomize(model, seed=1)
    evaluator = Evaluator(timeline, per_query=per_query, communicator=communicator)
    values, alpha = evaluator.evaluate(model, timeline.num_steps - 1)
    found = {metric: as_double(value) for metric, value in values.items()}
    found["alpha"] = as_double(sorted(alpha.items()))  # type: ignore[arg-type]
    for step in (0, timeline.base_step):
        ranks = evaluator.rank(model, step, deleted=True)
        assert ranks is not None
        found |= {f"{step} {field}": value for field, value in vars(ranks).items()}
    found["hits"] = as_double(evaluator.hits(model, 0, timeline.base_step))
    found["current"] = as_double(evaluator.current(model, timeline.base_step))
    for candidates in ("known", "all"):
        linked = evaluator.link_prediction(model, candidates=candidates)  # type: ignore[arg-type]
        found |= {f"{candidates} {metric}": as_double(value) for metric, value in linked.items()}
    return found


# Learning --------------------------------------------------------------------------------------------------


def strategies() -> dict[str, Strategy]:
    replay = ReplayOptions(size=200, negatives=5)
    return {
        "FT": FT(negatives=20),
        "FT all": FT("all", negatives="all"),
        "TIE shared": TIE(negatives=20, shared=True, replay=replay, window=3),
        "TIE": TIE(negatives=20, replay=replay, window=3),
        "Supersede": Supersede(
            negatives=20, unlikelihood=2.0, replay=ReplayOptions(size=200, negatives="all"), window=3
        ),
    }


#: Model, strategy, optimizer and further settings.
CASES: list[tuple[str, str, str, dict[str, Any]]] = [
    *(("DE", name, optimizer, {}) for name in ("FT", "FT all", "TIE") for optimizer in ("rowwise", "published")),
    ("DE", "TIE shared", "rowwise", {}),
    ("DE", "Supersede", "rowwise", {}),
    ("DE", "TIE", "adagrad", {}),
    ("HyTE", "TIE", "rowwise", {}),
    ("HyTE", "TIE", "rowwise", {"n3": 0.1, "smoothness": 0.1}),
]


class Enough(Exception):
    """Enough batches have been compared."""


def losses(communicator: Communicator) -> dict[str, Any]:
    """The losses of 20 consecutive batches, each the mean over the processes, and the weights after them."""
    dataset, found = graph(), {}
    for kind, name, optimizer, options in CASES:
        model, strategy = nameless(MODELS[kind].from_dataset(dataset, 8)), strategies()[name]
        settings = TrainerSettings(
            LearningSettings(batch_size=33, optimizer=optimizer, **options),
            negative_pool=None if optimizer == "published" else 40,
        )
        trainer = IncrementalTrainer(model, dataset, strategy, settings=settings, communicator=communicator, **QUICK)
        learner = trainer.learner(dataset.timeline.base_step)
        batches: list[dict[str, float]] = []
        compute = learner.losses

        def keep(batch: Any, compute: Any = compute, batches: Any = batches) -> dict[str, torch.Tensor]:
            if len(batches) == 20:
                raise Enough
            output: dict[str, torch.Tensor] = compute(batch)
            means = communicator.mean(torch.stack(list(output.values())).detach().double())
            batches.append(dict(zip(output, means.tolist(), strict=True)))
            return output

        learner.losses = keep  # type: ignore[method-assign]
        with suppress(Enough):
            while True:
                learner._train()
        found[" ".join([kind, name, optimizer, *options])] = {
            "batches": batches,
            "weights": {name: table.detach().clone() for name, table in model.named_parameters()},
            "generator": trainer.generator.get_state(),
        }
    return found


def runs(communicator: Communicator) -> dict[str, Any]:
    """Whole runs with their base models; some batches have fewer quads of a term than there are processes."""
    dataset, found = SyntheticTKG(num_entities=20, num_steps=7, added_per_step=3), {}
    for optimizer in ("rowwise", "published"):
        settings = TrainerSettings(LearningSettings(epochs=2, batch_size=40, optimizer=optimizer))
        trainer = IncrementalTrainer(
            nameless(DE.from_dataset(dataset, 8)),
            dataset,
            TIE(negatives=5, replay=ReplayOptions(size=40, negatives=3)),
            settings=settings,
            communicator=communicator,
            **QUICK,
        )
        trainer.pretrain()
        found[optimizer] = trainer.fit().to_dict()
    return found


# Exchanges -------------------------------------------------------------------------------------------------


def gradients(communicator: Communicator) -> dict[str, Any]:
    """Averages of gradients that differ between processes: dense, sparse, missing on some or on all of them."""
    rank, before = communicator.rank, getattr(communicator, "sent", 0)
    found: dict[str, Any] = {}
    for sparse in (False, True):
        generator = torch.Generator().manual_seed(rank)
        tables = [torch.zeros(9, width, dtype=torch.double, requires_grad=True) for width in (3, 2, 4)]
        dense = torch.randn(9, 3, generator=generator, dtype=torch.double)
        dense[rank :: communicator.size + 1] = 0
        tables[0].grad = dense.to_sparse(1) if sparse and rank % 2 else dense  # processes may have different layouts
        if rank == communicator.size - 1:
            tables[1].grad = torch.ones(9, 2, dtype=torch.double)
        own = [None if table.grad is None else table.grad.clone() for table in tables]
        communicator.average_gradients(tables, sparse)
        averaged = [table.grad for table in tables]
        found["sparse" if sparse else "dense"] = {
            "own": [None if g is None else g.to_dense() for g in own],
            "averaged": [None if g is None else g.to_dense() for g in averaged],
            "is sparse": [None if g is None else g.is_sparse for g in averaged],
        }
    found["sent"] = getattr(communicator, "sent", 0) - before
    return found


def exchanges(communicator: Communicator) -> dict[str, Any]:
    """Each method of the communicator, with different values on all processes."""
    rank = communicator.rank

    def read() -> Any:
        assert communicator.is_first
        return {"weights": torch.arange(3.0), "step": 7}

    return {
        "rank": rank,
        "size": communicator.size,
        "repr": repr(communicator),
        "broadcast": communicator.broadcast({"rank": rank}),
        "load": communicator.load(read, torch.device("cpu")),
        "mean": communicator.mean(torch.tensor([1.0, rank])),
        "gather": communicator.gather(torch.full((rank, 2), float(rank))),
        "gather nothing": communicator.gather(torch.empty(0, 2)),
        "device": str(communicator.device("cpu")),
    }


# Sharded tables --------------------------------------------------------------------------------------------


def look_ups(communicator: Communicator) -> dict[str, Any]:
    """Rows of two sharded tables, and the gradients that their owners receive."""
    if not isinstance(communicator, DistributedCommunicator):
        return {}
    shards = Shards(10, communicator)
    rows = torch.arange(shards.begin, shards.end)
    tables = [torch.stack([rows * 1.0, rows * 10.0], dim=1), rows[:, None] * 100.0]
    received: list[torch.Tensor] = []

    def read(places: torch.Tensor) -> list[torch.Tensor]:
        return [table[places] for table in tables]

    def receive(places: torch.Tensor, gradients: Any) -> None:
        total = torch.zeros(shards.end - shards.begin, 3)
        received.append(total.index_add_(0, places, torch.cat(list(gradients), dim=1)))

    lookup = Lookup(shards, ["pair", "single"], read, receive)
    # The last process needs no rows, and still has to take part.
    last = communicator.rank == communicator.size - 1
    index = torch.empty(0, 2, dtype=torch.long) if last else torch.tensor([[9, 0], [3, 9]])
    before = communicator.sent
    pair, single = lookup.rows("pair", index), lookup.rows("single", index)
    sent = communicator.sent - before
    (pair.sum() + 2 * single.sum()).backward()
    return {
        "range": (shards.begin, shards.end),
        "own": shards.own(torch.arange(10)),
        "repr": repr(shards),
        "pair": pair.detach(),
        "single": single.detach(),
        "received": received[0],
        "sent": sent,
    }


def row_lengths(communicator: Communicator) -> dict[str, Any]:
    """Limits of the rows of new entities, measured on all earlier entities and on a sample, and the bytes sent for
    each."""
    timeline = graph().timeline
    room = timeline.num_entities + 50  # a table may have more rows than there are entities
    model = shard_entities(lambda: DE(room, timeline.num_relations, timeline.num_steps, 8), communicator)
    found: dict[str, Any] = {}
    for name, measured in (("all", 10_000), ("sample", 4)):
        before = getattr(communicator, "sent", 0)
        with mock.patch.object(new_entities, "_MEASURED", measured):
            found[name] = [
                new_entities._longest(model, table, timeline, time)
                for table in model.tables("entity")
                for time in (0, 1, 5)
            ]
        found[f"sent for {name}"] = getattr(communicator, "sent", 0) - before
    return found


def sharded(communicator: Communicator) -> dict[str, Any]:
    """Initial values, losses of two epochs, the weights after them, and ranks, in double precision."""
    dataset, found = graph(), {}
    timeline = dataset.timeline
    sizes = (timeline.num_entities, timeline.num_relations, timeline.num_steps, 8)
    torch.set_default_dtype(torch.double)
    cases = (("DE", "TIE", 4), ("DE", "TIE shared", 1), ("HyTE", "Supersede", 1), ("HyTE", "TIE", 4))
    for kind, name, stride in cases:
        options = {"max_frequency": 0.5} if kind == "DE" else {}  # a table with its own bound

        def make(kind: str = kind, options: dict[str, Any] = options) -> TKGModel:
            return MODELS[kind](*sizes, seed=3, **options)

        model = shard_entities(make, communicator, seed=3)
        strategy = strategies()[name]
        if name == "Supersede":
            replay = ReplayOptions(size=200, negatives=5, distill=1.0)
            strategy = Supersede(negatives=20, unlikelihood=2.0, replay=replay, window=3)
        begin = whole(model, communicator)
        learner = StepLearner(
            model,
            timeline,
            timeline.base_step,
            strategy,
            LearningSettings(batch_size=160, lr=0.01),
            NegativeSampler(timeline, stride),
            torch.Generator().manual_seed(0),
            lambda: 0.0,
            communicator,
        )
        losses = [learner._train() for _ in range(2)]
        learner._weights.save()
        saved = whole(model, communicator)
        learner._train()
        learner.finish()
        evaluator = Evaluator(timeline, communicator=communicator)
        metrics, alpha = evaluator.evaluate(model, timeline.base_step)
        ranks = evaluator.rank(model, timeline.base_step, deleted=True)
        with wide_tables():
            in_blocks = evaluator.rank(model, timeline.base_step, deleted=True)
        assert ranks is not None
        assert in_blocks is not None
        assert all(torch.equal(value, vars(ranks)[field]) for field, value in vars(in_blocks).items())
        found[f"{kind} {name} {stride}"] = {
            "begin": begin,
            "losses": losses,
            "saved": saved,
            "restored": whole(model, communicator),
            "metrics": metrics,
            "alpha": alpha,
            "ranks": vars(ranks),
            "rows here": len(next(iter(model.tables("entity").values()))),
        }
    model = shard_entities(lambda: DE(*sizes), communicator)
    trainer = IncrementalTrainer(
        model,
        dataset,
        TIE(negatives=5, shared=True, replay=ReplayOptions(size=40, negatives=3)),
        settings=TrainerSettings(LearningSettings(epochs=1, batch_size=500), BaseSettings(negatives=5)),
        communicator=communicator,
        **QUICK,
    )
    trainer.pretrain()
    found["run"] = trainer.fit().to_dict()
    torch.set_default_dtype(torch.float)
    return found


def counts(communicator: Communicator) -> dict[str, Any]:
    """Ranks among candidates of which some processes have none, and among more processes than entities."""
    found: dict[str, Any] = {}
    dataset = SyntheticTKG(num_entities=9, num_relations=2, num_steps=4, num_clusters=3, facts_per_step=12, seed=1)
    timeline = dataset.timeline
    model = shard_entities(lambda: DE(9, 2, 4, 8), communicator)
    evaluator = Evaluator(timeline, communicator=communicator)
    for candidates in ("known", "all"):
        for step in range(timeline.num_steps):
            ranks = evaluator.rank(model, step, deleted=True, candidates=candidates)  # type: ignore[arg-type]
            found |= {} if ranks is None else {f"{candidates} {step} {k}": v for k, v in vars(ranks).items()}
    return found


def whole(model: TKGModel, communicator: Communicator) -> dict[str, torch.Tensor]:
    """All tables, concatenated from the parts of the processes."""
    parts = {name: communicator.gather(table.detach()) for name, table in model.tables("entity").items()}
    others = {name: table.detach().clone() for name, table in model.tables().items() if name not in parts}
    return {**others, **{name: torch.cat(rows) for name, rows in parts.items()}}


def saved(communicator: Communicator) -> dict[str, Any]:
    """A group of four saves a model; a group of two loads it."""
    import torch.distributed.checkpoint as checkpoint

    model = shard_entities(lambda: DE(150, 3, 10, 8), communicator, seed=communicator.size)
    folder = Path(os.environ["TASK_FOLDER"]) / "saved"
    if communicator.size == 4:
        checkpoint.save(model.state_dict(), checkpoint_id=folder)
    elif communicator.size == 2:
        checkpoint.load(model.state_dict(), checkpoint_id=folder)
    return whole(model, communicator)


# Errors ----------------------------------------------------------------------------------------------------


def refused(communicator: Communicator) -> dict[str, str]:
    """What several processes or sharded tables do not support."""
    if communicator.size == 1:
        return {}
    dataset = graph()
    model = shard_entities(lambda: DE(150, 3, 10, 8), communicator)
    learn: dict[str, Any] = {**QUICK, "communicator": communicator}
    sampled = BaseSettings(negatives=5)
    dense = TrainerSettings(LearningSettings(optimizer="published"), sampled)
    messages = {}
    attempts: dict[str, Any] = {
        "agem": lambda: IncrementalTrainer(DE.from_dataset(dataset, 8), dataset, AGEM(), **learn),
        "folder": lambda: IncrementalTrainer(model, dataset, FT(), run_dir="/nowhere", **learn),
        "all": lambda: IncrementalTrainer(
            model, dataset, FT(), settings=TrainerSettings(base=BaseSettings(negatives="all")), **learn
        ),
        "all in a term": lambda: IncrementalTrainer(
            model, dataset, FT(negatives="all"), settings=TrainerSettings(base=sampled), **learn
        ),
        "published": lambda: IncrementalTrainer(model, dataset, FT(), settings=dense, **learn),
        "base": lambda: IncrementalTrainer(
            model, dataset, FT(), settings=TrainerSettings(base=sampled), **learn
        ).pretrain("/nowhere/base.pt"),
        "mps": lambda: IncrementalTrainer(
            model, dataset, FT(), settings=TrainerSettings(base=sampled), **{**learn, "device": "mps"}
        ),
        "grow": lambda: model.expand(num_entities=200),
    }
    for name, make in attempts.items():
        try:
            make()
        except (ValueError, NotImplementedError) as error:
            messages[name] = str(error)
    return messages


def silent(communicator: Communicator) -> dict[str, Any]:
    """One of two processes does not respond within the other's timeout; then the first fails."""
    messages: dict[str, Any] = {}
    if not isinstance(communicator, DistributedCommunicator) or communicator.size != 2:
        return messages
    communicator.group = dist.new_group(timeout=timedelta(seconds=1))
    if communicator.rank == 1:
        time.sleep(3)
    try:
        with communicator.translate_errors("gradients"):
            dist.all_reduce(torch.zeros(1), group=communicator.group)
    except LostProcessError as error:
        messages["silent"] = str(error)
    try:
        with communicator.first() as is_first:
            if is_first:
                raise OSError("no space left")
    except (OSError, LostProcessError) as error:
        messages["first"] = f"{type(error).__name__}: {error}"
    try:
        with communicator.translate_errors("a batch"):
            raise RuntimeError("shapes do not match")
    except RuntimeError as error:
        messages["other"] = f"{type(error).__name__}: {error}"
    return messages


def interrupted(communicator: Communicator) -> dict[str, Any]:
    """A run of four processes that loses one in the middle of a step and continues with two. One process runs it
    without interruption."""
    folder = Path(os.environ["TASK_FOLDER"])
    dataset = SyntheticTKG(num_entities=20, num_steps=7, added_per_step=10)
    trainer = IncrementalTrainer(
        nameless(DE.from_dataset(dataset, 8)),
        dataset,
        TIE(negatives=5, replay=ReplayOptions(size=40, negatives=3)),
        run_dir=folder / ("whole" if communicator.size == 1 else "run"),
        settings=TrainerSettings(LearningSettings(epochs=3, batch_size=20), checkpoint_every=1),
        communicator=communicator,
        **QUICK,
    )
    if communicator.size == 4 and communicator.rank == 2:
        kill_at(20, folder / "killed")
    if communicator.size == 2:
        trainer.resume()
    steps_before = len(trainer.result.steps)
    try:
        trainer.pretrain()
        trainer.fit()
    except LostProcessError as error:
        return {"message": str(error), "at": time.time(), "killed": (folder / "killed").stat().st_mtime}
    return {"result": trainer.result.to_dict(), "steps before": steps_before}
