import pytest

from tkg_incremental.data import Vocabulary

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
