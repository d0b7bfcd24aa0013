"""The changes of a graph during a run, and how the model ranked old and new answers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tkg_incremental.ops.answers import Side
from tkg_incremental.storage import atomic_write

#: Version of the file's layout.
FORMAT = 2


class FactCounts(NamedTuple):
    """Train facts of a step: all, common with the step before, added, and deleted."""

    total: int
    common: int
    added: int
    deleted: int


@dataclass
class WatchedAnswer:
    """One answer to a watched question.

    Args:
        name: The answer.
        holds: The steps at which it is true.
        learnt: Whether it is among the train facts; if not, the model can only infer it.
        ranks: Its raw rank after each recorded step, at that step; :obj:`None` before it is known.
    """

    name: str
    holds: list[int]
    learnt: bool
    ranks: list[float | None] = field(default_factory=list)


@dataclass
class Handover:
    """The only answer to a question is replaced by another.

    Args:
        time: The first step at which the new answer is the only one.
        old: Index of the old answer.
        new: Index of the new answer.
    """

    time: int
    old: int
    new: int


@dataclass
class Question:
    """A question whose answers are ranked after each step.

    Args:
        side: The side that is asked for: ``"head"`` or ``"tail"``.
        rel: Name of the relation.
        given: Name of the entity on the other side.
        answers: Its answers, by first step.
        handovers: When one replaced another.
        first: The names of the first three answers after each recorded step, right or wrong.
    """

    side: Side
    rel: str
    given: str
    answers: list[WatchedAnswer]
    handovers: list[Handover]
    first: list[list[str]] = field(default_factory=list)

    def __str__(self) -> str:
        return f"? · {self.rel} · {self.given}" if self.side == "head" else f"{self.given} · {self.rel} · ?"


@dataclass
class RankedDeletedFact:
    """A deleted fact that the model ranks among the first ten answers.

    Args:
        head: Name of the head.
        rel: Name of the relation.
        tail: Name of the tail.
        side: The side that was asked for.
        rank: Raw rank of the deleted answer.
        ended: The last step at which the fact was true.
        now: The best ranked answer that is true now; :obj:`None` if there is none.
        now_rank: Its raw rank.
    """

    head: str
    rel: str
    tail: str
    side: Side
    rank: float
    ended: int
    now: str | None = None
    now_rank: float | None = None


@dataclass
class DeletedRecord:
    """Deleted facts after one step.

    Args:
        time: The step.
        asked: Number of questions about deleted facts.
        found: Number of them with the deleted answer among the first ten.
        facts: Some of these facts.
    """

    time: int
    asked: int
    found: int
    facts: list[RankedDeletedFact]


@dataclass
class Changes:
    """What a report shows besides the metrics; ``changes.json`` in the run folder.

    Args:
        about: Dataset, model, strategy and seed of the run.
        labels: Label of each step.
        base_step: The first incremental step.
        window: Number of steps that deleted facts reach back.
        facts: Numbers of facts at each step of the dataset.
        questions: The questions; those asked for by the user first.
        steps: The recorded steps, in the order of the ranks.
        deleted: A record per recorded step.
    """

    about: dict[str, Any]
    labels: list[str]
    base_step: int
    window: int
    facts: list[FactCounts]
    questions: list[Question]
    steps: list[int] = field(default_factory=list)
    deleted: list[DeletedRecord] = field(default_factory=list)

    def forget_from(self, time: int) -> None:
        """Drops the records of ``time`` and later steps, which a resumed run makes again."""
        kept = sum(step < time for step in self.steps)
        del self.steps[kept:], self.deleted[kept:]
        for question in self.questions:
            del question.first[kept:]
            for answer in question.answers:
                del answer.ranks[kept:]

    def is_of_same_run(self, other: Changes) -> bool:
        """Whether the records of ``other`` can be continued with those of this run."""

        def questions(changes: Changes) -> list[Any]:
            return [(str(q), [(a.name, a.holds) for a in q.answers], q.handovers) for q in changes.questions]

        same = all(getattr(self, n) == getattr(other, n) for n in ("about", "labels", "base_step", "window", "facts"))
        return same and questions(self) == questions(other)

    def save(self, path: str | Path) -> None:
        with atomic_write(path) as file:
            text = json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False, allow_nan=False)
            file.write(text.encode())

    @classmethod
    def load(cls, path: str | Path) -> Changes:
        """Reads what :meth:`save` wrote."""
        state = json.loads(Path(path).read_text(encoding="utf-8"))
        found = state.pop("format", None)
        if found != FORMAT:
            raise ValueError(f"the format of '{path}' must be {FORMAT} (got {found})")
        state["facts"] = [FactCounts(*counts) for counts in state["facts"]]
        state["questions"] = [
            Question(
                **{
                    **question,
                    "answers": [WatchedAnswer(**answer) for answer in question["answers"]],
                    "handovers": [Handover(**handover) for handover in question["handovers"]],
                }
            )
            for question in state["questions"]
        ]
        state["deleted"] = [
            DeletedRecord(**{**record, "facts": [RankedDeletedFact(**fact) for fact in record["facts"]]})
            for record in state["deleted"]
        ]
        return cls(**state)

    def __repr__(self) -> str:
        return f"Changes({len(self.questions)} questions, {len(self.steps)} steps)"
