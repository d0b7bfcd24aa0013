"""Names of entities and relations, and the ids behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from tkg_incremental.data.nearest import NameSearch, name_error

_LOOKUPS_WITHOUT_IDS = 4


class Vocabulary:
    """A list of names that can be looked up in both directions.

    A name is found by its exact text, then as an alias, then without regard to case if that is unambiguous. A name
    that is not found raises a :class:`KeyError` that suggests the nearest ones.

    Args:
        names: The name of every id, in order.
        kind: What the names are of; used in error messages.
        aliases: Further names, each with the name or the id it stands for: ``{"USA": "United States", "Q30": 12}``.
            A name takes precedence over an alias of the same text.

    >>> vocabulary = Vocabulary(["France", "United States"], kind="entity", aliases={"USA": "United States"})
    >>> vocabulary.index("France"), vocabulary.index("france"), vocabulary.index("USA"), vocabulary[1]
    (0, 0, 1, 'United States')
    """

    def __init__(
        self, names: Sequence[str], kind: str = "name", aliases: Mapping[str, str | int] | None = None
    ) -> None:
        self.names = list(names)
        self.kind = kind
        self.aliases = dict(aliases or {})
        self._lookups = 0
        self._alias_ids = {alias: self._target(alias, name) for alias, name in self.aliases.items()}

    @cached_property
    def _ids(self) -> dict[str, int]:
        # Two ids may share a label (a label file need not be unique): the first keeps the name.
        return dict(zip(reversed(self.names), reversed(range(len(self.names))), strict=True))

    def _id(self, name: str) -> int | None:
        # A million names take 0.4 s to hash and 0.01 s to compare: a single question needs no dictionary.
        self._lookups += 1
        if self._lookups > _LOOKUPS_WITHOUT_IDS:
            return self._ids.get(name)
        return self.names.index(name) if name in self.names else None

    @cached_property
    def _search(self) -> NameSearch:
        return NameSearch(self.names)

    def _target(self, alias: str, name: str | int) -> int:
        index = self._id(name) if isinstance(name, str) else name
        if index is None or not 0 <= index < len(self.names):
            raise ValueError(f"aliases must stand for names that exist (got {alias!r} for {name!r})")
        return index

    def index(self, name: str | int, exact: bool = False) -> int:
        """The id of a name; an id is checked and returned as it is.

        Args:
            name: A name, an alias or an id.
            exact: Whether upper and lower case must agree.
        """
        if isinstance(name, int):
            if not 0 <= name < len(self.names):
                raise KeyError(f"{self.kind} id must lie in 0 … {len(self.names) - 1} (got {name})")
            return name
        index = self._id(name)
        if index is None:
            index = self._alias_ids.get(name)
        if index is not None:
            return index
        found = {} if exact else self._ignoring_case(name)
        if len(found) == 1:
            return next(iter(found.values()))
        raise name_error(self.kind, name, list(found), self.nearest(name))

    def nearest(self, name: str, count: int = 3) -> list[str]:
        """The names most like ``name``, ignoring case."""
        return [self.names[index] for index in self._search.nearest(name, count)]

    def _ignoring_case(self, name: str) -> dict[str, int]:
        """Names and aliases that differ from ``name`` in case only; one entry per id they stand for."""
        found: dict[str, int] = {}
        for index in self._search.equal(name):
            found.setdefault(self.names[index], index)
        known = set(found.values())
        folded = name.casefold()
        for alias, index in self._alias_ids.items():
            if index not in known and alias.casefold() == folded:
                found[alias] = index
                known.add(index)
        return found

    def __contains__(self, name: object) -> bool:
        """Whether a name or an alias is written exactly like this."""
        return name in self._ids or name in self._alias_ids

    def __getitem__(self, index: int) -> str:
        return self.names[index]

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} × {self.kind})"
