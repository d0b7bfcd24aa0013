"""Names of the store by id, and ids by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from graphs import small_store

from tkg_incremental.live import FactStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FactStore]:
    with small_store(tmp_path) as store:
        yield store


def test_names(store: FactStore) -> None:
    names = store.entities
    ann = store.entities.find("Ann")
    assert ann is not None
    assert (names.index("Ann"), names.index("ANN"), names.index(7), names[ann]) == (ann, ann, 7, "Ann")
    with pytest.raises(KeyError, match="no entity is called 'an'; the nearest are 'Ann'"):
        names.index("an")
    with pytest.raises(KeyError, match="no relation is called 'leeds'; the nearest are 'leads'"):
        store.relations.index("leeds")
    assert names[99] == "(erased entity 99)"


def test_names_without_a_row_of_the_model_are_unknown(store: FactStore) -> None:
    last = store.entities[store.num_entities - 1]
    assert store.entities.index(last) == store.num_entities - 1
    for name in (last, last.upper()):
        with pytest.raises(KeyError, match="no entity is called"):
            store.entities.up_to(store.num_entities - 1).index(name)


def test_hints_and_case_in_any_script(store: FactStore) -> None:
    """Erased names, names with a zero character in them, and two that differ in case."""
    names, size = store.entities, store.num_entities
    store.connection.execute("BEGIN")
    ids = {name: names.add(name) for name in ("a\0b", "Żółć", "Ёлка", "Kim Park", "KIM PARK", "Zoë van Dyke")}
    store.connection.execute("UPDATE entities SET name = NULL WHERE id = ?", (size - 1,))
    store.connection.execute("COMMIT")
    assert [names.index(name) for name in ("żÓŁĆ", "ёЛКА", "a\0b")] == [ids[n] for n in ("Żółć", "Ёлка", "a\0b")]
    with pytest.raises(KeyError, match="entity 'kim park' is ambiguous: it may be 'KIM PARK', 'Kim Park'"):
        names.index("kim park")
    with pytest.raises(KeyError, match="no entity is called 'Zoe van Dike'; the nearest are 'Zoë van Dyke'"):
        names.index("Zoe van Dike")
    with pytest.raises(KeyError, match="no entity is called ''.$"):
        names.index("")
