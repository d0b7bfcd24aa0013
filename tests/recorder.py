"""Which negatives a term drew: with them, its loss can be computed by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from oracles import Draw, Row, TimelineOracle
from timelines import to_tensor

from tkg_incremental.ops.answers import SIDES
from tkg_incremental.strategies import Losses, Step, Term, candidates, terms


class Recorder:
    """Keeps what was drawn while a term computes its losses."""

    def __init__(self, line: TimelineOracle, step: Step) -> None:
        self.line, self.step = line, step
        self.draws: list[Draw] = []

    def losses(self, term: Term, rows: list[Row]) -> dict[str, float]:
        draw = candidates.draw

        def recorded(step: Step, rows: torch.Tensor, *args: Any) -> Any:
            sample = draw(step, rows, *args)
            columns = sample.columns if sample.list_of_row is None else sample.columns[sample.list_of_row]
            absent = torch.zeros_like(columns, dtype=torch.bool)
            if sample.absent is not None:
                absent |= sample.absent
            lists = zip(sample.pool.order[columns], ~absent, strict=True)
            entities = [drawn[is_there].tolist() for drawn, is_there in lists]
            asked = [(tuple(row), side) for side in SIDES for row in rows.tolist()]
            for (row, side), drawn in zip(asked, entities, strict=True):
                # A true answer is no negative, whatever was drawn.
                true = self.line.answers(side, "train", row)
                self.draws.append(Draw(row, side, [entity for entity in drawn if entity not in true]))
            return sample

        with pytest.MonkeyPatch.context() as patch:
            for module in (candidates, terms):
                patch.setattr(module, "draw", recorded)
            found: Losses = term.losses(self.step, to_tensor(rows))
        return {name: loss.item() for name, loss in found.items()}
