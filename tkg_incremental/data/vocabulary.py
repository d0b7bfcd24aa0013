"""Names of entities and relations, and the ids behind them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from functools import cached_property


class Vocabulary:
    """A list of names that can be looked up in both directions.

    A name that is not there raises a :class:`KeyError` that suggests the nearest ones.

    Args:
        names: The name of every id, in order.
        kind: What the names are of; used in error messages.

    >>> vocabulary = Vocabulary(["France", "Germany"], kind="entity")
    >>> vocabulary.index("Germany"), vocabulary.index(0), vocabulary[1]
    (1, 0, 'Germany')
    """

    def __init__(self, names: Sequence[str], kind: str = "name") -> None:
        self.names = list(names)
        self.kind = kind

    @cached_property
    def _ids(self) -> dict[str, int]:
        # Two ids may share a label (a label file need not be unique): the first keeps the name.
        return dict(zip(reversed(self.names), reversed(range(len(self.names))), strict=True))

    def index(self, name: str | int) -> int:
        """The id of a name; an id is checked and returned as it is."""
        if isinstance(name, int):
            if not 0 <= name < len(self.names):
                raise KeyError(f"{self.kind} id must lie in 0 … {len(self.names) - 1} (got {name})")
            return name
        if name in self._ids:
            return self._ids[name]
        near = self.nearest(name)
        hint = f"; the nearest are {', '.join(map(repr, near))}" if near else ""
        raise KeyError(f"no {self.kind} is called {name!r}{hint}")

    def nearest(self, name: str, count: int = 3) -> list[str]:
        """The names most like ``name``, ignoring case."""
        folded: dict[str, str] = {}
        for known in self._ids:
            folded.setdefault(known.casefold(), known)
        wanted = name.casefold()
        inside = sorted((known for known in folded if wanted and wanted in known), key=len)
        close = difflib.get_close_matches(wanted, folded, n=count, cutoff=0.5)
        return [folded[key] for key in dict.fromkeys([*close, *inside])][:count]

    def __contains__(self, name: object) -> bool:
        return name in self._ids

    def __getitem__(self, index: int) -> str:
        return self.names[index]

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} × {self.kind})"
