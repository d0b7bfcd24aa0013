"""Epochs of training at the first incremental step, and of the base model."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.harness import Benchmark, Measurement, Work, at_most, in_seconds, ratio_at_most
from benchmarks.lab import Lab
from tkg_incremental.data import Snapshot
from tkg_incremental.sampling import NegativeSampler
from tkg_incremental.strategies import FT, TIE, Forget, History, Link, Replay, Strategy, Supersede
from tkg_incremental.strategies.candidates import Negatives
from tkg_incremental.training.newcomers import newcomers_of, settle

# Rows of one time that the package scores together, at most.
_PIECE = 512


def tie_epoch(lab: Lab, model: str, optimizer: str) -> Measurement:
    sizes = lab.sizes
    strategy = TIE(negatives=sizes.negatives, replay_negatives=sizes.replay_negatives, replay_size=sizes.replay_size)
    learner = lab.learner(model, strategy, optimizer)
    rows = {type(term): view for term, view in zip(strategy.terms, learner.views, strict=True)}
    added, deleted, replayed = (0 if (view := rows[kind]) is None else len(view) for kind in (Link, Forget, Replay))
    work = (
        f"one TIE epoch at t = {lab.time} ({added:,} added + {deleted:,} deleted + {replayed:,} replayed rows; "
        f"{sizes.negatives} and {sizes.replay_negatives} negatives a side), {model}, {optimizer} optimiser"
    )
    return in_seconds(work, lab.time_work(learner._train))


def supersede_epoch(lab: Lab) -> Measurement:
    """Our own strategy beside TIE, both with the optimiser of the paper's tables."""
    sizes = lab.sizes
    shared = {"negatives": sizes.negatives, "replay_negatives": sizes.replay_negatives}
    replayed = sizes.replay_size * 6 // 10  # as by default, beside the current facts
    learner = lab.learner("DE", Supersede(**shared, replay_size=replayed), "published")
    tie = lab.learner("DE", TIE(**shared, replay_size=sizes.replay_size), "published")
    work = f"one Supersede epoch at t = {lab.time} ({learner.rows:,} rows), DE, published optimiser"
    return in_seconds(work, lab.time_work(learner._train, tie._train), "one TIE epoch")


def settling(lab: Lab) -> Measurement:
    """What newcomers add to a step."""
    line, time = lab.dataset.timeline, lab.time + 1
    sizes = lab.sizes
    shared = {"negatives": sizes.negatives, "replay_negatives": sizes.replay_negatives}
    tie = lab.learner("DE", TIE(**shared, replay_size=sizes.replay_size), "published")
    snapshot, negatives, generator = Snapshot(line, time), NegativeSampler(line), torch.Generator().manual_seed(0)
    newcomers, facts = newcomers_of(snapshot)
    work = f"{len(newcomers):,} newcomers of t = {time} settle ({len(facts):,} facts, 30 epochs), DE"
    timing = lab.time_work(lambda: settle(tie.step.model, snapshot, negatives, generator), tie._train)
    return in_seconds(work, timing, "one TIE epoch")


def ft_epoch(lab: Lab, optimizer: str) -> Measurement:
    learner = lab.learner("DE", FT(negatives=lab.sizes.negatives), optimizer)
    work = f"one FT epoch at t = {lab.time} ({learner.rows:,} rows), DE, {optimizer} optimiser"
    return in_seconds(work, lab.time_work(learner._train))


def base_epoch(lab: Lab, model: str, negatives: Negatives | None, with_bare: bool = False) -> Measurement:
    """The base model; ``negatives`` is ``"all"``, or :obj:`None` for the usual sample."""
    count: Negatives = negatives or lab.sizes.negatives
    learner = lab.learner(model, Strategy([Link(History(), count)], "base"))
    kind = "1-vs-all" if count == "all" else f"{count} negatives a side"
    work = f"base model, one epoch of steps 0–{lab.time} ({learner.rows:,} rows), {model}, {kind}"
    if not with_bare:
        return in_seconds(work, lab.time_work(learner._train, long=True))
    timing = lab.time_work(learner._train, three_products(lab), long=True)
    return in_seconds(work, timing, "its three matrix products")


def three_products(lab: Lab) -> Work:
    """1-vs-all cannot do with less, for each side: scores, and the gradients of queries and candidates."""
    line, width = lab.dataset.timeline, lab.sizes.hidden_channels
    shapes = [
        (len(piece), int(line.num_known[step]))
        for step in range(lab.time + 1)
        for piece in line.observed.at(step).split(_PIECE)
    ]
    candidates = max(known for _, known in shapes)
    query, table = torch.rand(_PIECE, width), torch.rand(candidates, width)
    scores, grad_query, grad_table = torch.empty(_PIECE * candidates), torch.empty_like(query), torch.empty_like(table)

    def products() -> None:
        for rows, known in shapes:
            for _side in range(2):
                out = scores[: rows * known].view(rows, known)
                torch.mm(query[:rows], table[:known].t(), out=out)
                torch.mm(out, table[:known], out=grad_query[:rows])
                torch.mm(out.t(), query[:rows], out=grad_table[:known])

    return products


def cheaper_negatives(lab: Lab, model: str, negatives: Negatives | None, shared: bool) -> Measurement:
    """Options that change what is learnt from, beside the paper's independent negatives."""
    independent = lab.learner(model, FT("all", lab.sizes.negatives))
    count: Negatives = negatives or lab.sizes.negatives
    learner = lab.learner(model, FT("all", count, shared))
    kind = "1-vs-all" if count == "all" else f"{count} shared negatives a side"
    work = f"one epoch of the {learner.rows:,} facts of t = {lab.time}, {model}, {kind}"
    reference = f"{lab.sizes.negatives} independent negatives a side"
    return in_seconds(work, lab.time_work(learner._train, independent._train), reference)


BENCHMARKS = [
    Benchmark("training/tie-de", partial(tie_epoch, model="DE", optimizer="rowwise"), (at_most(0.25),), "5.2 s"),
    Benchmark(
        "training/tie-de-published", partial(tie_epoch, model="DE", optimizer="published"), (at_most(0.25),), "5.2 s"
    ),
    Benchmark("training/tie-hyte", partial(tie_epoch, model="HyTE", optimizer="rowwise"), (at_most(0.3),), "5.6 s"),
    Benchmark(
        "training/tie-hyte-published", partial(tie_epoch, model="HyTE", optimizer="published"), (at_most(0.3),), "5.6 s"
    ),
    Benchmark("training/supersede-de", supersede_epoch, (ratio_at_most(2.0),)),
    Benchmark("training/settling-de", settling),
    Benchmark("training/ft-de", partial(ft_epoch, optimizer="rowwise"), (at_most(0.02),), "0.40 s"),
    Benchmark("training/ft-de-published", partial(ft_epoch, optimizer="published"), (at_most(0.02),), "0.40 s"),
    Benchmark(
        "training/base-de",
        partial(base_epoch, model="DE", negatives="all", with_bare=True),
        (at_most(25.0), ratio_at_most(2.0)),
        "256 s (500 negatives a side)",
    ),
    Benchmark("training/base-hyte", partial(base_epoch, model="HyTE", negatives=None), (at_most(40.0),), "191 s"),
    *(
        Benchmark(f"training/{name}-{model.lower()}", partial(run, model=model))
        for model in ("DE", "HyTE")
        for name, run in {
            "one-vs-all": partial(cheaper_negatives, negatives="all", shared=False),
            "shared": partial(cheaper_negatives, negatives=None, shared=True),
        }.items()
    ),
]
