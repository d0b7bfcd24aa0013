"""The engineer's week: a graph from a CSV, five days of changes, and what goes wrong in between."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from company import DEPARTMENTS, TODAY, Company, Triple, day, write_changes

from tkg_incremental import LiveGraph
from tkg_incremental.cli import main

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(params=["in process", pytest.param("processes", marks=pytest.mark.slow)])
def command(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Runs a command in a folder: exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        if request.param == "processes":
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            start = [sys.executable, "-m", "tkg_incremental", *words]
            done = subprocess.run(start, capture_output=True, text=True, check=False, env=environment)
            return done.returncode, done.stdout, done.stderr
        capsys.readouterr()
        try:
            code = main(list(words))
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        return (code, *capsys.readouterr())

    return run


def ranks(graph: LiveGraph, company: Company, facts: list[Triple], at: int) -> dict[tuple[Triple, str], int]:
    """Rank of both answers of facts among candidates of the right type, other true answers left out, by name."""
    true, found = company.holding(at), {}
    for fact in facts:
        head, rel, tail = fact
        for side, question in (("tail", (head, rel, None)), ("head", (None, rel, tail))):
            answers = graph.query(*question, at=day(at), k=10**6)
            filled = {
                answer.name: (answer.name, rel, tail) if side == "head" else (head, rel, answer.name)
                for answer in answers
            }
            assert {filled[a.name] for a in answers if a.known} == {f for f in true if f in set(filled.values())}
            own = next(a.score for a in answers if filled[a.name] == fact)
            found[fact, side] = 1 + sum(a.score > own for a in answers if filled[a.name] not in true)
    return found


def some_facts(company: Company, at: int) -> list[Triple]:
    """A third of the facts that hold on a day: each of them on one of three days."""
    return sorted(company.holding(at))[at % 3 :: 3]


def share_first(found: dict[tuple[Triple, str], int]) -> float:
    return sum(rank == 1 for rank in found.values()) / len(found)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def ask(command: Command, *words: str) -> dict[str, list[dict[str, Any]]]:
    code, output, errors = command("query", "graph", *words, "--json")
    assert (code, errors) == (0, "")
    return json.loads(output)


def test_week(command: Command) -> None:
    company = Company(people=40)
    company.export(Path("facts.csv"))
    flags = ["--unit", "day", "--epochs", "20", "--hidden-channels", "64", "--json"]
    code, output, errors = command("create", "graph", "--facts", "facts.csv", *flags)
    assert (code, json.loads(output)["state"]) == (0, "released"), errors
    reader = LiveGraph("graph")  # stays open all week
    assert share_first(ranks(reader, company, some_facts(company, TODAY), TODAY)) >= 0.98

    for number in range(1, 6):
        changes = company.changes_of(number)
        name = str(write_changes(Path(f"day {number}.csv"), changes))
        code, output, errors = command("update", "graph", name, "--json")
        report = json.loads(output)
        assert (code, report["state"], report["release"]) == (0, "released", number), (output, errors)
        at = TODAY + number
        assert reader.show(reader.clock.now) == day(at)
        added = [fact for op, fact, _ in changes if op == "add"]
        late = [fact for op, fact, when in changes if op == "add" and when < at]
        assert share_first(ranks(reader, company, added, at)) >= 0.95
        assert share_first(ranks(reader, company, some_facts(company, at), at)) >= 0.98
        for fact in late:
            assert share_first(ranks(reader, company, [fact], at - 29)) == 1
        check_ended(reader, company, [fact for op, fact, _ in changes if op == "end"], at)
        department = DEPARTMENTS[number]
        (answers,) = ask(command, "?", "leads", department).values()
        assert answers[0]["name"] == company.leader(department, at)
        assert answers[0]["known"] == [day(at), None]
        for op, (head, rel, tail), _ in changes:
            if op == "retract":
                assert reader.check(head, rel, tail, at=day(at)).known is None
                assert not any(point.known for point in reader.timeline(head, rel, tail))

    # The same file again changes nothing.
    assert command("update", "graph", "day 5.csv")[:2] == (0, "nothing to do; release 5 answers\n")

    # A bad file: nothing is applied, not even its good lines.
    at = TODAY + 6
    good, known = ("Someone New", "works in", "R&D"), next(iter(company.holding(at)))
    bad = [("add", good, at), ("add", known, at), ("end", ("Nobody", "leads", "R&D"), at), ("frob", known, at)]
    code, output, errors = command("update", "graph", str(write_changes(Path("bad.csv"), bad)), "--json")
    assert (code, [line["line"] for line in json.loads(output)["rejected"]]) == (3, [3, 4, 5])
    code, _, errors = command("query", "graph", "Someone New", "works in", "?")
    assert (code, "no entity is called 'Someone New'" in errors) == (3, True)

    # An update that the gate refuses: the old release answers; the changes are part of the next update.
    edit(Path("graph/graph.toml"), "learned = 0.9", "learned = 1.1")
    last = [("add", good, at), ("end", (company.leader("R&D", at), "leads", "R&D"), at)]
    write_changes(Path("last.csv"), last)
    code, output, errors = command("update", "graph", "last.csv")
    assert (code, "refused by the gate; release 5 still answers" in output) == (4, True)
    assert "expected at least 110%" in errors
    assert reader.query(None, "leads", "R&D")[0].name == company.leader("R&D", at)
    with pytest.raises(KeyError, match="Someone New"):
        reader.query("Someone New", "works in", None)
    edit(Path("graph/graph.toml"), "learned = 1.1", "learned = 0.9")
    code, output, errors = command("update", "graph", "last.csv", "--json")
    assert (code, json.loads(output)["release"]) == (0, 6), (output, errors)
    assert reader.query("Someone New", "works in", None)[0].name == "R&D"
    assert all(answer.known is None for answer in reader.query(None, "leads", "R&D"))

    # Back to Wednesday, and forward again.
    assert command("rollback", "graph", "3")[0] == 0
    assert reader.query(None, "leads", DEPARTMENTS[3])[0].name == company.leader(DEPARTMENTS[3], TODAY + 3)
    assert reader.show(reader.clock.now) == day(TODAY + 3)
    code, output, _ = command("history", "graph", "--json")
    assert (code, json.loads(output)["current"], len(json.loads(output)["releases"])) == (0, 3, 7)
    assert command("rollback", "graph", "99")[0] == 3
    assert command("rollback", "graph", "6")[0] == 0

    # Erasure.
    gone = company.leader(DEPARTMENTS[2], at)
    assert command("erase", "graph", gone)[0] == 2  # without --yes
    reader.close()
    code, _, errors = command("erase", "graph", gone, "--yes")
    assert code == 0, errors
    with LiveGraph("graph") as graph:
        assert gone not in {answer.name for answer in graph.query(None, "works in", "R&D", k=10**6)}
        company.facts = {fact: spans for fact, spans in company.facts.items() if gone not in fact}
        company.begin(good, at)
        company.end((company.leader("R&D", at), "leads", "R&D"), at)
        assert share_first(ranks(graph, company, some_facts(company, at), at)) >= 0.98


def check_ended(graph: LiveGraph, company: Company, ended: list[Triple], at: int) -> None:
    """Ended facts rank below what replaced them."""
    true = company.holding(at)
    for head, rel, tail in ended:
        side = (None, rel, tail) if rel == "leads" else (head, rel, None)
        scores = {answer.name: answer.score for answer in graph.query(*side, at=day(at), k=10**6)}
        replaced = [
            h if rel == "leads" else t for h, r, t in true if r == rel and (t == tail if rel == "leads" else h == head)
        ]
        assert all(scores[name] > scores[head if rel == "leads" else tail] for name in replaced)
