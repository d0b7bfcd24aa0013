"""Facts that were learnt, calibration, and metrics among candidates of the right type, in the report."""

from __future__ import annotations

import re

from tkg_incremental.report import render_report
from tkg_incremental.report.trust import reliability_figure, trust_section
from tkg_incremental.training import Result

CALIBRATION = {"Brier": 0.0702, "ECE": 0.0153, "questions": 31, "reliability": [[0.04, 0.02, 300], [0.96, 0.9, 10]]}
TYPED = {"all": {"MRR": 12.34, "Hits@1": 5.0}, "typed": {"MRR": 45.67, "Hits@1": 30.0}}


def result(**measured: object) -> Result:
    return Result("Own", "DE", "FT", 0, 4, **measured)  # type: ignore[arg-type]


def test_what_the_report_shows() -> None:
    page = render_report(result(calibration=CALIBRATION, type_constrained=TYPED, known_ranked_first=0.975))
    for text in ("Facts given that rank first", "98%", "0.015", "0.070", "as in the paper", "12.3", "45.7"):
        assert text in page
    assert 'id="reliability"' in page


def test_reliability() -> None:
    drawing = reliability_figure(CALIBRATION)
    assert len(re.findall('<rect class="bar added"', drawing)) == 2
    assert "10 answers with a mean probability of 96%: 90% are true" in drawing
    assert "31 test questions" in drawing


def test_a_run_of_an_earlier_version_has_no_such_section() -> None:
    assert trust_section(result()) is None
    assert "Answers of the last model" not in render_report(result())


def test_learnt_facts_without_test_facts() -> None:
    section = trust_section(result(known_ranked_first=1.0))
    assert section is not None
    assert [tile["value"] for tile in section["tiles"]] == ["100%"]
    assert (section["charts"], section["rows"]) == ([], [])
