"""Aliases: further names of entities, in questions and in changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_live import FIRST

from tkg_incremental import LiveGraph
from tkg_incremental.cli import main
from tkg_incremental.live import audit_bytes


def test_aliases_in_questions_and_changes(path: Path) -> None:
    with LiveGraph(path) as graph:
        graph.add_aliases({"Research": "R&D", "Boss": "leader 0"})
        expected = graph.query(None, "leads", "R&D")
        assert graph.query(None, "leads", "Research") == graph.query(None, "leads", "research") == expected
        assert graph.check("Boss", "leads", "Research").known == (str(FIRST), None)
        # A change by alias is about the same entity, and makes no new one.
        entities = graph.folder.store.num_entities
        report = graph.update(added=[("Zoë", "leads", "Research")], ended=[("Boss", "leads", "Research")])
        assert (report.state, report.new_entities) == ("released", 1)
        assert graph.folder.store.num_entities == entities + 1
        assert [answer.name for answer in graph.query(None, "leads", "R&D", only="known")] == ["Zoë"]
        assert graph.update(added=[("Zoë", "leads", "Research")]).state == "rejected"  # it holds


def test_aliases_stand_for_names(path: Path) -> None:
    with LiveGraph(path) as graph:
        with pytest.raises(ValueError, match="must stand for names that exist \\(got 'USA' for 'United States'\\)"):
            graph.add_aliases({"USA": "United States"})
        with pytest.raises(ValueError, match="an alias must not be the name of another entity \\(got 'Sales'"):
            graph.add_aliases({"Sales": "R&D"})
        graph.add_aliases({"HQ": "R&D"})
        graph.add_aliases({"HQ": "Legal"})  # another meaning
        assert graph.query(None, "leads", "HQ") == graph.query(None, "leads", "Legal")


def test_erasure_takes_aliases_along(path: Path) -> None:
    with LiveGraph(path) as graph:
        graph.add_aliases({"Quirinius": "leader 0"})
        assert audit_bytes(graph.folder.path, "Quirinius")
        assert graph.erase("Quirinius") == []
        assert audit_bytes(graph.folder.path, "Quirinius") == audit_bytes(graph.folder.path, "leader 0") == []
        with pytest.raises(KeyError, match="no entity is called 'Quirinius'"):
            graph.query("Quirinius", "leads", None)


def test_file_of_aliases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "facts.csv").write_text("head,rel,tail,start,end\nAnn,leads,R&D,1,\n")
    aliases = tmp_path / "aliases.csv"
    create = ["create", str(tmp_path / "other"), "--facts", str(tmp_path / "facts.csv"), "--no-train"]
    aliases.write_text("alias,name\nResearch,R&D\n", encoding="utf-8")
    assert main([*create, "--aliases", str(aliases)]) == 0
    with LiveGraph(tmp_path / "other") as graph:
        assert graph.folder.store.entities.find("Research") == graph.folder.store.entities.find("R&D")
    for number, (content, said) in enumerate(
        [
            (b"alias,name\nResearch;R&D\n", "line 2: expected the columns alias and name (got ['Research;R&D'])"),
            (b"K\xfc,Ann\n", "line 1: expected UTF-8 text"),
            (b"Boss,Bo\n", "aliases must stand for names that exist (got 'Boss' for 'Bo')"),
        ]
    ):
        aliases.write_bytes(content)
        create[1] = str(tmp_path / f"other {number}")
        capsys.readouterr()
        assert main([*create, "--aliases", str(aliases)]) == 3
        assert said in capsys.readouterr().err
        assert not (tmp_path / f"other {number}").exists()  # the next try may use the same name
