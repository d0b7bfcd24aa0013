"""Answers of a live graph through time, for the slider of its page."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tkg_incremental.report.templates import load_script
from tkg_incremental.tables import show_share
from tkg_incremental.text import printable

if TYPE_CHECKING:
    from tkg_incremental.answers import Answer, AnswerEngine
    from tkg_incremental.live.serving import ServedGraph

# Questions, steps and answers of the slider: 20 × 100 questions take two or three seconds on a small graph.
_QUESTIONS, _STEPS, _ANSWERS = 20, 100, 5
# A graph with more entities gets fewer steps.
_LARGE, _FEW_STEPS = 20_000, 12
# The latest facts, among which questions are looked for.
_FACTS = 100_000
# At most this many questions of one relation.
_PER_RELATION = 6

# Questions whose answer changes and that seldom have two at a time: as many facts as answers, those with most changes
# first. Entities that were erased have no name.
_CHANGING = """
WITH latest AS (SELECT * FROM facts ORDER BY id DESC LIMIT ?)
SELECT {given}, rel, count(DISTINCT {asked}) AS answers, sum(valid_to IS NULL) AS now FROM latest
GROUP BY {given}, rel HAVING answers > 1 AND now <= 1 ORDER BY now DESC, answers DESC, rel, {given} LIMIT 200
"""


#: A question by name: head, relation and tail, with :obj:`None` for the side that is asked for.
Asked = tuple[str | None, str, str | None]


def choose_questions(graph: ServedGraph, count: int = _QUESTIONS) -> list[Asked]:
    """Questions whose answer changes over time, of several relations: those with an answer now and the most answers
    come first.

    Args:
        graph: The graph.
        count: Maximum number of questions.
    """
    store = graph.folder.store
    found: list[tuple[int, int, int, Asked]] = []
    for given, asked in (("tail", "head"), ("head", "tail")):
        rows = store.connection.execute(_CHANGING.format(given=given, asked=asked), (_FACTS,)).fetchall()
        names = store.entities.of([row[0] for row in rows])
        relations = store.relations.of([row[1] for row in rows])
        for (_, rel, answers, now), name, relation in zip(rows, names, relations, strict=True):
            if name and relation:
                question: Asked = (None, relation, name) if given == "tail" else (name, relation, None)
                found.append((now, answers, rel, question))
    chosen: list[Asked] = []
    per_relation: dict[int, int] = {}
    for *_, rel, question in sorted(found, key=lambda each: (-each[0], -each[1], _title(each[3]))):
        per_relation[rel] = per_relation.get(rel, 0) + 1
        if per_relation[rel] <= _PER_RELATION and len(chosen) < count:
            chosen.append(question)
    return chosen


def answers_through_time(graph: ServedGraph) -> dict[str, Any] | None:
    """What the template of the page needs for the slider; :obj:`None` if no question has an answer that changes.

    Args:
        graph: A graph with a release.
    """
    if graph.current is None:
        return None
    engine = graph.engine
    # Pending changes may name entities that the current release does not have.
    questions = [asked for asked in choose_questions(graph) if _is_known(engine, asked)]
    if not questions:
        return None
    labels = engine.axis.labels
    steps = _spread(len(labels), _STEPS if graph.folder.store.num_entities < _LARGE else _FEW_STEPS)
    shown = [labels[step] for step in steps]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = [[_rows(graph.query(*asked, at=when, k=_ANSWERS)) for when in shown] for asked in questions]
    calibrated = any(row[1] for each in answers for rows in each for row in rows)
    data = json.dumps({"labels": shown, "answers": answers, "calibrated": calibrated}, ensure_ascii=False)
    return {
        "calibrated": calibrated,
        "titles": [_title(asked) for asked in questions],
        "labels": shown,
        "first": answers[0][-1],
        # Inside of a script element only "<" could end it.
        "data": data.replace("<", "\\u003c"),
        "script": load_script("times.js"),
    }


def _title(asked: Asked) -> str:
    return " · ".join(name or "?" for name in asked)


def _is_known(engine: AnswerEngine, asked: Asked) -> bool:
    head, rel, tail = asked
    try:
        engine.relations.index(rel)
        engine.entities.index(head or tail or "")
    except KeyError:
        return False
    return True


def _spread(count: int, limit: int) -> list[int]:
    """At most ``limit`` of the steps ``0 … count - 1``, evenly, with the first and the last.

    >>> _spread(10, 4)
    [0, 3, 6, 9]
    """
    size = min(count, limit)
    return [round(i * (count - 1) / max(1, size - 1)) for i in range(size)]


def _rows(answers: Sequence[Answer]) -> list[list[str]]:
    """Name, probability, what is known, and kind of each answer, as text."""
    return [[printable(a.name), show_share(a.probability), a.period, a.kind] for a in answers]
