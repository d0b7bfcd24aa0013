"""Ranking validation and test quads."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.harness import Benchmark, Measurement, Work, at_least, at_most, in_rate, in_seconds, ratio_at_most
from benchmarks.lab import Lab
from tkg_incremental.metrics import Evaluator
from tkg_incremental.ops.answers import REL, SIDES, query_columns
from tkg_incremental.registry import make_model


def validation_ranks(lab: Lab, model: str) -> Measurement:
    line, time = lab.dataset.timeline, lab.time
    evaluator, scorer = Evaluator(line, "val"), make_model(model, lab.dataset, lab.sizes.hidden_channels)
    rows = line.val.at(time)
    queries = sum(torch.unique(rows[:, [query_columns(side)[0], REL]], dim=0).size(0) for side in SIDES)
    work = (
        f"filtered ranks of the {len(rows):,} validation quads at t = {time} (both sides, {queries:,} distinct "
        f"queries, {int(line.num_known[time]):,} candidates), {model}"
    )
    timing = lab.time_work(lambda: evaluator.rank(scorer, time), bare_scores(lab, model, [(len(rows), time)]))
    return in_rate(work, timing, len(rows), "quads/s", f"{_kind(model)} of every query with every candidate")


def test_pass(lab: Lab, model: str) -> Measurement:
    line, time = lab.dataset.timeline, lab.time
    evaluator, scorer = Evaluator(line, max_past_steps=None), make_model(model, lab.dataset, lab.sizes.hidden_channels)
    shapes = [(len(line.test.at(step)), step) for step in range(time + 1)]
    rows = sum(count for count, _ in shapes)
    work = f"the whole test pass after t = {time} ({rows:,} quads of steps 0–{time}; ranks, DF and RRD), {model}"
    timing = lab.time_work(lambda: evaluator.evaluate(scorer, time), bare_scores(lab, model, shapes), long=True)
    return in_seconds(work, timing, f"{_kind(model)} of every query with every candidate")


def bare_scores(lab: Lab, model: str, shapes: list[tuple[int, int]]) -> Work:
    """Scores of both queries of (quads, step) pairs against the entities known at the step, one product each."""
    known, width = lab.dataset.timeline.num_known.tolist(), lab.sizes.hidden_channels
    most = max(rows for rows, _ in shapes)
    query, table = torch.rand(most, width), torch.rand(max(known), width)
    buffer = torch.empty(most * max(known))

    def score() -> None:
        for rows, step in shapes:
            for _side in SIDES:
                if model == "HyTE":
                    torch.cdist(query[:rows], table[: known[step]], p=1.0)
                else:
                    out = buffer[: rows * known[step]].view(rows, known[step])
                    torch.mm(query[:rows], table[: known[step]].t(), out=out)

    return score


def _kind(model: str) -> str:
    return "`torch.cdist`" if model == "HyTE" else "`torch.mm`"


BENCHMARKS = [
    Benchmark(
        "evaluation/ranks-de",
        partial(validation_ranks, model="DE"),
        (at_least(10_000), ratio_at_most(2.0)),
        "126 quads/s (306 at its best batch size)",
    ),
    Benchmark(
        "evaluation/ranks-hyte",
        partial(validation_ranks, model="HyTE"),
        (at_least(2_000), ratio_at_most(1.0)),
        "71 quads/s (135)",
    ),
    Benchmark("evaluation/test-pass-de", partial(test_pass, model="DE"), (at_most(2.0),), "494 s"),
    Benchmark("evaluation/test-pass-hyte", partial(test_pass, model="HyTE")),
]
