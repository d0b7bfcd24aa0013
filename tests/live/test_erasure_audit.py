"""The audit of erasures on a part of WorldLeaders, with a model that learns in a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.erasure_audit import ask_for, audit, choose, files_with, is_within
from benchmarks.live_accuracy import Facts, named_facts
from tkg_incremental.datasets import WorldLeaders
from tkg_incremental.live.live_settings import LiveSettings

QUICK = LiveSettings(hidden_channels=32, epochs=15, visits=5, rounds=3, replay=2000)
ERASED = 3


@pytest.fixture(scope="module")
def facts() -> Facts:
    """Presidents and chancellors, and their parties."""
    everything = named_facts(WorldLeaders())
    people = {fact[0] for fact in everything if fact[1] in ("president of", "chancellor of")}
    return [
        fact
        for fact in everything
        if fact[0] in people and fact[1] in ("president of", "chancellor of", "member of party")
    ]


def test_what_was_erased_is_not_found(facts: Facts, tmp_path: Path) -> None:
    names = choose(facts, ERASED, 0)
    found = audit(tmp_path, facts, names, 2, QUICK)
    erased, never = found["erased"], found["never had"]
    assert erased["files"]["before"] >= ERASED
    assert erased["files"]["after"] == erased["files"]["found by erase"] == 0
    assert len(never) == 2
    # The questions find the entities before, and with a copy of their vectors; so they could find what is left.
    assert erased["row before"]["Hits@10"] > 0.8
    assert erased["old vector"]["Hits@10"] > 0.5
    # Without it, rows rank like rows that never were learnt.
    for name in ("row", "row, release 0"):
        assert erased[name]["Hits@10"] < 0.4
        assert erased[name]["rank"] > 0.2 * min(each["row"]["rank"] for each in never)
    assert erased["kept"] > 0.9
    assert set(is_within(found)) >= {"bytes", "row: Hits@10", "row: rank", "re-added: rank"}


def test_a_rank_that_is_too_good_is_reported() -> None:
    good, usual = {"Hits@10": 0.9, "rank": 2.0}, {"Hits@10": 0.1, "rank": 200.0}
    never = [{"row": usual, "re-added": usual}] * 2
    files = {"before": 3, "after": 0}
    same = {"files": files, "row": usual, "row, release 0": usual, "re-added": usual}
    assert all(is_within({"erased": same, "never had": never}).values())
    for name in ("row", "row, release 0", "re-added"):
        within = is_within({"erased": {**same, name: good}, "never had": never})
        assert {key for key, value in within.items() if not value} == {f"{name}: Hits@10", f"{name}: rank"}
    assert not is_within({"erased": {**same, "files": {"before": 3, "after": 1}}, "never had": never})["bytes"]


def test_questions(facts: Facts) -> None:
    names = choose(facts, ERASED, 0)
    held = {fact[:3]: fact[3:] for fact in facts}
    questions = ask_for(facts, names)
    assert {question.answer for question in questions} <= set(names)
    assert len(questions) >= ERASED
    for question in questions:
        first, last = held[question.triple]
        assert first <= question.step <= last or sum(fact[:3] == question.triple for fact in facts) > 1


def test_the_search_of_bytes(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"\x00\xffZo\xc3\xab\x01")
    assert files_with(tmp_path, ["Zoë", "Ann"]) == 1
