from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import TimelineOracle
from timelines import make_interval_timeline, make_timeline, timelines, to_tensor

from tkg_incremental.data import Timeline
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.loader import Candidates, NegativeSampler
from tkg_incremental.ops import native
from tkg_incremental.ops.answers import SIDES, TIME

needs_kernels = pytest.mark.skipif(not native.is_available(), reason="the kernels were not compiled")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def graph() -> Timeline:
    """Query (0, 0, ?, 1): entities 0 … 5 are known, of which 1, 2 and 5 are answers; 6 appears later."""
    train = [(0, 0, 1, 0), (3, 0, 4, 0), (0, 0, 1, 1), (0, 0, 2, 1), (0, 0, 5, 1), (6, 0, 0, 2)]
    return make_timeline(train, num_entities=7, num_relations=1, num_steps=3)


def some_quads(oracle: TimelineOracle) -> list[tuple[int, int, int, int]]:
    """Train quads, and test quads, some of which have queries without a train answer; by time."""
    return sorted([*set(oracle.train), *oracle.test], key=lambda quad: quad[3])


def draw_in_torch(sampler: NegativeSampler, *args: object, **kwargs: object) -> Candidates:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "_KERNELS", None)
        return sampler.draw(*args, **kwargs)  # type: ignore[arg-type]


def test_repr(graph: Timeline) -> None:
    assert str(NegativeSampler(graph)) == "NegativeSampler(7 of 7 entities)"


def test_by_hand(graph: Timeline) -> None:
    drawn = NegativeSampler(graph).draw(to_tensor([(0, 0, 1, 0), (0, 0, 1, 1)]), 200, seeded())
    assert drawn.mask is None
    assert drawn.list_of_query is None
    assert drawn.from_pool
    assert drawn.time.tolist() == [0, 1, 0, 1]
    assert drawn.entities.dtype == torch.long
    assert [set(row.tolist()) for row in drawn.entities] == [
        {0, 3, 4},  # at step 0 entities 2 and 5 are not known yet
        {0, 3, 4},
        {1, 3, 4},  # heads of (?, 0, 1): 0 is the answer
        {1, 2, 3, 4, 5},
    ]


@settings(max_examples=60)
@given(drawn=timelines(), seed=st.integers(0, 9), stride=st.sampled_from([1, 1, 2, 3]), use_native=st.booleans())
def test_exactly_the_admissible_entities(
    drawn: tuple[Timeline, TimelineOracle], seed: int, stride: int, use_native: bool
) -> None:
    timeline, oracle = drawn
    quads = some_quads(oracle)
    sampler = NegativeSampler(timeline, stride, seed % min(stride, timeline.num_entities))
    draw = sampler.draw if use_native else lambda *args: draw_in_torch(sampler, *args)
    # Of at most six entities each is missed with a probability of (5/6)^200 ≈ 1e-16 per query. A draw is masked
    # wrongly with a probability of (5/6)^32 ≈ 0.003, which does not matter among 200.
    found = draw(to_tensor(quads), 200, seeded(seed))
    assert found.entities.shape == (2 * len(quads), 200)
    mask = torch.zeros_like(found.entities, dtype=torch.bool) if found.mask is None else found.mask
    queries = [(side, quad) for side in SIDES for quad in quads]
    for (side, quad), entities, masked in zip(queries, found.entities, mask, strict=True):
        members = oracle.known_entities(quad[3]) & set(sampler.entities.tolist())
        admissible = members - oracle.answers(side, "train", quad)
        assert set(entities[~masked].tolist()) == admissible
        assert masked.sum() < 20 or not admissible


@needs_kernels
@settings(max_examples=60)
@given(drawn=timelines(), seed=st.integers(0, 99), stride=st.sampled_from([1, 2, 3]), count=st.integers(1, 40))
def test_kernel_and_torch_draw_the_same(
    drawn: tuple[Timeline, TimelineOracle], seed: int, stride: int, count: int
) -> None:
    timeline, oracle = drawn
    quads = to_tensor(some_quads(oracle))
    sampler = NegativeSampler(timeline, stride, seed % min(stride, timeline.num_entities))
    found, wanted = sampler.draw(quads, count, seeded(seed)), draw_in_torch(sampler, quads, count, seeded(seed))
    assert torch.equal(found.entities, wanted.entities)
    assert (found.mask is None) == (wanted.mask is None)
    if found.mask is not None and wanted.mask is not None:
        assert torch.equal(found.mask, wanted.mask)


@needs_kernels
@pytest.mark.parametrize("threads", [1, 3])
def test_kernel_and_torch_draw_the_same_on_a_larger_graph(threads: int) -> None:
    """More entities than the kernel has bits to mark answers, and facts over many steps."""
    generator, before = seeded(3), torch.get_num_threads()
    facts = [
        (*(int(torch.randint(size, (), generator=generator)) for size in (5, 2, 9000)), first, first + 3)
        for first in range(6)
        for _ in range(400)
    ]
    timeline = make_interval_timeline(facts, num_entities=9000, num_relations=2, num_steps=10)
    quads, sampler = timeline.observed.quads(), NegativeSampler(timeline)
    torch.set_num_threads(threads)
    try:
        found, wanted = sampler.draw(quads, 30, seeded()), draw_in_torch(sampler, quads, 30, seeded())
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found.entities, wanted.entities)
    for side, entities in zip(SIDES, found.entities.split(len(quads)), strict=True):
        assert not timeline.answers(side, "train").contains(quads, entities).any()


@pytest.mark.parametrize("use_native", [True, False])
def test_uniform(graph: Timeline, use_native: bool) -> None:
    sampler, quads = NegativeSampler(graph), to_tensor([(0, 0, 1, 1)])
    draw = sampler.draw if use_native else lambda *args: draw_in_torch(sampler, *args)
    tails, heads = draw(quads, 30_000, seeded()).entities
    for found, wanted in ((tails, {0, 3, 4}), (heads, {1, 2, 3, 4, 5})):
        counts = Counter(found.tolist())
        assert set(counts) == wanted
        mean = 30_000 / len(wanted)
        chi_square = sum((count - mean) ** 2 / mean for count in counts.values())
        assert chi_square < {3: 13.8, 5: 18.5}[len(wanted)]  # 99.9% quantiles


def test_draws_are_independent(graph: Timeline) -> None:
    entities = NegativeSampler(graph).draw(to_tensor([(0, 0, 1, 1)] * 2), 5_000, seeded()).entities[:2]
    assert not torch.equal(*entities)
    # Neighbouring draws of a query, and the same draws of two queries: all nine pairs are equally likely.
    for one, other in ((entities[0, :-1], entities[0, 1:]), (entities[0], entities[1])):
        counts = Counter(zip(one.tolist(), other.tolist(), strict=True))
        mean = len(one) / 9
        assert len(counts) == 9
        assert sum((count - mean) ** 2 / mean for count in counts.values()) < 26.1  # 99.9%, eight degrees of freedom


@pytest.mark.parametrize("use_native", [True, False])
def test_queries_without_a_negative_are_masked(use_native: bool) -> None:
    # All three known entities answer (0, 0, ?, 0); for (1, 0, ?, 0) there are two others, fewer than asked for.
    train = [(0, 0, 0, 0), (0, 0, 1, 0), (0, 0, 2, 0), (1, 0, 0, 0)]
    timeline = make_timeline(train, num_entities=4, num_relations=1, num_steps=1)
    sampler, quads = NegativeSampler(timeline), to_tensor([train[0], train[3]])
    found = sampler.draw(quads, 9, seeded()) if use_native else draw_in_torch(sampler, quads, 9, seeded())
    assert found.mask is not None
    assert found.mask[:2].tolist() == [[True] * 9, [False] * 9]
    assert (found.entities >= 0).all()  # masked places can be looked up
    assert set(found.entities[1].tolist()) == {1, 2}


def test_a_pool_without_known_members_is_masked(graph: Timeline) -> None:
    sampler = NegativeSampler(graph, 7, 6)  # only entity 6, known at step 2
    quads = to_tensor([(0, 0, 1, 0), (0, 0, 1, 1), (6, 0, 0, 2)])
    found = sampler.draw(quads, 3, seeded())
    assert found.mask is not None
    assert found.mask.all(1).tolist() == [True, True, False, True, True, True]  # (?, 0, 0, 2) has the answer 6
    assert found.entities[2].tolist() == [6, 6, 6]


# Shared lists ------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(drawn=timelines(), seed=st.integers(0, 9), stride=st.sampled_from([1, 2, 3]), count=st.integers(1, 9))
def test_shared_lists(drawn: tuple[Timeline, TimelineOracle], seed: int, stride: int, count: int) -> None:
    timeline, oracle = drawn
    quads = some_quads(oracle)
    sampler = NegativeSampler(timeline, stride, seed % min(stride, timeline.num_entities))
    found = sampler.draw(to_tensor(quads), count, seeded(seed), shared=True)
    steps = sorted({quad[3] for quad in quads})
    assert found.time.tolist() == steps
    assert found.entities.shape == (len(steps), count)
    assert found.list_of_query is not None
    assert found.list_of_query.tolist() == [steps.index(quad[3]) for quad in quads] * 2
    assert found.mask is not None
    queries = [(side, quad) for side in SIDES for quad in quads]
    for (side, quad), which, masked in zip(queries, found.list_of_query, found.mask, strict=True):
        entities = found.entities[which].tolist()
        assert set(entities) <= set(sampler.entities.tolist())
        wrong = oracle.answers(side, "train", quad) | (set(entities) - oracle.known_entities(quad[3]))
        assert masked.tolist() == [entity in wrong for entity in entities]


def test_shared_lists_are_uniform(graph: Timeline) -> None:
    found = NegativeSampler(graph).draw(to_tensor([(0, 0, 1, 1), (0, 0, 2, 1)]), 30_000, seeded(), shared=True)
    counts = Counter(found.entities.flatten().tolist())
    assert set(counts) == set(range(6))
    assert sum((count - 5000) ** 2 / 5000 for count in counts.values()) < 20.5  # 99.9%, five degrees of freedom


def test_given_lists(graph: Timeline) -> None:
    quads, lists = to_tensor([(0, 0, 1, 1), (6, 0, 0, 2)]), torch.tensor([[5, 6, 3, 0], [5, 6, 3, 0]])
    found = NegativeSampler(graph).from_lists(quads, lists, torch.tensor([1, 2]), torch.tensor([0, 1]), False)
    assert not found.from_pool
    assert found.mask is not None
    assert found.mask.int().tolist() == [
        [1, 1, 0, 0],  # 5 is an answer, 6 is not known at step 1
        [0, 0, 0, 1],
        [0, 1, 0, 1],
        [0, 1, 0, 0],
    ]


# Arguments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
def test_generators(graph: Timeline, shared: bool) -> None:
    sampler, quads = NegativeSampler(graph), graph.observed.quads()
    before = torch.get_rng_state()
    first, same, other = (sampler.draw(quads, 20, seeded(seed), shared).entities for seed in (1, 1, 2))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("shared", [False, True])
def test_no_quads(graph: Timeline, shared: bool) -> None:
    found = NegativeSampler(graph).draw(to_tensor([]), 3, seeded(), shared)
    assert found.entities.shape == (0, 3)


def test_count(graph: Timeline) -> None:
    with pytest.raises(ValueError, match=r"count must be at least 1 \(got 0\)"):
        NegativeSampler(graph).draw(graph.observed.quads(), 0, seeded())


def test_never_a_true_answer() -> None:
    line = SyntheticTKG(num_entities=40, num_relations=2, num_steps=8).timeline
    quads = line.observed.quads()
    found = NegativeSampler(line).draw(quads, 60, seeded(1))
    assert found.mask is None
    for side, entities in zip(SIDES, found.entities.split(len(quads)), strict=True):
        assert not line.answers(side, "train").contains(quads, entities).any()
        assert (line.first_seen[entities] <= quads[:, TIME, None]).all()


def test_one_list_for_a_batch(graph: Timeline) -> None:
    """Distinct entities of the pool that are known at the last time of the batch."""
    sampler = NegativeSampler(graph)
    for quads, known in ((to_tensor([(0, 0, 1, 0), (0, 0, 1, 1), (6, 0, 0, 2)]), 7), (to_tensor([(0, 0, 1, 0)]), 4)):
        found = sampler.draw_for_batch(quads, 100, seeded())
        assert sorted(found.entities[0].tolist()) == sorted(graph.known_entities(int(quads[-1, TIME])).tolist())
        assert found.entities.shape == (1, known)
        assert found.for_batch
        some = sampler.draw_for_batch(quads, 3, seeded())
        assert some.entities.shape == (1, 3)
        assert len(set(some.entities[0].tolist())) == 3
        assert some.time.tolist() == quads[-1:, TIME].tolist()


# The pool ------------------------------------------------------------


@pytest.fixture
def growing() -> Timeline:
    """Two more entities at every step: 0 and 1, then 2 and 3, …; 10 and 11 never occur."""
    train = [(2 * t, 0, 2 * t + 1, t) for t in range(5)]
    return make_timeline(train, num_entities=12, num_relations=1, num_steps=5)


def test_repr_with_a_pool(growing: Timeline) -> None:
    assert str(NegativeSampler(growing)) == "NegativeSampler(12 of 12 entities)"
    assert str(NegativeSampler(growing, 5, 1)) == "NegativeSampler(3 of 12 entities)"


def test_pool_by_hand(growing: Timeline) -> None:
    pool = NegativeSampler(growing, 3, 1)
    assert pool.entities.tolist() == [1, 4, 7, 10]
    assert pool.num_known.tolist() == [1, 1, 2, 3, 3]
    assert pool.position.tolist() == [-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1]
    assert not pool.has_all
    assert NegativeSampler(growing).has_all


@given(timelines(), st.data())
def test_members_known_at_a_step(drawn: tuple[Timeline, TimelineOracle], data: st.DataObject) -> None:
    timeline, oracle = drawn
    stride = data.draw(st.integers(1, 9))
    pool = NegativeSampler(timeline, stride, data.draw(st.integers(0, min(stride, timeline.num_entities) - 1)))
    members = timeline.order.tolist()[pool.start :: stride]
    assert pool.entities.tolist() == members
    assert torch.equal(pool.position[pool.entities], torch.arange(len(members)))
    assert int((pool.position < 0).sum()) == timeline.num_entities - len(members)
    for step, count in enumerate(pool.num_known.tolist()):
        assert set(pool.entities[:count].tolist()) == set(members) & oracle.known_entities(step)


@pytest.mark.parametrize(("size", "stride"), [(None, 1), (100, 1), (10, 1), (6, 1), (5, 2), (4, 2), (3, 3), (1, 10)])
def test_pool_size(growing: Timeline, size: int | None, stride: int) -> None:
    pool = NegativeSampler.with_pool(growing, 4, size, seed=0)
    assert pool.stride == stride
    if stride > 1:
        assert size is not None
        assert size <= int(pool.num_known[4]) < 2 * size or pool.start > 0


def test_members_are_equally_likely(growing: Timeline) -> None:
    pools = [NegativeSampler.with_pool(growing, 4, 3, seed) for seed in range(300)]
    for start in range(3):
        assert 70 < sum(pool.start == start for pool in pools) < 130
    assert NegativeSampler.with_pool(growing, 4, 3, seed=7).start == pools[7].start
    assert (
        len({NegativeSampler.with_pool(growing, time, 1, seed=7).start for time in range(5)}) > 1
    )  # a new one at each step


def test_huge_seeds(growing: Timeline) -> None:
    seeds = [20261117195020, 2**32, 2**40, 2**62, 0]
    assert len({NegativeSampler.with_pool(growing, 4, 1, seed).start for seed in seeds}) > 1


def test_pool_start(growing: Timeline) -> None:
    with pytest.raises(ValueError, match=r"start must lie in 0 … 2 \(got 3\)"):
        NegativeSampler(growing, 3, 3)
    with pytest.raises(ValueError, match=r"start must lie in 0 … 11 \(got 12\)"):  # there would be no member
        NegativeSampler(growing, 20, 12)
