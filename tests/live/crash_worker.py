"""Updates a small graph without end, until it is killed; COUNT times.

Usage: ``crash_worker.py FOLDER COUNT SEED``. Update i
adds ``entity i``, ends that of update i − 1, and writes i into its row.
About every eighth turn rolls back or forward instead. Old releases are pruned. Prints the numbers of kills and of
releases.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import torch
from graphs import commit

from tkg_incremental.live import Change, ChangeSet, GraphFolder

WIDTH = 16
#: Releases that stay on disk.
KEEP = 3


def next_update(folder: GraphFolder) -> None:
    """Takes up what is pending, or records the next change, learns it and releases it."""
    store = folder.store
    current = folder.releases.current()
    assert current is not None
    tables = folder.releases.load_release(current)
    known = len(tables["entity"])
    if not store.updates("pending"):
        clock = (store.clock or 0) + 1
        changes = ChangeSet([Change("add", f"entity {clock}", "leads", "all", clock)])
        if clock > 1:
            changes.changes.append(Change("end", f"entity {clock - 1}", "leads", "all", clock))
        checked = changes.validate(store)
        assert not checked.rejected, checked.rejected
        assert store.find_update(changes.content_hash) is None
        store.record(checked.changes, clock, changes.content_hash)
    clock = store.updates("pending")[-1].clock
    new = torch.zeros(store.num_entities - known, WIDTH)
    tables["entity"] = torch.cat([tables["entity"], new])
    row = store.entities.find(f"entity {clock}")
    assert row is not None
    tables["entity"][row] = clock
    commit(folder, tables, {"entity": torch.tensor([row])}, clock=clock, metrics={"row": row})


def check(folder: GraphFolder) -> int:
    """Store and release agree, nothing is lost and nothing applied twice. Returns the clock."""
    store, current = folder.store, folder.releases.current()
    assert current is not None
    assert store.release == current
    present, chain = set(folder.releases.numbers()), [folder.releases.manifest(current)]
    while chain[0].parent in present:
        chain.insert(0, folder.releases.manifest(chain[0].parent))
    clock = chain[-1].clock
    assert store.clock == clock
    tables = folder.releases.load_release(current)
    applied = [update.id for update in store.updates("applied")]
    assert len(set(applied)) == len(applied) == clock, "an update is lost or repeated"
    assert applied[-len(chain) :] == [update for manifest in chain for update in manifest.updates]
    assert len(present) <= 4 * KEEP, "releases are not pruned"
    for number in present:
        folder.releases.load_release(number)  # whatever is on disk can answer
    _, heads, _, _, starts, ends = store.facts_arrays().tolist()
    names = store.entities.of(heads)
    assert sorted(map(str, names)) == sorted(f"entity {i}" for i in range(1, clock + 1))
    for name, row, start, end in zip(names, heads, starts, ends, strict=True):
        number = int(str(name).split()[1])
        assert tables["entity"][row, 0] == number
        assert start == number
        assert end == (number + 1 if number < clock else 2**63 - 1)
    assert len(store.updates("pending")) <= 1
    assert list(folder.path.rglob("*.tmp")) == [] or not folder.is_writer
    return clock


def killed(path: Path, rng: random.Random, limit: float) -> None:
    """Works until a signal of its own ends it, at a random moment within ``limit`` seconds."""
    delay = rng.uniform(0.0, limit)
    threading.Thread(target=lambda: (time.sleep(delay), os.kill(os.getpid(), signal.SIGKILL)), daemon=True).start()
    with GraphFolder(path, write=True) as folder:
        while True:
            if rng.random() < 0.12 and (folder.releases.current() or 0) > 0:
                for update in folder.store.updates("pending"):  # it continues the release that is left
                    folder.store.discard(update.id)
                folder.release(rng.choice(folder.releases.numbers()))
            else:
                next_update(folder)


def main(path: Path, count: int, seed: int) -> None:
    torch.set_num_threads(1)
    rng = random.Random(seed)
    with GraphFolder.create(path, "day", {"releases": {"keep": KEEP}}) as folder:
        folder.store.record([Change("add", "entity 1", "leads", "all", 1)], 1, "first")
        tables = {"entity": torch.zeros(2, WIDTH)}
        tables["entity"][folder.store.entities.find("entity 1") or 0] = 1
        commit(folder, tables, None, clock=1)
    # The moments follow the speed of the machine: several updates may be finished before the signal.
    begin = time.perf_counter()
    with GraphFolder(path, write=True) as folder:
        next_update(folder)
    limit = 5 * (time.perf_counter() - begin)
    kills = commits = 0
    for _ in range(count):
        seed = rng.randrange(10**9)
        child = os.fork()
        if child == 0:
            try:
                killed(path, random.Random(seed), limit)
            except BaseException:
                sys.excepthook(*sys.exc_info())
            os._exit(1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code == -signal.SIGKILL, code
        kills += 1
        with GraphFolder(path) as reader:  # a reader repairs what it may
            check(reader)
        with GraphFolder(path, write=True) as folder:
            check(folder)
            commits = len(folder.store.releases())
    sys.stdout.write(f"{kills} {commits}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
