"""Answers as of a recorded time: the facts and the release that the graph had then."""

from __future__ import annotations

import datetime
import time
from pathlib import Path

import pytest
from small_live import FIRST, make, succession

from tkg_incremental import LiveGraph
from tkg_incremental.cli import main
from tkg_incremental.live import GraphFolderError
from tkg_incremental.live.clock import recorded_instant


def now() -> datetime.datetime:
    time.sleep(0.002)  # recorded time has microseconds
    return datetime.datetime.now(datetime.timezone.utc)


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, datetime.datetime]]:
    """Two successions, back to the first of them, and a retraction."""
    times = {"before": now()}
    graph = make(tmp_path_factory.mktemp("live"))
    times["trained"] = now()
    for number in (1, 2):
        graph.update(**succession(number))
        times[f"leader {number}"] = now()
    graph.rollback(1)
    times["back"] = now()
    graph.update(retracted=[("person 1", "leads", "R&D")])
    times["retracted"] = now()
    graph.close()
    return graph.folder.path, times


def leader(graph: LiveGraph, as_of: object, at: int | None = None) -> str:
    answers = graph.query(None, "leads", "R&D", at=at, as_of=as_of)
    return next(answer.name for answer in answers if answer.known)


def test_as_of_a_time(past: tuple[Path, dict[str, datetime.datetime]]) -> None:
    path, times = past
    with LiveGraph(path) as graph:
        assert leader(graph, times["trained"]) == "leader 0"
        assert leader(graph, times["leader 1"].isoformat()) == "leader 1"
        assert leader(graph, times["leader 2"]) == "leader 2"
        assert leader(graph, times["back"]) == "leader 1"
        assert leader(graph, datetime.date.today() + datetime.timedelta(days=2)) == "leader 1"
        with pytest.raises(ValueError, match=r"before the first release, which was made at 20\d\d-\d\d-\d\dT"):
            leader(graph, times["before"])
        # What was retracted later was believed then.
        assert leader(graph, times["back"], at=85) == "person 1"
        assert graph.check("person 1", "leads", "R&D", at=85, as_of=times["back"]).known == ("80", "99")
        assert graph.check("person 1", "leads", "R&D", at=85).known is None
        points = graph.timeline("leader 0", "leads", "R&D", as_of=times["trained"])
        assert (points[-1].label, points[-1].known) == (str(FIRST), True)


def test_as_of_a_release_scores_as_it_did(past: tuple[Path, dict[str, datetime.datetime]]) -> None:
    path, times = past
    with LiveGraph(path) as graph:
        then = graph.query(None, "leads", "R&D", as_of=2)
        assert [answer.name for answer in then if answer.known] == ["leader 2"]
        same = graph.query(None, "leads", "R&D", as_of=times["leader 2"])
        assert [(a.name, a.score) for a in then] == [(a.name, a.score) for a in same]
        with pytest.raises(GraphFolderError, match="release 99 is unknown to .*, whose last one is 3"):
            graph.query(None, "leads", "R&D", as_of=99)
        # Names that came later are unknown then.
        with pytest.raises(KeyError, match="leader 2"):
            graph.check("leader 2", "leads", "R&D", as_of=times["trained"])
        assert graph.check("leader 2", "leads", "R&D", as_of=2).known is not None


def test_as_of_on_the_command_line(
    past: tuple[Path, dict[str, datetime.datetime]], capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(past[0])
    assert main(["query", path, "?", "leads", "R&D", "--as-of", "0", "--known-only"]) == 0
    assert "leader 0" in capsys.readouterr().out
    assert main(["check", path, "person 1", "leads", "R&D", "--at", "85", "--as-of", "1"]) == 0
    assert "known 80 … 99" in capsys.readouterr().out
    assert main(["timeline", path, "leader 0", "leads", "R&D", "--as-of", "0"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("known")
    assert main(["query", path, "?", "leads", "R&D", "--as-of", "yesterday"]) == 3
    assert "as_of must be a time such as 2026-11-18T08:30" in capsys.readouterr().err


def test_recorded_instants() -> None:
    day = 86_400_000_000
    assert recorded_instant("1970-01-02") == 2 * day - 1
    assert recorded_instant(datetime.date(1970, 1, 2)) == 2 * day - 1
    assert recorded_instant("1970-01-02T00:00:00Z") == recorded_instant("1970-01-02 01:00+01:00") == day
    assert recorded_instant(datetime.datetime(1970, 1, 2)) == day
    with pytest.raises(ValueError, match="as_of must be a time"):
        recorded_instant("18.11.2026")
