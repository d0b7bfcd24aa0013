import pickle
from statistics import median
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from tkg_incremental.report import (
    plot_alpha,
    plot_cost,
    plot_facts,
    plot_handovers,
    plot_losses,
    plot_metrics,
)
from tkg_incremental.report.change_figures import ranks_around


def test_metrics_of_two_runs_are_overlaid(run: Any) -> None:
    result = run.trainer.result
    figure = plot_metrics(result, result, names=("C@10", "RRD"))
    axes = figure.axes
    assert [axis.get_title() for axis in axes] == [
        "C@10: current facts (↑ higher is better)",
        "RRD: reciprocal rank difference (↑ higher is better)",
    ]
    assert [len(axis.lines) for axis in axes] == [2, 2]
    np.testing.assert_allclose(axes[0].lines[0].get_ydata(), [step["C@10"] for step in result.steps])


def test_alpha(run: Any) -> None:
    result = run.trainer.result
    image = plot_alpha(result).axes[0].images[0]
    drawn = image.get_array().filled(np.nan)
    for row, time in zip(drawn, sorted(result.alpha), strict=True):
        expected = np.full(result.num_steps, np.nan)
        for step, value in result.alpha[time].items():
            expected[step] = value
        np.testing.assert_allclose(row, expected)


def test_facts(run: Any) -> None:
    changes = run.recorder.changes
    common, added, deleted = plot_facts(changes).axes[0].containers
    assert [bar.get_height() for bar in common] == [counts.common for counts in changes.facts]
    assert [bar.get_y() + bar.get_height() for bar in added] == [counts.total for counts in changes.facts]
    assert [-bar.get_height() for bar in deleted] == [counts.deleted for counts in changes.facts]


def test_losses(run: Any) -> None:
    result = run.trainer.result
    axes = plot_losses(result).axes
    assert [axis.get_title() for axis in axes if axis.lines] == ["CE", "del", "RCE", "RKD", "TR", "val C@10"]
    drawn = np.concatenate([line.get_ydata() for line in axes[0].lines])
    np.testing.assert_allclose(drawn, [record["CE"] for record in result.history])


def test_cost(run: Any) -> None:
    size, time = plot_cost(run.trainer.result).axes
    assert [bar.get_height() for bar in size.patches] == [step["data_size"] for step in run.trainer.result.steps]
    seconds = [step["epoch_seconds"] * step["epochs"] for step in run.trainer.result.steps]
    np.testing.assert_allclose([bar.get_height() for bar in time.patches], seconds)


def test_handovers(run: Any) -> None:
    changes = run.recorder.changes
    old, new = plot_handovers(changes).axes[0].lines[:2]
    around = ranks_around(changes)
    assert list(old.get_xdata()) == sorted(around)
    np.testing.assert_allclose(new.get_ydata(), [median(around[offset][1]) for offset in sorted(around)])
    asked = changes.questions[0]
    assert len(plot_handovers(changes, question=0).axes[0].lines) == 2 * len(asked.answers)


def test_ranks_around_a_handover_stop_where_another_begins(run: Any) -> None:
    changes = run.recorder.changes
    expected: dict[int, int] = {}
    for question in changes.questions:
        for handover in question.handovers:
            for offset in range(-6, 7):
                step = handover.time + offset
                old, new = question.answers[handover.old], question.answers[handover.new]
                if step in changes.steps and step in (old.holds if offset < 0 else new.holds):
                    place = changes.steps.index(step)
                    known = old.ranks[place] is not None and new.ranks[place] is not None
                    expected[offset] = expected.get(offset, 0) + known
    assert {offset: len(old) for offset, (old, _) in ranks_around(changes).items()} == expected
    assert expected[0] > 3


def test_notebooks_show_figures(run: Any) -> None:
    figure = plot_metrics(run.trainer.result)
    for each in (figure, pickle.loads(pickle.dumps(figure))):
        assert each._repr_png_().startswith(b"\x89PNG")
