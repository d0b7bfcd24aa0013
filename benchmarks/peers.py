"""Other libraries at the same work: static ComplEx with the same weights on the same triples."""

from __future__ import annotations

import importlib.util
import logging
from functools import cache

import torch
from torch import Tensor
from torch_geometric.nn.kge import ComplEx as PyGComplEx

from benchmarks.harness import Benchmark, Measurement, Unavailable, in_rate, ratio_at_least
from benchmarks.lab import Lab
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.metrics import Evaluator, hits_at
from tkg_incremental.models import Static, TKGModel
from tkg_incremental.ops.ranking import RankedAnswers, count_ranks, ranks_of

# Their best settings: PyKEEN's speed hardly depends on the batch size from 32 to 500, and PyG takes one triple at a
# time in any case, here against all entities at once.
_PYKEEN_BATCH, _PYG_BATCH = 64, 20_000


@cache
def _problem(lab: Lab) -> tuple[SyntheticTKG, TKGModel]:
    """A static graph and a model with random weights, which cost the same as trained ones."""
    sizes = lab.sizes
    dataset = SyntheticTKG(
        num_entities=sizes.peer_entities,
        num_relations=24,
        num_steps=1,
        facts_per_step=sizes.peer_facts,
        val=0.0,
        test=sizes.peer_triples / sizes.peer_facts,
    )
    return dataset, Static.from_dataset(dataset, sizes.hidden_channels, decoder="complex")


def pykeen(lab: Lab) -> Measurement:
    if importlib.util.find_spec("pykeen") is None:
        raise Unavailable("PyKEEN is not installed (pip install .[bench])")
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.models import ComplEx
    from pykeen.triples import CoreTriplesFactory

    for name in ("pykeen", "torch_max_mem"):  # it advises against automatic batch sizes, which we do not use
        logging.getLogger(name).setLevel(logging.ERROR)
    dataset, model = _problem(lab)
    line = dataset.timeline
    train, test = line.train.facts[:, :3], line.test.facts[:, :3].contiguous()
    factory = CoreTriplesFactory.create(train, num_entities=line.num_entities, num_relations=line.num_relations)
    theirs = ComplEx(triples_factory=factory, embedding_dim=lab.sizes.hidden_channels // 2)
    for table, ours in zip(theirs.parameters(), model.parameters(), strict=True):
        table.data.copy_(torch.stack(ours.detach().chunk(2, dim=1), dim=-1).flatten(1))  # real, imaginary, real, …
    judge, evaluator = RankBasedEvaluator(filtered=True), Evaluator(line)

    def rank_theirs() -> float:
        options = {"batch_size": _PYKEEN_BATCH, "use_tqdm": False, "additional_filter_triples": [train]}
        return judge.evaluate(theirs, test, **options).get_metric("both.realistic.inverse_harmonic_mean_rank")

    def rank_ours() -> Tensor:
        ranks = evaluator.rank(model, 0)
        assert ranks is not None
        return ranks.filtered

    _must_agree(float(rank_ours().reciprocal().mean()), rank_theirs())
    work = f"filtered ranks of {len(test):,} triples (both sides, {line.num_entities:,} entities), static ComplEx"
    return in_rate(
        work, lab.time_work(rank_ours, rank_theirs), len(test), "triples/s", "PyKEEN's RankBasedEvaluator", peer=True
    )


def pyg(lab: Lab) -> Measurement:
    dataset, model = _problem(lab)
    line = dataset.timeline
    theirs = PyGComplEx(line.num_entities, line.num_relations, lab.sizes.hidden_channels // 2)
    entities, relations = (table.detach().chunk(2, dim=1) for table in model.parameters())
    for table, ours in (
        (theirs.node_emb, entities[0]),
        (theirs.node_emb_im, entities[1]),
        (theirs.rel_emb, relations[0]),
        (theirs.rel_emb_im, relations[1]),
    ):
        table.weight.data.copy_(ours)
    rows = line.test.at(0)
    nothing = rows[:0, 0]

    def rank_theirs() -> float:
        head, rel, tail, _ = rows.unbind(1)
        return theirs.test(head, rel, tail, batch_size=_PYG_BATCH, log=False)[2]

    @torch.no_grad()
    def rank_ours() -> Tensor:
        table = model.candidate_vectors(torch.arange(line.num_entities), 0)
        query = model.query_vectors(rows, "tail")
        return ranks_of(
            count_ranks(RankedAnswers(query, torch.arange(len(rows)), rows[:, 2], (nothing, nothing)), table, "dot")
        )[1]

    _must_agree(hits_at(rank_ours()) / 100, rank_theirs())
    work = f"raw ranks of {len(rows):,} triples (tail side, {line.num_entities:,} entities), static ComplEx"
    return in_rate(
        work, lab.time_work(rank_ours, rank_theirs, long=True), len(rows), "triples/s", "PyG's `nn.kge` `.test()`", True
    )


def _must_agree(ours: float, theirs: float) -> None:
    """The same weights must give the same metric; rounding may change a rank or two."""
    if abs(ours - theirs) > 0.002 + 0.01 * abs(theirs):
        raise RuntimeError(f"the peer's metric is {theirs:.5f}, ours is {ours:.5f}: not the same work")


BENCHMARKS = [
    Benchmark("peers/pykeen", pykeen, (ratio_at_least(5.0),)),
    Benchmark("peers/pyg", pyg, (ratio_at_least(20.0),)),
]
