"""Known facts, judged by loops over all of them."""

import random

import pytest
import torch

from tkg_incremental.answers import Interval, TensorFacts
from tkg_incremental.answers.facts import marks_of, mean_overlap

STEPS = 8


def drawn(seed: int) -> list[tuple[int, int, int, int, int]]:
    """Facts without two intervals of one triple that touch."""
    rng = random.Random(seed)
    facts = {}
    for _ in range(60):
        first = rng.randrange(STEPS)
        triple = rng.randrange(6), rng.randrange(2), rng.randrange(6)
        facts[triple] = first, rng.randrange(first, STEPS)
    return [(*triple, *interval) for triple, interval in facts.items()]


@pytest.mark.parametrize("seed", range(5))
def test_against_loops(seed: int) -> None:
    rows = drawn(seed)
    known = TensorFacts(torch.tensor(rows), STEPS, is_complete=True)

    def interval(first: int, last: int) -> Interval:
        return Interval(first, None if last == STEPS - 1 else last)

    for rel in range(2):
        heads, tails = ({row[side] for row in rows if row[1] == rel} for side in (0, 2))
        assert known.type_members(rel, "head").tolist() == sorted(heads)
        assert known.type_members(rel, "tail").tolist() == sorted(tails)
        for given in range(6):
            for side, asked, other in (("tail", 2, 0), ("head", 0, 2)):
                mine = [row for row in rows if row[1] == rel and row[other] == given]
                assert known.answers(given, rel, side) == {row[asked]: [interval(*row[3:])] for row in mine}
                for step in range(STEPS):
                    steps = [step, (step + 1) % STEPS]
                    marks = marks_of([known.answers(given, rel, side)] * 2, steps, torch.arange(6), is_closed=True)
                    for place, at in enumerate(steps):
                        found, ids = {row[asked] for row in mine}, torch.arange(6)
                        holds = {row[asked] for row in mine if row[3] <= at <= row[4]}
                        assert set(ids[marks.known[place]].tolist()) == holds
                        assert set(ids[marks.over[place]].tolist()) == found - holds
                        assert set(ids[marks.open[place]].tolist()) == set(range(6)) - found
    for head, rel, tail, first, last in rows:
        assert known.intervals(head, rel, tail) == [interval(first, last)]
    for head in range(6):
        for tail in range(6):
            wanted = [
                rel
                for rel in range(2)
                if any(row[:2] == (head, rel) for row in rows) and any(row[1:3] == (rel, tail) for row in rows)
            ]
            assert known.relations_of_type(head, tail) == wanted


@pytest.mark.parametrize("seed", range(5))
def test_answers_per_query(seed: int) -> None:
    rows = drawn(seed)
    known = TensorFacts(torch.tensor(rows), STEPS)
    for rel in range(2):
        counts = [
            sum(any(i.covers(step) for i in held) for held in known.answers(given, rel, "tail").values())
            for given in range(6)
            for step in range(STEPS)
        ]
        there = [count for count in counts if count]
        assert known.answers_per_query(rel, "tail") == pytest.approx(sum(there) / len(there))


def test_no_facts() -> None:
    known = TensorFacts(torch.empty(0, 5, dtype=torch.int32), STEPS)
    assert known.answers(0, 0, "head") == {}
    assert len(known.type_members(0, "head")) == 0
    assert known.answers_per_query(0, "head") == mean_overlap(torch.empty(0, 3)) == 1.0


def test_two_answers_at_one_step() -> None:
    assert mean_overlap(torch.tensor([[0, 5, 5], [0, 5, 5]])) == 2.0


@pytest.mark.parametrize(("last", "is_complete", "is_closed"), [(4, True, True), (4, False, False), (2, True, False)])
def test_what_ended_is_over_unless_facts_were_left_out_or_are_events(
    last: int, is_complete: bool, is_closed: bool
) -> None:
    known = TensorFacts(torch.tensor([[0, 0, 1, 2, last], [0, 1, 1, 0, 7]]), STEPS, is_complete)
    assert known.is_closed(0) == is_closed
    marks = marks_of([known.answers(0, 0, "tail")], [6], torch.arange(3), known.is_closed(0))
    assert (marks.other.tolist(), marks.known.any()) == ([[False, True, False]], False)
    assert marks.over.tolist() == [[False, is_closed, False]]
    assert marks.open.tolist() == [[True, not is_closed, True]]
