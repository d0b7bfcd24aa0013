import itertools
from collections import defaultdict

from hypothesis import given
from oracles import Row, TimelineOracle
from timelines import make_timeline, timelines

from tkg_incremental.data import Timeline
from tkg_incremental.ops.answers import SIDES
from tkg_incremental.report.handovers import MAX_GAP, choose_questions, find_handovers


def found_in(line: Timeline, side: str) -> set[tuple[int, ...]]:
    return set(map(tuple, find_handovers(line, side)[0].tolist()))


def expected_of(rows: set[Row], line: Timeline, side: str) -> set[tuple[int, ...]]:
    answers = defaultdict(lambda: defaultdict(set))
    for head, rel, tail, time in rows:
        known, asked = (tail, head) if side == "head" else (head, tail)
        answers[known, rel][time].add(asked)
    found = set()
    for (known, rel), by_time in answers.items():
        alone = [(time, next(iter(those))) for time, those in sorted(by_time.items()) if len(those) == 1]
        for (before, old), (after, new) in itertools.pairwise(alone):
            if old != new and after - before <= MAX_GAP and after >= line.base_step:
                found.add((known, rel, old, new, after))
    return found


@given(timelines())
def test_finds_what_a_loop_over_all_questions_finds(made: tuple[Timeline, TimelineOracle]) -> None:
    line, _ = made
    rows = {tuple(row) for split in ("train", "val", "test") for row in line.split(split).quads().tolist()}
    for side in SIDES:
        assert found_in(line, side) == expected_of(rows, line, side)


SHAPE = {"num_entities": 6, "num_relations": 2, "num_steps": 20}


def test_old_and_new_may_share_a_step_and_the_gap_is_bounded() -> None:
    shared = [(0, 0, 5, 15), (0, 0, 5, 16), (1, 0, 5, 16), (1, 0, 5, 17)]
    assert found_in(make_timeline(shared, **SHAPE), "head") == {(5, 0, 0, 1, 17)}
    apart = [(0, 0, 5, 18 - MAX_GAP), (1, 0, 5, 18)]
    assert found_in(make_timeline(apart, **SHAPE), "head") == {(5, 0, 0, 1, 18)}
    too_far = [(0, 0, 5, 18 - MAX_GAP - 1), (1, 0, 5, 18)]
    assert found_in(make_timeline(too_far, **SHAPE), "head") == set()
    before_the_incremental_steps = [(0, 0, 5, 12), (1, 0, 5, 13)]
    assert found_in(make_timeline(before_the_incremental_steps, **SHAPE), "head") == set()


def test_a_held_out_answer_counts_as_true() -> None:
    line = make_timeline([(0, 0, 5, 15)], test=[(1, 0, 5, 16)], **SHAPE)
    assert found_in(line, "head") == {(5, 0, 0, 1, 16)}


def test_relations_alternate_and_entities_with_many_facts_come_first() -> None:
    rows = [(0, 0, 4, 15), (1, 0, 4, 16), (0, 0, 5, 15), (1, 0, 5, 16), (0, 1, 4, 15), (1, 1, 4, 16)]
    rows += [(5, 1, 5, step) for step in range(20)]  # entity 5 has more facts; this question never changes
    line = make_timeline(rows, **SHAPE)
    handovers = {side: find_handovers(line, side) for side in SIDES}
    chosen = [question for question in choose_questions(handovers, line, 10) if question[0] == "head"]
    assert chosen == [("head", 5, 0), ("head", 4, 1), ("head", 4, 0)]
    assert choose_questions(handovers, line, 1) == chosen[:1]


def test_a_relation_with_many_answers_at_a_time_is_not_asked_about() -> None:
    crowd = [(head, 0, 4, step) for head in range(3) for step in range(18)]
    line = make_timeline([*crowd, (0, 0, 4, 18), (1, 0, 4, 19)], **SHAPE)
    handovers = {side: find_handovers(line, side) for side in SIDES}
    assert handovers["head"][0][:, 4].tolist() == [19]
    assert [question for question in choose_questions(handovers, line, 10) if question[0] == "head"] == []
