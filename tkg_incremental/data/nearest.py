"""Similar names among millions: shared character n-grams first, then difflib on the best few."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np

_CANDIDATES = 200
# A name that is this number of times as long as a part of it is not near to the part.
_LENGTHS = 5
_CHUNK = 1 << 18  # even: bytes that are searched at a time
# Occurrences of n-grams that are counted, about. Those that most names have tell nothing and cost most.
_HITS = 1 << 20
_SAMPLES, _SAMPLE = 16, 1 << 16
_SEPARATOR = "\0"


def name_error(kind: str, name: str, same: Sequence[str], near: Sequence[str]) -> KeyError:
    """The error about a name that stands for no id or for several.

    Args:
        kind: What the name is of: ``"entity"`` or ``"relation"``.
        name: The name.
        same: Names that differ from it in case alone.
        near: The nearest names, if there are none of those.
    """
    if same:
        return KeyError(f"{kind} {name!r} is ambiguous: it may be {', '.join(map(repr, sorted(same)))}")
    hint = f"; the nearest are {', '.join(map(repr, near))}" if near else ""
    return KeyError(f"no {kind} is called {name!r}{hint}")


class NameSearch:
    """Finds names by their case-folded text.

    All names are kept as one text, so that no Python code runs per name.

    Args:
        names: The names, or their UTF-8 text with a zero byte between two of them.
    """

    def __init__(self, names: Sequence[str] | bytes) -> None:
        self._data = fold(b"\0" + (names if isinstance(names, bytes) else _join(names)) + b"\0")
        self._bytes = np.frombuffer(self._data, dtype=np.uint8)
        self._starts = np.flatnonzero(self._bytes == 0)  # of every name: the separator before it
        if not names:
            self._starts = self._starts[:1]

    def equal(self, name: str, limit: int = 10) -> list[int]:
        """Indices of the names that equal ``name`` when case is ignored, at most ``limit``."""
        if _SEPARATOR in name:
            return []
        wanted = fold(_encode(f"{_SEPARATOR}{name}{_SEPARATOR}"))
        found: list[int] = []
        place = self._data.find(wanted)
        while place >= 0 and len(found) < limit:
            found.append(int(np.searchsorted(self._starts, place)))
            place = self._data.find(wanted, place + 1)
        return [index for index in found if index < len(self._starts) - 1]

    def nearest(self, name: str, count: int) -> list[int]:
        """Indices of the names most like ``name``, ignoring case: first those that have it as words, shortest
        first, then similar ones, then others that contain it."""
        wanted = _decode(fold(_encode(name)))
        if not wanted or len(self._starts) < 2:
            return []
        folded: dict[str, int] = {}
        for index in self._candidates(wanted):
            folded.setdefault(self._folded(index), index)
        close = difflib.get_close_matches(wanted, folded, n=count, cutoff=0.5)
        inside = sorted((known for known in folded if wanted in known), key=len)
        limit = _LENGTHS * len(wanted)
        words = [known for known in inside if f" {wanted} " in f" {known} " and len(known) <= limit]
        return [folded[known] for known in dict.fromkeys([*words, *close, *inside])][:count]

    def _candidates(self, wanted: str) -> list[int]:
        """The names with the highest Dice coefficient of shared n-grams."""
        names = len(self._starts) - 1
        if names <= _CANDIDATES:
            return list(range(names))
        query = np.frombuffer(_encode(f"{_SEPARATOR}{wanted}{_SEPARATOR}"), dtype=np.uint8)
        size = 2 if len(query) <= 8 else 3  # a typo in a short name leaves no trigram
        grams = np.unique(_grams(query, size))
        hits = self._occurrences(self._rarest(grams, size), size)
        owners = np.concatenate([np.searchsorted(self._starts, part, side="right") for part in hits]) - 1
        shared = np.bincount(owners, minlength=names)[:names]
        lengths = np.diff(self._starts) + 2 - size  # number of n-grams of a name with both separators
        score = np.minimum(shared, len(grams)) / (np.maximum(lengths, 1) + len(grams))
        best = np.argpartition(-score, _CANDIDATES)[:_CANDIDATES]
        # In the order of the names, so that ties go to the first one.
        return np.sort(best[shared[best] > 0]).tolist()

    def _occurrences(self, grams: np.ndarray, size: int) -> list[np.ndarray]:
        """Where the n-grams occur, at even and at odd places. The first two bytes are looked up as one number, which
        takes a third of the time of computing the n-gram of every place."""
        is_begin, is_wanted = np.zeros(1 << 16, dtype=bool), np.zeros(256**size, dtype=bool)
        is_begin[grams & 0xFFFF] = True
        is_wanted[grams] = True
        found: tuple[list[np.ndarray], list[np.ndarray]] = [], []
        for begin in range(0, len(self._data) - size + 1, _CHUNK):  # chunks that stay in the cache
            for first in (begin, begin + 1):
                end = min(begin + _CHUNK, len(self._data) - size + 1)
                pairs = np.frombuffer(self._data[first : end + (end - first) % 2], dtype="<u2")
                places = np.flatnonzero(is_begin[pairs]) * 2 + first
                wanted = places if size == 2 else places[is_wanted[_grams(self._bytes, size, places)]]
                found[first - begin].append(wanted)
        return [np.concatenate(parts) for parts in found]

    def _rarest(self, grams: np.ndarray, size: int) -> np.ndarray:
        """The n-grams with the fewest occurrences, by a sample of the text: as many as are counted fast."""
        space = np.linspace(0, max(0, len(self._bytes) - _SAMPLE), _SAMPLES).astype(int)
        keys = np.concatenate([_grams(self._bytes[begin : begin + _SAMPLE], size) for begin in np.unique(space)])
        place = np.minimum(np.searchsorted(grams, keys), len(grams) - 1)
        count = np.bincount(place[grams[place] == keys], minlength=len(grams)) * len(self._bytes) / len(keys)
        order = np.argsort(count, kind="stable")
        return grams[order[: max(1, np.searchsorted(np.cumsum(count[order]), _HITS, side="right"))]]

    def _folded(self, index: int) -> str:
        return _decode(self._data[self._starts[index] + 1 : self._starts[index + 1]])


def _grams(data: np.ndarray, size: int, places: np.ndarray | None = None) -> np.ndarray:
    """The n-grams at some places, or at all of them, as numbers whose lowest byte comes first."""
    where = np.arange(len(data) - size + 1) if places is None else places
    keys = data[where].astype(np.int32)
    for place in range(1, size):
        keys |= data[where + place].astype(np.int32) << (8 * place)
    return keys


def _join(names: Sequence[str]) -> bytes:
    """The names as one text; a separator within a name becomes a space."""
    text = _SEPARATOR.join(names)
    if text.count(_SEPARATOR) != max(len(names) - 1, 0):
        text = _SEPARATOR.join([name.replace(_SEPARATOR, " ") for name in names])
    return _encode(text)


def fold(text: bytes) -> bytes:
    """UTF-8 text without upper case: each letter folded alone, if what it becomes has as many bytes. A million names
    take 0.1 s, and folded one by one 0.4 s.

    >>> fold("ÉCOLE, Straße, ЖУК".encode()).decode()
    'école, strasse, жук'
    """
    lower = text.lower()
    if lower.isascii():
        return lower
    data = np.frombuffer(bytearray(lower), dtype=np.uint8)
    begins = np.flatnonzero(data >= 0xC0)
    for size, lead, mask in ((2, 0xC0, 0x1F), (3, 0xE0, 0x0F)):  # letters of two and three bytes
        places = begins[data[begins] & ~np.uint8(mask) == lead]
        letters = (data[places] & mask).astype(np.int32)
        for after in range(1, size):
            letters = letters << 6 | data[places + after] & 0x3F
        is_upper, table = np.zeros(1 << 16, dtype=bool), np.zeros((1 << 16, size), dtype=np.uint8)
        for letter in np.flatnonzero(np.bincount(letters)).tolist():
            folded = _encode(chr(letter).casefold())
            if len(folded) == size and folded != _encode(chr(letter)):
                is_upper[letter], table[letter] = True, list(folded)
        upper = is_upper[letters]
        data[places[upper, None] + np.arange(size)] = table[letters[upper]]
    return data.tobytes()


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")
