"""A tensor that grows."""

from __future__ import annotations

from torch import Tensor


class Growing:
    """A tensor that grows along its first axis, with spare capacity, so that growth seldom copies.

    Args:
        values: ``[n, *]`` initial values.
    """

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
        """Appends zeros."""
        if length > self._length:
            self.append(self._storage.new_zeros(length - self._length, *self._storage.shape[1:]))

    def __getitem__(self, place: Tensor | slice) -> Tensor:
        """A copy of some rows; for a slice, the rows themselves."""
        return self.values[place] if isinstance(place, slice) else self._storage.index_select(0, place)

    def __setitem__(self, place: Tensor | slice, rows: Tensor) -> None:
        if isinstance(place, Tensor):
            self._storage.index_copy_(0, place, rows)
        elif rows.data_ptr() != self.values[place].data_ptr():  # already in place
            self.values[place] = rows

    def __len__(self) -> int:
        return self._length
