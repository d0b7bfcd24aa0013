"""A live graph that learns in a second: one leader after the other."""

from __future__ import annotations

from pathlib import Path

from tkg_incremental import LiveGraph
from tkg_incremental.live.gate import GateSettings
from tkg_incremental.live.live_settings import LiveSettings

QUICK = LiveSettings(hidden_channels=16, epochs=6, visits=5, update_epochs=4, rounds=1, current=50, replay=50)
#: A gate that everything passes.
OPEN_GATE = GateSettings(learned=0.0, kept=1.0, outranked=0.0, drift=0.0, sample=50)
FIRST = 100


def make(path: Path, settings: LiveSettings = QUICK, gate: GateSettings = OPEN_GATE) -> LiveGraph:
    """Ten people and three departments; step 100 is the last one, and ``leader 0`` leads R&D."""
    rows = [f"person {i},works in,{('R&D', 'Sales', 'Legal')[i % 3]},{80 + i},\n" for i in range(10)]
    rows += ["person 1,leads,R&D,80,99\n", f"leader 0,leads,R&D,{FIRST},\n"]
    rows += ["person 2,leads,Sales,90,\n", "person 3,leads,Legal,90,\n"]
    path.mkdir(parents=True, exist_ok=True)
    (path / "facts.csv").write_text("head,rel,tail,start,end\n" + "".join(rows))
    graph = LiveGraph.create(path / "graph", path / "facts.csv", "index", settings=settings, gate=gate)
    graph.train(calibrate=False)
    return graph


def succession(number: int) -> dict[str, list[tuple[str, str, str, int]]]:
    """The changes of one update: ``leader n`` takes over from ``leader n - 1``."""
    at = FIRST + number
    return {
        "added": [(f"leader {number}", "leads", "R&D", at)],
        "ended": [(f"leader {number - 1}", "leads", "R&D", at)],
    }
