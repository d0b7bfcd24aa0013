import pytest

from tkg_incremental.text import counted, printable


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Köln, 東京 😀", "Köln, 東京 😀"),
        ("a\u00a0b\u3000c", "a\u00a0b\u3000c"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),  # OSC
        ("\x1b[2J", r"\x1b[2J"),  # CSI
        ("\x9b31m", r"\x9b31m"),  # CSI as one C1 character
        ("a\0b", r"a\x00b"),
        ("real\rfake", r"real\rfake"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\u202egnp.exe", r"\u202egnp.exe"),  # right-to-left override
        ("\u2066a\u2069", r"\u2066a\u2069"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("line\u2028break", r"line\u2028break"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("", ""),
    ],
)
def test_printable(name: str, expected: str) -> None:
    assert printable(name) == expected


def test_counted() -> None:
    assert [counted(n, "line") for n in (0, 1, 2)] == ["0 lines", "1 line", "2 lines"]
    assert counted(3, "new entity", "new entities") == "3 new entities"
