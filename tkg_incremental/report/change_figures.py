"""What changed: handovers and deleted facts, as HTML."""

from __future__ import annotations

from html import escape
from statistics import median

from tkg_incremental.report.changes import Changes, LingeringFact, Question, WatchedAnswer
from tkg_incremental.report.figures import figure, key, round_range, tick_labels
from tkg_incremental.report.svg import Frame, svg

# Steps before and after a handover that the summary shows.
AROUND = 6
# Columns of a question's table.
_MOST_STEPS = 30
# Ranks up to here have a colour of their own.
_SHADES = (1, 3, 10, 100)

_HEAD = "<tr><th>question</th><th>no longer true</th><th>rank</th><th>last true</th><th>true now</th><th>rank</th></tr>"


def ranks_around(changes: Changes, around: int = AROUND) -> dict[int, tuple[list[float], list[float]]]:
    """Ranks of the old and of the new answers of all handovers, by steps since the handover: before it as long as the
    old answer is true, from it on as long as the new one is.

    Args:
        changes: The records of a run.
        around: How many steps before and after.
    """
    place = {step: i for i, step in enumerate(changes.steps)}
    found: dict[int, tuple[list[float], list[float]]] = {}
    for question in changes.questions:
        for handover in question.handovers:
            old, new = question.answers[handover.old], question.answers[handover.new]
            for offset in range(-around, around + 1):
                step = handover.time + offset
                # A later handover is another story: only steps at which one of the two is true.
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
        f"<strong>Right after learning the step of the handover, the new answer ranks above the old one in {won:.0f}% "
        f"of {len(old)} handovers.</strong> Each rank is among all entities known at the step, asked about that step "
        "of the model that has just learnt it. Left of the dashed line the old answer is true, right of it the new one."
    )
    legend = key("s1", "old answer") + key("s0", "new answer")
    label = f"Median rank of old and new answers around a handover; the new one is above in {won:.0f}%"
    return figure(
        "handovers", "When an answer changes hands", text, svg(frame.width, frame.height, label, drawing), legend
    )


def lingering_figure(changes: Changes) -> str:
    """How many of the deleted facts are still believed after each step."""
    values = [100 * record.found / record.asked if record.asked else None for record in changes.deleted]
    there = [value for value in values if value is not None]
    if not there:
        return ""
    labels = [changes.labels[record.time] for record in changes.deleted]
    frame = Frame(len(values), *round_range([0.0, *there]), height=270)
    tips = [f"{label}: {r.found} of {r.asked} questions" for label, r in zip(labels, changes.deleted, strict=True)]
    drawing = frame.axes(tick_labels(labels), "after learning step …", "% of deleted answers")
    drawing += frame.line(values, "s1", tips)
    text = (
        f"Facts of all splits that were true in the {changes.window} steps before and are not any more, asked for from "
        "both sides (who? and whom?): how often the deleted answer is still among the first 10. Below, the worst by "
        "name. DF@10 is the same for the answers to test questions alone."
    )
    heading = 'Believed although over <span class="arrow">↓ lower is better</span>'
    label = "Share of deleted facts among the first 10 after each step"
    return figure("lingering", heading, text, svg(frame.width, frame.height, label, drawing))


def question_tables(changes: Changes, count: int) -> str:
    """A table of ranks for each of the first questions.

    Args:
        changes: The records of a run.
        count: How many questions to show.
    """
    shown = [question for question in changes.questions if question.answers][:count]
    return "".join(_question(question, changes) for question in shown)


def _question(question: Question, changes: Changes) -> str:
    # The last steps, if there are more than a table can hold.
    places = range(max(0, len(changes.steps) - _MOST_STEPS), len(changes.steps))
    labels = tick_labels(changes.labels)
    head = "".join(f'<th scope="col"><span>{escape(labels[changes.steps[i]])}</span></th>' for i in places)
    rows = "".join(_answer(answer, changes, places) for answer in question.answers)
    return (
        f'<figure class="question"><figcaption><h4>{escape(str(question))}</h4></figcaption><div class="scroll">'
        f'<table class="ranks"><thead><tr><th scope="col">rank of … after step …</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></figure>"
    )


def _answer(answer: WatchedAnswer, changes: Changes, places: range) -> str:
    cells = []
    for i in places:
        rank, step = answer.ranks[i], changes.steps[i]
        holds = step in answer.holds
        kind = f"r{sum(limit < rank for limit in _SHADES)}" if rank is not None else "unknown"
        said = "not known yet" if rank is None else f"rank {rank:g}"
        tip = f"{answer.name}, {changes.labels[step]}: {said}, {'true' if holds else 'not true'}"
        mark = " holds" if holds else ""
        cells.append(f'<td class="{kind}{mark}" title="{escape(tip)}">{_show(rank)}</td>')
    note = "" if answer.taught else ' <small title="not among the train facts: to be inferred">held out</small>'
    return f'<tr><th scope="row">{escape(answer.name)}{note}</th>{"".join(cells)}</tr>'


def _show(rank: float | None) -> str:
    if rank is None:
        return ""
    return f"{rank:.0f}" if rank < 1000 else "1k+" if rank < 10_000 else "10k+"


def lingering_tables(changes: Changes) -> str:
    """The deleted facts that are still believed: the last step in full view, the others to unfold."""
    parts: list[str] = []
    for record in reversed(changes.deleted):
        rows = "".join(_lingering(fact, changes.labels) for fact in record.facts)
        table = (
            f'<div class="scroll"><table class="lingering"><thead>{_HEAD}</thead><tbody>{rows}</tbody></table></div>'
        )
        body = table if rows else "<p>None.</p>"
        share = f"{record.found} of {record.asked} questions" if record.asked else "nothing was deleted"
        is_open = " open" if record is changes.deleted[-1] else ""
        parts.append(
            f"<details{is_open}><summary>after {escape(changes.labels[record.time])}: {share}</summary>{body}</details>"
        )
    earlier = f"<details><summary>earlier steps</summary>{''.join(parts[1:])}</details>" if parts[1:] else ""
    return "".join(parts[:1]) + earlier


def _lingering(fact: LingeringFact, labels: list[str]) -> str:
    if fact.side == "head":
        question, answer = f"? · {fact.rel} · {fact.tail}", fact.head
    else:
        question, answer = f"{fact.head} · {fact.rel} · ?", fact.tail
    wrong = fact.now_rank is not None and fact.now_rank > fact.rank
    now = "–" if fact.now is None else fact.now
    now_rank = "" if fact.now_rank is None else f"{fact.now_rank:,.0f}"
    kind = ' class="wrong"' if wrong else ""
    return (
        f"<tr{kind}><td>{escape(question)}</td><td>{escape(answer)}</td><td>{fact.rank:.0f}</td>"
        f"<td>{escape(labels[fact.ended])}</td><td>{escape(now)}</td><td>{now_rank}</td></tr>"
    )
