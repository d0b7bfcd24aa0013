"""What changed: handovers and deleted facts, as charts and as rows of tables."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

from tkg_incremental.report.changes import Changes, Question, RankedDeletedFact, WatchedAnswer
from tkg_incremental.report.figures import curve_figure, figure, key, tick_labels
from tkg_incremental.report.svg import Frame, svg

# Steps before and after a handover in the summary.
AROUND = 6
# Columns of a question's table.
_MAX_STEPS = 30
# Highest ranks of the colours.
_SHADES = (1, 3, 10, 100)


def ranks_around(changes: Changes) -> dict[int, tuple[list[float], list[float]]]:
    """Ranks of the old and of the new answers of all handovers by steps since the handover: before it while the old
    answer is true, after it while the new one is.

    Args:
        changes: The records of a run.
    """
    place = {step: i for i, step in enumerate(changes.steps)}
    found: dict[int, tuple[list[float], list[float]]] = {}
    for question in changes.questions:
        for handover in question.handovers:
            old, new = question.answers[handover.old], question.answers[handover.new]
            for offset in range(-AROUND, AROUND + 1):
                step = handover.time + offset
                # Only steps at which one of the two is true: the ranks after a later handover do not count.
                if step not in place or step not in (old if offset < 0 else new).holds:
                    continue
                old_rank, new_rank = old.ranks[place[step]], new.ranks[place[step]]
                if old_rank is not None and new_rank is not None:
                    both = found.setdefault(offset, ([], []))
                    both[0].append(old_rank)
                    both[1].append(new_rank)
    return found


def handover_figure(changes: Changes) -> str:
    """The median rank of old and new answers before and after the handover."""
    found = ranks_around(changes)
    if 0 not in found:
        return ""
    offsets = range(-AROUND, AROUND + 1)
    highest = max(median(ranks) for both in found.values() for ranks in both)
    frame = Frame(len(offsets), 1, max(10.0, highest * 1.2), log=True, down=True, height=270, top=30)
    labels = [f"{offset:+d}".replace("-", "−") if offset else "0" for offset in offsets]
    drawing = frame.axes(labels, "steps since the handover", "median rank (1 is best)")
    for which, kind, name in ((0, "s1", "old"), (1, "s0", "new")):
        values = [median(found[o][which]) if o in found else None for o in offsets]
        tips = [
            f"{label} steps: median rank of the {name} answer {value:.1f}, {len(found[o][0])} handovers"
            if value
            else ""
            for o, label, value in zip(offsets, labels, values, strict=True)
        ]
        drawing += frame.line(values, kind, tips)
    drawing += frame.mark(AROUND, "handover")
    old, new = found[0]
    won = 100 * sum(n < o for o, n in zip(old, new, strict=True)) / len(old)
    text = (
        f"<strong>After the step of the handover, the new answer ranks above the old one in {won:.0f}% of {len(old)} "
        "handovers.</strong> Each rank is among all entities known at the step, by the model after that step. Left of "
        "the dashed line the old answer is true, right of it the new one."
    )
    legend = key("s1", "old answer") + key("s0", "new answer")
    label = f"Median rank of old and new answers around a handover; the new one is above in {won:.0f}%"
    return figure(
        "handovers", "Ranks when an answer is replaced", text, svg(frame.width, frame.height, label, drawing), legend
    )


def deleted_figure(changes: Changes) -> str:
    """Share of the deleted facts among the first ten answers after each step."""
    values = [100 * record.found / record.asked if record.asked else math.nan for record in changes.deleted]
    labels = [changes.labels[record.time] for record in changes.deleted]
    tips = [f"{label}: {r.found} of {r.asked} questions" for label, r in zip(labels, changes.deleted, strict=True)]
    text = (
        f"Facts of all splits that were true in the {changes.window} steps before and are not true now, as head and "
        "tail queries: the share whose deleted answer is still among the first 10. The worst are below. DF@10 is "
        "the same for the answers to test questions only."
    )
    heading = 'Deleted facts among the first 10 <span class="arrow">↓ lower is better</span>'
    label = "Share of deleted facts among the first 10 after each step"
    titles = ("after learning step …", "% of deleted answers")
    return curve_figure("deleted", heading, text, (labels, values, tips), titles, label, "s1")


def question_rows(changes: Changes, count: int) -> tuple[list[str], list[dict[str, Any]]]:
    """Labels of the steps and, for each of the first questions, its answers with their ranks.

    Args:
        changes: The records of a run.
        count: Number of questions.
    """
    # The last steps, if there are more than a table can hold.
    places = range(max(0, len(changes.steps) - _MAX_STEPS), len(changes.steps))
    labels = tick_labels(changes.labels)
    shown = [question for question in changes.questions if question.answers][:count]
    questions = [
        {
            "title": str(question),
            "answers": [
                {"name": answer.name, "learnt": answer.learnt, "cells": [_cell(answer, changes, i) for i in places]}
                for answer in question.answers
            ],
            "first": [_first(question, changes, i) for i in places if i < len(question.first)],
        }
        for question in shown
    ]
    return [labels[changes.steps[i]] for i in places], questions


def _first(question: Question, changes: Changes, place: int) -> dict[str, Any]:
    """The first answers after a step, and which of them are true."""
    step = changes.steps[place]
    true = {answer.name for answer in question.answers if step in answer.holds}
    names = [{"name": name, "true": name in true} for name in question.first[place]]
    return {"label": changes.labels[step], "answers": names}


def _cell(answer: WatchedAnswer, changes: Changes, place: int) -> dict[str, str]:
    rank, step = answer.ranks[place], changes.steps[place]
    holds = step in answer.holds
    kind = f"r{sum(limit < rank for limit in _SHADES)}" if rank is not None else "unknown"
    said = "not known yet" if rank is None else f"rank {rank:g}"
    tip = f"{answer.name}, {changes.labels[step]}: {said}, {'true' if holds else 'not true'}"
    return {"kind": f"{kind} holds" if holds else kind, "tip": tip, "text": _show(rank)}


def _show(rank: float | None) -> str:
    if rank is None:
        return ""
    return f"{rank:.0f}" if rank < 1000 else "1k+" if rank < 10_000 else "10k+"


def deleted_rows(changes: Changes) -> list[dict[str, Any]]:
    """The deleted facts among the first ten answers, the last step first."""
    labels = changes.labels
    return [
        {
            "label": labels[record.time],
            "share": f"{record.found} of {record.asked} questions" if record.asked else "no deleted facts",
            "facts": [_fact(fact, labels) for fact in record.facts],
        }
        for record in reversed(changes.deleted)
    ]


def _fact(fact: RankedDeletedFact, labels: list[str]) -> dict[str, Any]:
    if fact.side == "head":
        question, answer = f"? · {fact.rel} · {fact.tail}", fact.head
    else:
        question, answer = f"{fact.head} · {fact.rel} · ?", fact.tail
    now = "–" if fact.now is None else fact.now
    now_rank = "" if fact.now_rank is None else f"{fact.now_rank:,.0f}"
    cells = [question, answer, f"{fact.rank:.0f}", labels[fact.ended], now, now_rank]
    return {"cells": cells, "wrong": fact.now_rank is not None and fact.now_rank > fact.rank}
