import math

import pytest

from benchmarks import peers, report
from benchmarks.__main__ import BENCHMARKS, main, run
from benchmarks.harness import (
    Aim,
    Benchmark,
    Measurement,
    Timing,
    at_least,
    at_most,
    in_rate,
    in_seconds,
    interleave,
    ratio_at_least,
    ratio_at_most,
)
from benchmarks.lab import Lab
from benchmarks.probe import Probe

MACHINE = {"cpu": "a fast one", "threads": 2}


@pytest.fixture(scope="module")
def lab() -> Lab:
    return Lab(quick=True, threads=1)


# They start processes of their own, and differ from others of their family in an option.
SLOW = ("scale/shared", "scale/no-pool", "scale/epochs", "distributed/tie-published", "distributed/threads")


@pytest.mark.parametrize(
    "benchmark",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.slow] if each.name.startswith(SLOW) else [])
        for each in BENCHMARKS
    ],
)
def test_every_benchmark_runs(benchmark, lab):
    row = run(benchmark, lab)
    if row.skipped:
        assert row.skipped.startswith("PyKEEN is not installed")
        return
    found = row.measurement
    assert math.isfinite(found.value)
    assert found.value > 0
    assert (found.reference_value is None) == (found.ratio is None) == (found.reference == "")
    if found.ratio is not None:
        assert math.isfinite(found.ratio)
        assert found.ratio > 0
    assert row.met is None  # tiny sizes are not what the aims are for
    for aim in benchmark.aims:
        assert isinstance(aim.is_met(found), bool)


def test_names_are_unique_and_have_a_place_on_the_page():
    names = [benchmark.name for benchmark in BENCHMARKS]
    assert len(set(names)) == len(names)
    template = report.TEMPLATE.read_text(encoding="utf-8")
    assert all(f"<!-- {name.split('/')[0]} -->" in template for name in names)


# The harness -----------------------------------------------------------------------------------------------


def test_work_and_reference_take_turns():
    calls = []
    timing = interleave(lambda: calls.append("work"), lambda: calls.append("bare"), rounds=(2, 3))
    assert calls == ["work", "bare"] * 4  # the first pair is the warm-up
    assert len(timing.seconds) == len(timing.reference) == 3


def test_rounds_end_with_the_budget_but_not_before_the_least():
    calls = []
    timing = interleave(lambda: calls.append("work"), rounds=(2, 100), budget=0.0, warm=False)
    assert len(calls) == len(timing.seconds) == 2
    assert timing.ratio is None


def test_ratio_is_the_median_over_rounds():
    # Both halves of a round meet the same noise, so rounds are compared: the ratio of the medians would be 4.
    timing = Timing([1.0, 4.0, 9.0], [1.0, 1.0, 3.0])
    assert timing.ratio == 3.0
    assert in_seconds("work", timing, "bare") == Measurement("work", 4.0, "s", "bare", 1.0, 3.0, "cost", 3)


def test_rates_beside_the_bare_work_and_beside_a_peer():
    timing = Timing([1.0], [4.0])
    assert in_rate("work", timing, 8, "rows/s", "bare") == Measurement("work", 8, "rows/s", "bare", 2, 0.25, "cost", 1)
    peer = in_rate("work", timing, 8, "rows/s", "peer", peer=True)
    assert (peer.ratio, peer.ratio_of) == (4.0, "speed")


@pytest.mark.parametrize(
    ("aim", "met", "words"),
    [
        (at_most(2.0), True, "≤ 2 s"),
        (at_most(1.9), False, "≤ 1.9 s"),
        (at_least(10_000), False, "≥ 10,000 s"),
        (ratio_at_most(0.5), True, "≤ 0.5×"),
        (ratio_at_least(5.0), False, "≥ 5×"),
    ],
)
def test_aims(aim: Aim, met, words):
    assert aim.is_met(Measurement("work", 2.0, "s", "bare", 4.0, 0.5)) is met
    assert aim.describe("s") == words


def test_a_row_meets_its_aims_only_together():
    found = Measurement("work", 2.0, "s", "bare", 4.0, 0.5)
    both = Benchmark("a/b", lambda lab: found, (at_most(3.0), ratio_at_most(0.1)))
    assert report.Row.of(both, found, judged=True).met is False
    assert report.Row.of(both, found, judged=False).met is None
    assert report.Row.of(both, found, judged=True).aims == "≤ 3 s and ≤ 0.1×"


def test_data_that_cannot_be_had_is_said_in_the_row(tmp_path, monkeypatch):
    monkeypatch.setenv("TKG_INCREMENTAL_MIRROR", str(tmp_path / "nothing"))
    wanted = next(benchmark for benchmark in BENCHMARKS if benchmark.name == "training/tie-de")
    row = run(wanted, Lab(tmp_path / "data"))
    assert row.measurement is None
    assert row.skipped.startswith("Wikidata12k is not available")
    assert "skipped: Wikidata12k is not available" in report.table([row])


def test_a_probe_that_fails_is_not_waited_for():
    with Probe("epochs", 1, entities=-1) as probe, pytest.raises(RuntimeError, match="ended with code 1"):
        probe.ask()


def test_peers_must_do_the_same_work():
    peers._must_agree(0.1, 0.1005)
    with pytest.raises(RuntimeError, match="not the same work"):
        peers._must_agree(0.1, 0.2)


# The report ------------------------------------------------------------------------------------------------


def every_row() -> list[report.Row]:
    found = Measurement("some work", 0.125, "s", "bare work", 0.1, 1.25)
    rows = [report.Row.of(benchmark, found, judged=True) for benchmark in BENCHMARKS[1:]]
    return [report.Row(BENCHMARKS[0].name, skipped="no data"), *rows]


def test_results_are_read_as_they_were_written(tmp_path):
    rows = every_row()
    report.save(rows, MACHINE, tmp_path / "deep" / "results.json")
    assert report.load(tmp_path / "deep" / "results.json") == (rows, MACHINE)


def test_results_of_benchmarks_that_were_not_run_are_kept(tmp_path):
    rows, path = every_row(), tmp_path / "results.json"
    assert report.merge(rows[1:2], path, [row.name for row in rows]) == rows[1:2]
    report.save([report.Row("juggling/five-balls"), *rows[:2]], MACHINE, path)
    new = report.Row(rows[1].name, skipped="no data today")
    assert report.merge([rows[2], new], path, [row.name for row in rows]) == [rows[0], new, rows[2]]


def test_page_has_every_row():
    page = report.page(every_row(), MACHINE)
    assert page.count("| some work |") == len(BENCHMARKS) - 1
    assert "| some work | 0.125 s | bare work | 0.1 s | 1.25× |" in page
    assert "cpu a fast one; threads 2." in page
    assert "skipped: no data" in page
    assert "<!-- training -->" not in page


def test_page_wants_a_place_for_every_family():
    with pytest.raises(ValueError, match="no place for the family 'juggling'"):
        report.page([report.Row("juggling/five-balls", skipped="gravity")], MACHINE)


def test_page_is_the_one_of_the_stored_results():
    if not report.RESULTS.exists():
        pytest.skip("no results are stored")
    assert report.PAGE.read_text(encoding="utf-8") == report.page(*report.load(report.RESULTS))


def test_command_line(tmp_path, capsys):
    main(["--list", "--only", "tie-de"])
    assert capsys.readouterr().out.split() == ["training/tie-de", "training/tie-de-published"]
    main(["--quick", "--threads", "1", "--only", "sampling/negatives", "--json", str(tmp_path / "results.json")])
    rows, machine = report.load(tmp_path / "results.json")
    assert [row.name for row in rows] == ["sampling/negatives"]
    assert machine["threads"] == 1
    with pytest.raises(SystemExit, match="must be part of a name"):
        main(["--only", "juggling"])
