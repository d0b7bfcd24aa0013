"""Text to print: names from data files, and counts."""

from __future__ import annotations

import unicodedata


def printable(name: str) -> str:
    r"""Escapes the characters of a name that could control a terminal or reorder a line.

    These are the control characters (C0 and C1: NUL, CR, ESC, …), format characters (bidi overrides, zero-width
    characters), line and paragraph separators, surrogates and unassigned characters. Spaces are kept.

    >>> print(printable("\x1b[31mred\r"))
    \x1b[31mred\r
    """
    if name.isprintable():
        return name
    return "".join(
        sign if sign.isprintable() or unicodedata.category(sign) == "Zs" else sign.encode("unicode_escape").decode()
        for sign in name
    )


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """A number of things.

    >>> counted(1, "change"), counted(2, "new entity", "new entities")
    ('1 change', '2 new entities')
    """
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
