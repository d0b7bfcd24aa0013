"""Former values of the rows that an optimizer moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from tkg_incremental.ops.growing import Growing
from tkg_incremental.ops.rows import former_rows


class TouchedRows:
    """Former values of the rows an optimizer has moved, and of no others: memory follows the change.

    Each touched row of a table gets a slot, in the order of first touch. Row-wise optimizers keep their state by slot.

    Args:
        tables: The tables by name, ``[N, d]`` each.
    """

    def __init__(self, tables: Mapping[str, Tensor]) -> None:
        self.tables = dict(tables)
        self._slot_of = {
            name: torch.full((len(table),), -1, dtype=torch.int32, device=table.device)
            for name, table in self.tables.items()
        }
        self.index = {name: Growing(table.new_empty(0, dtype=torch.long)) for name, table in self.tables.items()}
        self._former = {name: Growing(table.detach()[:0]) for name, table in self.tables.items()}
        self._saved: dict[str, Tensor] | None = None

    def slots(self, name: str, index: Tensor) -> Tensor:
        """Slots of distinct rows that are about to change; rows without one get a slot, and their value is kept."""
        slot_of = self._slot_of[name]
        slots = slot_of.index_select(0, index)
        new = index[slots < 0]
        if len(new):
            first = len(self.index[name])
            slot_of[new] = torch.arange(first, first + len(new), dtype=torch.int32, device=index.device)
            self.index[name].append(new)
            self._former[name].append(self.tables[name].detach().index_select(0, new))
            slots = slot_of.index_select(0, index)
        return slots.long()

    def former(self, name: str) -> Tensor:
        """Former values of the rows that have slots, by slot."""
        return self._former[name].values

    def look_up(self, name: str, index: Tensor) -> Tensor:
        """Former values of any rows, ``[*] → [*, d]``."""
        return former_rows(self.tables[name].detach(), index, self._slot_of[name], self.former(name))

    @torch.no_grad()
    def moved(self) -> dict[str, Tensor]:
        """For each table the rows ``[n]`` that differ from their former values."""
        found = {}
        for name, index in self.index.items():
            found[name] = index.values[(self.tables[name][index.values] != self.former(name)).any(1)]
        return found

    @torch.no_grad()
    def save(self) -> None:
        """Saves the present values."""
        self._saved = {name: self.tables[name].index_select(0, index.values) for name, index in self.index.items()}

    @torch.no_grad()
    def restore(self) -> None:
        """Restores the values of the last :meth:`save`, if there was one."""
        if self._saved is None:
            return
        for name, table in self.tables.items():
            saved, index = self._saved[name], self.index[name].values
            table[index[: len(saved)]] = saved
            # Rows first touched after the save had their former values then.
            table[index[len(saved) :]] = self._former[name].values[len(saved) :]

    def state_dict(self) -> dict[str, Any]:
        return {
            "index": {name: index.values for name, index in self.index.items()},
            "former": {name: former.values for name, former in self._former.items()},
            "saved": self._saved,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, index in state["index"].items():
            self.index[name], self._former[name] = Growing(index), Growing(state["former"][name])
            self._slot_of[name].fill_(-1)
            self._slot_of[name][index] = torch.arange(len(index), dtype=torch.int32, device=index.device)
        self._saved = state["saved"]
