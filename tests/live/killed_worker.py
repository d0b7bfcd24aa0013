"""Updates a live graph and kills the update (SIGKILL) at a random moment, COUNT times.

Usage: ``killed_worker.py FOLDER COUNT SEED``. After each kill the folder is opened and checked. Prints how many updates
were killed before and after their commit.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from small_live import FIRST, succession

from tkg_incremental import LiveGraph

#: Releases that stay on disk.
KEEP = 3


def update(path: Path, number: int) -> None:
    with LiveGraph(path) as graph:
        graph.update(**succession(number))


def in_child(path: Path, number: int, limit: float | None) -> tuple[bool, float]:
    """Runs an update in a forked process and kills it after some seconds. Whether it was killed; how long it took."""
    begin = time.perf_counter()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            update(path, number)
            code = 0
        finally:
            os._exit(code)
    if limit is not None:
        time.sleep(limit)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the update failed"
    return os.WIFSIGNALED(status), time.perf_counter() - begin


def check(path: Path) -> int:
    """The number of the last update that was applied, once everything agrees."""
    with LiveGraph(path) as graph:
        store, current = graph.folder.store, graph.folder.releases.current()
        assert current is not None
        assert store.release == current == graph.current
        manifest = graph.folder.releases.manifest(current)
        number = manifest.clock - FIRST
        assert (store.clock, manifest.vocabulary["steps"]) == (manifest.clock, graph.clock.num_steps)
        applied = [one.id for one in store.updates("applied")]
        assert len(set(applied)) == len(applied) == number, "an update is lost or repeated"
        assert applied[len(applied) - len(manifest.updates) :] == list(manifest.updates)
        assert len(graph.folder.releases.numbers()) <= 4 * KEEP, "releases are not pruned"
        assert len(store.updates("pending")) <= 1
        sizes = graph.model.sizes  # its checksums were verified
        vocabulary = {"entity": manifest.vocabulary["entities"], "time": manifest.vocabulary["steps"]}
        assert {axis: sizes[axis] for axis in vocabulary} == vocabulary
        _, heads, rels, tails, _, _ = store.facts_arrays()
        assert max(heads.max(), tails.max()) < sizes["entity"]
        assert rels.max() < sizes["relation"] // 2
        leads, research = store.relations.find("leads"), store.entities.find("R&D")
        assert leads is not None
        known = sorted((fact.valid_from, fact.valid_to) for fact in store.answers(None, leads, research))
        last = [(FIRST + i, FIRST + i + 1) for i in range(number)]
        assert known == [(80, FIRST), *last, (FIRST + number, None)], known
        first = graph.query(None, "leads", "R&D")[0]
        assert (first.name, first.known) == (f"leader {number}", (str(FIRST + number), None))
    return number


def main(path: Path, count: int, seed: int) -> None:
    rng = random.Random(seed)
    file = path / "graph.toml"
    file.write_text(file.read_text().replace("keep = 30", f"keep = {KEEP}"))
    number = check(path)
    in_child(path, number + 1, None)
    seconds = in_child(path, number + 2, None)[1]
    number = check(path)
    assert number == 2
    before = after = 0
    while before + after < count:
        killed, _ = in_child(path, number + 1, rng.uniform(0, 1.1 * seconds))
        found = check(path)
        assert found - number in (0, 1)
        before, after = before + (killed and found == number), after + (killed and found > number)
        number = found
        if not killed:
            seconds *= 0.9
    in_child(path, number + 1, None)
    assert check(path) == number + 1
    with LiveGraph(path) as graph:
        assert not graph.folder.store.updates("pending")
    sys.stdout.write(f"{before} {after}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
