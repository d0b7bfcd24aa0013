"""Epochs of training at the first incremental step, and of the base model."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.harness import Benchmark, Measurement, Work, at_most, in_seconds, ratio_at_most
from benchmarks.lab import Lab
from tkg_incremental.loader import NegativeSampler
from tkg_incremental.strategies import (
    FT,
    TIE,
    CrossEntropy,
    DeletedFacts,
    History,
    Replay,
    ReplayOptions,
    Strategy,
    Supersede,
)
from tkg_incremental.strategies.terms import Negatives
from tkg_incremental.training.new_entities import new_entities_of, warm_up

# Rows of one product in the bare reference.
_PIECE = 512


def tie_epoch(lab: Lab, model: str, optimizer: str) -> Measurement:
    sizes = lab.sizes
    strategy = TIE(negatives=sizes.negatives, replay=sizes.replay)
    learner = lab.learner(model, strategy, optimizer)
    views = {type(term): view for term, view in zip(strategy.terms, learner.loader.views, strict=True)}
    kinds = (CrossEntropy, DeletedFacts, Replay)
    added, deleted, replayed = (0 if (view := views[kind]) is None else len(view) for kind in kinds)
    work = (
        f"one TIE epoch at t = {lab.time} ({added:,} added + {deleted:,} deleted + {replayed:,} replayed quads; "
        f"{sizes.negatives} and {sizes.replay_negatives} negatives per query), {model}, {optimizer} optimizer"
    )
    return in_seconds(work, lab.time_work(learner._train))


def supersede_epoch(lab: Lab) -> Measurement:
    """Supersede beside TIE, both with the optimizer of the paper's tables."""
    sizes = lab.sizes
    # 60% of the replayed quads of TIE, as by default, because all current facts are learnt, too.
    replay = ReplayOptions(size=sizes.replay_size * 6 // 10, negatives=sizes.replay_negatives)
    learner = lab.learner("DE", Supersede(negatives=sizes.negatives, replay=replay), "published")
    tie = lab.learner("DE", TIE(negatives=sizes.negatives, replay=sizes.replay), "published")
    work = f"one Supersede epoch at t = {lab.time} ({learner.loader.num_quads:,} quads), DE, published optimizer"
    return in_seconds(work, lab.time_work(learner._train, tie._train), "one TIE epoch")


def warming_up(lab: Lab) -> Measurement:
    """What new entities add to a step."""
    line, time = lab.dataset.timeline, lab.time + 1
    sizes = lab.sizes
    tie = lab.learner("DE", TIE(negatives=sizes.negatives, replay=sizes.replay), "published")
    sampler, generator = NegativeSampler(line), torch.Generator().manual_seed(0)
    entities, facts = new_entities_of(line, time)
    work = f"warm-up of the {len(entities):,} new entities of t = {time} ({len(facts):,} facts, 30 epochs), DE"
    timing = lab.time_work(lambda: warm_up(tie.model, line, time, sampler, generator), tie._train)
    return in_seconds(work, timing, "one TIE epoch")


def ft_epoch(lab: Lab, optimizer: str) -> Measurement:
    learner = lab.learner("DE", FT(negatives=lab.sizes.negatives), optimizer)
    work = f"one FT epoch at t = {lab.time} ({learner.loader.num_quads:,} quads), DE, {optimizer} optimizer"
    return in_seconds(work, lab.time_work(learner._train))


def base_epoch(lab: Lab, model: str, negatives: Negatives | None, with_bare: bool = False) -> Measurement:
    """The base model; ``negatives`` is ``"all"``, or :obj:`None` for the usual number."""
    count: Negatives = negatives or lab.sizes.negatives
    learner = lab.learner(model, Strategy([CrossEntropy(History(), count)], "base"))
    kind = "1-vs-all" if count == "all" else f"{count} negatives per query"
    work = f"base model, one epoch of steps 0–{lab.time} ({learner.loader.num_quads:,} quads), {model}, {kind}"
    if not with_bare:
        return in_seconds(work, lab.time_work(learner._train, long=True))
    timing = lab.time_work(learner._train, three_products(lab), long=True)
    return in_seconds(work, timing, "its three matrix products")


def three_products(lab: Lab) -> Work:
    """The least that 1-vs-all needs for each query: scores, and the gradients of queries and candidates."""
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
    """Other kinds of negatives beside the paper's independent ones."""
    independent = lab.learner(model, FT("all", lab.sizes.negatives))
    count: Negatives = negatives or lab.sizes.negatives
    learner = lab.learner(model, FT("all", count, shared))
    kind = "1-vs-all" if count == "all" else f"{count} shared negatives per query"
    work = f"one epoch of the {learner.loader.num_quads:,} facts of t = {lab.time}, {model}, {kind}"
    reference = f"{lab.sizes.negatives} independent negatives per query"
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
    Benchmark("training/warm-up-de", warming_up),
    Benchmark("training/ft-de", partial(ft_epoch, optimizer="rowwise"), (at_most(0.02),), "0.40 s"),
    Benchmark("training/ft-de-published", partial(ft_epoch, optimizer="published"), (at_most(0.02),), "0.40 s"),
    Benchmark(
        "training/base-de",
        partial(base_epoch, model="DE", negatives="all", with_bare=True),
        (at_most(25.0), ratio_at_most(2.0)),
        "256 s (500 negatives per query)",
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
