"""Similar names among millions: shared character n-grams first, then difflib on the best few."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np

_CANDIDATES = 200
_CHUNK = 1 << 22
# Occurrences of n-grams that are counted, about. Those that most names have tell nothing and cost most.
_HITS = 1 << 20
_SAMPLES, _SAMPLE = 16, 1 << 16
_SEPARATOR = "\0"


class NameSearch:
    """Finds names by their case-folded text.

    All names are kept as one text, so that no Python code runs per name.

    Args:
        names: The names.
    """

    def __init__(self, names: Sequence[str]) -> None:
        text = _SEPARATOR.join(names)
        if text.count(_SEPARATOR) != max(len(names) - 1, 0):  # a name with the separator in it
            names = [name.replace(_SEPARATOR, " ") for name in names]
            text = _SEPARATOR.join(names)
        if not text.isascii():  # folding one long text with other letters in it is slow
            text = _SEPARATOR.join([name if name.isascii() else name.casefold() for name in names])
        self._data = f"{_SEPARATOR}{text}{_SEPARATOR}".encode("utf-8", "surrogatepass").lower()
        self._bytes = np.frombuffer(self._data, dtype=np.uint8)
        self._starts = np.flatnonzero(self._bytes == 0)  # of every name: the separator before it
        if not names:
            self._starts = self._starts[:1]

    def equal(self, name: str, limit: int = 10) -> list[int]:
        """Indices of the names that equal ``name`` when case is ignored, at most ``limit``."""
        if _SEPARATOR in name:
            return []
        wanted = f"{_SEPARATOR}{name}{_SEPARATOR}".casefold().encode("utf-8", "surrogatepass")
        found: list[int] = []
        place = self._data.find(wanted)
        while place >= 0 and len(found) < limit:
            found.append(int(np.searchsorted(self._starts, place)))
            place = self._data.find(wanted, place + 1)
        return [index for index in found if index < len(self._starts) - 1]

    def nearest(self, name: str, count: int) -> list[int]:
        """Indices of the names most like ``name``, ignoring case: similar ones first, then those that contain it."""
        wanted = name.casefold()
        if not wanted or len(self._starts) < 2:
            return []
        folded: dict[str, int] = {}
        for index in self._candidates(wanted):
            folded.setdefault(self._folded(index), index)
        close = difflib.get_close_matches(wanted, folded, n=count, cutoff=0.5)
        inside = sorted((known for known in folded if wanted in known), key=len)
        return [folded[known] for known in dict.fromkeys([*close, *inside])][:count]

    def _candidates(self, wanted: str) -> list[int]:
        """The names with the highest Dice coefficient of shared n-grams."""
        names = len(self._starts) - 1
        if names <= _CANDIDATES:
            return list(range(names))
        query = np.frombuffer(f"{_SEPARATOR}{wanted}{_SEPARATOR}".encode("utf-8", "surrogatepass"), dtype=np.uint8)
        size = 2 if len(query) <= 8 else 3  # a typo in a short name leaves no trigram
        grams = np.unique(_grams(query, size))
        is_wanted = np.zeros(256**size, dtype=bool)
        is_wanted[self._rarest(grams, size)] = True
        hits = [
            np.flatnonzero(is_wanted[_grams(self._bytes[begin : begin + _CHUNK + size - 1], size)]) + begin
            for begin in range(0, len(self._bytes), _CHUNK)
        ]
        owners = np.searchsorted(self._starts, np.concatenate(hits), side="right") - 1
        shared = np.bincount(owners, minlength=names)[:names]
        lengths = np.diff(self._starts) + 2 - size  # number of n-grams of a name with both separators
        score = np.minimum(shared, len(grams)) / (np.maximum(lengths, 1) + len(grams))
        best = np.argpartition(-score, _CANDIDATES)[:_CANDIDATES]
        # In the order of the names, so that ties go to the first one.
        return np.sort(best[shared[best] > 0]).tolist()

    def _rarest(self, grams: np.ndarray, size: int) -> np.ndarray:
        """The n-grams with the fewest occurrences, by a sample of the text: as many as are counted fast."""
        space = np.linspace(0, max(0, len(self._bytes) - _SAMPLE), _SAMPLES).astype(int)
        keys = np.concatenate([_grams(self._bytes[begin : begin + _SAMPLE], size) for begin in np.unique(space)])
        place = np.minimum(np.searchsorted(grams, keys), len(grams) - 1)
        count = np.bincount(place[grams[place] == keys], minlength=len(grams)) * len(self._bytes) / len(keys)
        order = np.argsort(count, kind="stable")
        return grams[order[: max(1, np.searchsorted(np.cumsum(count[order]), _HITS, side="right"))]]

    def _folded(self, index: int) -> str:
        return self._data[self._starts[index] + 1 : self._starts[index + 1]].decode("utf-8", "surrogatepass")


def _grams(data: np.ndarray, size: int) -> np.ndarray:
    keys = data[: len(data) - size + 1].astype(np.int32)
    for place in range(1, size):
        keys *= 256
        keys += data[place : len(data) - size + 1 + place]
    return keys
