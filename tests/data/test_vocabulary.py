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
    with pytest.raises(KeyError, match="no country is called 'germany'; the nearest are 'Germany', 'West Germany'"):
        vocabulary.index("germany")
    with pytest.raises(KeyError) as error:
        vocabulary.index("xyz")
    assert error.value.args == ("no country is called 'xyz'",)


@pytest.mark.parametrize("index", [-1, 4])
def test_an_id_out_of_range(index: int) -> None:
    with pytest.raises(KeyError, match=rf"country id must lie in 0 … 3 \(got {index}\)"):
        Vocabulary(NAMES, kind="country").index(index)


def test_the_first_of_two_equal_names_keeps_it() -> None:
    assert Vocabulary(["a", "b", "a"]).index("a") == 0
