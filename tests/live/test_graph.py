"""What an update does to a live graph, case by case."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from small_live import FIRST, QUICK, succession

from tkg_incremental import LiveGraph
from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.live import GraphFolderError
from tkg_incremental.live.graph_toml import read_settings, write_settings
from tkg_incremental.live.live_settings import LiveSettings
from tkg_incremental.live.release_model import load_model


def edit(path: Path, table: str, **values: float) -> None:
    tables = read_settings(path / "graph.toml")
    tables[table] |= values
    write_settings(path / "graph.toml", tables)


def test_without_changes_the_clock_moves_and_nothing_else(path: Path) -> None:
    with LiveGraph(path) as graph:
        facts = graph.folder.store.num_facts
        before = {name: table.clone() for name, table in graph.model.tables().items()}
        assert graph.update().state == "released"
        assert (graph.clock.now, graph.folder.store.num_facts) == (FIRST + 1, facts)
        after = graph.model.tables()
        for name, table in before.items():
            assert after[name][: len(table)].equal(table)
        assert graph.update(at=FIRST + 5).release == 2
        assert (graph.clock.now, graph.model.sizes["time"]) == (FIRST + 5, graph.clock.num_steps)
        assert graph.query(None, "leads", "R&D")[0].name == "leader 0"
        assert graph.update([]).state == "released"  # an empty file is no change, each day
        assert graph.clock.now == FIRST + 6


def test_dates_default_to_the_next_step(path: Path) -> None:
    with LiveGraph(path) as graph:
        graph.update(added=[("Zoë", "works in", "R&D")])
        assert graph.check("Zoë", "works in", "R&D").known == (str(FIRST + 1), None)
        graph.update([("add", "Yan", "works in", "R&D")], at=FIRST + 4)
        assert graph.check("Yan", "works in", "R&D").known == (str(FIRST + 4), None)
        assert graph.clock.now == FIRST + 4


def test_the_same_changes_twice(path: Path, tmp_path: Path) -> None:
    dated = tmp_path / "dated.csv"
    dated.write_text(f"op,head,rel,tail,at\nadd,Zoë,works in,R&D,{FIRST + 1}\n")
    undated = tmp_path / "undated.csv"
    undated.write_text("op,head,rel,tail\nadd,Yan,works in,R&D\n")
    with LiveGraph(path) as graph:
        for file in (dated, undated):
            release = graph.update(file).release
            again = graph.update(file)
            assert (again.state, again.release) == ("unchanged", release)
        # Without dates, the same lines are another change once they fit again.
        graph.update(ended=[("Yan", "works in", "R&D")])
        assert graph.update(undated).state == "released"
        assert len(graph.folder.store.intervals(*_ids(graph, "Yan", "works in", "R&D"))) == 2
        # With dates they are not: an old file must not bring a retracted fact back.
        graph.update(retracted=[("Zoë", "works in", "R&D")])
        assert graph.update(dated).state == "unchanged"


def _ids(graph: LiveGraph, head: str, rel: str, tail: str) -> tuple[int, int, int]:
    store = graph.folder.store
    ids = store.entities.find(head), store.relations.find(rel), store.entities.find(tail)
    assert None not in ids
    return ids  # type: ignore[return-value]


def test_refused_changes_are_part_of_the_next_update(path: Path) -> None:
    edit(path, "gate", learned=1.1)
    with LiveGraph(path) as graph:
        report = graph.update(**succession(1))
        assert (report.state, report.exit_code, report.release, graph.current) == ("refused", 4, 0, 0)
        assert graph.query(None, "leads", "R&D")[0].name == "leader 0"
        assert (path / "releases" / "rejected" / "manifest.json").is_file()
        with pytest.raises(KeyError, match="leader 1"):
            graph.query("leader 1", "leads", None)
        assert graph.update(**succession(1)).state == "refused"  # again, not rejected
        assert graph.update(**succession(2)).state == "refused"  # on top of what is pending
        assert len(graph.folder.store.updates("pending")) == 2
        report = graph.update(force=True)
        assert (report.state, report.release, graph.clock.now) == ("released", 1, FIRST + 2)
        assert report.gate is not None
        assert not report.gate.passed
        assert graph.query(None, "leads", "R&D")[0].name == "leader 2"
        assert graph.query(None, "leads", "R&D", at=FIRST + 1)[0].name == "leader 1"
        assert not graph.folder.store.updates("pending")


def test_pending_changes_are_mentioned(path: Path) -> None:
    edit(path, "gate", learned=1.1)
    with LiveGraph(path) as graph:
        assert graph.update(**succession(1)).state == "refused"
        for report in (graph.update(dry_run=True), graph.update()):
            assert report.notes == ("pending changes of earlier updates, which are part of this one: 2",)
        assert graph.update(**succession(1)).notes == ("new entities: leader 1",)  # the same ones, and no earlier ones


def test_new_relations_are_mentioned(path: Path) -> None:
    added = [("person 1", f"typing error {number}", "R&D") for number in range(7)]
    with LiveGraph(path) as graph:
        (note,) = graph.update(added=added, dry_run=True).notes
        assert note.startswith("new relations: typing error 0, typing error 1, ")
        assert note.endswith("typing error 4, …")
        assert not graph.update(added=[("person 1", "leads", "Sales")], dry_run=True).notes


def test_dates_that_may_be_typing_errors_are_mentioned(path: Path) -> None:
    early = ("person 1", "leads", "Legal", 79), ("person 2", "leads", "Legal", 80)
    late = ("person 3", "leads", "R&D", FIRST + 9), ("person 3", "leads", "Sales", FIRST + 1)
    with LiveGraph(path) as graph:
        notes = graph.update(added=[*early, *late], at=FIRST + 1, dry_run=True).notes
        assert notes == (
            "changes dated before the first step, 80, which count from it: 1",
            f"changes dated after {FIRST + 1}, which move the last step to {FIRST + 9}: 1",
        )
        assert not graph.update(added=late, dry_run=True).notes  # they say themselves what the last step is


def test_data_frames_are_applied_as_files(path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    columns = ["op", "head", "rel", "tail", "at"]
    changes = pandas.DataFrame([("add", "Zoë", "works in", "R&D", FIRST + 1)], columns=columns)
    with LiveGraph(path) as graph:
        assert graph.update(changes).state == "released"
        assert graph.check("Zoë", "works in", "R&D").known == (str(FIRST + 1), None)
        assert graph.update(changes).state == "unchanged"
        assert graph.update([("add", "Yan", "works in", "R&D", FIRST + 2)]).state == "released"
        rows = [("Zoë", "works in", "Sales", FIRST + 3)]
        export = pandas.DataFrame(rows, columns=["head", "rel", "tail", "start"])
        assert graph.update(full=export, at=FIRST + 3, force=True).state == "released"
        assert graph.query("Zoë", "works in", None)[0].known == (str(FIRST + 3), None)
        assert [update.source for update in graph.folder.store.updates()] == ["<DataFrame>", "", "<DataFrame>"]


def test_rollback_discards_what_is_pending(path: Path) -> None:
    edit(path, "gate", learned=1.1)
    with LiveGraph(path) as graph:
        assert graph.update(**succession(1)).state == "refused"
        graph.rollback(0)
        assert not graph.folder.store.updates("pending")
        assert graph.update(**succession(1), force=True).state == "released"


def test_rollback_then_update(path: Path) -> None:
    with LiveGraph(path) as graph:
        graph.update(**succession(1))
        graph.update(**succession(2))
        graph.rollback(1)
        assert (graph.clock.now, graph.query(None, "leads", "R&D")[0].name) == (FIRST + 1, "leader 1")
        with pytest.raises(KeyError, match="leader 2"):
            graph.check("leader 2", "leads", "R&D")
        report = graph.update(
            added=[("Zoë", "leads", "R&D", FIRST + 2)], ended=[("leader 1", "leads", "R&D", FIRST + 2)]
        )
        assert (report.state, report.release) == ("released", 3)
        assert graph.query(None, "leads", "R&D")[0].name == "Zoë"
        with pytest.raises(ValueError, match="release must be one of 0, 1, 2, 3"):
            graph.rollback(4)
        graph.rollback(2)
        assert graph.query(None, "leads", "R&D")[0].name == "leader 2"
        graph.rollback(0)
        assert graph.update(**succession(1)).state == "released"  # undone, so it can be applied again


def test_retraction_of_the_only_fact_of_an_entity(path: Path) -> None:
    with LiveGraph(path) as graph:
        graph.update(added=[("Zoë", "works in", "R&D")])
        assert graph.update(retracted=[("Zoë", "works in", "R&D")]).retracted == 1
        assert graph.check("Zoë", "works in", "R&D").known is None
        assert "Zoë" not in {answer.name for answer in graph.query(None, "works in", "R&D", k=100)}
        assert graph.query("Zoë", "works in", None)  # it may still be asked about
        assert not any(point.known for point in graph.timeline("Zoë", "works in", "R&D"))


def test_new_relation_and_late_fact(path: Path) -> None:
    with LiveGraph(path) as graph:
        graph.update(added=[("person 1", "mentors", "person 2"), ("person 4", "leads", "Support", 95)])
        assert graph.query(None, "mentors", "person 2")[0].known == (str(FIRST + 1), None)
        assert graph.check("person 4", "leads", "Support", at=96).known == ("95", None)
        assert graph.check("person 4", "leads", "Support", at=94).known is None
        assert graph.query("person 4", "leads", None, at=97)[0].name == "Support"


def test_known_ends_are_learnt_when_they_come(path: Path) -> None:
    with LiveGraph(path) as graph:
        assert graph.update([("add", "Zoë", "leads", "Support", FIRST + 1, FIRST + 2)]).state == "released"
        assert graph.query(None, "leads", "Support")[0].known == (str(FIRST + 1), None)
        report = graph.update(at=FIRST + 3)
        assert report.gate is not None
        assert report.gate.outranked == report.gate.outranked  # something was measured
        assert graph.check("Zoë", "leads", "Support").known is None


def test_dry_run_and_rejected_lines(path: Path) -> None:
    with LiveGraph(path) as graph:
        good, bad = ("add", "Zoë", "works in", "R&D"), ("end", "Nobody", "leads", "R&D")
        report = graph.update([good], dry_run=True)
        assert (report.state, report.added, report.exit_code) == ("valid", 1, 0)
        assert (report.new_entities, report.notes) == (1, ("new entities: Zoë",))
        report = graph.update([good, bad])
        assert (report.state, report.exit_code, [r.line for r in report.rejected]) == ("rejected", 3, [2])
        assert not graph.folder.store.updates()
        report = graph.update([good, bad], skip_rejected=True)
        assert (report.state, report.added, len(report.rejected)) == ("released", 1, 1)


def test_facts_that_are_none(path: Path) -> None:
    """A fact instead of a list of facts is a sequence of strings, some with three letters."""
    with LiveGraph(path) as graph:
        for wrong in (("Ann", "ran", "R&D"), [("Ann", "leads")], [("Ann", "leads", "R&D", FIRST, FIRST + 1)]):
            with pytest.raises(ValueError, match=r"added must be a list of \(head, rel, tail\) or \(…, at\)"):
                graph.update(added=wrong)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"query\(\) leaves one out"):
            graph.check("person 1", "leads", None)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"query\(\) leaves one out"):
            graph.timeline("person 1", None, "R&D")  # type: ignore[arg-type]


def test_new_entities_are_those_of_the_changes_after_a_rollback(path: Path) -> None:
    """The names of what was undone keep their ids."""
    with LiveGraph(path) as graph:
        graph.update(added=[("Zoë", "works in", "R&D"), ("Ada", "works in", "R&D")])
        graph.rollback(0)
        report = graph.update(added=[("Zoë", "works in", "Sales")], dry_run=True)
        assert (report.new_entities, report.notes) == (1, ("new entities: Zoë",))
        report = graph.update(added=[("Zoë", "works in", "Sales")])
        assert (report.new_entities, report.notes) == (1, ("new entities: Zoë",))


def test_updates_without_changes(path: Path, tmp_path: Path) -> None:
    (tmp_path / "changes.csv").write_text("op,head,rel,tail,at\n")
    with LiveGraph(path) as graph:
        report = graph.update(tmp_path / "changes.csv", at=FIRST + 1)
        assert (report.state, report.notes) == ("released", (f"no changes: only the last step moved, to {FIRST + 1}",))
        report = graph.update(at=FIRST - 1)
        assert (report.state, report.release) == ("unchanged", 1)
        assert report.notes == (f"no changes, and the last step is {FIRST + 1} already",)


def test_dates_of_a_wrong_century(path: Path) -> None:
    with LiveGraph(path) as graph:
        report = graph.update([("add", "Zoë", "works in", "R&D", FIRST + 5000)])
        assert (report.state, "far after the last step" in report.rejected[0].reason) == ("rejected", True)
        with pytest.raises(ValueError, match="at must be in 80 …"):
            graph.update(at=FIRST + 5000)


def test_full_export(path: Path, tmp_path: Path) -> None:
    rows = ["head,rel,tail,start,end\n", "person 1,leads,R&D,80,99\n", f"Zoë,leads,R&D,{FIRST + 1},\n"]
    rows += [f"person {i},works in,{('R&D', 'Sales', 'Legal')[i % 3]},{80 + i},\n" for i in range(10)]
    rows += ["person 2,leads,Sales,90,\n", "person 3,leads,Legal,90,\n"]
    (tmp_path / "full.csv").write_text("".join(rows))
    with LiveGraph(path) as graph:
        report = graph.update(full=tmp_path / "full.csv")
        assert (report.state, report.added, report.ended, report.retracted) == ("released", 1, 1, 0)
        assert graph.check("leader 0", "leads", "R&D", at=FIRST).known == (str(FIRST), str(FIRST))
        report = graph.update(full=tmp_path / "full.csv")
        assert (report.state, report.added, report.ended) == ("released", 0, 0)  # the clock moves
        with pytest.raises(ValueError, match="only one of"):
            graph.update([], full=tmp_path / "full.csv")


def test_the_first_file_as_a_full_export_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Although it has intervals that overlap and touch, and a fact without a start, which an export of later facts has,
    too."""
    rows = ["a,r,b,1,5", "a,r,b,4,", "a,r,c,1,3", "a,r,c,4,6", "b,r,c,3,9", "b,r,c,4,5", "c,r,a,,"]
    names = "head,rel,tail,start,end\n"
    (tmp_path / "facts.csv").write_text(names + "\n".join(rows))
    (tmp_path / "later.csv").write_text(names + "\n".join(["a,r,b,4,", "a,r,b,1,5", "b,r,c,3,9", rows[-1], "d,r,a,9,"]))
    with LiveGraph.create(tmp_path / "graph", tmp_path / "facts.csv", "index", settings=QUICK) as graph:
        assert "3 of 7 facts overlap or continue others" in caplog.text
        graph.train(calibrate=False)
        report = graph.update(full=tmp_path / "facts.csv", dry_run=True)
        assert (report.state, report.added, report.ended, report.retracted) == ("valid", 0, 0, 0)
        report = graph.update(full=tmp_path / "later.csv", dry_run=True)
        assert (report.state, report.added, report.ended, report.retracted) == ("valid", 1, 0, 0)


def test_a_full_export_with_facts_before_the_first_step(tmp_path: Path) -> None:
    names = "head,rel,tail,start,end\n"
    (tmp_path / "facts.csv").write_text(names + "a,r,b,5,8\nc,r,b,6,\n")
    (tmp_path / "more.csv").write_text(names + "a,r,b,5,8\nc,r,b,6,\nd,r,b,,3\ne,r,b,1,2\n")
    with LiveGraph.create(tmp_path / "graph", tmp_path / "facts.csv", "index", settings=QUICK) as graph:
        graph.train(calibrate=False)
        report = graph.update(full=tmp_path / "more.csv", force=True)
        assert (report.state, report.added, report.rejected) == ("released", 2, ())
        report = graph.update(full=tmp_path / "more.csv", dry_run=True)
        assert (report.state, report.added, report.ended, report.retracted) == ("valid", 0, 0, 0)


def test_training_again_includes_what_is_pending(path: Path) -> None:
    edit(path, "gate", learned=1.1)
    with LiveGraph(path) as graph:
        assert graph.update(**succession(1)).state == "refused"
        assert graph.train(calibrate=False).release == 1
        assert not graph.folder.store.updates("pending")
        assert graph.query(None, "leads", "R&D")[0].name == "leader 1"
        assert graph.model.sizes["entity"] == graph.folder.store.num_entities


def test_erasure_leaves_pending_changes_pending(path: Path) -> None:
    edit(path, "gate", learned=1.1)
    with LiveGraph(path) as graph:
        assert graph.update(**succession(1)).state == "refused"
        assert graph.erase("person 9") == []
        assert len(graph.folder.store.updates("pending")) == 1
        with pytest.raises(KeyError, match="person 9"):
            graph.erase("person 9")
        assert graph.update(force=True).state == "released"
        assert graph.query(None, "leads", "R&D")[0].name == "leader 1"


def test_erasure_of_a_fact(path: Path) -> None:
    with LiveGraph(path) as graph:
        assert graph.erase("person 1", "leads", "R&D") == []  # its names stay, with other facts
        assert graph.check("person 1", "leads", "R&D", at=90).known is None
        assert graph.check("person 1", "works in", "Sales").known is not None
        with pytest.raises(ValueError, match="one name or head, relation and tail"):
            graph.erase("person 1", "leads")


def test_a_graph_without_a_release(tmp_path: Path) -> None:
    (tmp_path / "facts.csv").write_text("head,rel,tail,start\na,r,b,1\nb,r,c,2\n")
    with LiveGraph.create(tmp_path / "graph", tmp_path / "facts.csv", settings=QUICK) as graph:
        with pytest.raises(GraphFolderError, match="has no release yet"):
            graph.query(None, "r", "b")
        with pytest.raises(GraphFolderError, match="has no release yet"):
            graph.update(added=[("x", "r", "y")])
        assert not graph.folder.store.updates()  # nothing was recorded that train() would not learn


def test_settings_that_do_not_fit(path: Path, tmp_path: Path) -> None:
    edit(path, "model", hidden_channels=8)
    with LiveGraph(path) as graph, pytest.raises(GraphFolderError, match="does not fit release 0"):
        graph.query(None, "leads", "R&D")
    with pytest.raises(ValueError, match="model must be one of"):
        replace(LiveSettings(), name="nothing").check()


def test_a_closed_graph(path: Path) -> None:
    graph = LiveGraph(path, write=True)
    graph.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        graph.query(None, "leads", "R&D")
    with LiveGraph(path, write=True):  # the lock was given up
        pass


def test_a_fact_that_ends_and_begins_again_at_one_instant(path: Path) -> None:
    with LiveGraph(path) as graph:
        again = ("leader 0", "leads", "R&D", 101)
        assert graph.update(added=[again], ended=[again]).state == "released"
        assert [fact[4:] for fact in graph.folder.store.intervals(*_ids(graph, *again[:3]))] == [
            (100, 101),
            (101, None),
        ]


def test_a_graph_that_cannot_be_created_leaves_no_folder(tmp_path: Path) -> None:
    facts = tmp_path / "facts.csv"
    facts.write_text("head,rel,tail,start,end\nAnn,leads,R&D,1,\n")
    with pytest.raises(ValueError, match="aliases must stand for names that exist"):
        LiveGraph.create(tmp_path / "graph", facts, "index", aliases={"A": "Bob"})
    assert not (tmp_path / "graph").exists()
    LiveGraph.create(tmp_path / "graph", facts, "index", aliases={"A": "Ann"}).close()


def test_questions_after_the_last_update(path: Path) -> None:
    with LiveGraph(path) as graph:
        with pytest.warns(UserWarning, match="answered as of 100"):
            assert graph.query(None, "leads", "R&D", at=FIRST + 7)[0].name == "leader 0"
        with pytest.raises(ValueError, match="must not be before"):
            graph.query(None, "leads", "R&D", at=3)
        known = graph.query(None, "works in", "R&D", k=2, only="known")
        predicted = graph.query(None, "works in", "R&D", k=100, only="predicted")
        assert all(a.known for a in known)
        assert len(known) == 2
        assert {a.name for a in predicted} == {f"person {i}" for i in range(10) if i % 3}
        assert len(graph.query(None, "works in", "R&D", k=3, only="predicted")) == 3


def test_answers_that_are_over_are_no_predictions(path: Path) -> None:
    with LiveGraph(path) as graph:
        graph.update(**succession(1))
        answers = graph.query(None, "leads", "R&D")
        assert [answer.name for answer in answers if answer.kind == "known"] == ["leader 1"]
        over = {answer.name: answer.period for answer in answers if answer.kind == "over"}
        assert over == {"leader 0": "ended 101", "person 1": "ended 100"}
        assert [answer.kind for answer in answers] == ["known", "predicted", "predicted", "over", "over"]
        assert {answer.name for answer in graph.query(None, "leads", "R&D", only="predicted")} == {
            "person 2",
            "person 3",
        }
        assert graph.check("leader 0", "leads", "R&D").ended == "101"
        assert graph.check("leader 1", "leads", "R&D", at=100).begins == "101"


def test_a_graph_with_more_facts_than_an_update_visits(path: Path) -> None:
    """Only the entities of changes move, in updates and after an erasure."""
    edit(path, "learning", replay=2)
    with LiveGraph(path) as graph:
        before = load_model(graph).tables()["entity_vectors"]
        graph.update(**succession(1))
        after = load_model(graph).tables()["entity_vectors"]
        moved = (after[: len(before)] != before).any(1).nonzero().flatten().tolist()
        assert graph.folder.store.entities.of(moved) == ["R&D", "leader 0"]
        assert graph.erase("leader 0") == []
        erased = load_model(graph).tables()["entity_vectors"]
        moved = (erased != after).any(1).nonzero().flatten().tolist()
        assert set(graph.folder.store.entities.of(moved)) == {"R&D", None}


def test_planned_ends(tmp_path: Path) -> None:
    facts = tmp_path / "facts.csv"
    rows = "Ann,leads,R&D,5.1.2026,\nACME,supplies,Oslo,5.1.2026,31.12.2027\nBolt,supplies,Rome,6.1.2026,8.1.2026\n"
    facts.write_text("head,rel,tail,start,end\n" + rows)
    read = ReadOptions(dayfirst=True)
    for wrong in ("5.1.2026", "1.1.2126"):
        with pytest.raises(ValueError, match="at must be in 2026-01-06, the last beginning of a fact, … 2028-10-02"):
            LiveGraph.create(tmp_path / "graph", facts, "day", read, QUICK, at=wrong)
    assert not (tmp_path / "graph").exists()
    with LiveGraph.create(tmp_path / "graph", facts, "day", read, QUICK, at="07.01.2026") as graph:
        graph.train()
        assert graph.show(graph.clock.now) == "2026-01-07"
        assert graph.query(None, "supplies", "Rome", k=1)[0].known == ("2026-01-06", None)
        graph.update(at="08.01.2026", force=True)
        assert graph.query(None, "supplies", "Rome", k=1)[0].known == ("2026-01-06", "2026-01-08")
        graph.update(added=[("Ann", "leads", "Sales", "9.1.2026")], force=True)
        assert graph.check("Ann", "leads", "Sales").known == ("2026-01-09", None)
        assert graph.check("Bolt", "supplies", "Rome").ended == "2026-01-09"
        assert graph.check("ACME", "supplies", "Oslo").known == ("2026-01-05", None)


def test_a_folder_that_is_not_free_is_refused_before_the_facts_are_read(path: Path) -> None:
    with pytest.raises(GraphFolderError, match="must be empty or missing; it is a live graph"):
        LiveGraph.create(path, "missing.csv")
