"""Progress of a run on the terminal or in a log."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from tkg_incremental.report.recorder import ChangeRecorder
from tkg_incremental.tables import show_number
from tkg_incremental.training import Callback, IncrementalTrainer, ProgressBar


class StepLines(Callback):
    """A line for each step, for logs and pipes, which cannot show bars."""

    def on_step_end(self, trainer: IncrementalTrainer, record: dict[str, Any] | None) -> None:
        if record is None:
            line = "base model ready"
        else:
            names = ("C@10", "A@10", "DF@10", "RRD")
            there = [name for name in names if not math.isnan(record.get(name, math.nan))]
            shown = [f"{name} {show_number(record[name])}" for name in there]
            line = f"{record['label']}: {'  '.join([*shown, str(record['epochs'])])} epochs"
        print(line, file=sys.stderr, flush=True)


def watchers(watch: Sequence[tuple[str | None, str, str | None]] = ()) -> list[Callback]:
    """Bars on a terminal, lines elsewhere; and the recorder of the report.

    Args:
        watch: Questions that the report always includes.
    """
    progress = ProgressBar() if sys.stderr.isatty() else StepLines()
    return [progress, ChangeRecorder(watch)]
