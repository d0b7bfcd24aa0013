"""Trains and is killed at a given moment. Every attempt is a fork of a process that has imported everything.

Usage: ``python crash_worker.py FOLDER COUNT SEED``. Writes a JSON list with one entry per killed run.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch
from tiny_run import CASES, Tiny, make_trainer, same_bits

#: The function whose calls make up each phase of a run.
PHASES = {
    "download": ("download.py", "_fetch"),
    "process": ("base.py", "process"),
    "batch": ("learner.py", "_train"),
    "checkpoint": ("run_folder.py", "save"),
    "results": ("trainer.py", "_write_results"),
}


class Clock:
    """Counts calls and returns of functions in each phase, and kills the process at one of them.

    Args:
        phase: The phase in which the process is killed.
        moment: The event at which it is killed.
    """

    def __init__(self, phase: str | None = None, moment: int = 0) -> None:
        self.phase, self.moment = phase, moment
        self.counts: Counter[str] = Counter()
        self._inside: list[tuple[str, FrameType]] = []
        self._names: dict[CodeType, str | None] = {}

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code not in self._names:
                place = (os.path.basename(code.co_filename), code.co_name)
                self._names[code] = next((name for name, known in PHASES.items() if known == place), None)
            found = self._names[code]
            if found is not None:
                self._inside.append((found, frame))
        if self._inside:
            name = self._inside[-1][0]
            self.counts[name] += 1
            if name == self.phase and self.counts[name] >= self.moment:
                os.kill(os.getpid(), signal.SIGKILL)
            if event == "return" and frame is self._inside[-1][1]:
                self._inside.pop()


def train(case: str, folder: Path, shared_base: bool) -> None:
    """Resumes if there is a checkpoint, and trains to the end, as the script of a user does."""
    trainer = make_trainer(case, Tiny(folder / "data"), folder / "run")
    assert trainer.folder is not None
    if trainer.folder.checkpoints:
        trainer.resume()
    trainer.pretrain(folder / "base.pt" if shared_base else None)
    trainer.fit()


def in_fork(work: Callable[[], None]) -> int:
    """Runs a function in a forked process and returns its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def measured(case: str, folder: Path) -> Counter[str]:
    """Runs without interruption; returns the number of events of each phase."""
    counts = folder / "counts.json"

    def work() -> None:
        clock = Clock()
        sys.setprofile(clock)
        train(case, folder, shared_base=False)
        sys.setprofile(None)
        counts.write_text(json.dumps(clock.counts))

    folder.mkdir(parents=True)
    assert in_fork(work) == 0
    return Counter(json.loads(counts.read_text()))


def killed(case: str, folder: Path, phase: str, moment: int, shared_base: bool) -> int:
    def work() -> None:
        sys.setprofile(Clock(phase, moment))
        train(case, folder, shared_base)

    return in_fork(work)


def main(folder: Path, count: int, seed: int) -> list[dict[str, Any]]:
    """Kills ``count`` runs, each once or more often, and resumes each to its end."""
    source = random.Random(seed)
    cases = CASES if count >= len(CASES) * len(PHASES) else [CASES[(seed + i) % len(CASES)] for i in range(2)]
    whole = {case: measured(case, folder / case) for case in cases}
    report = []
    for i in range(count):
        case, phases = cases[i % len(cases)], list(PHASES)
        place, shared_base, codes, moments = folder / str(i), bool(source.getrandbits(1)), [], []
        place.mkdir()
        phase = phases[i // (len(cases) if len(cases) == len(CASES) else 1) % len(phases)]
        while True:
            moment = source.randint(1, whole[case][phase])
            codes.append(killed(case, place, phase, moment, shared_base))
            moments.append([phase, moment / whole[case][phase]])
            if codes[-1] == 0 or source.random() < 0.5:
                break
            phase = source.choice(phases)  # kill it again later
        end = in_fork(lambda case=case, place=place, base=shared_base: train(case, place, base))  # type: ignore[misc]
        same = end == 0 and same_bits(folder / case / "run", place / "run")
        halves = [str(path) for path in (place / "run").rglob("*.tmp")]
        report.append({"case": case, "moments": moments, "codes": codes, "end": end, "same": same, "halves": halves})
    return report


if __name__ == "__main__":
    torch.set_num_threads(1)
    json.dump(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])), sys.stdout)
