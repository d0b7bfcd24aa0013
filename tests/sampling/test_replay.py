import itertools
import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import TimelineOracle, replay_rates, rows_of
from timelines import make_timeline, timelines

from tkg_incremental.data import Snapshot, Timeline
from tkg_incremental.sampling import replay_weights, sample_replay
from tkg_incremental.sampling.replay import SAMPLINGS, ReplaySampling, some_of


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def snapshot() -> Snapshot:
    """A buffer of four facts of different frequency and age."""
    train = [(0, 0, 1, 0), (0, 0, 1, 1), (0, 1, 2, 1), (3, 1, 4, 2), (0, 0, 1, 3)]
    return Snapshot(make_timeline(train, num_entities=5, num_relations=2, num_steps=4), 3)


@pytest.mark.parametrize("sampling", ["frequency", "inverse"])
@settings(max_examples=60)
@given(drawn=timelines(), window=st.integers(1, 5), decay=st.sampled_from([2.0, 10.0]))
def test_rates_of_algorithm_1(
    sampling: ReplaySampling, drawn: tuple[Timeline, TimelineOracle], window: int, decay: float
) -> None:
    timeline, oracle = drawn
    time = oracle.num_steps - 1
    snapshot = Snapshot(timeline, time)
    buffer = snapshot.replay(window)
    if len(buffer) == 0:
        return
    found = replay_weights(buffer, snapshot.current, time, window, sampling, decay, discount=0.3)
    current = [(*triple, time) for triple in oracle.holding(time)]
    past = [tuple(row) for row in buffer.tolist()]
    assert sorted(past) == oracle.replay(time, window)
    wanted = replay_rates(past, current, time, window, sampling == "inverse", decay, discount=0.3)
    assert found.tolist() == pytest.approx(wanted)


def test_what_is_frequent_and_recent(snapshot: Snapshot) -> None:
    buffer = snapshot.replay(3)
    frequent, rare = (
        dict(
            zip(map(tuple, buffer.tolist()), replay_weights(buffer, snapshot.current, 3, 3, kind).tolist(), strict=True)
        )
        for kind in ("frequency", "inverse")
    )
    assert frequent[0, 0, 1, 1] > frequent[0, 0, 1, 0] > frequent[3, 1, 4, 2]
    assert rare[3, 1, 4, 2] > rare[0, 1, 2, 1] > rare[0, 0, 1, 1] > rare[0, 0, 1, 0]


@pytest.mark.parametrize("sampling", ["uniform", "turns"])
@settings(max_examples=60)
@given(timelines(), st.integers(1, 5), st.integers(0, 20))
def test_without_replacement(
    sampling: ReplaySampling, drawn: tuple[Timeline, TimelineOracle], window: int, size: int
) -> None:
    timeline, oracle = drawn
    time = oracle.num_steps - 1
    found = rows_of(sample_replay(Snapshot(timeline, time), window, size, sampling, seeded()))
    buffer = oracle.turns(time, window) if sampling == "turns" else oracle.replay(time, window)
    assert len(found) == min(size, len(buffer))
    assert len(set(found)) == len(found)
    assert set(found) <= set(buffer)


def test_uniform_reaches_all_alike(snapshot: Snapshot) -> None:
    draws = (sample_replay(snapshot, 3, 2, "uniform", seeded(seed)) for seed in range(2000))
    counts = Counter(row for draw in draws for row in rows_of(draw))
    assert len(counts) == 4
    chi_square = sum((count - 1000) ** 2 / 1000 for count in counts.values())
    assert chi_square < 16.3  # the 99.9% quantile with three degrees of freedom


@pytest.mark.parametrize("sampling", ["frequency", "inverse"])
def test_weighted_draws_follow_the_rates(snapshot: Snapshot, sampling: ReplaySampling) -> None:
    size = 40_000
    drawn = sample_replay(snapshot, 3, size, sampling, seeded())
    assert drawn.shape == (size, 4)  # with replacement: more than there are
    counts = Counter(rows_of(drawn))
    buffer = rows_of(snapshot.replay(3))
    rates = replay_rates(buffer, rows_of(snapshot.current), 3, 3, sampling == "inverse")
    expected = [size * rate / sum(rates) for rate in rates]
    chi_square = sum((counts[row] - want) ** 2 / want for row, want in zip(buffer, expected, strict=True))
    assert chi_square < 16.3


@pytest.mark.parametrize(("count", "size"), [(5, 2), (9, 2), (13, 3)])
def test_every_part_is_as_likely_as_any_other(count: int, size: int) -> None:
    generator, times = seeded(), 20_000
    found = Counter(tuple(sorted(some_of(count, size, generator).tolist())) for _ in range(times))
    parts = math.comb(count, size)
    assert set(found) == set(itertools.combinations(range(count), size))
    squares = sum((n - times / parts) ** 2 / (times / parts) for n in found.values())
    assert squares < parts + 5 * math.sqrt(2 * parts)  # of a χ² distribution, five deviations above the mean


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_generators_and_empty_buffers(snapshot: Snapshot, sampling: ReplaySampling) -> None:
    first, same, other = (sample_replay(snapshot, 3, 3, sampling, seeded(seed)) for seed in (0, 0, 5))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert sample_replay(Snapshot(snapshot.timeline, 0), 3, 5, sampling).shape == (0, 4)
    assert sample_replay(snapshot, 3, 0, sampling).shape == (0, 4)


def test_samplings_there_are(snapshot: Snapshot) -> None:
    with pytest.raises(ValueError, match="sampling must be one of .* .got 'newest'."):
        sample_replay(snapshot, 3, 5, "newest")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sampling must be 'frequency' or 'inverse' .got 'turns'."):
        replay_weights(snapshot.replay(3), snapshot.current, 3, 3, "turns")
