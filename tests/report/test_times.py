"""The slider of a live graph's page: a question, a time, and the answers."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from browser import find_browser, open_browser

from tkg_incremental.live import LiveGraph
from tkg_incremental.report.history import write_history
from tkg_incremental.report.times import answers_through_time, choose_questions

sys.path.insert(0, str(Path(__file__).parents[1] / "live"))
from small_live import QUICK, make, succession


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> LiveGraph:
    graph = make(tmp_path_factory.mktemp("times"))
    graph.update(**succession(1))
    return graph


def test_questions_whose_answer_changes(graph: LiveGraph) -> None:
    questions = choose_questions(graph)
    assert (None, "leads", "R&D") in questions
    assert len(set(questions)) == len(questions) <= 20
    for head, rel, tail in questions:
        axis = graph.engine.axis
        found = {
            answer.name
            for label in axis.labels
            for answer in graph.query(head, rel, tail, at=label, k=50, only="known")
        }
        assert len(found) > 1


def test_the_answers_are_those_of_the_graph(graph: LiveGraph) -> None:
    times = answers_through_time(graph)
    assert times is not None
    data = json.loads(times["data"])
    place = times["titles"].index("? · leads · R&D")
    for step in (0, len(times["labels"]) - 1):
        answers = graph.query(None, "leads", "R&D", at=times["labels"][step], k=5)
        assert [row[0] for row in data["answers"][place][step]] == [answer.name for answer in answers]
        assert [row[2:] for row in data["answers"][place][step]] == [[a.period, a.kind] for a in answers]


def test_names_cannot_end_the_script(tmp_path: Path) -> None:
    with make(tmp_path) as graph:
        graph.update(added=[("</script><b>Eve\x1b", "leads", "R&D")], ended=[("leader 0", "leads", "R&D")], force=True)
        page = write_history(graph).read_text()
    assert page.count("</script>") == 3
    assert "\x1b" not in page


@pytest.mark.skipif(find_browser() is None, reason="needs Chromium")
@pytest.mark.parametrize(("width", "calibrated"), [(1280, False), (390, True)])
def test_the_slider_in_a_browser(graph: LiveGraph, width: int, calibrated: bool, tmp_path: Path) -> None:
    """Without probabilities, as in a graph this small, their columns are left out."""
    path = write_history(graph, tmp_path / "history.html")
    text = path.read_text()
    assert '"calibrated": false' in text
    assert "<th>answer</th><th>known</th>" in text
    path.write_text(text.replace('"calibrated": false', f'"calibrated": {str(calibrated).lower()}'))
    address = path.as_uri()
    times = answers_through_time(graph)
    assert times is not None
    place, data = times["titles"].index("? · leads · R&D"), json.loads(times["data"])
    with open_browser(tmp_path / "profile") as page:
        page.look(width)
        page.open(address)
        for step in (0, len(times["labels"]) - 1):
            page.evaluate(
                f"document.getElementById('question').selectedIndex = {place};"
                f"document.getElementById('step').value = {step};"
                "document.getElementById('step').dispatchEvent(new Event('input'))"
            )
            shown = json.loads(
                page.evaluate(
                    "JSON.stringify([...document.querySelectorAll('#answers tbody tr')].map("
                    "row => [...[...row.cells].map(cell => cell.textContent), row.className]))"
                )
            )
            bar = ["", ""] if calibrated else []  # the probability and its bar
            assert shown == [[name, *bar, known, kind] for name, _, known, kind in data["answers"][place][step]]
            assert page.evaluate("document.getElementById('label').textContent") == times["labels"][step]
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.complaints == []
        assert page.requests == [address]


@pytest.mark.skipif(find_browser() is None, reason="needs Chromium")
def test_long_names_do_not_widen_the_page(tmp_path: Path) -> None:
    place = "Department of " + "Very " * 20 + "Long Names"
    rows = [f"leader {i},leads,{place},{2000 + i},{2000 + i}" for i in range(4)]
    (tmp_path / "facts.csv").write_text("\n".join(["head,rel,tail,start,end", *rows]))
    with LiveGraph.create(tmp_path / "graph", tmp_path / "facts.csv", settings=QUICK) as graph:
        graph.train(calibrate=False)
        path = write_history(graph)
    assert f"? · leads · {place}</option>" in path.read_text()
    with open_browser(tmp_path / "profile") as page:
        page.look(390)
        page.open(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_graph_without_changing_answers(tmp_path: Path) -> None:
    (tmp_path / "facts.csv").write_text("head,rel,tail,start,end\nAnn,leads,R&D,2020,\nBo,leads,Sales,2021,\n")
    with LiveGraph.create(tmp_path / "graph", tmp_path / "facts.csv", settings=QUICK) as graph:
        assert answers_through_time(graph) is None  # no release yet
        graph.train()
        assert answers_through_time(graph) is None
        assert not re.search('<select|id="times"', write_history(graph).read_text())
