"""Records what changes during a run, for its report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import SIDES, Side
from tkg_incremental.report.changes import Changes, FactCounts
from tkg_incremental.report.deleted_facts import rank_deleted
from tkg_incremental.report.handovers import QuestionIds, choose_questions, find_handovers
from tkg_incremental.report.watch import rank_answers, watch_question
from tkg_incremental.training.callbacks import Callback

if TYPE_CHECKING:
    from tkg_incremental.training.learner import StepLearner
    from tkg_incremental.training.trainer import IncrementalTrainer

# Maximum number of scores per step for the answers, and as many for the deleted facts: a fraction of an evaluation.
_SCORES = 1 << 23


class ChangeRecorder(Callback):
    """Records after each step what :func:`~tkg_incremental.report.write_report` shows besides the metrics.

    That is the number of facts added and deleted, the ranks of the old and the new answers of questions whose answer
    changes, and deleted facts among the first ten answers. The records are in :attr:`changes` and, if the run has a
    folder, in its ``changes.json``. A resumed run continues them.

    Args:
        watch: Questions ``(head, rel, tail)`` by name, with :obj:`None` for the side that is asked for, that are
            always included. The others are chosen from the data.
        max_questions: Maximum number of chosen questions; fewer on a large graph.
        max_deleted: Maximum number of named deleted facts per step.
    """

    def __init__(
        self,
        watch: Sequence[tuple[str | None, str, str | None]] = (),
        max_questions: int = 100,
        max_deleted: int = 15,
    ) -> None:
        for head, rel, tail in watch:
            if (head is None) == (tail is None):
                raise ValueError(f"watch must leave out either head or tail (got {(head, rel, tail)!r})")
        self.watch, self.max_questions, self.max_deleted = list(watch), max_questions, max_deleted
        self.changes: Changes | None = None
        #: Ids of the questions of :attr:`changes` and of their answers.
        self._ids: list[tuple[QuestionIds, Tensor]] = []
        self._names: tuple[Sequence[str], Sequence[str]] = ((), ())

    def on_step_begin(self, trainer: IncrementalTrainer, learner: StepLearner) -> None:
        if not trainer.base_is_ready:
            return
        time = learner.time
        if self.changes is None:
            self._begin(trainer, time)
        # The run was stopped between its checkpoint and the record: the step still has the model before it.
        if time > trainer.timeline.base_step:
            self._record(trainer, learner.context.previous, time - 1)

    def on_step_end(self, trainer: IncrementalTrainer, record: dict[str, Any] | None) -> None:
        if record is not None:
            self._record(trainer, trainer.model, record["time"])

    def on_end(self, trainer: IncrementalTrainer) -> None:
        last = trainer.timeline.num_steps - 1
        if trainer.result.steps and trainer.result.steps[-1]["time"] == last:
            if self.changes is None:
                self._begin(trainer, last + 1)
            self._record(trainer, trainer.model, last)

    def _begin(self, trainer: IncrementalTrainer, time: int) -> None:
        """Prepares everything that does not depend on the model, and reads earlier records."""
        line = trainer.timeline
        handovers = {side: find_handovers(line, side) for side in SIDES}
        self._names = _names_of(trainer.model, line)
        questions = [_question_ids(trainer.model, question) for question in self.watch]
        # About two answers per question.
        room = min(self.max_questions, _SCORES // max(1, 2 * line.num_entities))
        questions += [q for q in choose_questions(handovers, line, room) if q not in questions]
        watched = [watch_question(line, ids, handovers[ids[0]][0], *self._names) for ids in questions]
        self._ids = [(ids, answers) for ids, (_, answers) in zip(questions, watched, strict=True)]
        result = trainer.result
        self.changes = Changes(
            about={name: getattr(result, name) for name in ("dataset", "model", "strategy", "seed")},
            labels=list(line.labels),
            base_step=line.base_step,
            window=trainer.evaluator.window,
            facts=_count_facts(line),
            questions=[question for question, _ in watched],
        )
        path = None if trainer.folder is None else trainer.folder / "changes.json"
        if path is not None and path.exists() and time > line.base_step:
            earlier = Changes.load(path)
            if self.changes.is_of_same_run(earlier):
                earlier.forget_from(time)
                self.changes = earlier

    @torch.no_grad()
    def _record(self, trainer: IncrementalTrainer, model: TKGModel, time: int) -> None:
        changes, line = self.changes, trainer.timeline
        assert changes is not None
        if time in changes.steps:
            return
        candidates = model.candidate_vectors(line.known_entities(time), time)
        for question, (ids, answers) in zip(changes.questions, self._ids, strict=True):
            rank_answers(question, ids, answers, model, line, time, candidates, self._names[0])
        limits = _SCORES, self.max_deleted
        changes.deleted.append(rank_deleted(model, line, time, changes.window, candidates, self._names, *limits))
        changes.steps.append(time)
        if trainer.folder is not None:
            changes.save(trainer.folder / "changes.json")

    def __repr__(self) -> str:
        return f"ChangeRecorder(max_questions={self.max_questions}, max_deleted={self.max_deleted})"


def _count_facts(line: Timeline) -> list[FactCounts]:
    facts = line.observed
    counts = []
    for step in range(line.num_steps):
        total, added, removed = facts.num_at(step), len(facts.added(step)), len(facts.removed(step))
        counts.append(FactCounts(total, total - added, added, removed))
    return counts


def _names_of(model: TKGModel, line: Timeline) -> tuple[Sequence[str], Sequence[str]]:
    if model.catalog is not None:
        return model.catalog.entities.names, model.catalog.relations.names
    entities = [f"entity {i}" for i in range(line.num_entities)]
    return entities, [f"relation {i}" for i in range(line.num_relations)]


def _question_ids(model: TKGModel, question: tuple[str | None, str, str | None]) -> QuestionIds:
    if model.catalog is None:
        raise ValueError(f"watch needs a model with names, made with from_dataset() (got {question!r})")
    head, rel, tail = question
    side: Side = "head" if head is None else "tail"
    given = tail if head is None else head
    assert given is not None
    return side, model.catalog.entities.index(given), model.catalog.relations.index(rel)
