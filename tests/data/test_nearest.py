"""Similar names among many."""

from __future__ import annotations

import difflib
import random

import numpy as np
import pytest

from tkg_incremental.data import Vocabulary, nearest
from tkg_incremental.data.nearest import NameSearch, _encode, _grams, fold


def test_a_hint_among_many_names_compares_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing all of a million names with difflib would take 16 s."""
    draw = random.Random(0)
    syllables = ["ka", "lo", "mi", "ster", "ton", "berg", "an", "vi", "ch", "é", "du", "ra"]
    names = ["".join(draw.choices(syllables, k=draw.randint(3, 8))) + f" {i}" for i in range(100_000)]
    names[65_432], names[70_000] = "Angela Merkel", "Iran"
    compared = []
    close_matches = difflib.get_close_matches

    def count(word: str, among: dict[str, int], n: int, cutoff: float) -> list[str]:
        compared.append(len(among))
        return close_matches(word, among, n, cutoff)

    monkeypatch.setattr(difflib, "get_close_matches", count)
    vocabulary = Vocabulary(names, "entity")
    with pytest.raises(KeyError, match="'Angela Merkel'"):
        vocabulary.index("Angla Merkle")
    assert vocabulary.nearest("Iarn")[0] == "Iran"
    assert "Angela Merkel" in vocabulary.nearest("merkel")
    assert max(compared) <= 200


@pytest.mark.parametrize("size", [2, 3])
def test_occurrences_of_n_grams(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "_CHUNK", 4)
    text = b"abcab\0\xc3\xa9bca"
    for length in range(size, len(text) + 1):
        search = NameSearch(text[:length])
        data = search._data
        wanted = {data[i : i + size] for i in (0, 2, length - 1)}
        keys = np.unique([_grams(np.frombuffer(gram, dtype=np.uint8), size)[0] for gram in wanted])
        found = np.sort(np.concatenate(search._occurrences(keys, size))).tolist()
        assert found == [i for i in range(len(data) - size + 1) if data[i : i + size] in wanted]


def test_every_letter_is_folded_alone() -> None:
    """A letter of four bytes, or one whose folded form has another length, stays."""
    for code in range(0, 0x11000, 7):
        letter = _encode(chr(code))
        folded = _encode(chr(code).casefold())
        assert fold(letter) == (folded if len(folded) == len(letter) < 4 else letter), hex(code)


def test_names_that_differ_in_case_alone() -> None:
    search = NameSearch(["Ann", "ANN", "ann", "Bob"])
    assert search.equal("aNN") == [0, 1, 2]
    assert search.equal("aNN", limit=2) == [0, 1]


def test_short_names_are_nearer_than_long_ones_that_contain_them() -> None:
    """Among more names than are compared one by one, the share of common trigrams decides."""
    names = [f"{'x' * 40} alexander {number} {'y' * 40}" for number in range(400)] + ["alexandre"]
    assert NameSearch(names).nearest("alexander", 1) == [400]


def test_a_part_of_a_name_finds_it_before_similar_names() -> None:
    names = ["Amman", "Yamina", "Osama", "Obamacare", "Michelle Obama", "Barack Obama"]
    found = [names[index] for index in NameSearch(names).nearest("Obama", 4)]
    assert found == ["Barack Obama", "Michelle Obama", "Osama", "Obamacare"]


def test_names_of_one_pattern_are_told_apart_by_what_few_of_them_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most n-grams of such names are in all of them; counting those would take four times as long."""
    monkeypatch.setattr(nearest, "_HITS", 10_000)
    search = NameSearch([f"Person {i:05d} of Town {i % 97}" for i in range(20_000)])
    assert search.nearest(f"Persn 12345 of Town {12345 % 97}", 1) == [12_345]
    common, rare = (set(_grams(np.frombuffer(text, dtype=np.uint8), 3).tolist()) for text in (b"person", b"12345"))
    kept = set(search._rarest(np.array(sorted(common | rare)), 3).tolist())
    assert kept >= rare
    assert not kept & common
