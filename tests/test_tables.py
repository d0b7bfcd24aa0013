import math

from tkg_incremental.tables import format_table, html_table, show_number


def test_numbers() -> None:
    shown = {12345.6: "12,346", 12.345: "12.35", 0.0123: "0.0123", 0.0: "0.00", 7: "7", -0.02: "-0.02"}
    assert {value: show_number(value) for value in shown} == shown
    assert show_number(math.nan) == "–"


def test_numbers_are_aligned_to_the_right() -> None:
    lines = ["name   long", "────  ─────", "x      1.00", "yy    22.50"]
    assert format_table(["name", "long"], [["x", 1.0], ["yy", 22.5]]).splitlines() == lines


def test_wide_letters() -> None:
    lines = ["a     b", "────  ─", "東京  1", "x     2"]
    assert format_table(["a", "b"], [["東京", 1], ["x", 2]]).splitlines() == lines


def test_html_is_escaped() -> None:
    page = html_table(["name", "score"], [["<b>Eve</b>\x1b", 3.5]], "a & b")
    assert page == (
        "<table><caption>a &amp; b</caption><thead><tr><th>name</th><th>score</th></tr></thead>"
        "<tbody><tr><td>&lt;b&gt;Eve&lt;/b&gt;\\x1b</td><td>3.50</td></tr></tbody></table>"
    )
