"""One answer to a question, lists of answers, and the probability of a fact over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tkg_incremental.tables import html_table, show_share


@dataclass(frozen=True)
class Answer:
    """One answer to a question.

    Args:
        name: The entity or relation.
        probability: Calibrated probability that the fact holds; :obj:`None` without a calibration.
        score: Score of the model.
        known: When the fact is known to hold, as labels ``(first, last)`` with :obj:`None` for an open end;
            :obj:`None` if it is not.
        ended: Label of the step since which the fact no longer holds, if it is known to have ended.
        begins: Label of the step at which the fact begins, if it is known to begin later.
    """

    name: str
    probability: float | None
    score: float
    known: tuple[str, str | None] | None
    ended: str | None = None
    begins: str | None = None

    @property
    def kind(self) -> Literal["known", "predicted", "over"]:
        """Whether the fact is known to hold, is a prediction, or is known to be over or not to have begun."""
        if self.known is not None:
            return "known"
        return "predicted" if self.ended is None and self.begins is None else "over"

    @property
    def period(self) -> str:
        """The known time as text: ``"since 2021"``, ``"2009 … 2016"``, ``"ended 2017"``, ``"begins 2021"``; empty for a
        prediction."""
        if self.known is not None:
            first, last = self.known
            return f"since {first}" if last is None else f"{first} … {last}"
        parts = {"ended": self.ended, "begins": self.begins}
        return ", ".join(f"{word} {label}" for word, label in parts.items() if label is not None)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Answers(list[Answer]):
    """A list of answers that notebooks show as a table."""

    def _repr_html_(self) -> str:
        rows: list[list[str | float]] = [[a.name, show_share(a.probability), a.score, a.period] for a in self]
        return html_table(["answer", "probability", "score", "known"], rows)


@dataclass(frozen=True)
class TimelinePoint:
    """The probability of a fact at one step, and whether it is known to hold then."""

    label: str
    probability: float | None
    score: float
    known: bool


def listed(answers: Iterable[Answer]) -> list[Answer]:
    """Answers in the order of a list: what is known, predictions, what is over; the most probable of each first."""
    places = {"known": 0, "predicted": 1, "over": 2}
    return sorted(answers, key=lambda a: (places[a.kind], -(a.probability or 0.0), -a.score))
