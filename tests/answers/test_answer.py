"""Answers as text and as tables."""

from tkg_incremental.answers import Answer, Answers


def test_notebooks_show_answers_as_a_table() -> None:
    answers = Answers([Answer("<b>Ann</b>", 0.97, 3.25, ("2001", None)), Answer("Bo", None, 1.0, None)])
    page = answers._repr_html_()
    assert "<td>&lt;b&gt;Ann&lt;/b&gt;</td><td>97%</td><td>3.25</td><td>since 2001</td>" in page
    assert "<td>Bo</td><td></td><td>1.00</td><td></td>" in page


def test_the_time_of_an_answer_as_text() -> None:
    known = [Answer("Ann", 0.9, 1.0, period) for period in (("2001", None), ("2001", "2004"))]
    over = [Answer("Ann", 0.01, 1.0, None, "2005"), Answer("Ann", 0.01, 1.0, None, "2005", "2009")]
    assert [answer.period for answer in known + over] == [
        "since 2001",
        "2001 … 2004",
        "ended 2005",
        "ended 2005, begins 2009",
    ]
    assert Answer("Ann", 0.5, 1.0, None).period == ""
