import copy
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tkg_incremental.report import Changes, render_report, write_report
from tkg_incremental.report.metric_descriptions import DESCRIPTIONS
from tkg_incremental.training import Result

VOID = {"meta", "link", "br"}


class Outline(HTMLParser):
    """Checks that every element is closed in order, and keeps ids, text and where the page would fetch from."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.fetched: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self._open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href"):
                self.fetched.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_with_every_figure_that_needs_nothing_else(run: Any) -> None:
    path = write_report(run.folder)
    assert path == run.folder / "report.html"
    page = path.read_text(encoding="utf-8")
    outline = Outline(page)
    assert len(set(outline.ids)) == len(outline.ids)
    names = {"metric-c-10", "metric-a-10", "metric-df-10", "metric-rrd", "alpha", "facts", "data-size", "time"}
    names |= {"handovers", "deleted", "loss-ce", "loss-del", "loss-rce", "loss-rkd", "loss-val-c-10"}
    assert names <= set(outline.ids)
    assert outline.fetched == ["data:,"]
    assert outline.tags.count("script") == 1  # the values of charts on touch
    assert not re.search(r"url\(|@import", page)
    for name in ("C@10", "A@10", "DF@10", "RRD"):
        assert DESCRIPTIONS[name].text.format(window=10) in outline.text
        assert f"mean {run.trainer.result.summary[name]:.1f}".replace("-", "−") in outline.text


def test_the_page_needs_three_files_only(run: Any, tmp_path: Path) -> None:
    for name in ("metrics.json", "changes.json", "config.json"):
        (tmp_path / name).write_bytes((run.folder / name).read_bytes())
    target = write_report(tmp_path, tmp_path / "sub" / "page.html")
    assert target.read_text() == write_report(run.folder).read_text()


def test_every_recorded_answer_and_deleted_fact_is_named(run: Any) -> None:
    changes = run.recorder.changes
    text = Outline(render_report(run.trainer.result, changes)).text
    for question in changes.questions[:8]:
        assert str(question) in text
    for record in changes.deleted:
        assert f"after {changes.labels[record.time]}: {record.found} of {record.asked} questions" in text


def test_names_are_text_and_not_markup(run: Any) -> None:
    changes: Changes = copy.deepcopy(run.recorder.changes)
    evil = '<script>alert("1")</script> & co'
    changes.questions[0].rel = changes.questions[0].answers[0].name = evil
    changes.deleted[-1].facts[0].head = changes.deleted[-1].facts[0].tail = evil
    outline = Outline(render_report(run.trainer.result, changes))
    assert outline.tags.count("script") == 1
    assert outline.text.count(evil) >= 3


def test_control_characters_of_names_are_escaped(run: Any) -> None:
    changes: Changes = copy.deepcopy(run.recorder.changes)
    changes.questions[0].answers[0].name = changes.deleted[-1].facts[0].head = "\x1b[31m\u202ered\x00"
    text = render_report(run.trainer.result, changes, {"command": "train\x1b"}, "facts\u202e.tsv")
    assert not {"\x1b", "\u202e", "\x00"} & set(text)
    assert text.count("\\x1b[31m\\u202ered\\x00") >= 2


def test_settings_version_date_and_command(run: Any) -> None:
    settings = {"version": "1.2", "begun": "2024-05-01", "command": "tkg-incremental train", "batch_size": 7}
    text = Outline(render_report(run.trainer.result, None, settings, "my.csv")).text
    for part in ("on my.csv", "tkg_incremental 1.2, begun 2024-05-01", "tkg-incremental train", "batch size"):
        assert part in text


def test_alpha_of_sampled_steps(run: Any) -> None:
    result = copy.deepcopy(run.trainer.result)
    result.alpha = {
        time: {j: v for j, v in row.items() if j % 4 == 0 or j == time} for time, row in result.alpha.items()
    }
    cells = sum(len(row) for row in result.alpha.values())
    assert render_report(result).count("model after") - 1 >= cells


def test_a_run_without_a_recorder_has_the_rest(run: Any) -> None:
    outline = Outline(render_report(run.trainer.result))
    assert {"metric-c-10", "alpha", "time"} <= set(outline.ids)
    assert not {"facts", "handovers"} & set(outline.ids)


def test_an_unfinished_run_and_one_that_has_hardly_begun(run: Any) -> None:
    state = run.trainer.result.to_dict()
    one = {**state, "steps": state["steps"][:1], "alpha": dict(list(state["alpha"].items())[:1]), "history": []}
    changes = copy.deepcopy(run.recorder.changes)
    changes.forget_from(9)
    assert "1 of 4 of the 12 steps" in Outline(render_report(Result.from_dict(one), changes)).text
    none = {**state, "steps": [], "alpha": {}, "history": []}
    changes.forget_from(0)
    assert "No step has been learnt yet" in Outline(render_report(Result.from_dict(none), changes)).text


def test_metrics_that_are_not_there_are_left_out(run: Any) -> None:
    state = copy.deepcopy(run.trainer.result.to_dict())
    for step in state["steps"]:
        for name in ("DF@10", "RRD"):
            step[name] = None
    page = render_report(Result.from_dict(state))
    assert 'id="metric-c-10"' in page
    assert 'id="metric-rrd"' not in page


def test_a_run_of_two_steps_without_validation(run: Any) -> None:
    """Every chart that there is has values, and shares end at 100%."""
    result = Result("Data", "DE", "FT", seed=3, num_steps=3)
    for step in (1, 2):
        result.add(step, f"200{step}", {"C@10": 100.0, "A@10": 100.0}, {1: 100.0, step: 100.0}, data_size=5, epochs=1)
        result.history += [{"time": step, "CE": 0.5, "val C@10": value} for value in (None, float("nan"))]
    page = render_report(result)
    assert '<span class="key scale">90%' in page
    assert "</i> 100%</span>" in page
    assert "110%" not in page
    assert 'id="loss-ce"' in page
    assert "loss-val" not in page
    for figure in page.split("<figure ")[1:]:
        assert "<title>" in figure, figure[:80]


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="run_dir must hold the metrics.json"):
        write_report(tmp_path)


def test_records_of_another_format_are_refused(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "changes.json"
    state = json.loads((run.folder / "changes.json").read_text())
    path.write_text(json.dumps({**state, "format": 99}))
    with pytest.raises(ValueError, match="format of .* must be 2 .got 99"):
        Changes.load(path)


def test_the_page_needs_no_matplotlib(run: Any) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from tkg_incremental.report import plot_alpha, write_report\n"
        "from tkg_incremental.training import Result\n"
        f"folder = {str(run.folder)!r}\n"
        "write_report(folder)\n"
        "try: plot_alpha(Result.load(folder + '/metrics.json'))\n"
        "except ImportError as error: assert \"pip install 'tkg-incremental[report]'\" in str(error)\n"
        "else: raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_page_says_that_ended_facts_were_excluded() -> None:
    result = Result("Data", "DE", "FT", seed=3, num_steps=4)
    result.add(2, "two", {"C@10": 10.0, "A@10": 20.0}, {2: 10.0}, data_size=5, epochs=1)
    assert "excluded from ranks" not in render_report(result)
    result.exclude_ended = True
    assert "Means over the 1 incremental steps, ended facts excluded from ranks:" in render_report(result)
