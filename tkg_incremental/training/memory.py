"""What a step remembers of the weights: those before it, and those of its best epoch."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.rows import former_rows


class StepMemory(Protocol):
    """The model before the step, and a mark that can be returned to."""

    @property
    def previous(self) -> TKGModel: ...

    def mark(self) -> None:
        """Remembers the weights as they are now."""

    def rewind(self) -> None:
        """Goes back to the mark, if there is one."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class WholeCopy:
    """Copies of all weights: simple, and right where every update moves every row.

    Args:
        model: The model about to learn.
    """

    def __init__(self, model: TKGModel) -> None:
        self._model = model
        self.previous = model.frozen_copy()
        self._marked: dict[str, Tensor] | None = None

    def mark(self) -> None:
        self._marked = {name: tensor.clone() for name, tensor in self._model.state_dict().items()}

    def rewind(self) -> None:
        if self._marked is not None:
            self._model.load_state_dict(self._marked)

    def state_dict(self) -> dict[str, Any]:
        return {"previous": self.previous.state_dict(), "marked": self._marked}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.previous.load_state_dict(state["previous"])
        self._marked = state["marked"]


class TouchedRows:
    """Old values of the rows an optimiser moves, and of no others: what a step costs follows what it changes.

    Each touched row of a table gets a slot, in the order of first touch; per-row state (also the optimiser's) is
    kept by slot.

    Args:
        model: The model about to learn.
    """

    def __init__(self, model: TKGModel) -> None:
        self._tables = dict(model.encoder.tables())
        self._slot_of = {
            name: torch.full((len(table),), -1, dtype=torch.int32, device=table.device)
            for name, table in self._tables.items()
        }
        self.index = {name: Growing(table.new_empty(0, dtype=torch.long)) for name, table in self._tables.items()}
        self._former = {name: Growing(table.detach()[:0]) for name, table in self._tables.items()}
        self._marked: dict[str, Tensor] | None = None
        self.previous = model.frozen_view(self)

    def slots(self, name: str, index: Tensor) -> Tensor:
        """The slots of distinct rows that are about to change; rows without one get it, and their value is kept."""
        slot_of = self._slot_of[name]
        slots = slot_of.index_select(0, index)
        new = index[slots < 0]
        if len(new):
            first = len(self.index[name])
            slot_of[new] = torch.arange(first, first + len(new), dtype=torch.int32, device=index.device)
            self.index[name].append(new)
            self._former[name].append(self._tables[name].detach().index_select(0, new))
            slots = slot_of.index_select(0, index)
        return slots.long()

    def former(self, name: str) -> Tensor:
        """Values before the step of the rows that have slots, in their order."""
        return self._former[name].values

    def look_up(self, name: str, index: Tensor) -> Tensor:
        """Values before the step of any rows, ``[*] → [*, width]``."""
        return former_rows(self._tables[name].detach(), index, self._slot_of[name], self.former(name))

    @torch.no_grad()
    def mark(self) -> None:
        self._marked = {name: self._tables[name].index_select(0, index.values) for name, index in self.index.items()}

    @torch.no_grad()
    def rewind(self) -> None:
        if self._marked is None:
            return
        for name, table in self._tables.items():
            marked, index = self._marked[name], self.index[name].values
            table[index[: len(marked)]] = marked
            # Rows first touched after the mark had their old values when it was set.
            table[index[len(marked) :]] = self._former[name].values[len(marked) :]

    def state_dict(self) -> dict[str, Any]:
        return {
            "index": {name: index.values for name, index in self.index.items()},
            "former": {name: former.values for name, former in self._former.items()},
            "marked": self._marked,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, index in state["index"].items():
            self.index[name], self._former[name] = Growing(index), Growing(state["former"][name])
            self._slot_of[name].fill_(-1)
            self._slot_of[name][index] = torch.arange(len(index), dtype=torch.int32, device=index.device)
        self._marked = state["marked"]


class Growing:
    """A tensor that grows along its first axis, with room to spare so that growing is seldom a copy."""

    def __init__(self, values: Tensor) -> None:
        self._storage, self._length = values.clone(), len(values)

    @property
    def values(self) -> Tensor:
        return self._storage[: self._length]

    def append(self, values: Tensor) -> None:
        needed = self._length + len(values)
        if needed > len(self._storage):
            grown = self._storage.new_empty(max(needed, len(self._storage) * 5 // 4), *self._storage.shape[1:])
            grown[: self._length] = self.values
            self._storage = grown
        self._storage[self._length : needed] = values
        self._length = needed

    def grow_to(self, length: int) -> None:
        """Adds rows of zeros."""
        if length > self._length:
            self.append(self._storage.new_zeros(length - self._length, *self._storage.shape[1:]))

    def __getitem__(self, place: Tensor | slice) -> Tensor:
        """A copy of some rows, or for a slice the rows themselves."""
        return self.values[place] if isinstance(place, slice) else self._storage.index_select(0, place)

    def __setitem__(self, place: Tensor | slice, rows: Tensor) -> None:
        if isinstance(place, Tensor):
            self._storage.index_copy_(0, place, rows)
        elif rows.data_ptr() != self.values[place].data_ptr():  # they are what they are
            self.values[place] = rows

    def __len__(self) -> int:
        return self._length
