import random
import time

import numpy as np
import pytest

from tkg_incremental.data import Vocabulary, nearest
from tkg_incremental.data.nearest import NameSearch, _grams

NAMES = ["France", "Germany", "West Germany", "Ghana"]


def test_both_directions() -> None:
    vocabulary = Vocabulary(NAMES, kind="country")
    assert str(vocabulary) == "Vocabulary(4 × country)"
    assert len(vocabulary) == 4
    assert list(vocabulary) == NAMES
    assert [vocabulary.index(name) for name in NAMES] == [0, 1, 2, 3]
    assert vocabulary.index(2) == 2
    assert vocabulary[2] == "West Germany"
    assert "Ghana" in vocabulary
    assert "Peru" not in vocabulary


def test_a_name_that_is_not_there_gets_the_nearest() -> None:
    vocabulary = Vocabulary(NAMES, kind="country")
    with pytest.raises(KeyError, match="no country is called 'grmany'; the nearest are 'Germany', 'West Germany'"):
        vocabulary.index("grmany")
    with pytest.raises(KeyError, match="no country is called 'germany'; the nearest are 'Germany'"):
        vocabulary.index("germany", exact=True)
    with pytest.raises(KeyError) as error:
        vocabulary.index("xyz")
    assert error.value.args == ("no country is called 'xyz'",)


@pytest.mark.parametrize("index", [-1, 4])
def test_an_id_out_of_range(index: int) -> None:
    with pytest.raises(KeyError, match=rf"country id must lie in 0 … 3 \(got {index}\)"):
        Vocabulary(NAMES, kind="country").index(index)


def test_the_first_of_two_equal_names_keeps_it() -> None:
    assert Vocabulary(["a", "b", "a"]).index("a") == 0


def test_case_is_ignored_when_that_is_unambiguous() -> None:
    vocabulary = Vocabulary([*NAMES, "Straße", "us", "US"], kind="country")
    assert vocabulary.index("wEST germany") == 2
    assert vocabulary.index("STRASSE") == 4
    assert (vocabulary.index("us"), vocabulary.index("US")) == (5, 6)
    with pytest.raises(KeyError, match="country 'Us' is ambiguous: it may be 'US', 'us'"):
        vocabulary.index("Us")
    assert "germany" not in vocabulary
    assert Vocabulary(["a", "b", "a"]).index("A") == 0


def test_aliases() -> None:
    aliases = {"FRG": "West Germany", "Q183": 1, "Ghana": "France", "Gold Coast": "Ghana"}
    vocabulary = Vocabulary(NAMES, "country", aliases)
    assert [vocabulary.index(name) for name in ("FRG", "frg", "Q183", "gold coast")] == [2, 2, 1, 3]
    assert vocabulary.index("Ghana") == 3  # the name takes precedence
    assert "FRG" in vocabulary
    assert len(vocabulary) == 4
    with pytest.raises(ValueError, match=r"aliases must stand for names that exist \(got 'x' for 'Peru'\)"):
        Vocabulary(NAMES, aliases={"x": "Peru"})
    with pytest.raises(ValueError, match=r"\(got 'x' for 4\)"):
        Vocabulary(NAMES, aliases={"x": 4})
    with pytest.raises(KeyError, match="'A B' is ambiguous"):
        Vocabulary(["a b", "c"], aliases={"A b": "c"}).index("A B")


def test_names_with_odd_characters() -> None:
    names = ["a\0b", "Ünal", "", "tab\tname", "\ud800"]
    vocabulary = Vocabulary(names)
    assert [vocabulary.index(name) for name in names] == list(range(5))
    assert vocabulary.index("üNAL") == 1
    for unknown in ("a\0c", "\0", "x" * 1000, "\ud801"):
        with pytest.raises(KeyError):
            vocabulary.index(unknown)
    with pytest.raises(KeyError):
        Vocabulary([]).index("")
    with pytest.raises(KeyError):
        Vocabulary(["", "b"]).index("c")


def test_a_hint_among_a_million_names_is_fast() -> None:
    draw = random.Random(0)
    syllables = ["ka", "lo", "mi", "ster", "ton", "berg", "an", "vi", "ch", "é", "du", "ra"]
    names = ["".join(draw.choices(syllables, k=draw.randint(3, 8))) + f" {i}" for i in range(1_000_000)]
    names[654_321], names[700_000] = "Angela Merkel", "Iran"
    vocabulary = Vocabulary(names, "entity")
    start = time.process_time()
    with pytest.raises(KeyError, match="'Angela Merkel'"):
        vocabulary.index("Angla Merkle")
    assert time.process_time() - start < 0.9  # 0.4 s on an idle core; difflib over all names takes 16 s
    assert vocabulary.nearest("Iarn")[0] == "Iran"
    assert "Angela Merkel" in vocabulary.nearest("merkel")


def test_names_that_differ_in_case_alone() -> None:
    search = NameSearch(["Ann", "ANN", "ann", "Bob"])
    assert search.equal("aNN") == [0, 1, 2]
    assert search.equal("aNN", limit=2) == [0, 1]


def test_short_names_are_nearer_than_long_ones_that_contain_them() -> None:
    """Among more names than are compared one by one, the share of common trigrams decides."""
    names = [f"{'x' * 40} alexander {number} {'y' * 40}" for number in range(400)] + ["alexandre"]
    assert NameSearch(names).nearest("alexander", 1) == [400]


def test_names_of_one_pattern_are_told_apart_by_what_few_of_them_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most n-grams of such names are in all of them; counting those would take four times as long."""
    monkeypatch.setattr(nearest, "_HITS", 10_000)
    search = NameSearch([f"Person {i:05d} of Town {i % 97}" for i in range(20_000)])
    assert search.nearest(f"Persn 12345 of Town {12345 % 97}", 1) == [12_345]
    common, rare = (set(_grams(np.frombuffer(text, dtype=np.uint8), 3).tolist()) for text in (b"person", b"12345"))
    kept = set(search._rarest(np.array(sorted(common | rare)), 3).tolist())
    assert kept >= rare
    assert not kept & common
