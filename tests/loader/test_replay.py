import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Fact, TimelineOracle, expand, replay_rates, rows_of
from timelines import make_interval_timeline, make_timeline, timelines

from tkg_incremental.data import LazyQuads, Timeline
from tkg_incremental.loader import replay, replay_frequencies, sample_replay
from tkg_incremental.loader.replay import DECAY, DISCOUNT, SAMPLINGS, ReplaySampling
from tkg_incremental.ops.answers import FIRST, LAST

#: Facts that begin before the window, end in it, begin in it, and return; two share a head, two a pair.
FACTS: list[Fact] = [
    (0, 0, 1, 0, 7),
    (0, 1, 2, 3, 5),
    (3, 1, 4, 6, 6),
    (3, 0, 1, 2, 3),
    (3, 0, 1, 6, 8),
    (2, 1, 2, 8, 8),
]
TIME, WINDOW = 8, 6


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def timeline() -> Timeline:
    return make_interval_timeline(FACTS, num_entities=5, num_relations=2, num_steps=9)


@pytest.fixture
def oracle() -> TimelineOracle:
    return TimelineOracle(expand(FACTS), [], [], 5, 9)


def current(oracle: TimelineOracle, time: int) -> list[tuple[int, int, int, int]]:
    return [(*triple, time) for triple in oracle.holding(time)]


@pytest.mark.parametrize("sampling", ["frequency", "inverse"])
@settings(max_examples=60)
@given(drawn=timelines(), window=st.integers(1, 5))
def test_rates_of_algorithm_1(sampling: ReplaySampling, drawn: tuple[Timeline, TimelineOracle], window: int) -> None:
    """The frequency of a fact times the decay of a step is the oracle's rate of the quad."""
    timeline, oracle = drawn
    time = oracle.num_steps - 1
    buffer = timeline.observed.between(time - window, time - 1).facts
    wanted = oracle.replay(time, window)
    if not wanted:
        assert len(buffer) == 0
        return
    frequency = replay_frequencies(buffer, timeline.observed.at(time), window).tolist()
    found = {}
    for fact, value in zip(buffer.tolist(), frequency, strict=True):
        for step in range(fact[FIRST], fact[LAST] + 1):
            decay = math.exp((step - time) / DECAY)
            found[(*fact[:3], step)] = decay / value if sampling == "inverse" else decay * value
    assert sorted(found) == wanted
    rates = replay_rates(wanted, current(oracle, time), time, window, sampling == "inverse", DECAY, DISCOUNT)
    assert [found[quad] for quad in wanted] == pytest.approx(rates)


@pytest.mark.parametrize("sampling", ["frequency", "inverse"])
def test_draws_follow_the_rates(timeline: Timeline, oracle: TimelineOracle, sampling: ReplaySampling) -> None:
    """Every (fact, step) pair is drawn as often as the oracle's rate of the quad says."""
    size = 60_000
    drawn = sample_replay(timeline, TIME, WINDOW, size, sampling, seeded())
    assert drawn.shape == (size, 4)  # with replacement: more than there are
    counts, buffer = Counter(rows_of(drawn)), oracle.replay(TIME, WINDOW)
    assert set(counts) == set(buffer)
    rates = replay_rates(buffer, current(oracle, TIME), TIME, WINDOW, sampling == "inverse")
    expected = [size * rate / sum(rates) for rate in rates]
    chi_square = sum((counts[quad] - want) ** 2 / want for quad, want in zip(buffer, expected, strict=True))
    degrees = len(buffer) - 1
    assert chi_square < degrees + 4 * math.sqrt(2 * degrees)


def test_frequent_and_recent_quads(timeline: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "DECAY", 2.0)
    counts = {
        sampling: Counter(rows_of(sample_replay(timeline, TIME, WINDOW, 20_000, sampling, seeded())))
        for sampling in ("frequency", "inverse")
    }
    for found in counts.values():  # the more recent, the more often
        steps = [found[0, 0, 1, step] for step in range(2, 8)]
        assert steps == sorted(steps)
    assert counts["frequency"][0, 0, 1, 6] > counts["frequency"][3, 1, 4, 6]
    assert counts["inverse"][0, 0, 1, 6] < counts["inverse"][3, 1, 4, 6]


def test_a_long_history() -> None:
    """Steps inside long intervals are drawn by their decay, far from the present."""
    timeline = make_interval_timeline([(0, 0, 1, 0, 19_999)], num_entities=2, num_relations=1, num_steps=20_001)
    drawn = sample_replay(timeline, 20_000, 20_000, 20_000, "frequency", seeded())
    age = 20_000 - drawn[:, 3]
    assert int(age.min()) == 1
    # The ages are geometrically distributed.
    assert age.double().mean().item() == pytest.approx(1 / (1 - math.exp(-1 / DECAY)), rel=0.03)


@pytest.mark.parametrize("sampling", ["uniform", "boundary"])
@settings(max_examples=60)
@given(drawn=timelines(), window=st.integers(1, 5), size=st.integers(0, 20))
def test_without_replacement(
    sampling: ReplaySampling, drawn: tuple[Timeline, TimelineOracle], window: int, size: int
) -> None:
    timeline, oracle = drawn
    time = oracle.num_steps - 1
    found = rows_of(sample_replay(timeline, time, window, size, sampling, seeded()))
    buffer = oracle.boundary_facts(time, window) if sampling == "boundary" else oracle.replay(time, window)
    assert len(found) == min(size, len(buffer))
    assert len(set(found)) == len(found)
    assert set(found) <= set(buffer)


@pytest.mark.parametrize("sampling", ["uniform", "boundary"])
def test_uniform(timeline: Timeline, oracle: TimelineOracle, sampling: ReplaySampling) -> None:
    buffer = oracle.boundary_facts(TIME, WINDOW) if sampling == "boundary" else oracle.replay(TIME, WINDOW)
    times, size = 3000, 2
    draws = (sample_replay(timeline, TIME, WINDOW, size, sampling, seeded(seed)) for seed in range(times))
    counts = Counter(row for draw in draws for row in rows_of(draw))
    assert set(counts) == set(buffer)
    mean, degrees = times * size / len(buffer), len(buffer) - 1
    chi_square = sum((count - mean) ** 2 / mean for count in counts.values())
    assert chi_square < degrees + 4 * math.sqrt(2 * degrees)


@settings(max_examples=60)
@given(drawn=timelines(), window=st.integers(1, 5), size=st.integers(0, 20))
def test_by_fact(drawn: tuple[Timeline, TimelineOracle], window: int, size: int) -> None:
    timeline, oracle = drawn
    time = oracle.num_steps - 1
    facts = timeline.observed.between(time - window, time - 1).facts.tolist()
    found = sample_replay(timeline, time, window, size, "fact", seeded())
    if len(facts) > size:
        assert isinstance(found, torch.Tensor)
        assert len(found) == size
        assert set(rows_of(found)) <= set(oracle.replay(time, window))
        return
    assert isinstance(found, LazyQuads)
    visits = max(1, size // max(1, len(facts)))
    epochs = [found.take(torch.arange(len(found)), seeded(seed)).tolist() for seed in range(20)]
    wanted = Counter()
    for head, rel, tail, first, last in facts:
        wanted[head, rel, tail] += min(visits, last - first + 1)
    for quads in epochs:
        assert Counter(tuple(quad[:3]) for quad in quads) == wanted
        assert {tuple(quad) for quad in quads} <= set(oracle.replay(time, window))
    # Each epoch draws other steps.
    assert visits > 1 or all(first == last for *_, first, last in facts) or any(e != epochs[0] for e in epochs)


@pytest.mark.parametrize("sampling", [name for name in SAMPLINGS if name != "fact"])
def test_generators_and_empty_buffers(timeline: Timeline, sampling: ReplaySampling) -> None:
    before = torch.get_rng_state()
    first, same, other = (sample_replay(timeline, TIME, WINDOW, 5, sampling, seeded(seed)) for seed in (0, 0, 5))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)
    assert sample_replay(timeline, 0, 3, 5, sampling, seeded()).shape == (0, 4)
    assert sample_replay(timeline, TIME, 3, 0, sampling, seeded()).shape == (0, 4)
    empty = make_timeline([(0, 0, 1, 0)], num_entities=2, num_relations=1, num_steps=5)
    assert sample_replay(empty, 4, 2, 5, sampling, seeded()).shape == (0, 4)


def test_unknown_sampling(timeline: Timeline) -> None:
    with pytest.raises(ValueError, match="sampling must be one of .* .got 'newest'."):
        sample_replay(timeline, TIME, 3, 5, "newest")  # type: ignore[arg-type]
