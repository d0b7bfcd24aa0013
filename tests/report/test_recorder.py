import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tkg_incremental import IncrementalTrainer
from tkg_incremental.data import Snapshot
from tkg_incremental.models.base import TKGModel
from tkg_incremental.report import ChangeRecorder, Changes
from tkg_incremental.training import Callback, StepLearner

Start = Callable[..., IncrementalTrainer]


def rank_by_sorting(model: TKGModel, known: torch.Tensor, row: tuple[int, int, int, int], side: str) -> float:
    """The mean place of the answer in the sorted scores of all known entities, each scored as a row of its own."""
    rows = torch.tensor([row]).repeat(len(known), 1)
    rows[:, 0 if side == "head" else 2] = known
    with torch.no_grad():
        scores = model(rows)
    own = scores[(known == row[0 if side == "head" else 2]).nonzero().item()]
    better, tied = (scores > own + 1e-5).sum(), ((scores - own).abs() <= 1e-5).sum()
    return float(better + (tied + 1) / 2)


def test_facts_of_each_step(run: Any) -> None:
    line, changes = run.trainer.timeline, run.recorder.changes
    assert len(changes.facts) == line.num_steps
    triples = [{tuple(row[:3]) for row in line.train.at(step).tolist()} for step in range(line.num_steps)]
    for step in range(1, line.num_steps):
        before, now = triples[step - 1], triples[step]
        assert changes.facts[step] == (len(now), len(now & before), len(now - before), len(before - now))


def test_ranks_of_watched_answers_after_the_last_step(run: Any) -> None:
    model, changes, line = run.trainer.model, run.recorder.changes, run.trainer.timeline
    last = line.num_steps - 1
    names, relations = model.catalog.entities, model.catalog.relations
    checked = 0
    for question in changes.questions[:20]:
        for answer in question.answers:
            given, asked = names.index(question.given), names.index(answer.name)
            ends = (asked, given) if question.side == "head" else (given, asked)
            row = (ends[0], relations.index(question.rel), ends[1], last)
            assert answer.ranks[-1] == rank_by_sorting(model, line.known_entities(last), row, question.side)
            holds = {r[3] for r in _truth(line) if r[:3] == row[:3] and r[3] >= line.base_step}
            assert set(answer.holds) == holds
            checked += 1
    assert checked > 20


def test_answers_have_no_rank_before_they_are_known(run: Any) -> None:
    line, changes = run.trainer.timeline, run.recorder.changes
    names = run.trainer.model.catalog.entities
    for question in changes.questions:
        for answer in question.answers:
            first = max(int(line.first_seen[names.index(name)]) for name in (question.given, answer.name))
            assert [rank is not None for rank in answer.ranks] == [step >= first for step in changes.steps]


def test_deleted_facts_still_believed_after_the_last_step(run: Any) -> None:
    model, line = run.trainer.model, run.trainer.timeline
    last = line.num_steps - 1
    record = run.recorder.changes.deleted[-1]
    truth = _truth(line)
    now = {row[:3] for row in truth if row[3] == last}
    ended: dict[tuple[int, ...], int] = {}
    for row in truth:
        if last - 10 <= row[3] < last and row[:3] not in now:
            ended[row[:3]] = max(row[3], ended.get(row[:3], 0))
    ranks = {
        (triple, side): rank_by_sorting(model, line.known_entities(last), (*triple, last), side)
        for triple in ended
        for side in ("head", "tail")
    }
    top = {key: rank for key, rank in ranks.items() if rank <= 10}
    assert (record.asked, record.found) == (len(ranks), len(top))
    names, relations = model.catalog.entities, model.catalog.relations
    assert 0 < len(record.facts) <= 15
    for fact in record.facts:
        triple = (names.index(fact.head), relations.index(fact.rel), names.index(fact.tail))
        assert fact.rank == top[triple, fact.side]
        assert fact.ended == ended[triple]
        given = 2 if fact.side == "head" else 0
        true = [t for t in now if t[1] == triple[1] and t[given] == triple[given]]
        if not true:
            assert fact.now is None
            continue
        best = min(rank_by_sorting(model, line.known_entities(last), (*t, last), fact.side) for t in true)
        assert fact.now_rank == best
        assert names.index(fact.now) in {t[2 - given] for t in true}


def test_watching_changes_nothing(run: Any, start: Start) -> None:
    trainer = start(None)
    trainer.pretrain()
    metrics = [{k: v for k, v in step.items() if k != "epoch_seconds"} for step in trainer.fit().to_dict()["steps"]]
    watched = [{k: v for k, v in s.items() if k != "epoch_seconds"} for s in run.trainer.result.to_dict()["steps"]]
    assert metrics == watched


def test_records_from_a_step_on_are_dropped(run: Any) -> None:
    changes = copy.deepcopy(run.recorder.changes)
    changes.forget_from(10)
    assert changes.steps == [record.time for record in changes.deleted] == [8, 9]
    for kept, all_of_them in zip(changes.questions, run.recorder.changes.questions, strict=True):
        for answer, recorded in zip(kept.answers, all_of_them.answers, strict=True):
            assert answer.ranks == recorded.ranks[:2]


class StopAt(Callback):
    def __init__(self, time: int, epoch: int) -> None:
        self.time, self.epoch = time, epoch

    def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
        if trainer.base_is_ready and (learner.time, learner.epoch) == (self.time, self.epoch):
            raise KeyboardInterrupt


def interrupt_and_resume(start: Start, folder: Path, damage: Callable[[Path], None] = lambda path: None) -> Changes:
    trainer = start(folder, ChangeRecorder(), StopAt(10, 2))
    trainer.pretrain()
    with pytest.raises(KeyboardInterrupt):
        trainer.fit()
    trainer.folder.release()
    damage(folder / "changes.json")
    resumed = start(folder, ChangeRecorder()).resume()
    resumed.pretrain()
    resumed.fit()
    resumed.folder.release()
    return Changes.load(folder / "changes.json")


def test_a_resumed_run_records_the_same(run: Any, start: Start, tmp_path: Path) -> None:
    assert interrupt_and_resume(start, tmp_path) == run.recorder.changes == Changes.load(run.folder / "changes.json")


def test_a_record_lost_between_checkpoint_and_writing_is_made_up_for(run: Any, start: Start, tmp_path: Path) -> None:
    def lose_the_last(path: Path) -> None:
        changes = Changes.load(path)
        changes.forget_from(9)
        changes.save(path)

    assert interrupt_and_resume(start, tmp_path, lose_the_last) == run.recorder.changes


def test_records_of_another_run_are_not_continued(run: Any, start: Start, tmp_path: Path) -> None:
    def of_another(path: Path) -> None:
        state = json.loads(path.read_text())
        state["about"]["seed"] = 99
        path.write_text(json.dumps(state))

    changes = interrupt_and_resume(start, tmp_path, of_another)
    assert changes.about["seed"] == 0
    assert changes.steps == [9, 10, 11]
    assert all(len(answer.ranks) == 3 for question in changes.questions for answer in question.answers)


def test_questions_to_watch_come_first(start: Start) -> None:
    recorder = ChangeRecorder(watch=[("entity 3", "relation 1", None)], max_questions=2)
    trainer = start(None, recorder)
    trainer.pretrain()
    learner = trainer.learner(8)
    recorder.on_step_begin(trainer, learner)
    assert next(str(question) for question in recorder.changes.questions) == "entity 3 · relation 1 · ?"
    assert len(recorder.changes.questions) <= 3
    assert recorder.changes.facts[8].added == len(Snapshot(trainer.timeline, 8).added)


def test_a_question_leaves_out_one_side() -> None:
    with pytest.raises(ValueError, match="watch must leave out either head or tail"):
        ChangeRecorder(watch=[(None, "president of", None)])


def _truth(line: Any) -> set[tuple[int, int, int, int]]:
    return {tuple(row) for split in ("train", "val", "test") for row in line.split(split).quads().tolist()}
