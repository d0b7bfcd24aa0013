"""What an update says about itself."""

from __future__ import annotations

import json
import math

import pytest

from tkg_incremental.live import Rejection
from tkg_incremental.live.gate import GateReport
from tkg_incremental.live.reports import EXIT_CODES, UpdateReport

GATE = GateReport(1.0, 0.996, 1.0, 1.0, 0.9, True)


def test_released() -> None:
    report = UpdateReport("released", 1, GATE, added=10, ended=3, new_entities=2, seconds=2.08)
    assert str(report) == (
        "10 added · 3 ended · learned 100.0% · kept 99.6% · ended facts outranked 100.0% · 2 new entities · "
        "released as 1 in 2.1 s"
    )


def test_refused() -> None:
    gate = GateReport(0.5, 1.0, 1.0, math.nan, 0.9, True, ("learned 50.0%",))
    report = UpdateReport("refused", 3, gate, added=2)
    first, second, third = str(report).split("\n")
    assert first.endswith("refused by the gate; release 3 still answers")
    assert "outranked" not in first  # nothing has ended
    assert second == "  gate: learned 50.0%"
    assert third.startswith("  the changes are pending: force=True, on the command line --force, releases them")


def test_rejected_lines() -> None:
    rejected = tuple(Rejection(line, "end, x, y, z", "it never held") for line in range(2, 32))
    report = UpdateReport("rejected", 3, rejected=rejected)
    lines = str(report).split("\n")
    assert lines[0] == "30 lines rejected · nothing was applied"
    assert lines[1] == "  line 2: it never held (end, x, y, z)"
    assert (len(lines), lines[-1]) == (22, "  … and 10 more")
    assert len(report.to_dict()["rejected"]) == 30


def test_valid_changes_among_rejected_lines() -> None:
    """Nothing was applied: they are not counted as added, but may be applied without the others."""
    report = UpdateReport("rejected", 3, added=2, rejected=(Rejection(0, "end, x, y, z", "it never held"),))
    first, second, third = str(report).split("\n")
    assert first == "1 line rejected · nothing was applied"
    assert second == "  it never held (end, x, y, z)"  # it is from a full export, which has no lines of changes
    assert third.startswith("  correct them, or apply the 2 valid changes with skip_rejected=True")


def test_nothing_to_apply() -> None:
    assert str(UpdateReport("valid", 3)) == "there are no changes; nothing was applied"
    assert str(UpdateReport("valid", 3, ended=1)) == "1 ended · the changes are valid; nothing was applied"


@pytest.mark.parametrize("state", EXIT_CODES)
def test_exit_codes(state: str) -> None:
    report = UpdateReport(state, 0, GATE)
    assert report.exit_code == {"rejected": 3, "refused": 4}.get(state, 0)
    assert json.loads(json.dumps(report.to_dict()))["state"] == state
    assert str(report)
